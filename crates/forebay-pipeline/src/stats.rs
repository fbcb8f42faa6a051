//! What an iterator reports about itself, while it runs and at its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::FailedSample;
use crate::exec::activity::Times;
use crate::exec::roster::Scheduled;
use crate::exec::tuner::Tuning;
use crate::exec::worker::Shared;

/// What an iterator has done so far.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub wall_ns: u64,
    /// Inside `next()`, or from `poll_waking`'s first question to the batch.
    pub wait_ns: u64,
    /// Outside of that: the consumer's own time. `wait_ns + other_ns = wall_ns`, exactly.
    pub other_ns: u64,
    /// From the start to the first batch, if there was one.
    pub first_batch_ns: Option<u64>,
    pub n_batches: u64,
    pub n_samples: u64,
    /// Samples that failed and were left out.
    pub n_failed: u64,
    /// The first of them, with their reasons.
    pub failures: Vec<FailedSample>,
    /// Bytes moved from storage, prefetched ones included.
    pub bytes_read: u64,
    pub worker_time: Times,
    /// Where it went while the consumer waited: what the stall is charged to.
    pub stall_time: Times,
    /// What the scheduler counted for all threads; `None` where the kernel does not tell.
    pub scheduled: Option<Scheduled>,
    pub n_threads: usize,
    /// What the tuner chose, if it was asked.
    pub tuning: Option<Tuning>,
    /// Why a file cache could not be kept, if it could not.
    pub cache_failure: Option<String>,
}

/// Counts what an iterator moves, seen from another thread.
#[derive(Clone)]
pub struct Meter(pub(crate) Arc<Shared>);

impl Meter {
    /// Bytes moved from storage so far, those of batches still being made included.
    pub fn bytes_read(&self) -> u64 {
        self.0.dispatch.bytes_read.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("bytes_read", &self.bytes_read()).finish()
    }
}
