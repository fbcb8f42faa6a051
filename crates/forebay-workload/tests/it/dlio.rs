//! DLIO's own results: its figures come out again of its times, to the last digit it printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_workload::dlio::{Run, Version, read_run};
use forebay_workload::metric::{Excluded, dlio_of, mean_and_stdev};
use serde_json::{Value, json};

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
fn the_figures_of_runs_are_the_printed_ones() {
    for (name, batch) in [("dlio-1", 2), ("dlio-2", 2), ("dlio-3", 4), ("dlio-4", 5), ("dlio-5", 7)] {
        let run = run(name);
        assert_eq!((run.batch, run.odd.as_slice()), (Some(batch), &[][..]), "{name}");
        let mut without = texts(name);
        without.remove(".hydra/config.yaml");
        assert_eq!(
            read_run(&without).unwrap().batch,
            Some(batch),
            "{name}: inferred, also where not all files are read"
        );
        let dlio = run.dlio().unwrap();
        let show = |(mean, stdev): (f64, f64)| format!("{mean:.4} ({stdev:.4})");
        let au = show(mean_and_stdev(&dlio.au).unwrap());
        assert_eq!([au], printed(name, "Training Accelerator Utilization [AU] (%):")[..], "{name}");
        let samples = show(mean_and_stdev(&dlio.samples_per_s).unwrap());
        assert_eq!([samples], printed(name, "Training Throughput (samples/second):")[..], "{name}");
        let record = run.workload.as_ref().unwrap().dataset.record_length_bytes;
        let mib = show(dlio.mib_per_s(record).unwrap());
        assert_eq!([mib], printed(name, "Training I/O Throughput (MB/second):")[..], "{name}");
        for (ours, theirs) in dlio.au.iter().zip(&run.summary.train.au) {
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
fn without_the_workload_the_batch_is_inferred_from_rates_and_times_of_day() {
    let mut texts = texts("dlio-1");
    texts.remove(".hydra/config.yaml");
    let run = read_run(&texts).unwrap();
    assert_eq!((&run.workload, run.batch, run.version), (&None, Some(2), Version::V2_0));
    assert_eq!(run.odd, ["batch size 2, inferred from rates, files and steps: no workload in .hydra/config.yaml"]);
    let block = &run.ranks[0].epochs[0].blocks[0];
    assert!((block.wall_s.unwrap() - 0.299_426).abs() < 1e-3);
    let theirs = block.au.unwrap();
    let excluded = Excluded { start: 1, end: 0, steps_per_epoch: 8 };
    let ours = block.dlio(run.version, 2, excluded).unwrap().au;
    assert!((ours / theirs - 1.0).abs() < 2e-3, "{ours} is not near {theirs}");
}

#[test]
fn figures_that_are_no_numbers_are_nothing() {
    let mut texts = texts("dlio-1");
    let summary = texts["summary.json"].replace("93.32110150804019", "NaN");
    texts.insert("summary.json".to_owned(), summary);
    let run = read_run(&texts).unwrap();
    assert_eq!((run.summary.train.au_mean, run.summary.train.au[0].is_some()), (None, true));
    assert_eq!(run.odd, Vec::<String>::new(), "that is how Python writes what it does not know");
}

#[test]
fn a_folder_of_which_nothing_can_be_said_is_refused_with_the_reasons() {
    let nothing = "no summary, no training steps and no checkpoints found";
    assert_eq!(read_run(&BTreeMap::new()).unwrap_err().to_string(), nothing);
    let torn = BTreeMap::from([("0_output.json".to_owned(), "{\"1\": ".to_owned())]);
    let said = read_run(&torn).unwrap_err().to_string();
    assert_eq!(
        said,
        format!("{nothing}\n  0_output.json cannot be read: EOF while parsing a value at line 1 column 6")
    );
}

/// What is said of a fixture of which some files are changed: `None` takes one away.
fn odd(name: &str, changes: &[(&str, Option<&str>)]) -> Run {
    let mut texts = texts(name);
    for (file, text) in changes {
        texts.remove(*file);
        texts.extend(text.map(|text| ((*file).to_owned(), text.to_owned())));
    }
    read_run(&texts).unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

#[test]
fn what_is_missing_is_noted_and_the_rest_is_read() {
    let run = odd("dlio-1", &[("summary.json", None)]);
    assert_eq!(run.odd, ["no summary.json; DLIO's figures are computed from its steps"]);
    assert_eq!(format!("{:.4}", mean_and_stdev(&run.dlio().unwrap().au).unwrap().0), "93.3211", "as it was printed");

    let run = odd("dlio-2", &[("0_output.json", None)]);
    assert_eq!((run.ranks.len(), run.ranks[0].rank, run.ranks[0].epochs[0].saves.len()), (1, 1, 1));
    assert_eq!(run.odd, ["the files of 1 of 2 ranks are missing"]);
    let run = odd("dlio-2", &[("1_output.json", Some("{torn"))]);
    assert_eq!(run.ranks.len(), 1);
    assert_eq!(
        run.odd,
        [
            "1_output.json cannot be read: key must be a string at line 1 column 2",
            "the files of 1 of 2 ranks are missing"
        ]
    );

    let run = odd("dlio-1", &[("per_epoch_stats.json", None)]);
    assert!(run.odd[0].starts_with("2 of 2 epochs have no start and end in per_epoch_stats.json"), "{:?}", run.odd);
    // Without the checkpoints, whose times are lost.
    let whole: Vec<String> = run.au_epochs().iter().map(|au| format!("{:.3}", au.unwrap())).collect();
    assert_eq!((whole.as_slice(), run.version), (&["0.788", "0.935"].map(str::to_owned)[..], Version::V2_0));

    let run = odd("dlio-1", &[("0_output.json", None), ("per_epoch_stats.json", None)]);
    assert_eq!(run.odd, ["no <rank>_output.json with steps; only the summary's figures are known"]);
    assert_eq!(run.summary.train.au_mean, Some(93.321_101_508_040_19));
}

#[test]
fn keys_of_a_workload_that_are_not_understood_do_not_hide_the_others() {
    let config = "workload: {reader: {batch_size: 2, transport: rdma}, dataset: {format: zarr}, extras: {a: 1}}";
    let run = odd("dlio-1", &[(".hydra/config.yaml", Some(config))]);
    assert_eq!(
        (run.batch, run.refused.as_slice()),
        (Some(2), &["dataset.format", "reader.transport", "extras"].map(str::to_owned)[..])
    );
    assert_eq!((run.is_known("reader.batch_size"), run.is_known("dataset.format")), (true, false));
    let run = odd("dlio-1", &[(".hydra/config.yaml", Some("workload: {reader: {batch_size: many}}"))]);
    assert_eq!((run.batch, run.is_known("reader.batch_size")), (Some(2), false), "{:?}", run.odd);
    let run = odd("dlio-1", &[(".hydra/config.yaml", Some("a: [unclosed"))]);
    assert_eq!((run.workload.is_none(), run.batch), (true, Some(2)));
    assert!(run.odd[0].starts_with(".hydra/config.yaml cannot be read: "), "{:?}", run.odd);
}

#[test]
fn odd_numbers_cost_their_step_and_nothing_else() {
    let text = texts("dlio-1")["0_output.json"].clone();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    file["1"]["proc"]["block1"][2] = json!("soon");
    file["1"]["au"]["block2"] = json!({});
    file["host_memory_GB"] = json!(null);
    let run = odd("dlio-1", &[("0_output.json", Some(&file.to_string()))]);
    let blocks = &run.ranks[0].epochs[0].blocks;
    assert_eq!(blocks[0].compute_s.len(), 3, "of 4");
    assert_eq!((blocks[1].compute_s.len(), blocks[1].au), (4, None));
    assert_eq!(
        run.odd,
        [
            "0_output.json: 1: proc: block1: 1 of 4 values are not numbers",
            "0_output.json: 1: au: block2: expected a number, found {}"
        ]
    );
}

#[test]
fn a_checkpoint_without_an_end_is_as_long_as_its_duration() {
    let stats = r#"{"1": {"ckpt1": {"start": "2026-11-16 05:42:11.5+00:00", "duration": 0.008066},
        "ckpt2": {"start": "2026-11-16T05:42:13Z", "end": "2026-11-16T05:42:14Z", "duration": "1.00"}}}"#;
    let run = odd("dlio-1", &[("per_epoch_stats.json", Some(stats))]);
    let saves: Vec<f64> = run.ranks[0].epochs[0].saves.iter().map(|save| save.span.seconds()).collect();
    assert!((saves[0] - 0.008_066).abs() < 1e-6 && (saves[1] - 1.0).abs() < 1e-6, "{saves:?}");
}

/// What a later version writes of one epoch of two blocks, of which the second follows a checkpoint.
fn of_a_later_version() -> BTreeMap<String, String> {
    let excluded = Excluded { start: 1, end: 1, steps_per_epoch: 7 };
    let (compute, whole) = ([vec![0.5; 4], vec![0.5; 3]], [vec![2.5, 0.6, 0.7, 0.6], vec![0.9, 0.6, 0.6]]);
    let walls = [4.625, 2.25];
    let mut output = json!({"hostname": "node"});
    for (i, name) in ["block1", "block2"].into_iter().enumerate() {
        let dlio = dlio_of(&compute[i], &whole[i], walls[i], 3, excluded);
        output["1"]["au"][name] = json!(dlio.au);
        output["1"]["throughput"][name] = json!(dlio.samples_per_s);
        output["1"]["compute"][name] = json!(compute[i]);
        output["1"]["proc"][name] = json!(whole[i]);
    }
    let stats = r#"{"1": {"start": "2026-01-31T23:59:55.000000", "end": "2026-02-01T00:00:03.000100", "duration": "8.00",
        "block1": {"start": "2026-01-31T23:59:55.000010", "end": "2026-01-31T23:59:59.625100", "duration": "4.63"},
        "save_ckpt1": {"start": "2026-01-31T23:59:59.7", "end": "2026-02-01T00:00:00.7", "duration": 1.0, "throughput": NaN},
        "block2": {"start": "2026-02-01T00:00:00.7501", "end": "2026-02-01T00:00:03.000050", "duration": "2.25"}}}"#;
    let config = "reader: {batch_size: 3}\noutput: {metric: {exclude_end_steps: 1}}\n";
    let files = [
        ("summary.json", "{\"metric\": {}}".to_owned()),
        ("0_output.json", output.to_string()),
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
    assert!((run.au_epochs()[0].unwrap() - 3.5 / 8.0001).abs() < 1e-6);
    assert!((epoch.first_batch_s() - 2.000_01).abs() < 1e-6, "{}", epoch.first_batch_s());
    let dlio = run.dlio().unwrap();
    let blocks: Vec<f64> = epoch.blocks.iter().map(|block| block.au.unwrap()).collect();
    assert!((dlio.au[0] - (4.0 * blocks[0] + 3.0 * blocks[1]) / 7.0).abs() < 1e-9);
}
