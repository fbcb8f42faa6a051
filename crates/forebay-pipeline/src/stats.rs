//! Statistics of an iterator, during its run and at the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::FailedSample;
use crate::exec::activity::Times;
use crate::exec::roster::Scheduled;
use crate::exec::tuner::Tuning;
use crate::exec::worker::Shared;

/// The work of an iterator so far.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub wall_ns: u64,
    /// Time inside `next()`, or from `poll_waking`'s first request to the batch.
    pub wait_ns: u64,
    /// The rest, which is the consumer's own time. `wait_ns + other_ns = wall_ns`, exactly.
    pub other_ns: u64,
    /// From the start to the first batch; `None` before that.
    pub first_batch_ns: Option<u64>,
    pub n_batches: u64,
    pub n_samples: u64,
    /// Samples that failed and were left out.
    pub n_failed: u64,
    /// The first failures, with their reasons.
    pub failures: Vec<FailedSample>,
    /// Bytes moved from storage, including prefetched ones.
    pub bytes_read: u64,
    /// Requests to the storage for them; those of samples that their map reads by itself are not counted.
    pub n_requests: u64,
    pub worker_time: Times,
    /// What the workers did while the consumer waited; the stall is charged to it.
    pub stall_time: Times,
    /// The scheduler's counts for all threads; `None` if the kernel does not report them.
    pub scheduled: Option<Scheduled>,
    pub n_threads: usize,
    /// The tuner's choice, if it is in use.
    pub tuning: Option<Tuning>,
    /// Why a file cache could not be kept, if so.
    pub cache_failure: Option<String>,
}

/// Counts the bytes that an iterator moves; readable from another thread.
#[derive(Clone)]
pub struct Meter(pub(crate) Arc<Shared>);

impl Meter {
    /// Bytes moved from storage so far, including those of unfinished batches.
    pub fn bytes_read(&self) -> u64 {
        self.0.dispatch.bytes_read.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("bytes_read", &self.bytes_read()).finish()
    }
}
