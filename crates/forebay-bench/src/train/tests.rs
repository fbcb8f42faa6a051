//! Whole runs on small data.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_dataset::{Control, MakePlan, MakeSpec, Profile as Made};
use forebay_measure::{Event, Observer, ThreadCount};
use forebay_record::{Cause, Environment, Record, TrainCell};
use forebay_storage::Profile;

use super::*;
use crate::Gpus;

/// Sixty photographs of a few kilobytes in 45 of 102 classes.
pub(crate) fn data(dir: &Path) -> PathBuf {
    let plan = MakePlan::new(&MakeSpec { count: Some(60), ..MakeSpec::new(Made::Caltech101) }).unwrap();
    let out = dir.join("data");
    forebay_dataset::make(&plan, &out, &Control::default()).unwrap();
    out
}

pub(crate) fn emulated(path: PathBuf, step: &str, prefetch: usize) -> Plan {
    let settings = TrainSettings {
        accelerator: Some(step.parse().unwrap()),
        batch: 8,
        threads: ThreadCount::Fixed(2),
        prefetch,
        seed: 1,
        ..TrainSettings::default()
    };
    Plan {
        settings,
        data: Some(path),
        keys: forebay_format::example::KeyNames::default(),
        tier: None,
        kernel_tier: None,
        cuda_folders: Vec::new(),
        gpus: Gpus::cuda(Vec::new()),
        validate: None,
        saves: None,
        warmups: 0,
        repeats: 1,
        until: None,
    }
}

/// The plan with some of its settings changed.
pub(super) fn with(mut plan: Plan, change: impl FnOnce(&mut TrainSettings)) -> Plan {
    change(&mut plan.settings);
    plan
}

pub(super) fn learning(path: PathBuf) -> Plan {
    with(emulated(path, "emulated:1ms", 1), |settings| {
        settings.accelerator = None;
        (settings.model, settings.lr, settings.baseline) = (Some("resnet-small".to_owned()), Some(1e-3), Some(0));
    })
}

pub(super) fn run_observed(
    plan: &Plan,
    hear: &(dyn Fn(Event) + Sync),
    cancel: &AtomicBool,
) -> Result<Record<TrainCell>, Error> {
    let record = Record::new(Vec::new(), Environment::default());
    run(plan, record, Observer::new(hear, cancel)).map(|ended| ended.record)
}

fn run_it(plan: &Plan) -> Result<Record<TrainCell>, Error> {
    run_observed(plan, &|_| {}, &AtomicBool::new(false))
}

fn cell_of(plan: &Plan) -> TrainCell {
    run_it(plan).unwrap().cells.remove(0)
}

fn adds_up(cell: &TrainCell) {
    for run in &cell.samples {
        assert!((run.parts_s() - run.wall_s).abs() < 1e-6, "{} and {}", run.parts_s(), run.wall_s);
        let charged: f64 = run.stall_by_cause.values().sum();
        assert!((charged - run.wait_s).abs() < 1e-6, "{charged} of {} is charged", run.wait_s);
    }
    let waited: f64 = cell.steps.iter().map(|step| step.wait_s).sum();
    assert!(waited <= cell.totals.wait_s + 1e-9);
}

#[test]
fn without_prefetch_the_wait_is_charged_to_that_and_prefetch_keeps_what_the_lever_promises() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let hdd: Profile = "hdd".parse().unwrap();
    let plan = Plan { tier: Some(hdd), ..emulated(path, "emulated:120ms", 0) };
    let without = cell_of(&plan);
    adds_up(&without);
    assert_eq!((without.totals.n_steps, without.totals.images, without.steps_per_epoch), (7, 56, 7));
    assert!(without.totals.overlap < Some(0.05), "nothing is done ahead: {:?}", without.totals.overlap);
    assert_eq!(without.lever.name, "prefetch");
    let hidden = without.totals.stall_by_cause[&Cause::Prefetch];
    assert!(hidden > 0.3 * without.totals.wait_s, "{hidden} of {}", without.totals.wait_s);
    let ahead = cell_of(&with(plan, |settings| settings.prefetch = 1));
    adds_up(&ahead);
    assert!(ahead.totals.overlap > Some(0.5), "{:?}", ahead.totals.overlap);
    assert!(ahead.totals.wall_s < without.totals.wall_s - 0.5 * without.lever.saves_s);
    assert!(ahead.totals.au_epoch > without.totals.au_epoch);
    let reads: f64 = ahead.reads.as_ref().unwrap().mb.iter().sum();
    assert!((reads - ahead.totals.bytes as f64 / 1e6).abs() < 1e-6, "all bytes are in the series");
}

