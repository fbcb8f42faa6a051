//! The text of single records: made-up runs as a terminal shows them.

use forebay_record::{AnyRecord, Cell, CheckpointCell, Environment, Medium, Record, TierKind, TrainCell, WorkloadCell};
use serde::Serialize;
use serde_json::{Value, json};

use crate::chien::USUAL;
use crate::{flat, plain};

fn text<C: Cell + Serialize>(cells: Vec<C>) -> String
where
    AnyRecord: From<Record<C>>,
{
    let mut record = Record::new(vec![], Environment::default());
    record.dataset.path = "photos".to_owned();
    record.cells = cells;
    record.notes.push("a remark".to_owned());
    forebay_report::record(&record)
}

/// Whether these words are there, wherever lines end.
fn has(text: &str, wanted: &[&str]) {
    for words in wanted {
        assert!(flat(text).contains(&flat(words)), "{words:?} in\n{text}");
    }
}

fn plain_text(record: &Value) -> String {
    forebay_report::text(&[plain::named("run", record)])
}

/// A run of 100 steps of 64 in 20 seconds, of which 12 are computing.
fn trained() -> TrainCell {
    serde_json::from_str(r#"{
        "n_steps": 100, "images": 6400, "failed": 0, "bytes": 800000000,
        "wall_s": 20.0, "wait_s": 6.5, "copy_s": 0.25, "compute_s": 12.0, "checkpoint_s": 0.0, "validate_s": 1.0, "other_s": 0.25,
        "first_wait_s": 0.5, "cpu_s": 30.0, "au_epoch": 0.6316, "au_steady": 0.6486, "au_dlio": null, "overlap": 0.42,
        "stall_by_cause": {"storage": 1.5, "decode": 5.0, "order": 0.0}, "worker_time": {}, "stall_time": {}, "loss": 3.25,
        "model": "alexnet", "n_parameters": 57286885, "device": "cpu, 2 threads, avx512", "precision": "f32",
        "optimizer": "adam", "learning_rate": 0.0001, "classes": 101, "batch": 64, "steps_per_epoch": 142,
        "threads": 8, "threads_auto": true, "tried": [{"threads": 4, "images_per_s": 1000.4}, {"threads": 8, "images_per_s": 7900.0}],
        "prefetch": 1, "output": "224x224 f32 nhwc",
        "medium": {"storage": "local, buffered", "cache": "cold"}, "images_per_s": 336.8,
        "baseline": {"n_steps": 10, "step_s": 0.125}, "io_cost_s": 6.5,
        "lever": {"name": "decode", "advice": "--threads 23: use all cores", "saves_s": 4.75, "wall_s": 14.25},
        "feed": {"takes_images_per_s": 22000.0, "gives_images_per_s": 7900.0, "threads_needed": 23},
        "epochs": [
            {"n_steps": 50, "loss": 3.5, "validation": {"n_samples": 914, "loss": 3.75, "accuracy": 0.125, "seconds": 1.0}},
            {"n_steps": 50, "loss": 3.25, "validation": {"n_samples": 914, "loss": 3.5, "accuracy": 0.25, "seconds": 1.0}}
        ],
        "steps": [], "samples": []
    }"#)
    .unwrap()
}

