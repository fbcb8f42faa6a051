//! The source of an accelerator's batches.

use std::sync::Arc;
use std::task::Poll;

use forebay_pipeline::{Batch, Batches, Scheduled, Times};
use forebay_workload::Part;

use super::batch_source::Tally;
use super::run::Error;

pub(super) trait Feed: Send {
    /// The number of samples in the next batch, or `None` at the end of the data. If pending, the calling thread is
    /// unparked when it should poll again.
    fn poll(&mut self) -> Poll<Result<Option<u64>, Error>>;

    /// Releases the last batch taken, so its threads can continue.
    fn go_on(&mut self);

    /// What its threads did during waits, so far.
    fn stall_time(&self) -> Times;

    /// Joins its threads.
    fn finish(self: Box<Self>) -> Fed;
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fed {
    pub(super) worker_time: Times,
    pub(super) scheduled: Option<Scheduled>,
    pub(super) bytes: u64,
}

pub(super) trait Supply: Sync {
    /// Epochs count from 1.
    fn open(&self, part: Part, accelerator: u64, epoch: u64) -> Result<Box<dyn Feed>, Error>;

    /// Announces that no more batches will be taken: emulated waits may be cut short.
    fn end(&self) {}
}

pub(super) struct Piped {
    /// Held until its slot is released.
    taken: Option<Batch>,
    batches: Batches,
    /// The tally, and this feed's number in it.
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

    /// The accelerator has its own copy of the batch, so its slot is free for the next one.
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
