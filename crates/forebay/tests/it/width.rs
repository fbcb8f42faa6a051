//! No line is wider than the terminal: 80 columns where none says how many it has.

use std::process::{Command, Output};

use crate::checkpoint::save;
use crate::dir::Dir;
use crate::study;
use crate::workload::TINY;

/// Every command that ends within a moment, with its results and its refusals.
const LINES: &[&str] = &[
    "--help",
    "--version",
    "bogus",
    "checkpoint --help",
    "checkpoint bench --help",
    "checkpoint bench bench --size 1MB --saves 1 --no-ceiling",
    "checkpoint convert slow/step-000000000020/model.safetensors out --to tensorflow",
    "checkpoint drain slower --burst-dir slow",
    "checkpoint ls slow --burst-dir fast",
    "checkpoint prune slow --keep 1",
    "checkpoint restore slow --to out.safetensors",
    "checkpoint restore slow --to model --step 999",
    "checkpoint verify slow",
    "completions --help",
    "data --help",
    "data decode set --size 8 --to set.npy",
    "data decode set --size 8",
    "data inspect broken",
    "data inspect gone",
    "data inspect set",
    "data make caltech101 made --count 4",
    "data make caltech101 made --count 4 --dry-run",
    "data pack broken shards --to tar",
    "data pack set shards --to tfrecord --dry-run",
    "data pack set shards --to zip",
    "data verify broken",
    "doctor",
    "ingest --help",
    "ingest set --threads 1,2 --repeats 2",
    "ingest set --threads 1 --repeats 2 --tier ssd",
    "ingest set --threads 1 --repeats 1 --cold",
    "ingest set --io nonsense",
    "ingest set --dry-run",
    "man --help",
    "probe --help",
    "probe . --dry-run",
    "probe . --random --size 1MiB --depth 1 --runs 2",
    "report --help",
    "report run.json",
    "report run.json run.json",
    "report set",
    "study --help",
    "study list",
    "study run chien-2018 --dry-run",
    "study run hugen-2025 --dry-run",
    "study run tiny.toml --dataset set=set --out run",
    "study show chien-2018",
    "study show hugen-2025",
    "study show nelson-2022",
    "tier --help",
    "tier down gone",
    "tier list",
    "tier up tape",
    "train --help",
    "train set --accelerator emulated:1ms --steps 4 --batch 4",
    "train set --accelerator emulated:1ms --steps 4 --batch 4 --checkpoint-every 2 --checkpoint-size 1MB --checkpoint-dir saves",
    "train set --accelerator emulated:1ms --steps 4 --batch 4 --dry-run",
    "train --synthetic --steps 2 --batch 2 --model alexnet-small",
    "watch --help",
    "watch --interval 10ms --count 2",
    "watch --interval 10ms -- true",
    "workload --help",
    "workload check tiny.yaml unet3d_h100",
    "workload list",
    "workload make tiny.yaml --data records",
    "workload run tiny.yaml --data records",
    "workload run tiny.yaml --data records --dry-run",
    "workload show bert_v100",
    "workload show llama_70b",
    "workload show unet3d_h100",
    "workload size unet3d_h100 --accelerators 8 --host-memory 512GiB --hosts 2",
];

fn with_everything() -> Dir {
    let dir = Dir::with_set();
    for (name, bytes) in dir.images("set") {
        let is_cut = name.ends_with("_000004.jpg");
        dir.write(format!("broken/{name}"), if is_cut { &bytes[..bytes.len() / 2] } else { &bytes });
    }
    save(&dir, "slow", "safetensors", &[20, 40]);
    save(&dir, "fast", "safetensors", &[40]);
    dir.write("tiny.yaml", TINY);
    dir.write("tiny.toml", study::TINY);
    dir.met("ingest set --threads 1,2 --repeats 2 --warmups 0 --json run.json");
    dir.met("tier up hdd --shaped");
    dir
}

/// Columns of a line. None of the texts has characters of two columns.
fn columns(line: &str) -> usize {
    line.chars().count()
}

/// The lines that are too wide and could have been broken: a path or an option may be wider than any terminal.
fn too_wide(output: &Output, width: usize) -> Vec<String> {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains('\x1b'), "no escape codes off a terminal: {text}");
    let is_wide = |line: &&str| {
        let said = line.strip_suffix(" \\").unwrap_or(line);
        columns(line) > width && said.split_whitespace().count() > 1
    };
    text.lines().filter(is_wide).map(str::to_owned).collect()
}

#[test]
fn every_line_has_at_most_80_columns_off_a_terminal() {
    let dir = with_everything();
    for line in LINES {
        let output = dir.command(line).output().unwrap();
        assert_eq!(too_wide(&output, 80), [] as [&str; 0], "{line}");
    }
}

#[test]
fn a_narrow_terminal_is_heeded() {
    let dir = with_everything();
    for line in LINES {
        let output = dir.command(line).env("COLUMNS", "60").output().unwrap();
        assert_eq!(too_wide(&output, 60), [] as [&str; 0], "{line}");
    }
    let wide = dir.command("ingest --help").env("COLUMNS", "120").output().unwrap();
    let longest = String::from_utf8(wide.stdout).unwrap().lines().map(columns).max();
    assert!(longest.is_some_and(|longest| (81..=120).contains(&longest)), "{longest:?}");
}

#[test]
fn a_script_and_a_file_keep_their_lines() {
    let dir = Dir::new();
    let script = dir.met("workload slurm unet3d_h100 --nodes 4 --ranks-per-node 2 --data data");
    dir.write("job.sh", &script);
    let checked = Command::new("bash").args(["-n", "job.sh"]).current_dir(dir.path("")).output().unwrap();
    assert!(checked.status.success() && script.lines().any(|line| columns(line) > 80), "{checked:?}\n{script}");
}
