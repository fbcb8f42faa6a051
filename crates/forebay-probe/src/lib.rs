//! What storage gives without a pipeline on top: the ceiling that other results are set beside.
//!
//! Sequential, as IOR does it: one file is written (fsync included) and read from end to end. Random, as fio does it:
//! pieces of a mix of sizes at random places. Files: open, read and close of many small ones. Each with the engines,
//! block sizes and depths of the plan; rounds go over all of them before the next begins, and the first is not kept.
//!
//! [`ceiling`] sets saved probes beside the results of other experiments.
//!
//! What is written lies in a hidden folder of its own, which goes on every way out; what a killed run left behind, the
//! next one removes.

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
