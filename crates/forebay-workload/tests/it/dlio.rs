//! DLIO's own results: its figures come out again of its times, to the last digit it printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_workload::dlio::{Output, OutputEpoch, PerEpochStats, Run, Summary, Version, parse, read_run, to_json};
use forebay_workload::metric::{Excluded, dlio_of, mean_and_stdev};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn texts(name: &str) -> BTreeMap<String, String> {
    let folder = folder(name);
    let mut texts = BTreeMap::new();
    for below in ["", ".hydra/"] {
        for entry in fs::read_dir(folder.join(below)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let file = path.file_name().unwrap().to_str().unwrap();
                texts.insert(format!("{below}{file}"), fs::read_to_string(&path).unwrap());
            }
        }
    }
    texts
}

fn run(name: &str) -> Run {
    read_run(&texts(name)).unwrap()
}

/// What stands behind a label in the lines that DLIO printed.
fn printed(name: &str, label: &str) -> Vec<String> {
    let text = fs::read_to_string(folder(name).join("printed.txt")).unwrap();
    text.lines().filter_map(|line| Some(line.split_once(label)?.1.trim().to_owned())).collect()
}

#[test]
fn the_utilisation_of_each_block_is_the_printed_one() {
    let run = run("dlio-1");
    assert_eq!(run.version, Version::V2_0);
    let epochs = &run.ranks[0].epochs;
    let blocks = epochs.iter().flat_map(|epoch| &epoch.blocks);
    let ours: Vec<f64> = blocks
        .clone()
        .map(|block| {
            let excluded = Excluded { start: 1, end: 0, steps_per_epoch: 8 };
            block.dlio(run.version, 2, excluded).unwrap().au
        })
        .collect();
    assert_eq!(ours.len(), 4);
    let as_printed: Vec<String> = ours.iter().map(|au| format!("{au:.4}")).collect();
    assert_eq!(as_printed, printed("dlio-1", "[Training] Accelerator Utilization [AU] (%):"));
    for (block, ours) in blocks.zip(ours) {
        let theirs = block.au.unwrap();
        assert!((ours - theirs).abs() <= 1e-12 * theirs, "{ours} is not {theirs}");
    }
}

#[test]
fn the_figures_of_the_run_are_the_printed_ones_on_one_rank_and_on_two() {
    for name in ["dlio-1", "dlio-2"] {
        let run = run(name);
        let dlio = run.dlio().unwrap();
        let show = |(mean, stdev): (f64, f64)| format!("{mean:.4} ({stdev:.4})");
        let au = show(mean_and_stdev(&dlio.au).unwrap());
        assert_eq!([au], printed(name, "Training Accelerator Utilization [AU] (%):")[..], "{name}");
        let samples = show(mean_and_stdev(&dlio.samples_per_s).unwrap());
        assert_eq!([samples], printed(name, "Training Throughput (samples/second):")[..], "{name}");
        let record = run.workload.as_ref().unwrap().dataset.record_length_bytes;
        let mib = show(dlio.mib_per_s(record).unwrap());
        assert_eq!([mib], printed(name, "Training I/O Throughput (MB/second):")[..], "{name}");
        let theirs = run.summary.metric.train.as_ref().unwrap();
        for (ours, theirs) in dlio.au.iter().zip(&theirs.au) {
            assert!((ours - theirs.unwrap()).abs() < 1e-12 * ours, "{name}: {ours} is not {theirs:?}");
        }
    }
}

#[test]
fn the_whole_epoch_is_less_used_than_what_dlio_counts_of_it() {
    let run = run("dlio-2");
    for (whole, dlio) in run.au_epochs().iter().zip(run.dlio().unwrap().au) {
        let whole = whole.unwrap();
        assert!(whole > 0.0 && whole < dlio, "{whole} and {dlio}");
    }
    assert_eq!(run.ranks.len(), 2);
    assert_eq!(run.ranks[1].epochs[0].saves.len(), 1, "the first rank's times of day stand for all");
}

#[test]
fn without_the_workload_the_times_of_day_serve() {
    let mut texts = texts("dlio-1");
    texts.remove(".hydra/config.yaml");
    let run = read_run(&texts).unwrap();
    assert_eq!(run.workload, None);
    let block = &run.ranks[0].epochs[0].blocks[0];
    assert!((block.wall_s.unwrap() - 0.299_426).abs() < 1e-6);
    let theirs = block.au.unwrap();
    let excluded = Excluded { start: 1, end: 0, steps_per_epoch: 8 };
    let ours = block.dlio(run.version, 2, excluded).unwrap().au;
    assert!((ours / theirs - 1.0).abs() < 2e-3, "{ours} is not near {theirs}");
}

