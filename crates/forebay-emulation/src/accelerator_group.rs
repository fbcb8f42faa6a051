//! The accelerators of a process: all wait for their batches, compute, meet, and save when a checkpoint is due.
//!
//! One thread drives them all. A computing accelerator needs no core. With a thread per accelerator, a core shared with
//! readers would have to serve each of them twice per step, and all would wait for the last one.

use std::sync::Arc;
use std::time::Duration;

use forebay_measure::{Event, Observer, laps};
use forebay_units::Clock;
use forebay_units::chain;
use forebay_workload::{Part, Time, Workload};

use super::accelerator::{Accelerator, Doing, PassTimer, Readiness};
use super::compute::{Draws, Pace};
use super::feed::Supply;
use super::run::Error;
use super::saving::Saver;
use super::side_by_side::side_by_side;
use super::times::{Epoch, Saved};
use forebay_ranks::{Failed, Ranks, Verdict};

/// Minimum interval between progress events.
const TELL_EVERY: Duration = Duration::from_millis(50);

pub(super) struct RunContext<'a> {
    pub(super) workload: &'a Workload,
    /// Numbered over all processes.
    pub(super) accelerators: std::ops::Range<u64>,
    pub(super) n_steps: u64,
    pub(super) n_steps_eval: u64,
    /// Epochs that are followed by an evaluation.
    pub(super) evaluations: &'a [u64],
    /// Readers of this process, and the cores they share.
    pub(super) n_readers: usize,
    pub(super) n_cores: usize,
    pub(super) supply: &'a dyn Supply,
    pub(super) ranks: &'a dyn Ranks,
    pub(super) saver: Option<&'a Saver>,
    pub(super) clock: Arc<dyn Clock>,
    /// Start of the run on the clock.
    pub(super) origin_ns: u64,
    /// Called before and after the training part of each epoch.
    pub(super) begin_epoch: &'a (dyn Fn() + Sync),
    pub(super) end_epoch: &'a (dyn Fn() + Sync),
    /// Called around the restores.
    pub(super) begin_restore: &'a (dyn Fn() + Sync),
    pub(super) end_restore: &'a (dyn Fn() + Sync),
    pub(super) observer: Observer<'a>,
}

impl RunContext<'_> {
    /// Whether this process was asked to stop; all ranks then end at their next meeting.
    pub(super) fn is_ending(&self) -> bool {
        self.observer.is_cancelled()
    }

    pub(super) fn meet(&self) -> Result<Verdict, Failed> {
        let met = self.ranks.meet_or_stop(Ok(if self.is_ending() { Verdict::Stop } else { Verdict::Go }));
        if met != Ok(Verdict::Go) {
            self.supply.end();
        }
        met
    }

    /// Reports the failure of one accelerator to all ranks.
    pub(super) fn give_up<T>(&self, accelerator: u64, reason: &str) -> Result<T, Failed> {
        self.fail(format!("accelerator {accelerator}: {reason}"))
    }

    /// Reports the failure of this process to all ranks.
    pub(super) fn fail<T>(&self, reason: String) -> Result<T, Failed> {
        self.supply.end();
        self.ranks.meet(Err(reason.clone()))?;
        // All ranks end in any case.
        Err(Failed { rank: self.ranks.rank(), host: self.ranks.host(), reason, is_lost: false })
    }

    /// Fails with the first failure among them.
    pub(super) fn all<T>(&self, outcomes: Vec<Result<T, Error>>) -> Result<Vec<T>, Failed> {
        let mut all = Vec::with_capacity(outcomes.len());
        for (accelerator, outcome) in self.accelerators.clone().zip(outcomes) {
            match outcome {
                Ok(value) => all.push(value),
                Err(error) => return self.give_up(accelerator, &chain(&error)),
            }
        }
        Ok(all)
    }
}

#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) epochs: Vec<Epoch>,
    pub(super) saves: Vec<Saved>,
    /// Per restored checkpoint, the fraction that was in memory before.
    pub(super) residents: Vec<Option<f64>>,
    pub(super) is_stopped: bool,
}

pub(super) fn drive(context: &RunContext<'_>) -> Result<Vec<Ran>, Failed> {
    let mut group = AcceleratorGroup::new(context);
    let verdict = match context.workload.workflow.train {
        true => group.train()?,
        false => group.save_and_restore()?,
    };
    group.ran.iter_mut().for_each(|ran| ran.is_stopped = verdict == Verdict::Stop);
    Ok(group.ran)
}

