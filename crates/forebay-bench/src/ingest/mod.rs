//! The ingest micro-benchmark: how fast this machine and its storage can feed training.
//!
//! A round covers all thread counts before the next begins, so a machine that slows down affects all of them. The first
//! rounds are warm-ups and are dropped.

mod cell;
mod plan;
mod run;
#[cfg(test)]
mod tests;
mod trial;

pub use plan::{IngestSettings, Plan};
pub use run::{Error, Preview, preview, run};
