//! Workloads as DLIO writes them down: read, checked, planned, and judged by formulas.
//!
//! A [`Workload`] says which files there are, how they are read, how long an accelerator computes, what is saved when.
//! [`read()`] makes one of DLIO's YAML or of our TOML, with DLIO's overrides; every key is honoured or refused by name.
//! [`Plan`] says what a number of accelerators would do with it, and [`metric`] what the times of their steps come to.
//!
//! It does no I/O: texts in, plans and numbers out.

pub mod builtin;
pub mod check;
mod dataset;
pub mod dlio;
pub mod import;
pub mod metric;
pub mod model;
mod plan;
pub mod size;
mod spec;
mod time;

pub use check::{Checked, Note, Problem, read};
pub use dataset::{FileShape, Part};
pub use plan::Plan;
pub use spec::{
    Checkpoint, CheckpointMode, Compression, Dataset, Element, Evaluation, Format, Framework, Hdf5, Limits, Loader,
    Model, Parallelism, Parquet, ParquetColumn, Reader, Shuffle, Train, Transformer, Workflow, Workload,
};
pub use time::Time;
