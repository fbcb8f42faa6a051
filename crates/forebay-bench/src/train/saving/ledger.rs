//! When each save reached which durability, recorded by two threads that wait in place of training.
//!
//! Saves become durable in order on each tier, so one thread per tier suffices.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_checkpoint::{Fate, Handle, Level};
use forebay_record::{SaveFate, TrainCheckpoint};
use forebay_units::Clock;

struct Line {
    save: TrainCheckpoint,
    /// Whether its fate is final.
    is_settled: bool,
}

#[derive(Default)]
struct SaveTable {
    lines: Mutex<Vec<Line>>,
    change: Condvar,
}

impl SaveTable {
    fn lock(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().expect("no holder of this lock panics")
    }
}

/// Its line, the time of its request, and its handle.
type Awaited = (usize, u64, Arc<Handle>);

pub(super) struct Ledger {
    table: Arc<SaveTable>,
    waiters: Vec<(Sender<Awaited>, JoinHandle<()>)>,
}

impl Ledger {
    pub(super) fn start(clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let table = Arc::new(SaveTable::default());
        let mut waiters = Vec::new();
        for (name, level) in [("forebay:on-fast", Level::DurableFast), ("forebay:on-slow", Level::DurableSlow)] {
            let (sender, awaited) = mpsc::channel::<Awaited>();
            let (table, clock) = (Arc::clone(&table), Arc::clone(&clock));
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                for (line, asked_ns, handle) in awaited {
                    let outcome = handle.wait(level);
                    let after_s = (clock.now_ns() - asked_ns) as f64 / 1e9;
                    note(&mut table.lock()[line], level, outcome, after_s);
                    table.change.notify_all();
                }
            })?;
            waiters.push((sender, thread));
        }
        Ok(Self { table, waiters })
    }

    /// Adds a save that has returned.
    pub(super) fn add(&self, step: u64, at_s: f64, asked_ns: u64, stall_s: f64, handle: Arc<Handle>) {
        let save = failed(step, at_s, stall_s);
        let line = {
            let mut lines = self.table.lock();
            lines.push(Line { save, is_settled: false });
            lines.len() - 1
        };
        for (sender, _) in &self.waiters {
            // The threads end only after the sender is dropped.
            let _ = sender.send((line, asked_ns, Arc::clone(&handle)));
        }
    }

    /// Adds a save that failed at once.
    pub(super) fn add_failed(&self, step: u64, at_s: f64, stall_s: f64) {
        let save = failed(step, at_s, stall_s);
        self.table.lock().push(Line { save, is_settled: true });
    }

    pub(super) fn n_open(&self) -> usize {
        self.table.lock().iter().filter(|line| !line.is_settled).count()
    }

    /// Waits until another save settles, or for at most this long.
    pub(super) fn wait(&self, at_most: Duration) {
        let lines = self.table.lock();
        if lines.iter().any(|line| !line.is_settled) {
            let _ = self.table.change.wait_timeout(lines, at_most);
        }
    }

    /// Called after the store is closed, when every wait has ended.
    pub(super) fn conclude(self) -> Vec<TrainCheckpoint> {
        for (sender, thread) in self.waiters {
            drop(sender);
            // The panic of the thread was printed; its records remain.
            let _ = thread.join();
        }
        let lines = self.table.lock();
        let concluded = |line: &Line| match line.save {
            // It never reached the last tier, but is durable on the first.
            save @ TrainCheckpoint { fate: SaveFate::Failed, durable_fast_s: Some(_), .. } => {
                TrainCheckpoint { fate: SaveFate::OnFast, ..save }
            }
            save => save,
        };
        lines.iter().map(concluded).collect()
    }
}

/// The initial entry, until more is known.
fn failed(step: u64, at_s: f64, stall_s: f64) -> TrainCheckpoint {
    TrainCheckpoint { step, at_s, stall_s, durable_fast_s: None, durable_slow_s: None, fate: SaveFate::Failed }
}

fn note(line: &mut Line, level: Level, outcome: forebay_checkpoint::Result<Fate>, after_s: f64) {
    let save = &mut line.save;
    match (level, outcome) {
        (Level::DurableSlow, outcome) => {
            line.is_settled = true;
            match outcome {
                Ok(Fate::Reached) => (save.durable_slow_s, save.fate) = (Some(after_s), SaveFate::Saved),
                Ok(Fate::Skipped) => save.fate = SaveFate::Skipped,
                Ok(Fate::Superseded) => save.fate = SaveFate::Superseded,
                // The store reports the error to the next save, or when it is closed.
                Err(_) => {}
            }
        }
        (_, Ok(Fate::Reached)) => save.durable_fast_s = Some(after_s),
        _ => {}
    }
}