pub(super) struct AcceleratorGroup<'a> {
    pub(super) context: &'a RunContext<'a>,
    pub(super) ran: Vec<Ran>,
    pace: Pace,
    draws: Vec<Draws>,
    told_ns: u64,
}

impl<'a> AcceleratorGroup<'a> {
    fn new(context: &'a RunContext<'a>) -> Self {
        let seed = context.workload.train.seed;
        let draws: Vec<Draws> = context.accelerators.clone().map(|number| Draws::new(seed, number)).collect();
        let ran = draws.iter().map(|_| Ran::default()).collect();
        Self { context, ran, pace: Pace::new(Arc::clone(&context.clock)), draws, told_ns: 0 }
    }

    fn train(&mut self) -> Result<Verdict, Failed> {
        let context = self.context;
        let of = context.workload.train.epochs;
        for epoch in 1..=of {
            context.observer.tell(Event::Steps { epoch: Some((epoch, of)), first: 0, n_steps: context.n_steps });
            let mut verdict = self.epoch(epoch)?;
            if verdict == Verdict::Go && context.evaluations.contains(&epoch) {
                context.observer.tell(Event::phase(format!("evaluating after epoch {epoch}")));
                verdict = self.evaluate(epoch)?;
            }
            if verdict == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
        }
        Ok(Verdict::Go)
    }

    fn epoch(&mut self, epoch: u64) -> Result<Verdict, Failed> {
        let context = self.context;
        (context.begin_epoch)();
        if context.meet()? == Verdict::Stop {
            return Ok(Verdict::Stop);
        }
        let mut accelerators = self.open(Part::Train, epoch)?;
        let mut verdict = self.steps(&mut accelerators, epoch)?;
        let ended =
            side_by_side(context.n_cores, accelerators, "end", |_, accelerator: Accelerator| Ok(accelerator.finish()));
        let (mut timers, feds): (Vec<PassTimer>, Vec<_>) = context.all(ended)?.into_iter().unzip();
        lap(&mut timers, laps::Part::Other);
        if verdict == Verdict::Go {
            (context.end_epoch)();
            verdict = context.meet()?;
            lap(&mut timers, laps::Part::Barrier);
            timers.iter_mut().for_each(PassTimer::end_block);
            if verdict == Verdict::Go && self.saves_after_epoch(epoch) {
                verdict = self.save(&mut timers, epoch, context.n_steps)?;
            }
        }
        timers.iter_mut().for_each(PassTimer::end_block);
        for ((ran, timer), fed) in self.ran.iter_mut().zip(timers).zip(feds) {
            ran.epochs.push(timer.into_epoch(&fed));
        }
        Ok(verdict)
    }

    fn open(&self, part: Part, epoch: u64) -> Result<Vec<Accelerator>, Failed> {
        let context = self.context;
        let timers: Vec<PassTimer> =
            context.accelerators.clone().map(|number| PassTimer::open(context, number, epoch)).collect();
        let opened = side_by_side(context.n_cores, timers, "open", |i, timer| {
            let feed = context.supply.open(part, context.accelerators.start + i as u64, epoch)?;
            Ok(Accelerator::new(feed, timer))
        });
        context.all(opened)
    }

    fn steps(&mut self, accelerators: &mut [Accelerator], epoch: u64) -> Result<Verdict, Failed> {
        let context = self.context;
        for step in 1..=context.n_steps {
            if self.step(accelerators, step, &context.workload.train.computation_time)? == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
            self.tell_step(step, accelerators);
            if self.saves_after_step(step) {
                let mut timers: Vec<&mut PassTimer> =
                    accelerators.iter_mut().map(|accelerator| &mut accelerator.timer).collect();
                timers.iter_mut().for_each(|timer| timer.end_block());
                let verdict = self.save(&mut timers, epoch, step)?;
                timers.iter_mut().for_each(|timer| timer.end_block());
                if verdict == Verdict::Stop {
                    return Ok(Verdict::Stop);
                }
            }
            accelerators.iter_mut().for_each(|accelerator| _ = accelerator.timer.laps.lap(laps::Part::Other));
        }
        Ok(Verdict::Go)
    }

