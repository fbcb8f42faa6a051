//! Experiments of one process on the pipeline.
//!
//! An experiment takes a validated plan, runs it, tells an observer how it goes, and yields a record. It renders nothing
//! and prints nothing.
//!
//! [`ingest`] is the micro-benchmark: list → shuffle → map (read, decode, resize) → ignore errors → batch → iterate.
//! [`train`] trains a network, or emulates an accelerator, on what the pipeline gives, and says what it waited for.
//! [`checkpoint`] saves and restores a state over tiers, beside what the storage gives.

pub mod checkpoint;
pub mod ingest;
mod supply;
pub mod train;
