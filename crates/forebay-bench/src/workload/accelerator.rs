//! The loop of one accelerator: wait for a batch, compute, meet the others, save when it is time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_units::Clock;
use forebay_workload::{Part, Workload};

use super::barrier::Gate;
use super::compute::Pace;
use super::feed::{Fed, Feed, Supply};
use super::ranks::{Failed, Verdict};
use super::run::{Error, Event};
use super::saving::Saver;
use super::times::{Block, Epoch, Evaluated, Saved};
use crate::laps::{self, Laps};
use crate::stall::{Charges, Work};
use crate::supply;

/// An observer is not told of a step more often than this.
const TELL_EVERY: Duration = Duration::from_millis(50);
/// How often a pause between checkpoints looks whether it shall end.
const LOOK_FOR_STOP: Duration = Duration::from_millis(50);

/// What the accelerators of a process share.
pub(super) struct Course<'a> {
    pub(super) workload: &'a Workload,
    pub(super) n_steps: u64,
    pub(super) n_steps_eval: u64,
    /// Epochs after which it is evaluated.
    pub(super) evaluations: &'a [u64],
    /// Readers of this process, and the cores they share.
    pub(super) n_readers: usize,
    pub(super) n_cores: usize,
    pub(super) supply: &'a dyn Supply,
    pub(super) gate: &'a Gate<'a>,
    pub(super) saver: Option<&'a Saver>,
    pub(super) clock: Arc<dyn Clock>,
    /// Where the run began on the clock.
    pub(super) origin_ns: u64,
    /// Called before all accelerators of the process begin to train in an epoch, and after all have.
    pub(super) begin_epoch: &'a (dyn Fn() + Sync),
    pub(super) end_epoch: &'a (dyn Fn() + Sync),
    /// Called around the restores.
    pub(super) begin_restore: &'a (dyn Fn() + Sync),
    pub(super) end_restore: &'a (dyn Fn() + Sync),
    pub(super) observe: &'a (dyn Fn(Event) + Sync),
}

/// What an accelerator did.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) epochs: Vec<Epoch>,
    pub(super) saves: Vec<Saved>,
    /// What was in memory of each checkpoint that was read back, before it was.
    pub(super) residents: Vec<Option<f64>>,
    pub(super) is_stopped: bool,
}

/// Runs accelerator `number` of all; the first of a process tells the observer.
pub(super) fn drive(course: &Course<'_>, number: u64, tells: bool) -> Result<Ran, Failed> {
    let pace = Pace::new(Arc::clone(&course.clock), course.workload.train.seed, number);
    let mut accelerator = Accelerator { course, number, tells, pace, told_ns: 0, ran: Ran::default() };
    let verdict = match course.workload.workflow.train {
        true => accelerator.train()?,
        false => accelerator.save_and_restore()?,
    };
    accelerator.ran.is_stopped = verdict == Verdict::Stop;
    Ok(accelerator.ran)
}

struct Accelerator<'a> {
    course: &'a Course<'a>,
    number: u64,
    tells: bool,
    pace: Pace,
    told_ns: u64,
    ran: Ran,
}

/// An epoch at work.
struct Lap {
    laps: Laps,
    times: Epoch,
    charges: Charges,
    block: Block,
}

impl<'a> Accelerator<'a> {
    fn train(&mut self) -> Result<Verdict, Failed> {
        let of = self.course.workload.train.epochs;
        for epoch in 1..=of {
            self.tell(Event::Epoch { epoch, of, n_steps: self.course.n_steps });
            let mut verdict = self.epoch(epoch)?;
            if verdict == Verdict::Go && self.course.evaluations.contains(&epoch) {
                self.tell(Event::Evaluating { epoch });
                verdict = self.evaluate(epoch)?;
            }
            if verdict == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
        }
        Ok(Verdict::Go)
    }

