//! What a wait is charged to: one vocabulary for training, workloads, verdicts and levers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Seconds of waiting by cause.
pub type ByCause = BTreeMap<Cause, f64>;

/// Why an accelerator waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Readers were blocked in opening and reading.
    Storage,
    /// Decoding and resizing, with what reading costs the processor.
    Decode,
    /// Cores without a worker could have decoded: too few threads.
    Threads,
    /// Nothing was made ahead, so that what a computation would have hidden was waited for.
    Prefetch,
    /// Workers had no free slot while the sample that was in turn was still missing.
    Order,
    /// Readers could have gone on, but had no core.
    Cores,
    /// What the workload says its own work on samples takes.
    Preprocess,
    /// The wait for the other accelerators at a step's end; no part of the wait for data.
    Barrier,
    /// None of these.
    Other,
}

impl Cause {
    /// As the record has it.
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

    /// In words, after "waited for" or "charged to".
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
