//! An option that does nothing does not exist: every flag that a command's help names is used by that command's tests.

use crate::dir::Dir;

const PROBE: [&str; 4] = [
    include_str!("probe.rs"),
    include_str!("probe_ceiling.rs"),
    include_str!("probe_preflight.rs"),
    include_str!("probe_stop.rs"),
];

/// The flags that all readers of datasets share.
const INPUT: [&str; 2] = [include_str!("splits.rs"), include_str!("tfds.rs")];

const TRAIN: [&str; 7] = [
    include_str!("train.rs"),
    include_str!("train_flags.rs"),
    include_str!("train_checkpoint.rs"),
    INPUT[0],
    INPUT[1],
    LIMIT,
    OBJECTS,
];

/// The settings are those of train, through the same table.
const TUNE: [&str; 7] = [include_str!("tune.rs"), TRAIN[0], TRAIN[1], TRAIN[2], TRAIN[3], TRAIN[4], TRAIN[5]];

const INGEST: [&str; 12] = [
    OBJECTS,
    INPUT[0],
    INPUT[1],
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

const CHECKPOINT: [&str; 7] = [
    include_str!("objects_checkpoint.rs"),
    include_str!("checkpoint_bench.rs"),
    include_str!("checkpoint_convert.rs"),
    include_str!("checkpoint_damage.rs"),
    include_str!("checkpoint_folders.rs"),
    include_str!("checkpoint_prune.rs"),
    include_str!("checkpoint_targets.rs"),
];

/// The flags that readers of object stores share.
const OBJECTS: &str = include_str!("objects.rs");

/// Every command with an output is tried with `--force`.
const OUTPUTS: &str = include_str!("outputs.rs");

/// The tests of the limit on samples.
const LIMIT: &str = include_str!("large_files.rs");

/// The long flags that a command's help names at the start of a line. Their texts, which are further in, and the examples
/// below them may have a line that begins with a flag too.
fn flags(help: &str) -> Vec<&str> {
    let is_heading = |line: &str| line.ends_with(':') && !line.starts_with("Example");
    let is_of_options = |line: &&str| line.is_empty() || line.starts_with(' ') || is_heading(line);
    let options = help.lines().skip_while(|line| *line != "Options:").skip(1).take_while(is_of_options);
    let is_flag = |line: &&str| line.starts_with("  -") || line.starts_with("      -");
    let named = options.filter(is_flag).map(str::trim_start);
    let long = named.filter_map(|line| line.split([' ', ',', '[']).find(|word| word.starts_with("--")));
    long.filter(|flag| !["--help", "--version"].contains(flag)).collect()
}

#[test]
fn every_flag_of_every_command_is_used_in_a_test() {
    let commands: &[(&str, &[&str], usize)] = &[
        ("checkpoint bench", &[include_str!("checkpoint_bench.rs"), CHECKPOINT[0]], 17),
        ("checkpoint ls", &CHECKPOINT, 5),
        ("checkpoint verify", &CHECKPOINT, 8),
        ("checkpoint drain", &CHECKPOINT, 8),
        ("checkpoint prune", &CHECKPOINT, 9),
        ("checkpoint restore", &CHECKPOINT, 9),
        ("checkpoint convert", &CHECKPOINT, 4),
        ("data make", &[include_str!("make.rs"), OBJECTS], 11),
        ("data inspect", &[include_str!("inspect.rs"), INPUT[0], INPUT[1], LIMIT, OBJECTS], 9),
        ("data pack", &[include_str!("pack.rs"), include_str!("bad_files.rs"), INPUT[0], INPUT[1], LIMIT, OBJECTS], 15),
        ("data verify", &[include_str!("verify.rs"), INPUT[0], INPUT[1], LIMIT, OBJECTS], 9),
        ("data decode", &[include_str!("decode.rs"), INPUT[0], INPUT[1], LIMIT, OBJECTS], 16),
        ("completions", &[], 0),
        ("doctor", &[include_str!("doctor.rs")], 2),
        ("man", &[include_str!("manual.rs")], 3),
        ("ingest", &INGEST, 42),
        ("probe", &PROBE, 17),
        ("train", &TRAIN, 60),
        ("trace", &[include_str!("trace.rs")], 3),
        ("trace export", &[include_str!("trace.rs")], 6),
        ("tune", &TUNE, 50),
        ("watch", &[include_str!("watch.rs"), include_str!("watch_command.rs")], 4),
        ("report", &[include_str!("report_page.rs"), include_str!("report_dlio.rs")], 6),
        ("tier up", &[include_str!("tier.rs"), include_str!("tier_kernel.rs")], 7),
        ("tier down", &[], 0),
        ("tier list", &[include_str!("tier.rs")], 2),
        ("study list", &[], 0),
        ("study show", &[include_str!("study.rs")], 1),
        ("study run", &[include_str!("study.rs"), include_str!("study_resume.rs")], 8),
        ("study slurm", &[include_str!("study_slurm.rs")], 2),
        ("workload list", &[include_str!("workload.rs")], 2),
        ("workload show", &[include_str!("workload.rs")], 3),
        ("workload check", &[include_str!("workload.rs")], 2),
        ("workload import", &[include_str!("replay.rs")], 1),
        ("workload size", &[include_str!("workload.rs")], 5),
        ("workload make", &[include_str!("workload_make.rs")], 5),
        ("workload run", &[include_str!("workload_run.rs")], 17),
        ("workload slurm", &[include_str!("workload.rs")], 4),
    ];
    let dir = Dir::new();
    for &(command, tests, n_flags) in commands {
        let help = dir.met(&format!("{command} --help"));
        let flags = flags(&help);
        assert_eq!(flags.len(), n_flags, "forebay {command}: {flags:?}");
        for flag in flags {
            let mut tests = tests.iter().chain([&OUTPUTS]);
            assert!(tests.any(|text| text.contains(flag)), "no test of forebay {command} uses {flag}");
        }
    }
}