    /// One pass over the data.
    fn epoch(&mut self, epoch: u64) -> Result<Verdict, Failed> {
        let course = self.course;
        if course.gate.pass(Ok(()), course.begin_epoch)? == Verdict::Stop {
            return Ok(Verdict::Stop);
        }
        let laps = Laps::start(Arc::clone(&course.clock));
        let start_ns = laps.started_ns() - course.origin_ns;
        let times = Epoch { accelerator: self.number, epoch, start_ns, ..Epoch::default() };
        let charges = Charges::new(course.n_readers, course.n_cores);
        let mut lap = Lap { laps, times, charges, block: Block { start_ns, ..Block::default() } };
        let mut feed = course.supply.open(Part::Train, self.number, epoch).or_else(|error| self.fail(&error))?;
        let mut verdict = self.steps(&mut lap, feed.as_mut())?;
        let fed = feed.finish();
        lap.laps.lap(laps::Part::Other);
        if verdict == Verdict::Go {
            verdict = course.gate.pass(Ok(()), course.end_epoch)?;
            lap.laps.lap(laps::Part::Barrier);
            lap.end_block(course.origin_ns);
            if verdict == Verdict::Go && self.saves_after_epoch(epoch) {
                verdict = self.save(epoch, course.n_steps, &mut lap)?;
            }
        }
        lap.end_block(course.origin_ns);
        self.ran.epochs.push(lap.into_times(&fed, self.pace.take_drawn_ns()));
        Ok(verdict)
    }

    fn steps(&mut self, lap: &mut Lap, feed: &mut dyn Feed) -> Result<Verdict, Failed> {
        let (course, epoch) = (self.course, lap.times.epoch);
        for step in 1..=course.n_steps {
            self.wait(lap, feed, step)?;
            self.pace.compute(&course.workload.train.computation_time, &|| course.gate.is_ending());
            lap.times.compute.push(lap.laps.lap(laps::Part::Compute));
            let verdict = course.gate.pass(Ok(()), &|| ())?;
            lap.times.barrier.push(lap.laps.lap(laps::Part::Barrier));
            lap.block.n_steps += 1;
            self.tell_step(step, lap);
            if verdict == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
            if self.saves_after_step(step) {
                lap.end_block(course.origin_ns);
                let verdict = self.save(epoch, step, lap)?;
                lap.block.start_ns = lap.now_ns(course.origin_ns);
                if verdict == Verdict::Stop {
                    return Ok(Verdict::Stop);
                }
            }
            lap.laps.lap(laps::Part::Other);
        }
        Ok(Verdict::Go)
    }

    /// Waits for the batch of a step, and charges the wait.
    fn wait(&self, lap: &mut Lap, feed: &mut dyn Feed, step: u64) -> Result<(), Failed> {
        let before = feed.stall_time();
        let got = feed.next(self.course.gate.is_broken());
        let waited = lap.laps.lap(laps::Part::Wait);
        let samples = match got {
            Ok(Some(samples)) => samples,
            Ok(None) => return self.give_up(format!("its data ended before step {step} of {}", self.course.n_steps)),
            Err(error) => return self.fail(&error),
        };
        // Without prefetch, what the computation before would have hidden of this wait is the missing prefetch's.
        let is_prefetched = self.course.workload.reader.prefetch_size > 0;
        let hidden = lap.times.compute.last().filter(|_| !is_prefetched).map_or(0, |computed| waited.min(*computed));
        lap.charges.add(waited, hidden, &feed.stall_time().since(&before), step == 1);
        if step == 1 {
            lap.times.first_wait_ns = waited;
        }
        lap.times.samples += samples;
        lap.times.load.push(waited);
        lap.laps.lap(laps::Part::Other);
        Ok(())
    }

    fn evaluate(&mut self, epoch: u64) -> Result<Verdict, Failed> {
        let course = self.course;
        let mut verdict = course.gate.pass(Ok(()), &|| ())?;
        let mut laps = Laps::start(Arc::clone(&course.clock));
        let start_ns = laps.started_ns() - course.origin_ns;
        let mut done = Evaluated { start_ns, ..Evaluated::default() };
        let mut feed = course.supply.open(Part::Eval, self.number, epoch).or_else(|error| self.fail(&error))?;
        for step in 1..=course.n_steps_eval {
            if verdict == Verdict::Stop {
                break;
            }
            match feed.next(course.gate.is_broken()) {
                Ok(Some(samples)) => done.samples += samples,
                Ok(None) => return self.give_up(format!("its data ended before step {step} of the evaluation")),
                Err(error) => return self.fail(&error),
            }
            done.load.push(laps.lap(laps::Part::Wait));
            self.pace.compute(&course.workload.evaluation.eval_time, &|| course.gate.is_ending());
            done.compute.push(laps.lap(laps::Part::Compute));
            verdict = course.gate.pass(Ok(()), &|| ())?;
            laps.lap(laps::Part::Barrier);
        }
        feed.finish();
        laps.lap(laps::Part::Other);
        done.drawn_ns = self.pace.take_drawn_ns();
        done.wall_ns = laps.wall_ns();
        if let Some(times) = self.ran.epochs.last_mut() {
            times.evaluated = Some(done);
        }
        Ok(verdict)
    }

