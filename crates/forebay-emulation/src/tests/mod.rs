//! Whole runs on small workloads.

mod foresee;
mod loops;
mod runs;
mod saves;
mod several;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use forebay_measure::{Event, Observer, Place};
use forebay_record::{Cause, Environment, Record, WorkloadCell};
use forebay_workload::{Format, Time, Workload};

use super::*;
use forebay_ranks::Solo;

/// Eight samples of a kilobyte per step and accelerator, which need no reads.
fn workload(n_files: u64, epochs: u64) -> Workload {
    let mut workload = Workload { name: "small".to_owned(), ..Workload::default() };
    workload.dataset.format = Format::Synthetic;
    workload.dataset.n_files_train = n_files;
    workload.dataset.record_length_bytes = 1024.0;
    workload.reader.batch_size = 8;
    workload.train.epochs = epochs;
    workload.train.computation_time = Time::Normal { mean: 0.0005, stdev: 0.0 };
    workload
}

fn plan(workload: Workload, dir: &Path, accelerators: u64) -> Plan {
    Plan {
        settings: WorkloadSettings { accelerators, ..WorkloadSettings::default() },
        workload,
        data: dir.join("data"),
        checkpoints: Place::new(dir.join("checkpoints")),
        keeps_checkpoints: true,
        access_log: None,
        tier: None,
        out: None,
    }
}

fn run_it(plan: &Plan) -> Result<Record<WorkloadCell>, Error> {
    let environment = Environment { memory_bytes: Some(1 << 40), ..Environment::default() };
    let record = Record::new(Vec::new(), environment);
    let record = run(plan, &Solo, record, Observer::deaf(&AtomicBool::new(false)))?;
    Ok(record.expect("the first rank has the record"))
}

fn run_observed(
    plan: &Plan,
    hear: &(dyn Fn(Event) + Sync),
    cancel: &AtomicBool,
) -> Result<Record<WorkloadCell>, Error> {
    let record = Record::new(Vec::new(), Environment::default());
    Ok(run(plan, &Solo, record, Observer::new(hear, cancel))?.expect("the first rank has the record"))
}

fn cell_of(plan: &Plan) -> WorkloadCell {
    run_it(plan).unwrap().cells.remove(0)
}

/// The parts of every epoch, and of all epochs, sum to their time.
fn adds_up(cell: &WorkloadCell) {
    for epoch in &cell.epochs_of {
        let parts = epoch.wait_s + epoch.compute_s + epoch.barrier_s + epoch.checkpoint_s + epoch.other_s;
        assert!((parts - epoch.wall_s).abs() < 1e-9 * epoch.wall_s.max(1.0), "{epoch:?}");
        assert!(epoch.load.iter().sum::<f64>() - epoch.wait_s < 1e-9, "{epoch:?}");
    }
    let totals = &cell.totals;
    let parts = totals.wait_s + totals.compute_s + totals.barrier_s + totals.checkpoint_s + totals.other_s;
    assert!((parts - totals.accelerator_s).abs() < 1e-6, "{totals:?}");
    let stalls: f64 = totals.stall_by_cause.iter().filter(|(name, _)| **name != Cause::Barrier).map(|(_, s)| s).sum();
    assert!((stalls - totals.wait_s).abs() < 1e-6, "{totals:?}");
    assert_eq!(totals.stall_by_cause[&Cause::Barrier], totals.barrier_s);
}

/// Collects the observer's events.
#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl Heard {
    fn hear(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}
