//! The account of a made-up run.

use forebay_record::{AnyRecord, Environment, Record, TrainCell};

use super::train;
use crate::NamedRun;

/// A run of 100 steps of 64 in 20 seconds, of which 12 are computing.
fn cell() -> TrainCell {
    let totals = serde_json::json!({
        "n_steps": 100, "images": 6400, "failed": 0, "bytes": 800_000_000,
        "wall_s": 20.0, "wait_s": 6.5, "copy_s": 0.25, "compute_s": 12.0, "checkpoint_s": 0.0, "validate_s": 1.0, "other_s": 0.25,
        "first_wait_s": 0.5, "cpu_s": 30.0, "au_epoch": 0.6316, "au_steady": 0.6486, "au_dlio": null, "overlap": 0.42,
        "stall_by_cause": {"storage": 1.5, "decode": 5.0, "order": 0.0}, "worker_time": {}, "stall_time": {}, "loss": 3.25
    });
    let mut cell = serde_json::json!({
        "model": "alexnet", "n_parameters": 57_286_885, "device": "cpu, 2 threads, avx512", "precision": "f32",
        "optimizer": "adam", "learning_rate": 0.0001, "classes": 101, "batch": 64, "steps_per_epoch": 142,
        "threads": 8, "prefetch": 1, "output": "224x224 f32 nhwc", "medium": {"storage": "local, buffered", "cache": "cold"},
        "images_per_s": 336.8,
        "baseline": {"n_steps": 10, "step_s": 0.125}, "io_cost_s": 6.5,
        "lever": {"name": "decode", "advice": "--threads 23: use all cores", "saves_s": 4.75, "wall_s": 14.25},
        "feed": {"takes_images_per_s": 22_000.0, "gives_images_per_s": 7_900.0, "threads_needed": 23},
        "epochs": [{"n_steps": 100, "loss": 3.5, "validation": {"n_samples": 914, "loss": 3.75, "accuracy": 0.125, "seconds": 1.0}}],
        "steps": [], "samples": []
    });
    cell.as_object_mut().unwrap().extend(totals.as_object().unwrap().clone());
    serde_json::from_value(cell).unwrap()
}

fn record(cell: TrainCell) -> Record<TrainCell> {
    let mut record = Record::new(vec![], Environment::default());
    record.dataset.path = "photos".to_owned();
    record.dataset.packing = "files".to_owned();
    record.dataset.n_samples = 9_144;
    record.cells.push(cell);
    record
}

#[test]
fn the_account_says_where_the_time_went_and_what_would_help() {
    let mut record = record(cell());
    record.notes.push("a remark".to_owned());
    let wanted = "\
photos: 9,144 samples; 224x224 f32 nhwc; local, buffered; cold
alexnet, 57,286,885 parameters; cpu, 2 threads, avx512, f32; adam at 0.0001, 101 classes; batch 64, 100 steps; 8 threads, prefetch 1

time             seconds    share
total             20.000  100.0 %
  compute         12.000   60.0 %
  wait for data    6.500   32.5 %
  copy             0.250    1.2 %
  checkpoint       0.000    0.0 %
  validate         1.000    5.0 %
  other            0.250    1.2 %

AU          share  computing over
whole run  63.2 %  all of the time but validation
steady     64.9 %  the same without the wait for the first batch
as DLIO         –  all steps but the first of every epoch: for comparison

337 images/s; 42.1 MB/s (10^6 bytes moved from storage)
The cost of I/O: 6.50 s, 52.0 % over the 12.5 s of as many steps on a batch in memory (125.0 ms a step, median of 10)
Overlap: 42.0 % of the pipeline's work was done while the accelerator did not wait.
What would help most: --threads 23: use all cores; that saves 4.75 s (25.0 %), from 19.0 s to 14.2 s
The accelerator takes 22,000 images/s; 8 threads give 7,900; 23 threads would do

waited for  seconds  of the wait
decoding      5.000       76.9 %
storage       1.500       23.1 %

epoch  steps  mean loss  validation loss  accuracy  samples
    1    100     3.5000           3.7500    12.5 %      914
note: a remark
";
    assert_eq!(train(&record), wanted);
    let named = NamedRun { name: "run".to_owned(), record: AnyRecord::Train(record) };
    assert_eq!(crate::text(&[named]), wanted, "the report of a record is the same text");
}

#[test]
fn an_emulated_run_on_a_batch_in_memory_has_no_network_no_loss_and_no_pipeline() {
    let mut cell = cell();
    (cell.model, cell.n_parameters, cell.precision, cell.optimizer) = (None, None, None, None);
    (cell.baseline, cell.io_cost_s, cell.feed, cell.totals.overlap) = (None, None, None, None);
    (cell.device, cell.synthetic, cell.epochs) = ("emulated:120ms".to_owned(), true, Vec::new());
    cell.totals.stall_by_cause.clear();
    cell.lever.name = "none".to_owned();
    cell.lever.advice = "the accelerator is the limit".to_owned();
    let mut record = record(cell);
    record.dataset = Default::default();
    let text = train(&record);
    assert!(text.starts_with("no network; emulated:120ms; batch 64, 100 steps; one batch in memory\n\n"), "{text}");
    let end = "\n337 images/s\nThe cost of I/O: –\nWhat would help most: nothing here; the accelerator is the limit\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_bound_is_not_told_as_a_prediction() {
    let mut cell = cell();
    cell.lever.is_bound = true;
    let text = train(&record(cell));
    assert!(text.contains("; that saves at most 4.75 s (25.0 %), from 19.0 s not below 14.2 s\n"), "{text}");
}

