//! Experiments: what is measured, how often, and in which order.
//!
//! An experiment takes a validated plan, runs it, tells an observer how it goes, and yields a record. It renders nothing
//! and prints nothing.
//!
//! [`ingest`] is the micro-benchmark: list → shuffle → map (read, decode, resize) → ignore errors → batch → iterate.
//! [`probe`] measures what the storage gives without a pipeline, and [`ceiling`] sets that beside the pipeline's results.
//! [`train`] trains a network, or emulates an accelerator, on what the pipeline gives, and says what it waited for.
//! [`checkpoint`] saves and restores a state over tiers, beside what the storage gives.
//! [`workload`] runs DLIO's workloads on emulated accelerators, over one process or many.
//! [`study`] runs many such experiments from one file.

pub mod ceiling;
pub mod checkpoint;
mod cold;
mod environment;
mod file_system;
pub mod ingest;
mod laps;
mod local_time;
pub mod probe;
mod reads;
mod stall;
pub mod study;
mod supply;
pub mod train;
mod usage;
pub mod workload;

pub use environment::describe_environment;
