//! The ingest micro-benchmark: how fast this machine and this storage can feed training.
//!
//! Rounds go over all thread counts before the next round begins, so that a machine that slows down slows all of them;
//! the first rounds are warm-ups and are not kept.

mod cell;
mod plan;
mod run;
#[cfg(test)]
mod tests;
mod trial;

pub use plan::{IngestSettings, Plan};
pub use run::{Error, Preview, preview, run};
