//! Saves and restores a state over tiers: the stall, the time until it is durable, and the storage's upper bound.
//!
//! Each mode runs with each format: one warm-up save, then the kept ones. Between them, with the same bytes, the bare storage and a plain
//! copy in memory are measured. Everything is in hidden folders below the places, which are removed however the run ends; the next run
//! removes what a killed one left.

mod bare;
mod bare_file;
mod cell;
pub(crate) mod device;
mod plan;
mod run;
mod scratch_dirs;
mod trial;
mod values;

pub use plan::{CheckpointSettings, MODES, Plan, StateDevice, mode_name, network_bytes};
pub use run::{Error, run};
pub use scratch_dirs::COPIES;
