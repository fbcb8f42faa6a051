//! The times of one accelerator in one epoch, in nanoseconds; sent to the first process.

use std::collections::BTreeMap;

use forebay_measure::laps::{Part, Parts};
use forebay_measure::stall::Causes;
use serde::{Deserialize, Serialize};

/// Steps between two checkpoints of an epoch, on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) n_steps: u64,
}

/// Not part of the epoch's time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Evaluated {
    pub(super) start_ns: u64,
    pub(super) wall_ns: u64,
    pub(super) samples: u64,
    pub(super) load: Vec<u64>,
    pub(super) compute: Vec<u64>,
    /// Planned computation, and how late its ends were noticed.
    pub(super) drawn_ns: u64,
    pub(super) late_ns: u64,
}

/// The parts sum to the wall clock, to the nanosecond.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Epoch {
    pub(super) accelerator: u64,
    pub(super) epoch: u64,
    /// On the run's clock.
    pub(super) start_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) compute_ns: u64,
    pub(super) barrier_ns: u64,
    pub(super) checkpoint_ns: u64,
    pub(super) other_ns: u64,
    /// From the start of the epoch.
    pub(super) first_wait_ns: u64,
    /// Planned computation, and how late its ends were noticed, which counts as other time.
    pub(super) drawn_ns: u64,
    pub(super) late_ns: u64,
    pub(super) samples: u64,
    pub(super) bytes: u64,
    /// One entry per step.
    pub(super) load: Vec<u64>,
    pub(super) compute: Vec<u64>,
    pub(super) barrier: Vec<u64>,
    pub(super) blocks: Vec<Block>,
    pub(super) saved_after: Vec<u64>,
    pub(super) stalls: Causes,
    pub(super) worker_time: BTreeMap<String, f64>,
    pub(super) evaluated: Option<Evaluated>,
}

impl Epoch {
    pub(super) fn wall_ns(&self) -> u64 {
        self.wait_ns + self.compute_ns + self.barrier_ns + self.checkpoint_ns + self.other_ns
    }

    pub(super) fn set_parts(&mut self, parts: Parts) {
        self.wait_ns = parts.ns(Part::Wait);
        self.compute_ns = parts.ns(Part::Compute);
        self.barrier_ns = parts.ns(Part::Barrier);
        self.checkpoint_ns = parts.ns(Part::Checkpoint);
        self.other_ns = parts.total_ns() - self.wait_ns - self.compute_ns - self.barrier_ns - self.checkpoint_ns;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) accelerator: u64,
    /// Counted over the run, writes before reads.
    pub(super) number: u64,
    pub(super) epoch: u64,
    pub(super) step: u64,
    pub(super) is_restore: bool,
    pub(super) bytes: u64,
    /// On the run's clock.
    pub(super) start_ns: u64,
    pub(super) ns: u64,
}
