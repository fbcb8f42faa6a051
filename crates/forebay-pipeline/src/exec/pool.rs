//! Choosing and starting the threads of an iterator.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::fetch::Fetcher;
use super::worker::{Shared, run_decoder, run_fused, run_reader};
use crate::dataset::{Batched, Threads};
use crate::error::Error;

/// The tuner's limit on threads per core: storage with high latency needs more threads than there are cores.
const TUNED_PER_CORE: usize = 8;

pub(crate) struct Pool {
    /// Threads that claim samples: workers that read and decode, or readers.
    pub(crate) claiming: usize,
    pub(crate) decoders: usize,
    /// Number of claiming threads that are active at first.
    pub(crate) active: usize,
    pub(crate) tuned: bool,
}

impl Pool {
    pub(crate) fn of(plan: &Batched) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mapped = &plan.mapped;
        match (mapped.readers, mapped.threads) {
            (0, Threads::Fixed(n)) => Self { claiming: n, decoders: 0, active: n, tuned: false },
            (0, Threads::Auto) => Self { claiming: cores * TUNED_PER_CORE, decoders: 0, active: 1, tuned: true },
            (readers, threads) => {
                let decoders = if let Threads::Fixed(n) = threads { n } else { cores };
                Self { claiming: readers, decoders, active: readers, tuned: false }
            }
        }
    }

    pub(crate) fn spawn(
        &self,
        shared: &Arc<Shared>,
        fetcher: impl Fn() -> Fetcher,
    ) -> Result<Vec<JoinHandle<()>>, Error> {
        let mut threads = Vec::new();
        let mut start = |name: String, run: Box<dyn FnOnce() + Send>| {
            match std::thread::Builder::new().name(name).spawn(run) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    return Err(Error::Plan { stage: "threads", reason: format!("cannot start a thread: {error}") });
                }
            }
            Ok(())
        };
        let outcome = (0..self.claiming)
            .try_for_each(|number| {
                let (shared, fetcher) = (Arc::clone(shared), fetcher());
                if self.decoders == 0 {
                    start(format!("forebay:map-{number}"), Box::new(move || run_fused(&shared, number, fetcher)))
                } else {
                    start(
                        format!("forebay:read-{number}"),
                        Box::new(move || run_reader(&shared, number, number, fetcher)),
                    )
                }
            })
            .and_then(|()| {
                (0..self.decoders).try_for_each(|number| {
                    let (shared, ledger) = (Arc::clone(shared), self.claiming + number);
                    start(format!("forebay:map-{number}"), Box::new(move || run_decoder(&shared, ledger)))
                })
            });
        if let Err(error) = outcome {
            shared.dispatch.close();
            shared.exchange.close();
            threads.into_iter().for_each(|thread| drop(thread.join()));
            return Err(error);
        }
        Ok(threads)
    }
}
