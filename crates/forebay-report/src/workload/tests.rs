//! The account of a made-up run.

use forebay_record::{AnyRecord, CheckpointPlace, Environment, Medium, Record, WorkloadCell, WorkloadSave};

use super::workload;
use crate::NamedRun;

/// Two accelerators, two epochs of ten steps of 7, 10 s each.
fn cell() -> WorkloadCell {
    let text = r#"{
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
        "lever": {"name": "storage", "advice": "a faster device", "saves_s": 5.0, "wall_s": 15.0}
    }"#;
    serde_json::from_str(text).unwrap()
}

fn record(cell: WorkloadCell) -> Record<WorkloadCell> {
    let mut record = Record::new(vec![], Environment::default());
    record.dataset.path = "data/unet3d".to_owned();
    record.cells.push(cell);
    record
}

fn save(seconds: f64, is_durable: bool) -> WorkloadSave {
    WorkloadSave { epoch: 1, bytes: 499_000_000, seconds, seconds_rank_0: 0.25, is_durable, ..WorkloadSave::default() }
}

#[test]
fn the_account_says_where_the_time_went_and_what_to_mind() {
    let mut record = record(cell());
    record.notes.push("a remark".to_owned());
    let wanted = "\
unet3d_h100; 140 npz files of a sample of 146.6 MB; data/unet3d; local, buffered; cold
2 accelerators in 1 process; 2 epochs of 10 steps of 7; 323.0 ms of computing a step; 4 read threads, prefetch 2; files: \
off, samples: seed 123
WARNING: 10 steps an epoch are few

time              seconds    share
all accelerators   40.000  100.0 %
  compute          12.920   32.3 %
  wait for data    25.000   62.5 %
  barrier           1.000    2.5 %
  checkpoint        1.000    2.5 %
  other             0.080    0.2 %

AU             share  computing over
whole epochs  32.3 %  the whole time of the epochs: what an accelerator is used
steady        64.6 %  the same without the wait for the first batch of every epoch
as DLIO            –  what DLIO takes: without the first step of every epoch; for comparison
AU over whole epochs: 32.3 %, at least 90 % asked for: MISSED (the exit status goes by it)
AU as DLIO: –, at least 90 % asked for: not known (for comparison)

14.0 samples/s; 2,052 MB/s of data moved (10^6 bytes), 2,040 MB/s of that from a block device
DLIO would print 24.5 samples/s and 3,425 MiB/s, of the configured length
An accelerator that never waits asks for 3.18 GB/s, 2 of them for 6.36 GB/s
First batch of an epoch: 4.25 s (mean); the first step began 4.30 s after the start

a step                  mean       p50     p90     p99     max
wait for its batch  625.0 ms   10.0 ms  2.00 s  4.25 s  4.30 s
whole                 1.00 s  340.0 ms  2.40 s  4.60 s  4.70 s

waited for                    seconds  of all waits
storage                        20.000        76.9 %
decoding                        5.000        19.2 %
other accelerators (barrier)    1.000         3.8 %

Memory: 80.0 MB at most, 40.0 MB an accelerator; 9.00 s of the cores' time
What would help most: a faster device; that saves 5.00 s (25.0 %), from 20.0 s to 15.0 s
note: a remark
";
    assert_eq!(workload(&record), wanted);
    let named = NamedRun { name: "run".to_owned(), record: AnyRecord::Workload(record) };
    assert_eq!(crate::text(&[named]), wanted, "the report of a record is the same text");
}

#[test]
fn a_checkpoint_takes_as_long_as_its_slowest_rank() {
    let mut cell = cell();
    cell.saves = vec![save(0.5, true), save(1.5, true), WorkloadSave { is_restore: true, ..save(0.5, false) }];
    cell.totals.ranks = 2;
    let text = workload(&record(cell.clone()));
    let wanted = "\
2 checkpoints of 499.0 MB: 1.00 s each (median of the slowest rank), 2.00 s in all, 499.0 MB/s; the first rank's 0.25 s, \
which is what DLIO gives; durable when they ended
1 restore of 499.0 MB: 0.50 s each (median of the slowest rank), 0.50 s in all, 998.0 MB/s; the first rank's 0.25 s, which \
is what DLIO gives
Memory";
    assert!(text.contains(wanted), "{text}");
    cell.totals.ranks = 1;
    cell.saves = vec![save(0.5, false)];
    let text = workload(&record(cell));
    assert!(
        text.contains("1 checkpoint of 499.0 MB") && text.contains(", 998.0 MB/s; not durable when they ended\n"),
        "{text}"
    );
}

