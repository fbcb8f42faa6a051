//! One accelerator in one pass over its data: it waits for a batch, computes, and has arrived where all of them meet.

use std::sync::Arc;
use std::task::Poll;

use forebay_measure::laps::{Laps, Part};
use forebay_measure::stall::{Charges, Work};
use forebay_pipeline::Times;

use super::accelerator_group::RunContext;
use super::feed::{Fed, Feed};
use super::run::Error;
use super::times::{Block, Epoch, Evaluated};

/// What an accelerator is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Waiting,
    Computing { until_ns: u64 },
    Arrived,
}

/// How far an accelerator has come.
pub(super) enum Readiness {
    /// It is at what it was at.
    Same,
    /// It has its batch.
    Fed,
    /// It has ended its step.
    Arrived,
    /// Its data has ended before that.
    Ended,
}

/// An accelerator in one pass over its data.
pub(super) struct Accelerator {
    pub(super) doing: Doing,
    feed: Box<dyn Feed>,
    /// It has taken a batch that its readers do not know of.
    is_fed: bool,
    /// What its readers had done for its waits when this step began.
    before: Times,
    pub(super) timer: PassTimer,
}

impl Accelerator {
    pub(super) fn new(feed: Box<dyn Feed>, timer: PassTimer) -> Self {
        Self { doing: Doing::Arrived, feed, is_fed: false, before: Times::default(), timer }
    }

    /// Begins a step.
    pub(super) fn begin(&mut self) {
        self.before = self.feed.stall_time();
        self.doing = Doing::Waiting;
    }

    /// Looks whether its batch has come, or its computation is over; with `is_ending` that is over in any case.
    ///
    /// # Errors
    /// When its data cannot be read.
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

    /// Computes for so long from now.
    pub(super) fn compute(&mut self, now_ns: u64, drawn_ns: u64) {
        self.timer.times.drawn_ns += drawn_ns;
        self.doing = Doing::Computing { until_ns: now_ns + drawn_ns };
    }

    /// Lets its readers go on, if it has taken a batch since they were last let.
    pub(super) fn go_on(&mut self) {
        if std::mem::take(&mut self.is_fed) {
            self.feed.go_on();
        }
    }

    /// Ends its readers.
    pub(super) fn finish(self) -> (PassTimer, Fed) {
        (self.timer, self.feed.finish())
    }
}

/// Times of a pass, and what its waits are charged to.
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

    /// A batch of so many samples has come, and its readers did this meanwhile.
    fn waited(&mut self, context: &RunContext<'_>, samples: u64, stall: &Times) {
        let waited = self.laps.lap(Part::Wait);
        // Without prefetch, what the computation before would have hidden of this wait is the missing prefetch's.
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

    /// Its computation was over at that moment; that it is noticed later is not its time.
    fn computed(&mut self, until_ns: u64) {
        let computed = self.laps.lap_until(Part::Compute, until_ns);
        self.times.compute.push(computed);
        self.times.late_ns += self.laps.lap(Part::Other);
    }

    /// The step at work is broken off: what went by is kept in the account, the step is not.
    pub(super) fn break_off(&mut self) {
        self.laps.lap(Part::Other);
        let n_whole = self.times.barrier.len();
        self.times.load.truncate(n_whole);
        self.times.compute.truncate(n_whole);
    }

    /// All have met.
    pub(super) fn met(&mut self) {
        let stood = self.laps.lap(Part::Barrier);
        self.times.barrier.push(stood);
        self.block.n_steps += 1;
    }

    /// Closes the block of steps at work, if it has one; the next begins here.
    pub(super) fn end_block(&mut self) {
        let end_ns = self.laps.started_ns() + self.laps.wall_ns() - self.origin_ns;
        if self.block.n_steps > 0 {
            self.times.blocks.push(Block { end_ns, ..self.block });
        }
        self.block = Block { start_ns: end_ns, ..Block::default() };
    }

    /// The wait so far, of the time so far.
    pub(super) fn wait_share(&self) -> f64 {
        let parts = self.laps.total();
        parts.ns(Part::Wait) as f64 / parts.total_ns().max(1) as f64
    }

    /// What is kept of an epoch.
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

    /// What is kept of an evaluation.
    pub(super) fn into_evaluated(mut self) -> Evaluated {
        self.laps.lap(Part::Other);
        let Epoch { start_ns, samples, load, compute, drawn_ns, late_ns, .. } = self.times;
        Evaluated { start_ns, wall_ns: self.laps.wall_ns(), samples, load, compute, drawn_ns, late_ns }
    }
}
