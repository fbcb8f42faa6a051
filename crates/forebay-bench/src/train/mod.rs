//! The mini-application: a network trained from the pipeline, or an emulated accelerator in its place.
//!
//! Time is divided from the accelerator's point of view. Any moment in which it computes counts as computation,
//! whatever the host does; every other moment is a wait for data, a copy, a checkpoint, a validation, or other.

mod advice;
mod alternatives;
mod cell;
mod consumer;
mod data;
mod decoding;
mod device;
mod drive;
mod feeder;
mod lever;
mod plan;
mod run;
mod saving;
mod settings;
mod shared;
#[cfg(test)]
pub(crate) mod tests;
mod totals;
mod trial;
mod validate;

pub use alternatives::may_stream;
pub(crate) use alternatives::{TENSOR, may_read_directly};
pub use device::TrainDevice;
pub use plan::{Plan, Saves, Validate};
pub(crate) use run::image_spec;
pub use run::{Ended, Error, Preview, check, preview, preview_on, run, run_together};
pub use settings::{KEEP, Length, TrainSettings};