    fn saves_after_step(&self, step: u64) -> bool {
        let every = self.course.workload.checkpoint.steps_between.filter(|every| *every > 0);
        self.course.saver.is_some() && every.is_some_and(|every| step.is_multiple_of(every))
    }

    fn saves_after_epoch(&self, epoch: u64) -> bool {
        let rules = &self.course.workload.checkpoint;
        let is_due = || {
            let since = epoch.checked_sub(rules.after_epoch.max(1));
            since.is_some_and(|since| since.is_multiple_of(rules.epochs_between.max(1)))
        };
        self.course.saver.is_some() && rules.steps_between.is_none() && is_due()
    }

    /// Saves this accelerator's share, as a part of the epoch's time. Until the last of all has saved, all stand still for the
    /// checkpoint, those too that have nothing to save.
    fn save(&mut self, epoch: u64, step: u64, lap: &mut Lap) -> Result<Verdict, Failed> {
        lap.laps.lap(laps::Part::Other);
        let step_of_run = (epoch - 1) * self.course.n_steps + step;
        let mut verdict = self.save_share(epoch, step, step_of_run)?;
        if !self.course.workload.checkpoint.rank_sync {
            verdict = self.course.gate.pass(Ok(()), &|| ())?;
        }
        lap.laps.lap(laps::Part::Checkpoint);
        lap.times.saved_after.push(step);
        self.prune()?;
        lap.laps.lap(laps::Part::Other);
        Ok(verdict)
    }

    fn save_share(&mut self, epoch: u64, step: u64, step_of_run: u64) -> Result<Verdict, Failed> {
        let (course, start_ns) = (self.course, self.course.clock.now_ns());
        let Some(saver) = course.saver else { return Ok(Verdict::Go) };
        let bytes = saver.save(self.number, step_of_run).or_else(|error| self.fail(&error))?;
        self.end_save(Saved { epoch, step, bytes, ..Saved::default() }, start_ns)
    }

    /// Removes what is not kept, which is no part of a save.
    fn prune(&self) -> Result<(), Failed> {
        let pruned = self.course.saver.map_or(Ok(()), |saver| saver.prune(self.number));
        pruned.or_else(|error| self.fail(&error))
    }

    /// Notes what a save or a restore took; with `rank_sync` that is until all have ended.
    fn end_save(&mut self, saved: Saved, start_ns: u64) -> Result<Verdict, Failed> {
        let course = self.course;
        let verdict = match course.workload.checkpoint.rank_sync {
            true => course.gate.pass(Ok(()), &|| ())?,
            false => Verdict::Go,
        };
        let ns = course.clock.now_ns() - start_ns;
        let number = self.ran.saves.len() as u64;
        let start_ns = start_ns - course.origin_ns;
        self.ran.saves.push(Saved { accelerator: self.number, number, start_ns, ns, ..saved });
        if saved.bytes > 0 {
            self.tell(Event::Saved { bytes: saved.bytes, seconds: ns as f64 / 1e9 });
        }
        Ok(verdict)
    }

