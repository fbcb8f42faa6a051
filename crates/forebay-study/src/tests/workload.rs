//! Workload cells: run again, on data whose size is known before it is made, read as DLIO's loader reads.

use std::sync::Mutex;

use forebay_record::WorkloadCell;

use super::*;
use crate::{Estimator, Places, Steps, make, spaces};

/// Eight small files, read by two processes in two steps of two each.
const READ: &str = r#"
name = "read"
title = "a workload read again"

[[experiment]]
name = "again"
run = "workload"
repeats = 3
warmups = 1
[experiment.factors]
processes = [2]
[experiment.settings]
workload = "unet3d_h100"
shrink_bytes = 4000
"dataset.num_files_train" = 8
"reader.batch_size" = 2
"train.epochs" = 1
"train.computation_time" = 0.001
"model.model_size_bytes" = 10240
dlio_decode_mb_per_s = 5880
"#;

fn measured(text: &str) -> (Plan, StepResult, Vec<String>) {
    let (dir, plan, never) = (tempfile::tempdir().unwrap(), plan_of(text), AtomicBool::new(false));
    Places::new(&plan, dir.path()).to_make(&plan.cells).iter().for_each(|wanted| {
        make(wanted, &|_| (), &never).unwrap();
    });
    let said = Mutex::new(Vec::new());
    let hear = |event: Event| match event {
        Event::Repeat { what } => said.lock().unwrap().push(what),
        Event::Steps { epoch, n_steps, .. } => said.lock().unwrap().push(format!("{epoch:?}, {n_steps} steps")),
        _ => {}
    };
    let observer = Observer::new(&hear, &never);
    let find_placement = |_: &Path| Placement::default();
    let measured = Steps::new(&plan, dir.path(), &find_placement, Vec::new()).measure(&plan.cells[0], observer);
    assert!(!dir.path().join("workload-checkpoints").exists(), "checkpoints go with the last run");
    (plan, measured.unwrap(), said.into_inner().unwrap())
}

#[test]
fn a_workload_is_run_as_often_as_its_study_says_and_warm_ups_are_not_kept() {
    let (plan, measured, said) = measured(READ);
    let measured = measured.measured.unwrap();
    let cell: &WorkloadCell = measured.of().next().unwrap();
    assert_eq!((cell.runs.len(), cell.totals.samples, cell.totals.steps), (3, 8, 4));
    let mut uses: Vec<f64> = cell.runs.iter().filter_map(|run| run.au_epoch).collect();
    uses.sort_by(f64::total_cmp);
    assert_eq!(cell.totals.au_epoch, Some(uses[1]), "the run in the middle is the cell's own");
    let rounds = ["warm-up", "repeat 1 of 3", "repeat 2 of 3", "repeat 3 of 3"];
    let wanted = rounds.map(|round| [format!("unet3d_h100, {round}"), "Some((1, 1)), 2 steps".to_owned()]);
    assert_eq!(said, wanted.concat());
    let dir = tempfile::tempdir().unwrap();
    let estimate = Estimator::new(&plan, &Places::new(&plan, dir.path())).cell(&plan.cells[0]);
    assert_eq!(estimate.images, 4 * 8, "four rounds of eight samples");
}

#[test]
fn a_process_with_larger_files_is_waited_for_behind_the_first_step() {
    let (plan, measured, _) = measured(&READ.replace("repeats = 3\nwarmups = 1\n", ""));
    let crate::Task::Workload(settings) = &plan.cells[0].work.task else { panic!("a workload") };
    let workload = settings.read().unwrap();
    let bytes = |files: std::ops::Range<u64>| -> f64 {
        files.map(|i| workload.dataset.shape_of(forebay_workload::Part::Train, i).sample_bytes as f64).sum()
    };
    let rate = workload.reader.decode_bytes_per_s.unwrap();
    let measured = measured.measured.unwrap();
    let cell: &WorkloadCell = measured.of().next().unwrap();
    assert!(cell.runs.is_empty(), "run once");
    for (epoch, first) in cell.epochs_of.iter().zip([0, 4]) {
        // Its two workers share the core: the second batch is under way while the first is made.
        let (own, beside) = (bytes(first..first + 2) / rate, bytes(first + 2..first + 4) / rate);
        assert!(epoch.load[0] >= own - 0.001, "{} of {own}", epoch.load[0]);
        assert!(epoch.load[0] + epoch.load[1] + epoch.compute[0] + epoch.barrier[0] >= own + beside - 0.001);
    }
    let ends = cell.epochs_of.iter().map(|epoch| epoch.load[0] + epoch.compute[0] + epoch.barrier[0]);
    let last = cell.epochs_of.iter().map(|epoch| epoch.load[0]).fold(0.0, f64::max);
    ends.for_each(|end| assert!(end >= last - 0.001, "nobody goes on before the slowest: {end} {last}"));
}

#[test]
fn the_room_for_text_is_that_of_its_files() {
    let text = READ.replace("[experiment.settings]", "[experiment.settings]\n\"dataset.format\" = \"csv\"");
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(&text));
    let places = Places::new(&plan, dir.path());
    let reckoned: u64 = spaces(&places, &plan.cells).iter().map(|space| space.to_make.0).sum();
    for wanted in places.to_make(&plan.cells) {
        make(&wanted, &|_| (), &AtomicBool::new(false)).unwrap();
        let files = std::fs::read_dir(wanted.dir.join("train")).unwrap();
        let made: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!((1.0..1.1).contains(&(reckoned as f64 / made as f64)), "{reckoned} {made}");
    }
}
