//! Settings of a workload cell, as a study has them.

use std::path::Path;

use forebay_record::{WorkloadCell, WorkloadSpec, WorkloadTotals};
use forebay_workload::{Format, Shuffle};

use super::run::{middle, plan};
use super::*;
use crate::steps::StepContext;

fn settings(with: &[(&str, Level)]) -> WorkloadTask {
    let mut settings = WorkloadTask::default();
    with.iter().for_each(|(name, level)| settings.set(name, level).unwrap());
    settings
}

fn text(text: &str) -> Level {
    Level::Text(text.to_owned())
}

fn unet3d(with: &[(&str, Level)]) -> WorkloadTask {
    let mut settings = settings(with);
    settings.set("workload", &text("unet3d_h100")).unwrap();
    settings
}

#[test]
fn keys_of_the_workload_are_overridden_and_come_to_the_plan() {
    let settings = unet3d(&[
        ("processes", Level::Integer(4)),
        ("accelerators", Level::Integer(2)),
        ("reader.batch_size", Level::Integer(3)),
        ("dataset.format", text("npy")),
        ("workflow.checkpoint", Level::Flag(false)),
        ("train.computation_time", Level::Number(0.25)),
        ("threshold", Level::Number(0.8)),
        ("cold", Level::Flag(true)),
    ]);
    assert_eq!(settings.check(), Ok(()));
    let plan = plan(&settings, "data".into(), Path::new("saves"), StepContext::default()).unwrap();
    let settings = &plan.settings;
    assert_eq!((settings.all_accelerators(), settings.threshold, settings.cold), (8, Some(0.8), true));
    let workload = plan.workload;
    assert_eq!((workload.reader.batch_size, workload.dataset.format), (3, Format::Npy));
    assert_eq!((workload.workflow.checkpoint, workload.train.computation_time.mean()), (false, 0.25));
}

#[test]
fn what_is_no_workload_or_no_key_of_one_is_refused_by_name() {
    let refused = |settings: &WorkloadTask| settings.check().unwrap_err();
    assert_eq!(refused(&settings(&[])), "missing `workload`");
    let said = refused(&settings(&[("workload", text("unet4d"))]));
    assert!(said.starts_with("unknown workload \"unet4d\"; built-in workloads: "), "{said}");
    let said = refused(&unet3d(&[("reader.batchsize", Level::Integer(3))]));
    assert!(said.contains("reader.batchsize"), "{said}");
    let mut settings = unet3d(&[]);
    let said = settings.set("dataset.data_folder", &text("elsewhere")).unwrap_err();
    assert!(said.starts_with("a study sets its own folders"), "{said}");
}

#[test]
fn more_processes_than_there_are_batches_are_left_out_with_the_reason() {
    let settings = unet3d(&[("processes", Level::Integer(200))]);
    assert_eq!(settings.check(), Ok(()));
    let said = settings.unfit(None).unwrap();
    assert!(said.ends_with("168 samples are not one batch of 7 for each of 200 accelerators"), "{said}");
}

#[test]
fn a_workload_of_the_study_goes_before_one_that_is_built_in() {
    let mut settings = settings(&[("workload", text("mine"))]);
    let own = WorkloadSpec {
        name: "mine".to_owned(),
        path: "mine.yaml".into(),
        text: "dataset:\n  num_files_train: 12\n  format: npy\nreader:\n  batch_size: 4\n".to_owned(),
    };
    settings.find(&[own]);
    assert_eq!(settings.check(), Ok(()));
    let workload = settings.read().unwrap();
    assert_eq!((workload.dataset.n_files_train, workload.reader.batch_size), (12, 4));
}

#[test]
fn shrinking_changes_bytes_and_times_and_no_structure() {
    let shrunk = unet3d(&[("shrink_bytes", Level::Integer(400)), ("shrink_time", Level::Integer(10))]).read().unwrap();
    let whole = unet3d(&[]).read().unwrap();
    assert_eq!(shrunk.dataset.record_length_bytes, 146_600_628.0 / 400.0);
    assert_eq!(shrunk.dataset.record_length_bytes_resize, 2_097_152 / 400);
    assert_eq!(shrunk.train.computation_time.mean(), 0.0323);
    assert_eq!(shrunk.dataset.n_files_train, whole.dataset.n_files_train);
    assert_eq!((&shrunk.reader, shrunk.train.epochs), (&whole.reader, whole.train.epochs));
    let dims = [("shrink_bytes", Level::Integer(2)), ("dataset.record_dims", text("[8,8]"))];
    let mut sized = unet3d(&dims);
    sized.set("dataset.record_length_bytes_stdev", &Level::Integer(0)).unwrap();
    assert!(sized.check().unwrap_err().starts_with("`shrink_bytes` divides record_length_bytes"));
}

