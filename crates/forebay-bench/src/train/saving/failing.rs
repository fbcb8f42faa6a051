//! Failures that are injected into a run: when they strike, and what training has lost when it has resumed.
//!
//! A failure strikes at the end of the step in which its time falls; during a save it tears the save, of which nothing
//! remains. It is the training process that fails: what the burst buffer holds survives, and the drain goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_record::{InjectedFailures, TrainFailure};
use forebay_units::random::Random;

use super::super::consumer::Consumer;
use super::super::run::Error;
use super::{Saver, resume, state};
use forebay_checkpoint::Error as StoreError;

/// How soon a save notices that it is torn.
const LOOK: Duration = Duration::from_millis(1);
/// Failures without a checkpoint in between, after which a run is given up.
const MOST_IN_A_ROW: u64 = 100;

pub(super) struct Failing {
    mean: Duration,
    random: Random,
    /// On the run's clock.
    next_ns: u64,
    in_a_row: u64,
    /// Step of the newest checkpoint at the last failure.
    resumed_from: u64,
    failures: Vec<TrainFailure>,
}

impl Failing {
    pub(super) fn new(mean: Duration, seed: u64) -> Self {
        let (random, failures) = (Random::new(seed), Vec::new());
        Self { mean, random, next_ns: u64::MAX, in_a_row: 0, resumed_from: 0, failures }
    }

    /// Another sequence of failures, the same for every run of this round.
    pub(super) fn next_round(&mut self) {
        self.random = Random::new(self.random.bits());
    }

    /// Lets the next failure strike after a random time from now on.
    pub(super) fn go_on(&mut self, now_ns: u64) {
        let after = self.mean.as_nanos() as f64 * self.random.exponential();
        self.next_ns = now_ns.saturating_add(after as u64);
    }

    pub(super) fn described(&self) -> InjectedFailures {
        InjectedFailures { every_s: self.mean.as_secs_f64(), failures: self.failures.clone() }
    }
}

impl Saver {
    /// Runs a save that a failure may tear; `torn` says that it did.
    pub(super) fn strikes<T>(&self, torn: &AtomicBool, save: impl FnOnce() -> T) -> T {
        let Some(failing) = &self.failing else { return save() };
        let look = || {
            let is_due = self.clock.now_ns() >= failing.next_ns;
            torn.fetch_or(is_due, Ordering::Relaxed);
            is_due
        };
        forebay_checkpoint::heeding(LOOK, look, save)
    }

    /// Restores the newest checkpoint if a failure has struck; returns the step from which training resumes. Once the
    /// last step is done and saved, nothing can be lost.
    pub(in super::super) fn fail(
        &mut self,
        reached: u64,
        is_over: bool,
        consumer: &mut dyn Consumer,
    ) -> Result<Option<u64>, Error> {
        let now_ns = self.clock.now_ns();
        let Some(failing) = &mut self.failing else { return Ok(None) };
        let in_save = std::mem::take(&mut self.is_torn);
        if now_ns < failing.next_ns || (is_over && !in_save) {
            return Ok(None);
        }
        let from = match self.store.restore() {
            Ok(restored) => {
                let is_learnt = consumer.view()?.is_some();
                if is_learnt {
                    let catalog = resume::catalog_of(&restored)?;
                    consumer.go_on(restored.name.step, Some(&state::loaded(&restored, &catalog)?))?;
                }
                restored.name.step
            }
            Err(StoreError::NothingGood { passed_over, .. }) if passed_over.is_empty() => {
                consumer.reset()?;
                0
            }
            Err(error) => return Err(error.into()),
        };
        failing.in_a_row = if from > failing.resumed_from { 1 } else { failing.in_a_row + 1 };
        failing.resumed_from = from;
        if failing.in_a_row > MOST_IN_A_ROW {
            return Err(Error::NoProgress { n_failures: failing.in_a_row });
        }
        let ended_ns = self.clock.now_ns();
        failing.failures.push(TrainFailure {
            at_s: (now_ns - self.started_ns) as f64 / 1e9,
            step: reached,
            resumed_from: from,
            restore_s: (ended_ns - now_ns) as f64 / 1e9,
            in_save,
        });
        failing.go_on(ended_ns);
        self.last = None;
        self.reached = from;
        Ok(Some(from))
    }
}
