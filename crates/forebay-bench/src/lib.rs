//! Experiments of one process on the pipeline.
//!
//! An experiment takes a validated plan, runs it, notifies an observer, and returns a record. It prints nothing.
//!
//! [`ingest`] is the micro-benchmark: list → shuffle → map (read, decode, resize) → ignore errors → batch → iterate.
//! [`train`] trains a network, or emulates an accelerator, on what the pipeline delivers, and attributes its waits.
//! [`tune`] runs a training again with the changes that its advice names, and keeps those that help.
//! [`checkpoint`] saves and restores a state over tiers, beside the storage's own rates.

pub mod checkpoint;
mod decoder;
mod explore;
pub mod ingest;
mod supply;
pub mod train;
pub mod tune;

pub use decoder::{DecodeOn, DecoderError, Gpus};
pub use supply::CropKind;