#[test]
fn a_training_says_what_was_trained_where_the_time_went_and_what_would_help() {
    let said = text(vec![trained()]);
    has(
        &said,
        &[
            "Training alexnet on photos",
            "settings  cpu, 2 threads, avx512; alexnet; f32; batch 64; adam; prefetch 1; 100 steps; local, buffered; auto; 8 threads",
            "The accelerator waited for data 33 % of the time (main cause: decoding). AU is 63 %.",
            "  Causes of the wait of 6.50 s: decoding 5.00 s (77 %) and storage 1.50 s (23 %).",
            "  The cost of I/O is 6.50 s (52 %): the same steps without I/O would take 12.5 s.",
            "  What would help most: --threads 23: use all cores. It would save about 4.75 s of 20.0 s.",
            "  The accelerator consumes 22,000 images/s; at this run's time per sample, 8 threads can deliver 7,900; 23 threads would \
             suffice.",
            "wall clock                  20.0 s",
            "AU, steady state            64.9 %",
            "network                     57,286,885 parameters, 101 classes, learning rate 0.0001",
            "output                      224x224 f32 nhwc",
            "threads tried               4 at 1,000/s, 8 at 7,900/s",
            "Where the accelerator's time went",
            "wait for data  6.50 s (33 %)",
            "                  validation",
            "epoch  mean loss        loss  accuracy",
            "    2     3.2500      3.5000      25 %",
            "In every row: steps 50; held out 914.",
            "note: a remark",
        ],
    );
}

#[test]
fn of_a_batch_in_memory_there_is_no_network_no_loss_no_pipeline_and_no_cause() {
    let mut cell = trained();
    (cell.model, cell.n_parameters, cell.precision, cell.optimizer) = (None, None, None, None);
    (cell.classes, cell.learning_rate, cell.baseline, cell.io_cost_s) = (None, None, None, None);
    (cell.feed, cell.totals.overlap, cell.output, cell.tried) = (None, None, None, Vec::new());
    (cell.device, cell.synthetic, cell.epochs) = ("emulated:120ms".to_owned(), true, Vec::new());
    cell.lever.name = "none".to_owned();
    let said = text(vec![cell]);
    for absent in ["network ", "Losses", "Causes of the wait", "cost of I/O  ", "What would help most", "threads tried"]
    {
        assert!(!said.contains(absent), "{absent}\n{said}");
    }
}

#[test]
fn bounds_negative_costs_tiers_and_small_rates_are_told_as_such() {
    let mut cell = trained();
    (cell.lever.is_bound, cell.io_cost_s, cell.learning_rate) = (true, Some(-0.25), Some(1e-38));
    (cell.medium.tier, cell.medium.cache) = (Some("hdd".to_owned()), Some(forebay_record::CacheState::Warm));
    let said = text(vec![cell]);
    has(
        &said,
        &[
            "It would save at most 4.75 s of 20.0 s.",
            "The cost of I/O is −0.25 s (−2.0 %): ",
            "learning rate 1e-38",
            "Emulated devices: hdd is shaped in this process.",
            "Your files were in memory. The delays of the emulated device were applied all the same.",
        ],
    );
}

#[test]
fn samples_that_failed_are_counted_and_the_first_are_named() {
    let failed = |n: u64, names: &[&str]| {
        let mut cell = trained();
        cell.totals.failed = n;
        let one = |name: &&str| forebay_record::Failure { name: (*name).to_owned(), reason: "empty".to_owned() };
        cell.failures = names.iter().map(one).collect();
        text(vec![cell])
    };
    has(&failed(1, &["a.jpg"]), &["  1 sample failed and was left out.", "note: failed: a.jpg: empty"]);
    let twice = failed(2, &["a.jpg", "a.jpg"]);
    has(&twice, &["  1 sample failed 2 times and was left out.", "note: failed (2 times): a.jpg: empty"]);
    let three = failed(3, &["a.jpg", "b.jpg", "a.jpg"]);
    has(&three, &["  2 samples failed, 3 times in all, and were left out.", "note: failed: b.jpg: empty"]);
    let many = failed(200, &["a.jpg", "b.jpg", "a.jpg"]);
    has(&many, &["  Samples failed 200 times and were left out."]);
    has(&many, &["note: failed: 197 more; the record names up to 100"]);
    let seven = failed(7, &["0", "1", "2", "3", "4", "5", "6"]);
    has(&seven, &["  7 samples failed and were left out.", "note: failed: 4: empty"]);
    has(&seven, &["note: failed: 2 more; the record names up to 100"]);
}

