//! Measures what storage delivers without a pipeline: the upper bound for other results.
//!
//! Sequential, as in IOR: one file is written (including fsync) and read from end to end. Random, as in fio: pieces of
//! a mix of sizes at random offsets. Files: open, read and close of many small files. Each runs with the engines, block
//! sizes and depths of the plan; a round covers all of them before the next begins, and the first round is dropped.
//!
//! [`ceiling`] compares saved probes with the results of other experiments.
//!
//! All files are written in a hidden folder, which is removed however the run ends; the next run removes leftovers of a
//! killed one.

pub mod ceiling;
mod cell;
mod error;
mod files_ring;
mod mix;
mod plan;
mod preflight;
mod prepared_target;
mod preview;
mod requests;
mod ring;
mod run;
mod settings;
mod threads;
mod trial;
mod workers;

pub use error::Error;
pub use mix::Mix;
pub use plan::{Like, Plan, TIME_LIMIT};
pub use preview::{Preview, preview};
pub use run::run;
pub use settings::{Kind, ProbeSettings};
