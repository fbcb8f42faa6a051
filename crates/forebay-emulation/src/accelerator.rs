//! One accelerator in one pass over its data: waits for a batch, computes, and arrives at the barrier.

use std::sync::Arc;
use std::task::Poll;

use forebay_measure::laps::{Laps, Part};
use forebay_measure::stall::{Charges, Work};
use forebay_pipeline::Times;

use super::accelerator_group::RunContext;
use super::feed::{Fed, Feed};
use super::run::Error;
use super::times::{Block, Epoch, Evaluated};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Waiting,
    Computing { until_ns: u64 },
    Arrived,
}

/// Result of a poll.
pub(super) enum Readiness {
    Same,
    Fed,
    /// Its step is done.
    Arrived,
    /// Its data ended before its last step.
    Ended,
}

pub(super) struct Accelerator {
    pub(super) doing: Doing,
    feed: Box<dyn Feed>,
    /// It took a batch, and its readers have not been woken yet.
    is_fed: bool,
    /// The readers' times at the start of the step; the increase is what they did during the wait.
    before: Times,
    pub(super) timer: PassTimer,
}

impl Accelerator {
    pub(super) fn new(feed: Box<dyn Feed>, timer: PassTimer) -> Self {
        Self { doing: Doing::Arrived, feed, is_fed: false, before: Times::default(), timer }
    }

    pub(super) fn begin(&mut self) {
        self.before = self.feed.stall_time();
        self.doing = Doing::Waiting;
    }

    /// Checks whether its batch is ready or its computation is over; `is_ending` cuts the computation short.
    ///
    /// # Errors
    /// If its data cannot be read.
    pub(super) fn poll(&mut self, context: &RunContext<'_>, is_ending: bool) -> Result<Readiness, Error> {
        match self.doing {
            Doing::Waiting => match self.feed.poll() {
                Poll::Pending => Ok(Readiness::Same),
                Poll::Ready(next) => {
                    let Some(samples) = next? else { return Ok(Readiness::Ended) };
                    self.is_fed = true;
                    self.timer.waited(context, samples, &self.feed.stall_time().since(&self.before));
                    Ok(Readiness::Fed)
                }
            },
            Doing::Computing { until_ns } if is_ending || context.clock.now_ns() >= until_ns => {
                self.timer.computed(until_ns);
                self.doing = Doing::Arrived;
                Ok(Readiness::Arrived)
            }
            Doing::Computing { .. } | Doing::Arrived => Ok(Readiness::Same),
        }
    }

    pub(super) fn compute(&mut self, now_ns: u64, drawn_ns: u64) {
        self.timer.times.drawn_ns += drawn_ns;
        self.doing = Doing::Computing { until_ns: now_ns + drawn_ns };
    }

    /// Wakes its readers if it has taken a batch since the last call.
    pub(super) fn go_on(&mut self) {
        if std::mem::take(&mut self.is_fed) {
            self.feed.go_on();
        }
    }

    /// Joins its readers.
    pub(super) fn finish(self) -> (PassTimer, Fed) {
        (self.timer, self.feed.finish())
    }
}

pub(super) struct PassTimer {
    pub(super) laps: Laps,
    pub(super) times: Epoch,
    charges: Charges,
    block: Block,
    origin_ns: u64,
}

impl PassTimer {
    pub(super) fn open(context: &RunContext<'_>, accelerator: u64, epoch: u64) -> Self {
        let laps = Laps::start(Arc::clone(&context.clock));
        let start_ns = laps.started_ns() - context.origin_ns;
        Self {
            laps,
            times: Epoch { accelerator, epoch, start_ns, ..Epoch::default() },
            charges: Charges::new(context.n_readers, context.n_cores),
            block: Block { start_ns, ..Block::default() },
            origin_ns: context.origin_ns,
        }
    }

    /// `stall`: what the readers did during the wait.
    fn waited(&mut self, context: &RunContext<'_>, samples: u64, stall: &Times) {
        let waited = self.laps.lap(Part::Wait);
        // Without prefetch, the part of the wait that the previous computation could have hidden is charged to prefetch.
        let is_prefetched = context.workload.reader.n_ahead() > 0;
        let hidden = self.times.compute.last().filter(|_| !is_prefetched).map_or(0, |computed| waited.min(*computed));
        let is_first = self.times.load.is_empty();
        self.charges.add(waited, hidden, stall, is_first);
        if is_first {
            self.times.first_wait_ns = waited;
        }
        self.times.samples += samples;
        self.times.load.push(waited);
        self.laps.lap(Part::Other);
    }

    /// Charges computation only up to `until_ns`: the delay in noticing its end is not computation.
    fn computed(&mut self, until_ns: u64) {
        let computed = self.laps.lap_until(Part::Compute, until_ns);
        self.times.compute.push(computed);
        self.times.late_ns += self.laps.lap(Part::Other);
    }

    /// Drops the current step; its time stays in the totals.
    pub(super) fn break_off(&mut self) {
        self.laps.lap(Part::Other);
        let n_whole = self.times.barrier.len();
        self.times.load.truncate(n_whole);
        self.times.compute.truncate(n_whole);
    }

    /// Called after the barrier.
    pub(super) fn met(&mut self) {
        let stood = self.laps.lap(Part::Barrier);
        self.times.barrier.push(stood);
        self.block.n_steps += 1;
    }

    /// Ends a block, the steps between two checkpoints.
    pub(super) fn end_block(&mut self) {
        let end_ns = self.laps.started_ns() + self.laps.wall_ns() - self.origin_ns;
        if self.block.n_steps > 0 {
            self.times.blocks.push(Block { end_ns, ..self.block });
        }
        self.block = Block { start_ns: end_ns, ..Block::default() };
    }

    /// Of the time so far.
    pub(super) fn wait_share(&self) -> f64 {
        let parts = self.laps.total();
        parts.ns(Part::Wait) as f64 / parts.total_ns().max(1) as f64
    }

    pub(super) fn into_epoch(mut self, fed: &Fed) -> Epoch {
        let work = Work::of(&fed.worker_time);
        let charges = match fed.scheduled {
            Some(scheduled) => self.charges.with_split(work.split(scheduled)),
            None => self.charges,
        };
        self.times.set_parts(self.laps.total());
        self.times.bytes = fed.bytes;
        self.times.stalls = charges.all;
        self.times.worker_time = fed.worker_time.seconds();
        self.times
    }

    pub(super) fn into_evaluated(mut self) -> Evaluated {
        self.laps.lap(Part::Other);
        let Epoch { start_ns, samples, load, compute, drawn_ns, late_ns, .. } = self.times;
        Evaluated { start_ns, wall_ns: self.laps.wall_ns(), samples, load, compute, drawn_ns, late_ns }
    }
}
