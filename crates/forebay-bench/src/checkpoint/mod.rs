//! Saving and restoring a state over tiers: what it costs the caller, when it is durable, and what the storage would give.
//!
//! Each mode is run with each format: one save that is not kept, then those that are. Between them, with the same bytes,
//! what the storage takes and gives without us, and a plain copy in memory. All of it lies in hidden folders of its own
//! below the places, which go on every way out; what a killed run left behind, the next one removes.

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