#[test]
fn the_imitated_loader_has_workers_that_make_batches_and_read_files_in_order() {
    let read = |more: &[(&str, Level)]| {
        let rate = ("dlio_decode_mb_per_s", Level::Integer(950));
        unet3d(&[&[("processes", Level::Integer(8)), rate], more].concat()).read().unwrap().reader
    };
    let stock = read(&[]);
    assert_eq!((stock.read_threads, stock.prefetch_size, stock.decode_bytes_per_s), (4, 4, Some(950e6)));
    assert_eq!((stock.file_shuffle, stock.sample_shuffle), (Shuffle::Off, Shuffle::Off));
    let alone = read(&[("reader.read_threads", Level::Integer(1))]);
    assert_eq!((alone.read_threads, alone.prefetch_size), (1, 2));
    let deep = read(&[("reader.prefetch_size", Level::Integer(5))]);
    assert_eq!((deep.read_threads, deep.prefetch_size), (4, 8), "two batches a worker");
}

#[test]
fn the_files_of_the_imitated_loader_have_dlios_sizes_and_take_their_time_by_them() {
    let rate = ("dlio_decode_mb_per_s", Level::Integer(950));
    let whole = unet3d(std::slice::from_ref(&rate)).read().unwrap();
    assert_eq!(whole.dataset.shape_of(Part::Train, 0).dims, [15_865, 14_125]);
    let quick = [rate, ("shrink_bytes", Level::Integer(400)), ("shrink_time", Level::Integer(10))];
    let quick = unet3d(&quick).read().unwrap();
    // Both sides are 20 times shorter, and what a file takes 10 times.
    assert_eq!(quick.dataset.shape_of(Part::Train, 0).dims, [792, 705]);
    let seconds = |workload: &Workload| {
        workload.dataset.shape_of(Part::Train, 0).sample_bytes as f64 / workload.reader.decode_bytes_per_s.unwrap()
    };
    assert!((seconds(&whole) / seconds(&quick) - 10.0).abs() < 0.1, "{} {}", seconds(&whole), seconds(&quick));
}

#[test]
fn batches_that_do_not_fit_into_memory_are_left_out_with_both_sizes() {
    let settings = unet3d(&[("processes", Level::Integer(4)), ("reader.prefetch_size", Level::Integer(8))]);
    let needed = 4 * 8 * 7 * 2_097_152;
    assert_eq!(settings.unfit(Some(Bytes(2 * needed))), None);
    assert_eq!(settings.unfit(None), None, "what is not known leaves nothing out");
    let said = settings.unfit(Some(Bytes(2 * needed - 2))).unwrap();
    assert_eq!(said, "its batches need 469.8 MB of memory; the limit is 469.8 MB, half of this machine's memory");
}

#[test]
fn of_several_runs_the_one_in_the_middle_is_kept_with_the_totals_of_all() {
    let run = |au: f64| {
        let totals = WorkloadTotals { au_epoch: Some(au), ..WorkloadTotals::default() };
        WorkloadCell { totals, steps_per_epoch: au as u64, ..WorkloadCell::default() }
    };
    let kept = middle([30.0, 10.0, 20.0].map(run).into()).unwrap();
    assert_eq!((kept.totals.au_epoch, kept.steps_per_epoch), (Some(20.0), 20));
    let all: Vec<_> = kept.runs.iter().map(|run| run.au_epoch).collect();
    assert_eq!(all, [Some(30.0), Some(10.0), Some(20.0)], "in the order in which they were run");
    assert_eq!(middle(vec![run(5.0)]).unwrap().runs, [], "a single run is its own");
    assert_eq!(middle(Vec::new()), None);
}
