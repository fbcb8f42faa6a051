//! Causes of waits: one vocabulary for training, workloads, verdicts and levers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Seconds of waiting per cause.
pub type ByCause = BTreeMap<Cause, f64>;

/// Why an accelerator waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Readers were blocked in open and read calls.
    Storage,
    /// Decoding and resizing, including the CPU time of reading.
    Decode,
    /// Too few threads: idle cores could have decoded.
    Threads,
    /// Too little prefetch: work that computation could have hidden was waited for.
    Prefetch,
    /// Workers had no free slot while the next sample in order was still missing.
    Order,
    /// Too few cores: readers were runnable but had no core.
    Cores,
    /// Preprocessing time that the workload configures.
    Preprocess,
    /// Wait for the other accelerators at the end of a step; not part of the wait for data.
    Barrier,
    /// No worker was running: threads were starting, or the data had ended.
    Other,
}

impl Cause {
    /// The key in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Decode => "decode",
            Self::Threads => "threads",
            Self::Prefetch => "prefetch",
            Self::Order => "order",
            Self::Cores => "cores",
            Self::Preprocess => "preprocess",
            Self::Barrier => "barrier",
            Self::Other => "other",
        }
    }

    /// Completes "waited for" or "charged to".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Decode => "decoding",
            Self::Threads => "too few threads",
            Self::Prefetch => "too little prefetch",
            Self::Order => "a slow sample ahead in order",
            Self::Cores => "too few cores",
            Self::Preprocess => "the workload's preprocessing",
            Self::Barrier => "other accelerators (barrier)",
            Self::Other => "other things",
        }
    }
}
