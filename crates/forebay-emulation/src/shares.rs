//! The accelerators' parts of checkpoints, saved and restored by all accelerators at the same time.

use std::borrow::BorrowMut;
use std::time::Duration;

use forebay_measure::Event;
use forebay_measure::laps::Part;

use super::accelerator::PassTimer;
use super::accelerator_group::{AcceleratorGroup, lap};
use super::run::Error;
use super::saving::Saver;
use super::side_by_side::side_by_side;
use super::times::Saved;
use forebay_ranks::{Failed, Verdict};

/// Interval at which a pause between checkpoints checks for a stop.
const LOOK_FOR_STOP: Duration = Duration::from_millis(50);

/// Bytes of a part, and when it was done.
type Done = (u64, u64);

impl AcceleratorGroup<'_> {
    /// Saves as a part of the epoch. All accelerators stand still until the last of all has saved, including those with
    /// nothing to save.
    pub(super) fn save<B: BorrowMut<PassTimer>>(
        &mut self,
        timers: &mut [B],
        epoch: u64,
        step: u64,
    ) -> Result<Verdict, Failed> {
        lap(timers, Part::Other);
        let n_saves = self.n_saves();
        let verdict = self.save_shares(epoch, step, (epoch - 1) * self.context.n_steps + step)?;
        lap(timers, Part::Checkpoint);
        if self.n_saves() > n_saves {
            timers.iter_mut().for_each(|timer| timer.borrow_mut().times.saved_after.push(step));
        }
        self.prune()?;
        lap(timers, Part::Other);
        Ok(verdict)
    }

    /// Saves and restores, for workloads that do not train.
    pub(super) fn save_and_restore(&mut self) -> Result<Verdict, Failed> {
        let (context, rules) = (self.context, &self.context.workload.checkpoint);
        for save in 1..=rules.n_write {
            if save > 1 {
                self.pause(rules.time_between);
            }
            if context.meet()? == Verdict::Stop || self.save_shares(0, save, save)? == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
            self.prune()?;
        }
        // Reads must not overlap with writes of other ranks.
        if rules.n_read > 0 && context.meet()? == Verdict::Stop {
            return Ok(Verdict::Stop);
        }
        for restore in 1..=rules.n_read {
            if self.restore_shares(restore)? == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
        }
        Ok(Verdict::Go)
    }

    fn save_shares(&mut self, epoch: u64, step: u64, step_of_run: u64) -> Result<Verdict, Failed> {
        let (context, start_ns) = (self.context, self.context.clock.now_ns());
        let done = self.each("save", |saver, accelerator| {
            let bytes = saver.save(accelerator, step_of_run, context.observer.cancel)?;
            Ok(bytes.map(|bytes| (bytes, context.clock.now_ns())))
        })?;
        let verdict = context.meet()?;
        self.note(Saved { epoch, step, ..Saved::default() }, start_ns, done, verdict);
        Ok(verdict)
    }

    fn restore_shares(&mut self, restore: u64) -> Result<Verdict, Failed> {
        let context = self.context;
        let checkpoints = self.each("look", |saver, accelerator| saver.checkpoint(accelerator, restore))?;
        (context.begin_restore)();
        if context.meet()? == Verdict::Stop {
            return Ok(Verdict::Stop);
        }
        for (ran, checkpoint) in self.ran.iter_mut().zip(&checkpoints) {
            ran.residents.extend(checkpoint.as_ref().map(|checkpoint| checkpoint.resident));
        }
        let start_ns = context.clock.now_ns();
        let read = side_by_side(checkpoints.len(), checkpoints, "restore", |_, checkpoint| {
            let bytes = checkpoint.map_or(Ok(Some(0)), |checkpoint| checkpoint.read(context.observer.cancel))?;
            Ok(bytes.map(|bytes| (bytes, context.clock.now_ns())))
        });
        let read = context.all(read)?;
        (context.end_restore)();
        let verdict = context.meet()?;
        self.note(Saved { step: restore, is_restore: true, ..Saved::default() }, start_ns, read, verdict);
        Ok(verdict)
    }

    /// Removes old checkpoints; not timed as a part of the save.
    fn prune(&self) -> Result<(), Failed> {
        self.each("prune", |saver, accelerator| saver.prune(accelerator)).map(|_| ())
    }

    /// Runs `operation` for all accelerators at the same time; returns nothing if there is nothing to save.
    fn each<T: Send>(
        &self,
        what: &str,
        act: impl Fn(&Saver, u64) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Failed> {
        let context = self.context;
        let Some(saver) = context.saver else { return Ok(Vec::new()) };
        let all: Vec<u64> = context.accelerators.clone().collect();
        context.all(side_by_side(all.len(), all, what, |_, accelerator| act(saver, accelerator)))
    }

    /// Records each accelerator's time; with `rank_sync` it lasts until all have ended, which is now. An interrupted
    /// checkpoint does not count on any rank, because the others do not know how far it got.
    fn note(&mut self, saved: Saved, start_ns: u64, done: Vec<Option<Done>>, verdict: Verdict) {
        let context = self.context;
        let Some(done) = done.into_iter().collect::<Option<Vec<Done>>>() else { return };
        if verdict == Verdict::Stop && context.ranks.size() > 1 {
            return;
        }
        let met_ns = context.clock.now_ns();
        let is_together = context.workload.checkpoint.rank_sync;
        for ((accelerator, ran), (bytes, end_ns)) in context.accelerators.clone().zip(&mut self.ran).zip(done) {
            let ns = if is_together { met_ns } else { end_ns } - start_ns;
            let number = ran.saves.len() as u64;
            let start_ns = start_ns - context.origin_ns;
            ran.saves.push(Saved { accelerator, number, bytes, start_ns, ns, ..saved });
        }
        let first = self.ran.first().and_then(|ran| ran.saves.last()).filter(|saved| saved.bytes > 0);
        if let Some(Saved { number, bytes, ns, .. }) = first {
            context.observer.tell(Event::Saved { step: *number + 1, bytes: *bytes, seconds: *ns as f64 / 1e9 });
        }
    }

    fn n_saves(&self) -> usize {
        self.ran.first().map_or(0, |ran| ran.saves.len())
    }

    /// Waits for the workload's time between two saves; a stop cuts it short.
    fn pause(&self, seconds: f64) {
        let (context, start) = (self.context, self.context.clock.now_ns());
        let until = start + (seconds.max(0.0) * 1e9) as u64;
        while context.clock.now_ns() < until && !context.is_ending() {
            context.clock.sleep_until_ns(until.min(context.clock.now_ns() + LOOK_FOR_STOP.as_nanos() as u64));
        }
    }
}
