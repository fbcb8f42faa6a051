//! Runs that save, in their own folders or with batches sent ahead.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_checkpoint::{Mode, WhenBehind};
use forebay_measure::{Event, Observer, Place, Places, Scratch};
use forebay_record::{Environment, Record, SaveFate, TrainCell};
use forebay_units::Bytes;

use super::super::plan::{Plan, Saves};
use super::super::run::{Error, run};
use super::super::tests::{data, emulated, learning, run_observed, with};
use super::SCRATCH;

/// The plan with a checkpoint every `every` steps.
fn saving(plan: Plan, dir: &Path, every: u64, mode: Mode) -> Plan {
    let fast = (mode == Mode::Burst).then(|| Place::new(dir.join("fast")));
    let places = Places { slow: Place::new(dir.join("slow")), fast, keep: forebay_measure::Kept::in_each(5) };
    let plan = with(plan, |settings| {
        (settings.checkpoint_every, settings.checkpoint_mode) = (Some(every), Some(mode));
    });
    Plan { saves: Some(Saves { places, resume: false }), ..plan }
}

/// The plan for `n_steps` steps, from the start or from the newest checkpoint.
fn going(mut plan: Plan, n_steps: u64, resume: bool) -> Plan {
    plan.saves.as_mut().unwrap().resume = resume;
    with(plan, |settings| settings.steps = Some(n_steps))
}

fn run_it(plan: &Plan) -> Result<Record<TrainCell>, Error> {
    run_observed(plan, &|_| {}, &AtomicBool::new(false))
}

fn losses(record: &Record<TrainCell>) -> Vec<f32> {
    record.cells[0].steps.iter().map(|step| step.loss.unwrap()).collect()
}

#[test]
fn batches_that_were_sent_ahead_come_again_after_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let plan = with(learning(data(dir.path())), |settings| {
        (settings.device_prefetch, settings.prefetch) = (Some(2), 3);
    });
    let whole = losses(&run_it(&with(plan.clone(), |settings| settings.steps = Some(9))).unwrap());
    let plan = saving(plan, dir.path(), 2, Mode::Async);
    let of = |n, resume| losses(&run_it(&going(plan.clone(), n, resume)).unwrap());
    assert_eq!(of(5, false), whole[..5]);
    assert_eq!(of(9, true), whole[4..]);
}

#[test]
fn each_of_several_runs_begins_with_an_empty_folder_and_removes_it() {
    let dir = tempfile::tempdir().unwrap();
    let plan = saving(learning(data(dir.path())), dir.path(), 3, Mode::Burst);
    let plan = Plan { warmups: 1, repeats: 2, ..plan };
    let record = run_it(&plan).unwrap();
    assert_eq!(record.cells[0].samples.len(), 2);
    let saves = &record.cells[0].checkpoints.as_ref().unwrap().saves;
    let found: Vec<(u64, SaveFate)> = saves.iter().map(|save| (save.step, save.fate)).collect();
    assert_eq!(found, [(3, SaveFate::Saved), (6, SaveFate::Saved)]);
    for place in ["fast", "slow"] {
        assert_eq!(std::fs::read_dir(dir.path().join(place)).unwrap().count(), 0, "{place}");
    }
}

/// Steps of a millisecond with saves that take a hundred times as long; saves that find no memory are skipped.
fn hurried(dir: &Path, n_steps: u64) -> Plan {
    let mut plan = saving(emulated(data(dir), "emulated:1ms", 1), dir, 1, Mode::Async);
    plan.saves.as_mut().unwrap().places.slow.shaped = Some("hdd".parse().unwrap());
    with(going(plan, n_steps, false), |settings| {
        (settings.checkpoint_behind, settings.checkpoint_size) = (Some(WhenBehind::Skip), Some(Bytes(16_000_000)));
    })
}

#[test]
fn the_last_state_is_saved_however_many_were_left_out_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let record = run_it(&hurried(dir.path(), 5)).unwrap();
    let checkpoints = record.cells[0].checkpoints.as_ref().unwrap();
    let of = |step: u64| checkpoints.saves.iter().rfind(|save| save.step == step).unwrap();
    assert_eq!((of(2).fate, of(5).fate), (SaveFate::Skipped, SaveFate::Saved), "{:?}", checkpoints.saves);
    assert_eq!(checkpoints.n_made(), 5 - checkpoints.n(SaveFate::Skipped));
    assert!(checkpoints.median_stall_s.unwrap() > 0.0, "the median covers the saves that were made");
}

#[test]
fn a_run_that_is_stopped_at_a_step_that_was_left_out_saves_it() {
    let dir = tempfile::tempdir().unwrap();
    let (cancel, remarks) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let hear = |event: Event| match event {
        Event::Step { step: 3, .. } => cancel.store(true, Ordering::Relaxed),
        Event::Remark { text } => remarks.lock().unwrap().push(text),
        _ => {}
    };
    let plan = hurried(dir.path(), 1_000);
    let record = run_observed(&plan, &hear, &cancel).unwrap();
    let checkpoints = record.cells[0].checkpoints.as_ref().unwrap();
    let fates: Vec<(u64, SaveFate)> = checkpoints.saves.iter().map(|save| (save.step, save.fate)).collect();
    let wanted = [(1, SaveFate::Saved), (2, SaveFate::Skipped), (3, SaveFate::Skipped), (3, SaveFate::Saved)];
    assert_eq!(fates, wanted);
    assert_eq!(remarks.into_inner().unwrap(), ["the state after step 3 is saved; --resume continues from there"]);
    assert_eq!(checkpoints.drain_after_s, None, "the run did not wait for it");
}

