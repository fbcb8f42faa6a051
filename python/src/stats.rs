//! What a loader did, added up over the rings of an epoch.

use forebay_measure::stall::{Charges, Split, Work};
use forebay_measure::usage::cores;
use forebay_pipeline::{FailedSample, Stats, Times};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The sums of one epoch, or of the part of it since a saved state.
#[derive(Default, Clone)]
pub(crate) struct Totals {
    wall_ns: u64,
    wait_ns: u64,
    first_batch_ns: Option<u64>,
    n_batches: u64,
    n_samples: u64,
    n_failed: u64,
    failures: Vec<FailedSample>,
    bytes_read: u64,
    threads: usize,
    /// Waits by cause.
    charges: Option<Charges>,
    work: Stats,
}

impl Totals {
    pub(crate) fn add(&mut self, stats: Stats, threads: usize) {
        self.wall_ns += stats.wall_ns;
        self.wait_ns += stats.wait_ns;
        self.first_batch_ns = self.first_batch_ns.or(stats.first_batch_ns);
        self.n_batches += stats.n_batches;
        self.n_samples += stats.n_samples;
        self.n_failed += stats.n_failed;
        self.failures.extend(stats.failures.iter().cloned());
        self.bytes_read += stats.bytes_read;
        self.threads = stats.tuning.as_ref().map_or(threads, |tuning| tuning.threads);
        self.work = stats;
    }

    /// Charges a wait to what the workers did meanwhile; prefetch could have hidden `hidden_ns` of it.
    pub(crate) fn charge(&mut self, wait_ns: u64, hidden_ns: u64, stall: &Times, threads: usize) {
        let is_first = self.charges.is_none();
        let charges = self.charges.get_or_insert_with(|| Charges::new(threads, cores()));
        charges.add(wait_ns, hidden_ns, stall, is_first);
    }

    pub(crate) fn to_dict<'py>(&self, py: Python<'py>, n_copied: u64) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let seconds = |ns: u64| ns as f64 / 1e9;
        dict.set_item("batches", self.n_batches)?;
        dict.set_item("samples", self.n_samples)?;
        dict.set_item("failed", self.n_failed)?;
        let failures: Vec<_> = self.failures.iter().map(|failed| (failed.name.clone(), failed.reason())).collect();
        dict.set_item("failures", failures)?;
        dict.set_item("bytes_read", self.bytes_read)?;
        dict.set_item("threads", self.threads)?;
        dict.set_item("copied_batches", n_copied)?;
        dict.set_item("wall_s", seconds(self.wall_ns))?;
        dict.set_item("wait_s", seconds(self.wait_ns))?;
        dict.set_item("first_batch_s", self.first_batch_ns.map(seconds))?;
        let causes = PyDict::new(py);
        for (cause, seconds) in self.causes() {
            causes.set_item(cause, seconds)?;
        }
        dict.set_item("wait_by_cause_s", causes)?;
        Ok(dict)
    }

    /// Seconds of waiting by cause; empty before the first wait.
    fn causes(&self) -> Vec<(&'static str, f64)> {
        let Some(charges) = self.charges else { return Vec::new() };
        let charges = match self.work.scheduled {
            // Only blocked time is the storage's.
            Some(scheduled) => {
                let blocked = Work::of(&self.work.worker_time).split(scheduled).blocked;
                charges.with_split(Split { blocked, queued: 0.0 })
            }
            None => charges,
        };
        charges.all.by_cause().into_iter().map(|(cause, seconds)| (cause.name(), seconds)).collect()
    }
}