#[test]
fn files_are_written_as_they_were_read() {
    let texts = texts("dlio-2");
    let same = |name: &str, written: String| {
        let before: Value = parse(&texts[name]).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), before, "{name}");
    };
    same("summary.json", to_json(&parse::<Summary>(&texts["summary.json"]).unwrap()).unwrap());
    same("1_output.json", to_json(&parse::<Output>(&texts["1_output.json"]).unwrap()).unwrap());
    same("per_epoch_stats.json", to_json(&parse::<PerEpochStats>(&texts["per_epoch_stats.json"]).unwrap()).unwrap());
    let output: Output = parse(&texts["1_output.json"]).unwrap();
    let mut again = Output { hostname: output.hostname.clone(), rest: output.rest.clone() };
    for (epoch, times) in output.epochs().unwrap() {
        again.put(epoch, &times).unwrap();
    }
    assert_eq!(again, output);
}

#[test]
fn figures_that_are_no_numbers_are_nothing() {
    let mut texts = texts("dlio-1");
    let summary = texts["summary.json"].replace("93.32110150804019", "NaN");
    texts.insert("summary.json".to_owned(), summary);
    let train = read_run(&texts).unwrap().summary.metric.train.unwrap();
    assert_eq!((train.au_mean, train.au_stdev), (None, Some(1.254_470_412_911_025_8)));
}

#[test]
fn a_folder_that_lacks_something_says_what() {
    let mut without_ranks = texts("dlio-1");
    without_ranks.remove("0_output.json");
    assert_eq!(read_run(&without_ranks).unwrap_err().to_string(), "there is no 0_output.json");
    assert_eq!(read_run(&BTreeMap::new()).unwrap_err().to_string(), "there is no summary.json");
    let mut torn = texts("dlio-1");
    torn.insert("0_output.json".to_owned(), "{\"1\": ".to_owned());
    assert_eq!(read_run(&torn).unwrap_err().to_string(), "cannot read 0_output.json");
}

/// What a later version writes of one epoch of two blocks, of which the second follows a checkpoint.
fn of_a_later_version() -> BTreeMap<String, String> {
    let excluded = Excluded { start: 1, end: 1, steps_per_epoch: 7 };
    let (compute, whole) = ([vec![0.5; 4], vec![0.5; 3]], [vec![2.5, 0.6, 0.7, 0.6], vec![0.9, 0.6, 0.6]]);
    let walls = [4.625, 2.25];
    let mut epoch = OutputEpoch::default();
    for (i, name) in ["block1", "block2"].into_iter().enumerate() {
        let dlio = dlio_of(&compute[i], &whole[i], walls[i], 3, excluded);
        epoch.au.insert(name.to_owned(), Some(dlio.au));
        epoch.throughput.insert(name.to_owned(), Some(dlio.samples_per_s));
        epoch.compute.insert(name.to_owned(), compute[i].clone());
        epoch.proc.insert(name.to_owned(), whole[i].clone());
    }
    let mut output = Output { hostname: Some("node".to_owned()), ..Output::default() };
    output.put(1, &epoch).unwrap();
    let stats = r#"{"1": {"start": "2026-01-31T23:59:55.000000", "end": "2026-02-01T00:00:03.000100", "duration": "8.00",
        "block1": {"start": "2026-01-31T23:59:55.000010", "end": "2026-01-31T23:59:59.625100", "duration": "4.63"},
        "save_ckpt1": {"start": "2026-01-31T23:59:59.7", "end": "2026-02-01T00:00:00.7", "throughput": NaN},
        "block2": {"start": "2026-02-01T00:00:00.7501", "end": "2026-02-01T00:00:03.000050", "duration": "2.25"}}}"#;
    let config = "reader: {batch_size: 3}\noutput: {metric: {exclude_end_steps: 1}}\n";
    let files = [
        ("summary.json", "{\"metric\": {}}".to_owned()),
        ("0_output.json", to_json(&output).unwrap()),
        ("0_per_epoch_stats.json", stats.to_owned()),
        (".hydra/config.yaml", config.to_owned()),
        ("dlio.log", "not read".to_owned()),
    ];
    files.map(|(name, text)| (name.to_owned(), text)).into()
}

#[test]
fn a_later_version_is_known_by_its_clock() {
    let run = read_run(&of_a_later_version()).unwrap();
    assert_eq!(run.version, Version::Later);
    let epoch = &run.ranks[0].epochs[0];
    for (block, wall_s) in epoch.blocks.iter().zip([4.625, 2.25]) {
        assert!((block.wall_s.unwrap() - wall_s).abs() < 1e-12, "{} was {wall_s} s", block.name);
    }
    assert_eq!(epoch.saves.len(), 1);
    assert!((epoch.saves[0].span.seconds() - 1.0).abs() < 1e-6);
    // 3.5 s were computed in 8.0001 s, a second of which was the checkpoint's.
    assert!((run.au_epochs()[0].unwrap() - 350.0 / 8.0001).abs() < 1e-4);
    assert!((epoch.first_batch_s() - 2.000_01).abs() < 1e-6, "{}", epoch.first_batch_s());
    let dlio = run.dlio().unwrap();
    let blocks: Vec<f64> = epoch.blocks.iter().map(|block| block.au.unwrap()).collect();
    assert!((dlio.au[0] - (4.0 * blocks[0] + 3.0 * blocks[1]) / 7.0).abs() < 1e-9);
}