    /// A run that only saves and restores.
    fn save_and_restore(&mut self) -> Result<Verdict, Failed> {
        let (course, rules) = (self.course, &self.course.workload.checkpoint);
        let Some(saver) = course.saver else { return Ok(Verdict::Go) };
        for save in 1..=rules.n_write {
            if save > 1 {
                self.pause(rules.time_between);
            }
            if course.gate.pass(Ok(()), &|| ())? == Verdict::Stop || self.save_share(0, save, save)? == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
            self.prune()?;
        }
        // Nobody reads before all have written.
        if rules.n_read > 0 && course.gate.pass(Ok(()), &|| ())? == Verdict::Stop {
            return Ok(Verdict::Stop);
        }
        for restore in 1..=rules.n_read {
            let shelf = saver.shelf(self.number, restore).or_else(|error| self.fail(&error))?;
            if course.gate.pass(Ok(()), course.begin_restore)? == Verdict::Stop {
                return Ok(Verdict::Stop);
            }
            let start_ns = course.clock.now_ns();
            self.ran.residents.extend(shelf.as_ref().map(|shelf| shelf.resident));
            let read = shelf.map_or(Ok(Some(0)), |shelf| shelf.read(course.gate.stop()));
            let Some(bytes) = read.or_else(|error| self.fail(&error))? else {
                // It was stopped in the midst of it: what it read of this one does not count.
                return course.gate.pass(Ok(()), course.end_restore);
            };
            let saved = Saved { step: restore, is_restore: true, bytes, ..Saved::default() };
            if self.end_save(saved, start_ns)? == Verdict::Stop
                || course.gate.pass(Ok(()), course.end_restore)? == Verdict::Stop
            {
                return Ok(Verdict::Stop);
            }
        }
        Ok(Verdict::Go)
    }

    /// The workload's own time between two saves, unless the run is to end.
    fn pause(&self, seconds: f64) {
        let (course, start) = (self.course, self.course.clock.now_ns());
        let until = start + (seconds.max(0.0) * 1e9) as u64;
        while course.clock.now_ns() < until && !course.gate.is_ending() {
            course.clock.sleep_until_ns(until.min(course.clock.now_ns() + LOOK_FOR_STOP.as_nanos() as u64));
        }
    }

    fn fail<T>(&self, error: &Error) -> Result<T, Failed> {
        self.give_up(supply::chain(error))
    }

    /// Tells all the others why it cannot go on.
    fn give_up<T>(&self, reason: String) -> Result<T, Failed> {
        let gate = self.course.gate;
        let reason = format!("accelerator {}: {reason}", self.number);
        // Where another one has failed, this one was only told to wait no longer.
        let mine = if gate.is_broken().load(Ordering::Relaxed) { Ok(()) } else { Err(reason.clone()) };
        // Where all were asked to stop at the same moment, it has failed nevertheless.
        gate.pass(mine, &|| ()).and_then(|_| Err(gate.failed(reason)))
    }

    fn tell(&self, event: Event) {
        if self.tells {
            (self.course.observe)(event);
        }
    }

    fn tell_step(&mut self, done: u64, lap: &Lap) {
        let now = self.course.clock.now_ns();
        let is_due = now >= self.told_ns + TELL_EVERY.as_nanos() as u64 || done == self.course.n_steps;
        if self.tells && is_due {
            self.told_ns = now;
            let parts = lap.laps.total();
            let wait_share = parts.ns(laps::Part::Wait) as f64 / parts.total_ns().max(1) as f64;
            self.tell(Event::Step { done, wait_share });
        }
    }
}

impl Lap {
    fn now_ns(&self, origin_ns: u64) -> u64 {
        self.laps.started_ns() + self.laps.wall_ns() - origin_ns
    }

    /// Closes the block at work, if it has a step.
    fn end_block(&mut self, origin_ns: u64) {
        if self.block.n_steps > 0 {
            let end_ns = self.now_ns(origin_ns);
            self.times.blocks.push(Block { end_ns, ..self.block });
            self.block = Block { start_ns: end_ns, ..Block::default() };
        }
    }

    fn into_times(mut self, fed: &Fed, drawn_ns: u64) -> Epoch {
        let work = Work::of(&fed.worker_time);
        let charges = match fed.scheduled {
            Some(scheduled) => self.charges.with_split(work.split(scheduled)),
            None => self.charges,
        };
        self.times.set_parts(self.laps.total());
        self.times.drawn_ns = drawn_ns;
        self.times.bytes = fed.bytes;
        self.times.stalls = charges.all.into();
        self.times.worker_time = fed.worker_time.seconds();
        self.times
    }
}
