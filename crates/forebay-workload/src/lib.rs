//! DLIO-compatible workload files as validated plans, and the formulas that judge their runs.
//!
//! A [`Workload`] describes the files, how they are read, how long an accelerator computes, and when checkpoints are
//! saved. [`read()`] parses DLIO's YAML or our TOML, with DLIO's overrides; every key is honoured or refused by name.
//! [`Plan`] applies a workload to a number of accelerators, and [`metric`] computes utilisation and throughput from the
//! times of their steps.
//!
//! It does no I/O: texts in, plans and numbers out. It is not a runner: `forebay-emulation` runs workloads. Limits: a
//! count or a size in a file is at most 10^15, a dataset at most 10^18 bytes.
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
pub mod replay;
pub mod size;
mod spec;
mod time;

pub use check::{Checked, Note, Problem, keys, line_of, read};
pub use dataset::{FileShape, Part};
pub use plan::Plan;
pub use spec::{
    Checkpoint, CheckpointMode, Compression, Dataset, Element, Evaluation, Format, Framework, Hdf5, Limits, Loader,
    Model, Parallelism, Parquet, ParquetColumn, Reader, Shuffle, Train, Transformer, Workflow, Workload,
};
pub use time::Time;