#[test]
fn a_run_faster_than_its_baseline_has_a_negative_cost() {
    let mut cell = cell();
    cell.io_cost_s = Some(-0.25);
    let text = train(&record(cell));
    assert!(text.contains("\nThe cost of I/O: −0.25 s, −2.0 % over the 12.5 s of "), "{text}");
}

#[test]
fn an_emulated_tier_is_named_as_such() {
    let mut cell = cell();
    cell.medium.tier = Some("hdd".to_owned());
    let text = train(&record(cell));
    let said = "\nThe tier hdd is emulated in this process; cold and warm speak of the real disk below it.\n";
    assert!(text.contains(said), "{text}");
}

#[test]
fn samples_that_failed_are_named() {
    let mut cell = cell();
    cell.totals.failed = 1;
    cell.failures = vec![forebay_record::Failure { name: "a.jpg".to_owned(), reason: "empty".to_owned() }];
    let text = train(&record(cell));
    assert!(text.ends_with("\n1 sample failed and was left out:\n  a.jpg: empty\n"), "{text}");
}

#[test]
fn a_run_without_a_step_says_so() {
    let mut record = record(cell());
    record.cells.clear();
    record.notes.push("interrupted before the first step".to_owned());
    let wanted = "photos: 9,144 samples\nnothing was measured\nnote: interrupted before the first step\n";
    assert_eq!(train(&record), wanted);
}

#[test]
fn a_wait_for_a_batch_in_memory_or_of_no_time_has_no_causes() {
    let (mut synthetic, mut short, mut long) = (cell(), cell(), cell());
    synthetic.synthetic = true;
    short.totals.wait_s = 0.000_9;
    long.totals.wait_s = 0.001;
    for (cell, is_shown) in [(synthetic, false), (short, false), (long, true)] {
        assert_eq!(train(&record(cell)).contains("waited for"), is_shown);
    }
}

#[test]
fn a_rate_has_few_signs() {
    for (rate, wanted) in [(1e-38, "1e-38"), (3e38, "3e38"), (0.01, "0.01"), (2.0, "2"), (2.5e-6, "2.5e-6")] {
        let mut cell = cell();
        cell.learning_rate = Some(rate);
        let text = train(&record(cell));
        assert!(text.contains(&format!("; adam at {wanted}, 101 classes")), "{text}");
    }
}

#[test]
fn bytes_of_a_warm_run_come_from_memory() {
    let mut cell = cell();
    cell.medium.cache = Some(forebay_record::CacheState::Warm);
    let text = train(&record(cell.clone()));
    assert!(text.contains(" 42.1 MB/s (10^6 bytes read from memory: the cache was warm)\n"), "{text}");
    cell.medium.tier = Some("hdd".to_owned());
    let text = train(&record(cell));
    assert!(text.contains(" 42.1 MB/s (10^6 bytes moved from storage)\n"), "the tier is emulated: {text}");
}

#[test]
fn checkpoints_are_told_with_their_cost_and_what_became_of_them() {
    let mut cell = cell();
    (cell.totals.checkpoint_s, cell.resumed_from) = (2.5, Some(40));
    let save = |step: u64, fate: &str| serde_json::json!({"step": step, "at_s": 3.0, "stall_s": 0.5, "fate": fate});
    let saves = serde_json::json!({
        "every": 20, "mode": "burst", "format": "safetensors", "bytes": 612_000_000, "medium": {"tier": "hdd"}, "burst": {"tier": "optane"},
        "median_stall_s": 0.5, "drain_after_s": 12.25,
        "saves": [save(60, "saved"), save(80, "skipped"), save(100, "on-fast"), save(120, "failed"), save(140, "failed")],
    });
    cell.checkpoints = Some(serde_json::from_value(saves).unwrap());
    let text = train(&record(cell));
    let wanted = "\
The run went on from the checkpoint of step 40.
2 checkpoints of 612.0 MB, every 20 steps, safetensors, burst: to optane, then hdd.
Training stood still for 0.50 s each (median), 2.50 s in all, 13 % of the run.
Draining went on for 12.2 s after the last step.
1 was left on the first tier, to be drained by the next start; 1 was skipped, because those before were not finished; 2 \
were not made: they failed.
What would help most";
    assert!(text.contains(wanted), "{text}");
    assert!(text.contains("all steps but the first of every epoch, checkpoints left out: for comparison\n"), "{text}");
}