#[test]
fn the_place_of_checkpoints_stands_beside_their_rates() {
    let mut cell = cell();
    cell.saves = vec![save(0.5, true)];
    let medium = Medium::new("tmpfs on tmpfs".to_owned(), None, Vec::new());
    let path = "out/checkpoints".to_owned();
    cell.checkpoint_place = Some(CheckpointPlace { path, medium, is_with_data: Some(false), ..Default::default() });
    let text = workload(&record(cell.clone()));
    let wanted =
        "; durable when they ended\nCheckpoints in out/checkpoints (tmpfs on tmpfs); not the file system of the data\n";
    assert!(text.contains(wanted), "{text}");
    cell.saves.clear();
    assert!(!workload(&record(cell)).contains("Checkpoints in"), "where none were saved there is none to name");
}

#[test]
fn one_of_each_is_told_in_the_singular() {
    let mut cell = cell();
    (cell.n_files, cell.epochs, cell.steps_per_epoch, cell.read_threads) = (1, 1, 1, 1);
    (cell.totals.accelerators, cell.samples_per_file, cell.totals.ranks) = (1, 2_000, 8);
    let text = workload(&record(cell));
    assert!(text.starts_with("unet3d_h100; 1 npz file of 2,000 samples of 146.6 MB; "), "{text}");
    assert!(
        text.contains(
            "\n1 accelerator in 8 processes; 1 epoch of 1 step of 7; 323.0 ms of computing a step; 1 read thread, "
        ),
        "{text}"
    );
    assert!(text.contains("\ntotal          "), "{text}");
    assert!(text.contains("\nAn accelerator that never waits asks for 3.18 GB/s\n"), "{text}");
}

#[test]
fn what_dlio_measured_has_no_bytes_moved_and_no_lever() {
    let mut cell = cell();
    (cell.made_by, cell.totals.bytes_moved, cell.totals.mb_per_s_device) = (Some("DLIO".to_owned()), 0, None);
    let text = workload(&record(cell));
    assert!(text.contains("; cold; measured by DLIO\n"), "{text}");
    assert!(
        text.contains(
            "14.0 samples/s; – MB/s of data moved (10^6 bytes), – MB/s of that from a block device\nDLIO printed 24.5 "
        ),
        "{text}"
    );
    assert!(!text.contains("What would help most"), "{text}");
    let barrier = text.lines().find(|line| line.starts_with("  barrier")).unwrap();
    assert_eq!(barrier.split_whitespace().collect::<Vec<_>>(), ["barrier", "–", "–"]);
}

#[test]
fn settings_that_dlio_did_not_keep_are_not_made_up() {
    let mut cell = cell();
    cell.made_by = Some("DLIO".to_owned());
    (cell.format, cell.record_length_bytes, cell.read_threads) = (String::new(), 0.0, 0);
    cell.saves = vec![WorkloadSave { bytes: 0, ..save(0.5, false) }];
    let text = workload(&record(cell));
    assert!(text.starts_with("unet3d_h100; 140 files of a sample; data/unet3d; "), "{text}");
    assert!(text.contains("; 2 epochs of 10 steps of 7; files: off"), "{text}");
    assert!(text.contains("\n1 checkpoint: 0.50 s each (median of the slowest rank), 0.50 s in all\n"), "{text}");
}

#[test]
fn a_run_that_only_saves_has_no_tables_of_steps() {
    let mut cell = cell();
    (cell.totals.steps, cell.steps_per_epoch, cell.n_files) = (0, 0, 0);
    cell.saves = vec![save(0.5, true)];
    let text = workload(&record(cell));
    let head = "unet3d_h100; data/unet3d; local, buffered; cold\n2 accelerators in 1 process; files: off";
    assert!(text.starts_with(head) && !text.contains("AU"), "{text}");
    assert!(text.contains("\n1 checkpoint of 499.0 MB: "), "{text}");
}

#[test]
fn a_run_without_a_step_says_so() {
    let mut record = record(cell());
    record.cells.clear();
    record.notes.push("interrupted before the first step".to_owned());
    assert_eq!(workload(&record), "nothing was measured\nnote: interrupted before the first step\n");
}
