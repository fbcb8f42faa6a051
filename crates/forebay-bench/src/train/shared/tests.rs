//! Whole runs on ranks that are threads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_measure::{Event, Observer, Place, Places};
use forebay_ranks::Threads;
use forebay_record::{Environment, Record, TrainCell};

use super::super::plan::{Saves, Validate};
use super::super::tests::{data, emulated, learning, with};
use super::super::{KEEP, Plan, run_together};
use super::*;
use forebay_measure::Kept;

type Outcome = Result<Option<Record<TrainCell>>, Error>;

/// Runs a plan per rank; rank `stops` is asked to stop after its second step.
fn run_all(plans: &[Plan], stops: Option<u64>) -> Vec<Outcome> {
    Threads::run(plans.len(), |ranks| {
        let stop = AtomicBool::new(false);
        // Only the first rank hears of steps; any other is asked before the first.
        stop.store(stops.is_some_and(|rank| rank == ranks.rank() && rank > 0), Ordering::Relaxed);
        let hear = |event: Event| {
            if stops == Some(ranks.rank()) && matches!(event, Event::Step { step: 2.., .. }) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let record = Record::new(Vec::new(), Environment::default());
        let ended = run_together(&plans[ranks.rank() as usize], ranks, record, Observer::new(&hear, &stop));
        ended.map(|ended| ended.map(|ended| ended.record))
    })
}

fn record_of(plan: &Plan, n_ranks: usize) -> Record<TrainCell> {
    let mut all = run_all(&vec![plan.clone(); n_ranks], None).into_iter().map(Result::unwrap);
    let first = all.next().unwrap().unwrap();
    assert!(all.all(|other| other.is_none()), "only the first rank has a record");
    first
}

fn cell_of(plan: &Plan, n_ranks: usize) -> TrainCell {
    record_of(plan, n_ranks).cells.remove(0)
}

fn adds_up(cell: &TrainCell) {
    for totals in cell.ranks.iter().map(|rank| &rank.totals).chain(&cell.samples).chain([&cell.totals]) {
        assert!((totals.parts_s() - totals.wall_s).abs() < 1e-6, "{} and {}", totals.parts_s(), totals.wall_s);
        let charged: f64 = totals.stall_by_cause.values().sum();
        assert!((charged - totals.wait_s).abs() < 1e-6, "{charged} of {} is charged", totals.wait_s);
    }
    let mean = cell.ranks.iter().map(|rank| rank.totals.wait_s).sum::<f64>() / cell.ranks.len() as f64;
    assert!((mean - cell.totals.wait_s).abs() < 1e-9);
    assert_eq!(cell.ranks.iter().map(|rank| rank.totals.images).sum::<u64>(), cell.totals.images);
}

fn losses(cell: &TrainCell) -> Vec<f32> {
    cell.steps.iter().map(|step| step.loss.unwrap()).collect()
}

fn assert_same(ours: &[f32], theirs: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= tolerance * theirs.abs(), "{ours} and {theirs}");
    }
}

/// Without batch norm, whose statistics are those of a portion.
fn small(dir: &Path, optimizer: &str, batch: usize) -> Plan {
    with(learning(dir.to_owned()), |settings| {
        (settings.model, settings.optimizer) = (Some("alexnet-small".to_owned()), Some(optimizer.to_owned()));
        (settings.batch, settings.epochs) = (batch, Some(3));
    })
}