#[test]
fn an_accelerator_that_never_waits_costs_no_io() {
    let made = with(emulated(PathBuf::new(), "emulated:5ms", 1), |settings| {
        (settings.synthetic, settings.steps) = (true, Some(5));
    });
    let made = Plan { data: None, ..made };
    // A busy machine may take the core away at that moment, but not in every run.
    let never_waits = |cell: &TrainCell| cell.totals.wait_s < 0.005;
    let cell = (0..10).map(|_| cell_of(&made)).find(never_waits).expect("the batch was ready before the clock started");
    adds_up(&cell);
    assert!(cell.synthetic && cell.baseline.is_none() && cell.feed.is_none() && cell.medium.cache.is_none());
    assert!(cell.totals.compute_s >= 0.025, "five steps of 5 ms, measured");
    assert_eq!((cell.lever.name.as_str(), cell.threads), ("none", 0));
}

#[test]
fn a_network_learns_the_same_for_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let losses = |threads: usize, makers: usize| {
        let plan = with(learning(path.clone()), |settings| {
            (settings.threads, settings.baseline) = (ThreadCount::Fixed(makers), Some(1));
        });
        let (record, deaf) = (Record::new(Vec::new(), Environment::default()), AtomicBool::new(false));
        let ended = run::run_on(threads, &plan, record, Observer::deaf(&deaf)).unwrap();
        let cell = ended.record.cells.into_iter().next().unwrap();
        adds_up(&cell);
        assert_eq!((cell.classes, cell.precision.as_deref()), (Some(45), Some("f32")));
        cell.steps.iter().map(|step| step.loss.unwrap()).collect::<Vec<_>>()
    };
    let one = losses(1, 1);
    assert_eq!(one.len(), 7);
    assert_eq!(one, losses(2, 3));
}

#[test]
fn every_epoch_is_judged_on_samples_that_are_not_learnt() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let plan = with(learning(path.clone()), |settings| settings.epochs = Some(2));
    let plan = Plan { validate: Some(Validate::Share(0.2)), ..plan };
    let told = Mutex::new(Vec::new());
    let hear = |event: Event| {
        if let Event::Validated { epoch, validation } = event {
            told.lock().unwrap().push((epoch, validation.n_samples));
        }
    };
    let record = run_observed(&plan, &hear, &AtomicBool::new(false)).unwrap();
    let told = told.into_inner().unwrap();
    let cell = &record.cells[0];
    adds_up(cell);
    assert_eq!((cell.steps_per_epoch, cell.totals.n_steps, told), (6, 12, vec![(1, 12), (2, 12)]));
    assert!(cell.totals.validate_s > 0.0 && cell.io_cost_s.is_none());
    let validation = cell.epochs[1].validation.unwrap();
    assert!(validation.seconds > 0.0 && (0.0..=1.0).contains(&validation.accuracy));
    let other = Plan { validate: Some(Validate::Data(path.clone())), ..learning(path) };
    assert_eq!(cell_of(&other).epochs[0].validation.unwrap().n_samples, 60);
}

#[test]
fn a_run_that_is_stopped_keeps_its_steps() {
    let dir = tempfile::tempdir().unwrap();
    let plan = emulated(data(dir.path()), "emulated:2ms", 1);
    let stop = AtomicBool::new(false);
    let hear = |event: Event| {
        if let Event::Step { step: 3, .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let record = run_observed(&plan, &hear, &stop).unwrap();
    assert_eq!(record.cells[0].totals.n_steps, 3);
    adds_up(&record.cells[0]);
    assert!(record.notes.iter().any(|note| note.starts_with("interrupted")), "{:?}", record.notes);
    stop.store(true, Ordering::Relaxed);
    let record = run_observed(&plan, &|_| {}, &stop).unwrap();
    assert!(record.cells.is_empty() && record.notes[0].contains("before the first step"));
}

#[test]
fn a_step_that_only_takes_time_is_broken_off() {
    let dir = tempfile::tempdir().unwrap();
    let plan = with(emulated(data(dir.path()), "emulated:1h", 1), |settings| settings.baseline = Some(0));
    let (stop, begin) = (AtomicBool::new(false), std::time::Instant::now());
    let record = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
        });
        run_observed(&plan, &|_| {}, &stop).unwrap()
    });
    assert!(begin.elapsed().as_secs() < 60, "the hour-long step was interrupted");
    assert!(record.cells.is_empty() && record.notes.iter().any(|note| note.contains("before the first step")));
}

