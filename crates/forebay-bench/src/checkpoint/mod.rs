//! Saves and restores a state over tiers: the stall, the time until the state is durable, and the storage's upper
//! bound.
//!
//! Each mode runs with each format: one warm-up save, then the kept ones. Between saves, the bare storage and a plain
//! copy in memory are measured with the same bytes. All files are in hidden folders below the places, which are removed
//! however the run ends; the next run removes leftovers of a killed one.

mod bare;
mod bare_file;
mod bare_object;
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
