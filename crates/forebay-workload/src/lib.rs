//! Workloads as DLIO writes them down: read, checked, planned, and judged by formulas.
//!
//! A [`Workload`] says which files there are, how they are read, how long an accelerator computes, what is saved when.
//! [`read()`] makes one of DLIO's YAML or of our TOML, with DLIO's overrides; every key is honoured or refused by name.
//! [`Plan`] says what a number of accelerators would do with it, and [`metric`] what the times of their steps come to.
//!
//! It does no I/O: texts in, plans and numbers out. It is not a runner: how a workload is read and what it measures is
//! `forebay-emulation`'s. A count or a size in a file may be 10^15 at most, a dataset 10^18 bytes.
//!
//! ```
//! use forebay_workload::{Plan, builtin, read};
//!
//! let unet3d = builtin::find("unet3d").expect("it is built in");
//! let checked = read(unet3d.name, unet3d.text, &["++workload.reader.batch_size=8".to_owned()]).expect("it is right");
//! let plan = Plan::new(&checked.workload, 2).expect("168 files are enough for two accelerators");
//! assert_eq!(plan.steps_per_epoch, 10);
//! assert_eq!(plan.demand_bytes_per_s.map(f64::round), Some(3_630_975_307.0));
//!
//! let problems = read("mine", "dataset: {fromat: npz}", &[]).unwrap_err();
//! assert_eq!(problems[0].to_string(), "dataset.fromat: unknown key; did you mean `format`?");
//! ```

pub mod builtin;
pub mod check;
mod dataset;
pub mod dlio;
pub mod import;
pub mod metric;
pub mod model;
mod numpy;
mod plan;
pub mod size;
mod spec;
mod time;

pub use check::{Checked, Note, Problem, line_of, read};
pub use dataset::{FileShape, Part};
pub use plan::Plan;
pub use spec::{
    Checkpoint, CheckpointMode, Compression, Dataset, Element, Evaluation, Format, Framework, Hdf5, Limits, Loader,
    Model, Parallelism, Parquet, ParquetColumn, Reader, Shuffle, Train, Transformer, Workflow, Workload,
};
pub use time::Time;