#[test]
fn a_record_without_a_cell_says_so() {
    let said = text::<TrainCell>(Vec::new());
    assert_eq!(said, "Training on photos\ndata  photos\n\nNothing was measured.\nnote: a remark\n");
}

/// Two accelerators, two epochs of ten steps of 7, 10 s each.
fn workload() -> WorkloadCell {
    serde_json::from_str(r#"{
        "workload": "unet3d_h100", "format": "npz", "n_files": 140, "samples_per_file": 1,
        "record_length_bytes": 146600628.0, "batch": 7, "read_threads": 4, "prefetch": 2, "computation_s": 0.323,
        "epochs": 2, "steps_per_epoch": 10, "order": "files: off, samples: seed 123",
        "demand_bytes_per_s": 3.18e9, "medium": {"storage": "local, buffered", "cache": "cold"},
        "au_epoch": 0.323, "au_steady": 0.646, "au_dlio": null, "samples_per_s": 14.0, "mb_per_s_moved": 2052.4,
        "mb_per_s_device": 2040.0, "first_batch_s": 4.25, "first_step_s": 4.3,
        "stall_by_cause": {"storage": 20.0, "decode": 5.0, "order": 0.0, "barrier": 1.0},
        "barrier_s": 1.0, "steps": 40, "ranks": 1, "accelerators": 2, "warnings": ["10 steps an epoch are few"],
        "samples": 280, "bytes_moved": 41048175840, "wall_s": 20.0, "accelerator_s": 40.0, "wait_s": 25.0,
        "compute_s": 12.92, "checkpoint_s": 1.0, "other_s": 0.08,
        "load": {"mean": 0.625, "p50": 0.01, "p90": 2.0, "p99": 4.25, "max": 4.3},
        "step": {"mean": 1.0, "p50": 0.34, "p90": 2.4, "p99": 4.6, "max": 4.7},
        "dlio_samples_per_s": 24.5, "dlio_mib_per_s": 3425.0, "peak_rss_bytes": 80000000, "cpu_s": 9.0,
        "judged": [
            {"what": "au_epoch", "value": 0.323, "limit": 0.9, "is_met": false, "is_decisive": true},
            {"what": "au_dlio", "value": null, "limit": 0.9, "is_met": false, "is_decisive": false}
        ],
        "saves": [
            {"epoch": 1, "step": 10, "bytes": 499000000, "seconds": 0.5, "seconds_rank_0": 0.25, "is_durable": true},
            {"epoch": 2, "step": 10, "bytes": 499000000, "seconds": 1.5, "seconds_rank_0": 0.25, "is_durable": true},
            {"epoch": 2, "step": 10, "bytes": 499000000, "seconds": 0.5, "seconds_rank_0": 0.5, "is_durable": false, "is_restore": true}
        ],
        "checkpoint_place": {"path": "out/checkpoints", "medium": {"storage": "tmpfs on tmpfs"}, "is_with_data": false},
        "lever": {"name": "storage", "advice": "a faster device", "saves_s": 5.0, "wall_s": 15.0}
    }"#)
    .unwrap()
}