#[test]
fn ranks_make_the_steps_of_one_process_with_the_summed_batch() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    for optimizer in ["adam", "sgd"] {
        // 60 images in batches of 24: batches go on from one epoch into the next.
        let one = cell_of(&small(&path, optimizer, 24), 1);
        assert_eq!((one.totals.n_steps, one.ranks.len()), (6, 0));
        for n in [2, 3] {
            let several = cell_of(&small(&path, optimizer, 24 / n), n);
            adds_up(&several);
            assert_same(&losses(&several), &losses(&one), 1e-4);
            assert_eq!((several.totals.images, several.steps_per_epoch), (6 * 24, 2));
            assert!(several.totals.exchange_s > 0.0 && one.totals.exchange_s == 0.0);
            assert_eq!(
                several.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(),
                (0..n as u64).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn ranks_in_one_process_share_an_emulated_device_and_count_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let plan = Plan { tier: Some("hdd".parse().unwrap()), ..emulated(path, "emulated:1ms", 1) };
    let plan = with(plan, |settings| (settings.batch, settings.steps) = (4, Some(6)));
    let cell = |n_ranks: usize, batch: usize| {
        let plan = with(plan.clone(), |settings| (settings.ranks, settings.batch) = (n_ranks, batch));
        let (record, never) = (Record::new(Vec::new(), Environment::default()), AtomicBool::new(false));
        let cell = super::super::run(&plan, record, Observer::deaf(&never)).unwrap().record.cells.remove(0);
        assert_eq!(cell.totals.images, 48);
        cell
    };
    let (one, two) = (cell(1, 8), cell(2, 4));
    adds_up(&two);
    assert_eq!((one.ranks.len(), two.ranks.len()), (0, 2));
    // As many files from one disk: two of them would take half the time.
    assert!(two.totals.wall_s > 0.7 * one.totals.wall_s, "{} and {}", two.totals.wall_s, one.totals.wall_s);
    let most = two.ranks.iter().map(|rank| rank.totals.cpu_s).fold(0.0, f64::max);
    assert_eq!(two.totals.cpu_s, most, "the processor time of the process, once");
    let never = AtomicBool::new(false);
    let several = with(plan, |settings| settings.ranks = 2);
    let said = Threads::run(2, |ranks| {
        let record = Record::new(Vec::new(), Environment::default());
        run_together(&several, ranks, record, Observer::deaf(&never)).unwrap_err().to_string()
    });
    assert_eq!(said, ["several ranks: `ranks` is for one process"; 2]);
}

#[test]
fn every_rank_validates_its_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let plan = |batch| Plan { validate: Some(Validate::Share(0.2)), ..small(&path, "sgd", batch) };
    let (one, two) = (cell_of(&plan(16), 1), cell_of(&plan(8), 2));
    for (one, two) in one.epochs.iter().zip(&two.epochs) {
        let (one, two) = (one.validation.unwrap(), two.validation.unwrap());
        assert_eq!((one.n_samples, two.n_samples), (12, 12));
        assert_same(&[two.loss.unwrap()], &[one.loss.unwrap()], 1e-4);
        assert_eq!(one.accuracy, two.accuracy);
    }
    adds_up(&two);
}

fn saving(plan: Plan, dir: &Path, resume: bool) -> Plan {
    let places = Places { slow: Place::new(dir), fast: None, keep: Kept::in_each(KEEP) };
    let plan = with(plan, |settings| settings.checkpoint_every = Some(2));
    Plan { saves: Some(Saves { places, resume }), ..plan }
}

#[test]
fn ranks_that_resume_make_the_steps_of_the_run_that_went_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let long = with(small(&path, "adam", 8), |settings| (settings.epochs, settings.steps) = (None, Some(6)));
    let short = with(long.clone(), |settings| settings.steps = Some(4));
    let checkpoints = dir.path().join("saved");
    let whole = cell_of(&long, 2);
    let begun = cell_of(&saving(short, &checkpoints, false), 2);
    assert_eq!(begun.checkpoints.unwrap().saves.len(), 2, "the first rank saves for all");
    let resumed = cell_of(&saving(long.clone(), &checkpoints, true), 2);
    adds_up(&resumed);
    assert_eq!(resumed.resumed_from, Some(4));
    assert_eq!(losses(&resumed), losses(&whole)[4..], "bit by bit");
    let alone = saving(with(long, |settings| settings.batch = 8), &checkpoints, true);
    let said = run_all(&[alone], None).remove(0).unwrap_err().to_string();
    assert!(said.contains("it was saved by 2 ranks, now 1"), "{said}");
}

#[test]
fn a_rank_that_is_asked_to_stop_stops_all_after_the_same_step() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let plan = with(emulated(path, "emulated:1ms", 1), |settings| settings.steps = Some(100_000));
    for (rank, n_steps) in [(0, 2..1_000), (1, 1..2)] {
        let record = run_all(&[plan.clone(), plan.clone()], Some(rank)).remove(0).unwrap().unwrap();
        let cell = &record.cells[0];
        adds_up(cell);
        assert!(n_steps.contains(&cell.totals.n_steps), "rank {rank}: {} steps", cell.totals.n_steps);
        assert!(cell.ranks.iter().all(|rank| rank.totals.n_steps == cell.totals.n_steps));
        assert!(record.notes.iter().any(|note| note.starts_with("interrupted")), "{:?}", record.notes);
    }
}

#[test]
fn a_rank_that_fails_ends_all_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let plan = small(&path, "sgd", 8);
    let said = |plans: &[Plan]| -> Vec<String> {
        run_all(plans, None).into_iter().map(|ended| ended.unwrap_err().to_string()).collect()
    };
    let other = with(plan.clone(), |settings| settings.lr = Some(0.5));
    let texts = said(&[plan.clone(), other]);
    assert!(texts.iter().all(|text| text.contains("lr: Some(0.001)") && text.contains("lr: Some(0.5)")), "{texts:?}");
    let gone = Plan { data: Some(dir.path().join("elsewhere")), ..plan.clone() };
    let texts = said(&[plan.clone(), gone]);
    assert!(texts.iter().all(|text| text.contains("elsewhere")), "{texts:?}");
    let injected = with(plan.clone(), |settings| settings.fail_every = Some(std::time::Duration::from_secs(1)));
    let texts = said(&[injected.clone(), injected]);
    assert!(texts[0].starts_with("several ranks: `fail_every`"), "{texts:?}");
    // 60 samples are enough for one rank.
    let large = with(plan, |settings| settings.batch = 40);
    let texts = said(&[large.clone(), large]);
    assert!(texts[0].ends_with("60 samples are less than one batch of 80"), "{texts:?}");
}

#[test]
fn networks_that_differ_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = data(dir.path());
    let plan = small(&path, "sgd", 8);
    let said = Threads::run(2, |ranks| {
        let never = AtomicBool::new(false);
        let site = Site::join(ranks, &never, &never).unwrap();
        let seed = ranks.rank();
        let kind = super::super::consumer::Kind::of(
            &plan,
            super::super::device::Accelerator::Network(super::super::device::Device::Cpu { threads: 1 }),
            4,
        );
        let consumer = kind.unwrap().build(8, 1, seed, Some(ranks.rank())).unwrap();
        site.check_equal(consumer.as_ref()).unwrap_err().to_string()
    });
    assert_eq!(said, ["the network of rank 1 differs from that of the first rank after the last step"; 2]);
}
