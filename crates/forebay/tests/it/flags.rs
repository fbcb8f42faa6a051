//! An option that does nothing does not exist: every flag that a command's help names is used by that command's tests.

use crate::dir::Dir;

const PROBE: [&str; 4] = [
    include_str!("probe.rs"),
    include_str!("probe_ceiling.rs"),
    include_str!("probe_preflight.rs"),
    include_str!("probe_stop.rs"),
];

const INGEST: [&str; 9] = [
    LIMIT,
    include_str!("ingest_cache.rs"),
    include_str!("ingest_io.rs"),
    include_str!("ingest_order.rs"),
    include_str!("ingest_output.rs"),
    include_str!("ingest_record.rs"),
    include_str!("ingest_rounds.rs"),
    include_str!("ingest_tier.rs"),
    include_str!("probe_ceiling.rs"),
];

const CHECKPOINT: [&str; 6] = [
    include_str!("checkpoint_bench.rs"),
    include_str!("checkpoint_convert.rs"),
    include_str!("checkpoint_damage.rs"),
    include_str!("checkpoint_folders.rs"),
    include_str!("checkpoint_prune.rs"),
    include_str!("checkpoint_targets.rs"),
];

/// The tests of the limit on samples.
const LIMIT: &str = include_str!("large_files.rs");

/// The long flags that a command's help names at the start of a line.
fn flags(help: &str) -> Vec<&str> {
    let named = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let long = named.filter_map(|line| line.split([' ', ',', '[']).find(|word| word.starts_with("--")));
    long.filter(|flag| !["--help", "--version"].contains(flag)).collect()
}

#[test]
fn every_flag_of_every_command_is_used_in_a_test() {
    let commands: &[(&str, &[&str], usize)] = &[
        ("checkpoint bench", &[include_str!("checkpoint_bench.rs")], 12),
        ("checkpoint ls", &CHECKPOINT, 2),
        ("checkpoint verify", &CHECKPOINT, 5),
        ("checkpoint drain", &CHECKPOINT, 5),
        ("checkpoint prune", &CHECKPOINT, 6),
        ("checkpoint restore", &CHECKPOINT, 7),
        ("checkpoint convert", &CHECKPOINT, 4),
        ("data make", &[include_str!("make.rs")], 8),
        ("data inspect", &[include_str!("inspect.rs"), LIMIT], 3),
        ("data pack", &[include_str!("pack.rs"), include_str!("bad_files.rs"), LIMIT], 10),
        ("data verify", &[include_str!("verify.rs"), LIMIT], 3),
        ("data decode", &[include_str!("decode.rs"), LIMIT], 6),
        ("ingest", &INGEST, 24),
        ("probe", &PROBE, 14),
        (
            "train",
            &[include_str!("train.rs"), include_str!("train_flags.rs"), include_str!("train_checkpoint.rs"), LIMIT],
            36,
        ),
        ("watch", &[include_str!("watch.rs"), include_str!("watch_command.rs")], 3),
        ("report", &[include_str!("report_page.rs"), include_str!("report_dlio.rs")], 5),
        ("tier up", &[include_str!("tier.rs"), include_str!("tier_kernel.rs")], 7),
        ("tier down", &[], 0),
        ("tier list", &[include_str!("tier.rs")], 1),
        ("study list", &[], 0),
        ("study show", &[include_str!("study.rs")], 1),
        ("study run", &[include_str!("study.rs"), include_str!("study_resume.rs")], 8),
        ("workload list", &[include_str!("workload.rs")], 1),
        ("workload show", &[include_str!("workload.rs")], 2),
        ("workload check", &[include_str!("workload.rs")], 1),
        ("workload import", &[], 0),
        ("workload size", &[include_str!("workload.rs")], 4),
        ("workload make", &[include_str!("workload_make.rs")], 3),
        ("workload run", &[include_str!("workload_run.rs")], 12),
        ("workload slurm", &[include_str!("workload.rs")], 4),
    ];
    let dir = Dir::new();
    for &(command, tests, n_flags) in commands {
        let help = dir.met(&format!("{command} --help"));
        let flags = flags(&help);
        assert_eq!(flags.len(), n_flags, "forebay {command}: {flags:?}");
        for flag in flags {
            assert!(tests.iter().any(|text| text.contains(flag)), "no test of forebay {command} uses {flag}");
        }
    }
}