#[test]
fn a_workload_says_where_the_time_went_and_what_to_mind() {
    let mut cell = workload();
    cell.totals.ranks = 2;
    has(
        &text(vec![cell]),
        &[
            "Workload unet3d_h100",
            "settings  unet3d_h100; batch 7; 2 epochs; 140 files; npz; files: off, samples: seed 123; prefetch 2; 2 ranks; \
             local, buffered; 2 accelerators; 4 threads",
            "  Thresholds: AU, whole epoch 32 %, at least 90 % required: missed; AU, as DLIO counts –, at least \
             90 % required: unknown (for comparison).",
            "  Causes of the wait of 26.0 s: storage 20.0 s (77 %), decoding 5.00 s (19 %) and \
             other accelerators (barrier) 1.00 s (3.8 %).",
            "  2 checkpoints of 499.0 MB: 1.00 s each (median of the slowest rank), 2.00 s in all, 499.0 MB/s; 0.25 s \
             for the first rank, which is what DLIO reports; durable when they ended.",
            "  1 restore of 499.0 MB: 0.50 s each (median of the slowest rank), 0.50 s in all, 998.0 MB/s; 0.50 s \
             for the first rank, which is what DLIO reports.",
            "  Checkpoints in out/checkpoints (tmpfs on tmpfs), not on the file system of the data.",
            "  What would help most: a faster device. It would save about 5.00 s of 20.0 s.",
            "  Warning: 10 steps an epoch are few.",
            "moved, MB/s                     2,052",
            "from the device, MB/s           2,040",
            "as DLIO counts, samples/s       24.5",
            "demand per accelerator, MB/s    3,180",
            "start to first step             4.30 s",
            "peak memory                     80.0 MB",
            "samples                         1 per file, 146.6 MB each",
            "compute per step                323.0 ms",
            "compute        6.46 s (32 %)",
            "wait for batch  625.0 ms   10.0 ms  2.00 s  4.25 s  4.30 s",
            "note: a remark",
        ],
    );
}

#[test]
fn what_dlio_did_not_say_is_not_made_up() {
    let mut cell = workload();
    (cell.made_by, cell.totals.bytes_moved, cell.totals.mb_per_s_moved) = (Some("DLIO".to_owned()), 0, 0.0);
    (cell.format, cell.record_length_bytes, cell.computation_s) = (String::new(), 0.0, 0.0);
    cell.saves.truncate(1);
    (cell.saves[0].bytes, cell.checkpoint_place) = (0, None);
    (cell.totals.barrier_s, cell.totals.mb_per_s_device) = (0.0, None);
    let said = text(vec![cell]);
    assert!(said.starts_with("Workload unet3d_h100, measured by DLIO\n"), "{said}");
    has(
        &said,
        &[
            "  1 checkpoint: 0.50 s each (median of the slowest rank), 0.50 s in all.",
            "samples                         1 per file",
        ],
    );
    for absent in ["moved, ", "What would help", "compute per step", "Checkpoints in", "barrier ", "durable"] {
        assert!(!said.contains(absent), "{absent}\n{said}");
    }
}

fn saved(mode: &str) -> CheckpointCell {
    let is_two = mode != "direct";
    let (stall_s, slow_s) =
        [(4.6, 4.6), (1.25, 6.5), (0.06, 6.5)][["direct", "burst", "async"].iter().position(|of| *of == mode).unwrap()];
    CheckpointCell {
        disturbed: None,
        mode: mode.to_owned(),
        format: "safetensors".to_owned(),
        state: "600 MB in 64 tensors".to_owned(),
        device: None,
        n_tensors: 64,
        bytes: 600_000_000,
        medium: Medium::new("slow".to_owned(), Some(("hdd", TierKind::Kernel)), Vec::new()),
        burst: is_two.then(|| Medium::new("fast".to_owned(), Some(("optane", TierKind::Kernel)), Vec::new())),
        stall_s,
        durable_fast_s: Some(if is_two { 1.25 } else { 4.6 }),
        durable_slow_s: Some(slow_s),
        restore_s: Some(if is_two { 0.4 } else { 3.75 }),
        ceiling_mb_per_s: Some(if is_two { 500.0 } else { 133.0 }),
        rated_mb_per_s: Some(if is_two { 512.0 } else { 133.0 }),
        read_ceiling_mb_per_s: is_two.then_some(1_600.0),
        copy_s: Some(0.05),
        memory_bytes: Some(if mode == "async" { 600_000_000 } else { 33_000_000 }),
        spread: Some(0.02),
        samples: Vec::new(),
    }
}

