//! What an accelerator takes its batches from.

use std::sync::Arc;
use std::task::Poll;

use forebay_pipeline::{Batch, Batches, Scheduled, Times};
use forebay_workload::Part;

use super::batch_source::Tally;
use super::run::Error;

/// The batches of one accelerator in one epoch.
pub(super) trait Feed: Send {
    /// Takes the next batch: the samples in it, or none at the data's end. Where it is not there yet, the calling thread is unparked once
    /// it is worth asking again.
    fn poll(&mut self) -> Poll<Result<Option<u64>, Error>>;

    /// Lets its threads go on behind the batch that was taken.
    fn go_on(&mut self);

    /// What its threads did while batches were waited for, so far.
    fn stall_time(&self) -> Times;

    /// Ends its threads.
    fn finish(self: Box<Self>) -> Fed;
}

/// What the threads of a feed have done.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fed {
    pub(super) worker_time: Times,
    pub(super) scheduled: Option<Scheduled>,
    /// Bytes that they moved.
    pub(super) bytes: u64,
}

/// Where feeds come from.
pub(super) trait Supply: Sync {
    /// The batches of an accelerator in an epoch, counted from 1.
    fn open(&self, part: Part, accelerator: u64, epoch: u64) -> Result<Box<dyn Feed>, Error>;

    /// Nobody takes batches any more: what is only waited for need not be.
    fn end(&self) {}
}

/// Batches of the pipeline.
pub(super) struct Piped {
    /// The one that was taken, until its place is given back.
    taken: Option<Batch>,
    batches: Batches,
    /// Where its bytes are counted, and under which number.
    tally: Option<(Arc<Tally>, u64)>,
}

impl Piped {
    pub(super) fn new(batches: Batches, tally: Option<Arc<Tally>>) -> Self {
        let tally = tally.map(|tally| {
            let number = tally.add(batches.meter());
            (tally, number)
        });
        Self { taken: None, batches, tally }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        if let Some((tally, number)) = self.tally.take() {
            tally.end(number, self.batches.bytes_read());
        }
    }
}

impl Feed for Piped {
    fn poll(&mut self) -> Poll<Result<Option<u64>, Error>> {
        self.batches.poll_waking().map(|next| {
            self.taken = next.transpose()?;
            Ok(self.taken.as_ref().map(|batch| batch.len() as u64))
        })
    }

    /// A batch is the accelerator's as soon as it is there: its place is free for the next one.
    fn go_on(&mut self) {
        self.taken = None;
        self.batches.go_on();
    }

    fn stall_time(&self) -> Times {
        self.batches.stall_time()
    }

    fn finish(self: Box<Self>) -> Fed {
        let stats = self.batches.stats();
        Fed { worker_time: stats.worker_time, scheduled: stats.scheduled, bytes: stats.bytes_read }
    }
}