#[test]
fn the_cost_of_io_is_what_the_run_takes_longer_than_its_own_steps() {
    let dir = tempfile::tempdir().unwrap();
    let plan = emulated(data(dir.path()), "emulated:gamma(0.5,8ms)", 3);
    let cell = cell_of(&plan);
    let (totals, baseline) = (&cell.totals, cell.baseline.unwrap());
    assert!(baseline.is_mean && baseline.n_steps == totals.n_steps);
    let over = totals.wait_s + totals.copy_s + totals.other_s;
    assert!((cell.io_cost_s.unwrap() - over).abs() < 1e-6, "{:?} and {over}", cell.io_cost_s);
}

#[test]
fn validation_data_that_fails_is_told_and_takes_no_time_of_the_training() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let other = dir.path().join("other.txt");
    std::fs::copy(&walk(&path)[0], dir.path().join("good.jpg")).unwrap();
    std::fs::write(dir.path().join("bad.jpg"), b"no photograph").unwrap();
    std::fs::write(&other, "good.jpg 0\nbad.jpg 1\n").unwrap();
    let plan = Plan { validate: Some(Validate::Data(other.clone())), ..learning(path) };
    let record = run_it(&plan).unwrap();
    assert!(record.notes[0].starts_with("validation: 1 of 2 samples failed and were left out; the first: "));
    assert!(record.cells[0].totals.validate_s > 0.0);
    std::fs::write(dir.path().join("good.jpg"), b"no photograph either").unwrap();
    let record = run_it(&plan).unwrap();
    assert!(record.notes[0].starts_with("validation: none of 2 samples could be used; "), "{:?}", record.notes);
    assert!(record.cells[0].totals.validate_s > 0.0 && record.cells[0].epochs[0].validation.is_none());
    adds_up(&record.cells[0]);
}

#[test]
fn steps_go_on_over_the_end_of_the_data_and_past_what_fails() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let broken = walk(&path);
    std::fs::write(&broken[0], b"not a photograph").unwrap();
    let plan = with(emulated(path, "emulated:1ms", 1), |settings| settings.steps = Some(17));
    let cell = cell_of(&plan);
    assert_eq!((cell.totals.n_steps, cell.totals.images), (17, 136));
    assert!(cell.totals.failed >= 2, "met in both passes: {}", cell.totals.failed);
    assert_eq!(cell.failures[0].name, broken[0].display().to_string());
    assert_eq!(cell.epochs.iter().map(|epoch| epoch.n_steps).collect::<Vec<_>>(), [7, 7, 3]);
}

#[test]
fn what_cannot_be_trained_on_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let said = |plan: &Plan| run_it(plan).unwrap_err().to_string();
    let large = with(emulated(path.clone(), "emulated:1ms", 1), |settings| settings.batch = 61);
    assert!(said(&large).ends_with("60 samples are less than one batch of 61"), "{}", said(&large));
    let few = with(learning(path.clone()), |settings| settings.classes = Some(1));
    assert!(said(&few).contains("is out of range 0..=0"), "{}", said(&few));
    for file in walk(&path) {
        std::fs::write(file, b"no photograph").unwrap();
    }
    let text = said(&emulated(path, "emulated:1ms", 1));
    assert!(text.starts_with("none of 60 samples could be used; the first: "), "{text}");
}

#[test]
fn validation_data_of_other_classes_is_refused_before_anything_is_learnt() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let other = dir.path().join("other");
    std::fs::create_dir_all(other.join("class_003")).unwrap();
    std::fs::copy(&walk(&path)[0], other.join("class_003/1.jpg")).unwrap();
    let plan = Plan { validate: Some(Validate::Data(other)), ..learning(path.clone()) };
    let text = run_it(&plan).unwrap_err().to_string();
    assert!(text.contains("its 1 classes differ from the 45 of the training data"), "{text}");
    let list = dir.path().join("list");
    std::fs::write(&list, format!("{} 45\n", walk(&path)[0].display())).unwrap();
    let text = run_it(&Plan { validate: Some(Validate::Data(list)), ..plan }).unwrap_err().to_string();
    assert!(text.contains("label 45 is out of range 0..=44"), "{text}");
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false if path.extension().is_some_and(|ending| ending == "jpg") => files.push(path),
            false => {}
        }
    }
    files.sort();
    files
}