#[test]
fn an_emulated_accelerator_needs_a_size_and_is_saved_when_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let plan = saving(emulated(data(dir.path()), "emulated:1ms", 1), dir.path(), 1_000, Mode::Direct);
    let plan = going(plan, 1_000, false);
    assert!(matches!(run_it(&plan), Err(Error::NoState)));
    let plan = with(plan, |settings| settings.checkpoint_size = Some(Bytes(100_000)));
    let cancel = AtomicBool::new(false);
    let stop = |event: Event| cancel.fetch_or(matches!(event, Event::Step { step: 4, .. }), Ordering::Relaxed);
    let stopped = run_observed(&plan, &|event| _ = stop(event), &cancel);
    let cell = &stopped.unwrap().cells[0];
    let checkpoints = cell.checkpoints.as_ref().unwrap();
    assert_eq!((checkpoints.bytes, checkpoints.saves.len(), checkpoints.saves[0].step), (100_000, 1, 4));
    assert!((cell.totals.parts_s() - cell.totals.wall_s).abs() < 1e-6 && cell.totals.checkpoint_s > 0.0);
}

/// A synthetic batch, failures every few steps, and a checkpoint every three.
fn failing(dir: &Path, mean: Duration) -> Plan {
    let plan = saving(Plan { data: None, ..learning(data(dir)) }, dir, 3, Mode::Direct);
    with(going(plan, 12, false), |settings| {
        (settings.synthetic, settings.baseline, settings.fail_every) = (true, None, Some(mean));
    })
}

#[test]
fn a_network_that_fails_and_restores_learns_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let plan = failing(dir.path(), Duration::from_millis(20));
    let whole = with(Plan { saves: None, ..plan.clone() }, |settings| {
        (settings.fail_every, settings.checkpoint_every, settings.checkpoint_mode) = (None, None, None);
    });
    let whole = losses(&run_it(&whole).unwrap());
    let cell = run_it(&plan).unwrap().cells.remove(0);
    let injected = cell.injected().unwrap();
    assert!(!injected.failures.is_empty(), "{injected:?}");
    // Every step that is made again has the loss that it had before.
    let (mut step, mut failures) = (0, injected.failures.iter().peekable());
    for made in &cell.steps {
        assert_eq!(made.loss, Some(whole[step]), "step {step} of {injected:?}");
        step += 1;
        if let Some(failure) = failures.next_if(|failure| failure.step == step as u64) {
            step = failure.resumed_from as usize;
        }
    }
    assert_eq!((step, cell.totals.n_steps), (12, 12 + injected.n_lost_steps()));
}

#[test]
fn a_run_that_never_reaches_a_checkpoint_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let plan = with(failing(dir.path(), Duration::from_micros(1)), |settings| settings.checkpoint_every = Some(2));
    let ended =
        run(&plan, Record::new(Vec::new(), Environment::default()), Observer::new(&|_| {}, &AtomicBool::new(false)));
    let failure = ended.unwrap().failure.unwrap();
    assert!(matches!(failure, Error::NoProgress { n_failures: 101 }), "{failure}");
}

#[test]
fn folders_of_runs_that_were_killed_are_removed_and_those_in_use_stay() {
    let dir = tempfile::tempdir().unwrap();
    let slow = dir.path().join("slow");
    let in_use = Scratch::create_below(&slow, SCRATCH).unwrap();
    std::fs::create_dir_all(slow.join(".forebay-train-1-7/step-000000000003")).unwrap();
    std::fs::create_dir_all(slow.join(".forebay-train-mine")).unwrap();
    for (warmups, of_a_killed_run) in [(1, ".forebay-train-1-7"), (0, ".forebay-train-2-0")] {
        std::fs::create_dir_all(slow.join(of_a_killed_run)).unwrap();
        let plan = Plan { warmups, ..saving(learning(data(dir.path())), dir.path(), 3, Mode::Direct) };
        let record = run_it(&plan).unwrap();
        let said = format!("removed leftovers of a killed run in {}: {of_a_killed_run}", slow.display());
        assert!(record.notes.contains(&said), "{:?}", record.notes);
        assert!(!slow.join(of_a_killed_run).exists());
        assert!(in_use.path().exists() && slow.join(".forebay-train-mine").exists());
    }
}

#[test]
fn a_run_with_nothing_to_do_stops_draining_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    // A checkpoint would take a day.
    let plan = saving(learning(data(dir.path())), dir.path(), 3, Mode::Burst);
    let slowly = with(plan, |settings| settings.drain_rate = Some(Bytes(1)));
    let of = |resume| {
        let plan = going(slowly.clone(), 6, resume);
        let cancel = AtomicBool::new(false);
        let stop = |event: Event| {
            cancel.fetch_or(matches!(event, Event::Draining { .. }), Ordering::Relaxed);
        };
        run_observed(&plan, &stop, &cancel).unwrap()
    };
    of(false);
    let record = of(true);
    assert!(record.cells.is_empty(), "{:?}", record.cells);
    let said = |what: &str| record.notes.iter().any(|note| note.contains(what));
    assert!(said("nothing left to do") && said("still to be drained to "), "{:?}", record.notes);
}