#[test]
fn every_mode_stands_beside_its_ceiling_and_the_direct_one_within_80_columns() {
    let said = text(["direct", "burst", "async"].map(saved).to_vec());
    let of =
        |mode: &str| -> String { said.lines().filter(|line| line.starts_with(mode)).collect::<Vec<_>>().join(" ") };
    for value in [
        " 60.0 ms",
        " 1.25 s",
        " 6.50 s",
        " 480",
        " 96.0 %",
        " 500",
        " 1,500",
        " 93.8 %",
        " 1,600",
        " 50.0 ms",
        " 1.20×",
        " 600.0 MB",
    ] {
        assert!(of("async, safetensors").contains(value), "{value}\n{said}");
    }
    let table =
        said.lines().skip_while(|line| !line.starts_with("cell ")).take_while(|line| !line.starts_with("In every row"));
    assert!(table.clone().count() > 5 && table.clone().all(|line| line.chars().count() <= 80), "{said}");
    for wanted in [
        "  A burst buffer (burst, safetensors) makes the stall per checkpoint 3.68× shorter: 1.25 s instead of 4.60 s with \
         direct saving.",
        "  Emulated devices: hdd and optane are loop devices throttled by the kernel.",
        "In every row: state 600.0 MB; ± 2.0 %; repeats 0.",
        "The restore ceiling is the read rate of the tier restored from.",
        "Copy: the time of a plain copy of the state in memory, to compare an async stall with.",
    ] {
        has(&said, &[wanted]);
    }
    assert!(!said.contains("too short"), "{said}");
}

#[test]
fn what_a_benchmark_did_not_measure_is_not_made_up() {
    let mut bare = saved("burst");
    (bare.ceiling_mb_per_s, bare.read_ceiling_mb_per_s, bare.memory_bytes) = (None, None, None);
    (bare.restore_s, bare.durable_slow_s, bare.medium.tier, bare.burst) = (None, None, None, None);
    let said = text(vec![bare]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("The storage's ceiling was not measured."), "{said}");
    for absent in ["restore, MB/s", "of ceiling", "Memory", "durable on the last", "A burst buffer", "mulated"] {
        assert!(!said.contains(absent), "{absent}\n{said}");
    }
    let mut short = saved("async");
    (short.bytes, short.durable_fast_s, short.device) = (200_000, Some(0.0015), Some("an H200".to_owned()));
    let said = text(vec![short]);
    has(&said, &["too short to compare with a ceiling", "state on ", "from the device into pinned memory"]);
    assert!(!flat(&said).contains(" 133 of ceiling"), "{said}");
}

#[test]
fn an_ingest_has_its_rates_speed_up_and_workers() {
    let mut record = plain::ingest(USUAL);
    record["cells"][0]["floor_images_per_s"] = json!(1_250_000.0);
    let said = plain_text(&record);
    has(&said, &["Ingest of photos", "data         photos: 1,024 samples in 1,024 files (files)"]);
    for wanted in [
        "\nSpeed-up by threads\n",
        "\nWhere the workers' time went\n",
        "ceiling is the random-read ceiling of nvme0 (uring, depth 32)",
    ] {
        assert!(flat(&said).contains(wanted.trim()), "{wanted}\n{said}");
    }
    has(&said, &["The harness alone is the same pipeline on null storage, without decoding"]);
    assert!(said.ends_with("note: 3 files were newer than the run\n"), "{said}");
}

#[test]
fn a_probe_has_latencies_and_the_best_of_each_mode() {
    let mut record = plain::probe();
    record["cells"][0]["latency_us"] = json!({"p50": null, "p90": null, "p99": null, "p999": null, "max": null});
    let said = plain_text(&record);
    let heads: Vec<&str> =
        said.lines().filter(|line| line.starts_with("cell ")).flat_map(str::split_whitespace).collect();
    for head in ["MB/s", "requests/s", "p50", "p99", "max"] {
        assert!(heads.contains(&head), "{head}\n{said}");
    }
    assert!(said.contains("\n  Fastest: sequential read, 1 MiB blocks, uring, depth 32: "), "{said}");
    has(&said, &["An emulated device buffers writes like a drive's cache", "Sizes: the files of photos."]);
}