    fn step(&mut self, accelerators: &mut [Accelerator], step: u64, law: &Time) -> Result<Verdict, Failed> {
        let context = self.context;
        accelerators.iter_mut().for_each(Accelerator::begin);
        let mut n_left = accelerators.len();
        loop {
            let is_ending = context.is_ending();
            for (i, accelerator) in accelerators.iter_mut().enumerate() {
                let number = context.accelerators.start + i as u64;
                match accelerator.poll(context, is_ending) {
                    Ok(Readiness::Same) => (),
                    Ok(Readiness::Fed) => accelerator.compute(context.clock.now_ns(), self.draws[i].next(law)),
                    Ok(Readiness::Arrived) => n_left -= 1,
                    Ok(Readiness::Ended) => {
                        return context.give_up(number, &format!("the data ended before step {step}"));
                    }
                    Err(error) => return context.give_up(number, &chain(&error)),
                }
            }
            // A run that is ending does not wait for missing batches.
            if n_left == 0 || is_ending && accelerators.iter().any(|accelerator| accelerator.doing == Doing::Waiting) {
                break;
            }
            // Waking readers takes longer than the rest of starting a step, so it is done while all compute.
            accelerators.iter_mut().for_each(Accelerator::go_on);
            self.pace.rest(next_end(accelerators));
        }
        let verdict = context.meet()?;
        // If one rank is asked to stop, the others do not know how far it got, so no rank counts the step.
        match verdict {
            Verdict::Go => accelerators.iter_mut().for_each(|accelerator| accelerator.timer.met()),
            Verdict::Stop => accelerators.iter_mut().for_each(|accelerator| accelerator.timer.break_off()),
        }
        Ok(verdict)
    }

    fn evaluate(&mut self, epoch: u64) -> Result<Verdict, Failed> {
        let context = self.context;
        let mut verdict = context.meet()?;
        let mut accelerators = self.open(Part::Eval, epoch)?;
        for step in 1..=context.n_steps_eval {
            if verdict == Verdict::Stop {
                break;
            }
            verdict = self.step(&mut accelerators, step, &context.workload.evaluation.eval_time)?;
        }
        let ended = side_by_side(context.n_cores, accelerators, "end", |_, accelerator: Accelerator| {
            Ok(accelerator.finish().0)
        });
        for (ran, timer) in self.ran.iter_mut().zip(context.all(ended)?) {
            if let Some(times) = ran.epochs.last_mut() {
                times.evaluated = Some(timer.into_evaluated());
            }
        }
        Ok(verdict)
    }

    fn saves_after_step(&self, step: u64) -> bool {
        let every = self.context.workload.checkpoint.steps_between.filter(|every| *every > 0);
        self.context.saver.is_some() && every.is_some_and(|every| step.is_multiple_of(every))
    }

    fn saves_after_epoch(&self, epoch: u64) -> bool {
        let rules = &self.context.workload.checkpoint;
        let is_due = || {
            let since = epoch.checked_sub(rules.after_epoch.max(1));
            since.is_some_and(|since| since.is_multiple_of(rules.epochs_between.max(1)))
        };
        self.context.saver.is_some() && rules.steps_between.is_none() && is_due()
    }

    fn tell_step(&mut self, done: u64, accelerators: &[Accelerator]) {
        let (context, now) = (self.context, self.context.clock.now_ns());
        let is_due = now >= self.told_ns + TELL_EVERY.as_nanos() as u64 || done == context.n_steps;
        if let Some(first) = accelerators.first().filter(|_| is_due) {
            self.told_ns = now;
            let wait_share = first.timer.wait_share();
            context.observer.tell(Event::Step { step: done, images: 0, bytes: 0, loss: None, wait_share });
        }
    }
}

/// Charges the time since the last lap to `part`.
pub(super) fn lap<B: std::borrow::BorrowMut<PassTimer>>(timers: &mut [B], part: laps::Part) {
    timers.iter_mut().for_each(|timer| _ = timer.borrow_mut().laps.lap(part));
}

fn next_end(accelerators: &[Accelerator]) -> Option<u64> {
    let ends = accelerators.iter().filter_map(|accelerator| match accelerator.doing {
        Doing::Computing { until_ns } => Some(until_ns),
        Doing::Waiting | Doing::Arrived => None,
    });
    ends.min()
}
