//! Studies: many cells from one file, run in random order and recorded one by one.
//!
//! [`find`] reads a study, [`Plan::new`] checks it and lays out its cells, [`Folder`] stores a run, and [`run`] runs
//! the remaining cells on a [`Bench`]: the real [`Steps`], or a test double.

mod check;
mod checkpoint_dirs;
mod cores;
mod data;
mod dataset;
mod dataset_size;
mod error;
mod estimate;
mod folder;
mod left_out;
mod load;
mod matrix;
mod order;
mod places;
mod plan;
mod records;
mod run;
mod space;
mod steps;
#[cfg(test)]
mod tests;

pub use cores::NUMBERS as COUNTED_IN_CORES;
pub use data::make;
pub use dataset::{DatasetPlan, DatasetSource, Shards};
pub use error::{Error, Result};
pub use estimate::{Estimate, Estimator};
pub use folder::{DATA, ENVIRONMENT, Folder, PLAN, RECORD, data_of, data_to_keep, environment_of};
pub use load::{Found, built_in, find, parse};
pub use places::{FindPlacement, Making, Placement, Places, ToMake};
pub use plan::{Backing, CellPlan, Plan, TierPlan};
pub use run::{At, Event, Outcome, Remaining, run};
pub use space::{Space, spaces};
pub use steps::{
    Bench, Declared, Failed, Route, StepContext, StepResult, Steps, Task, Work, WorkloadTask, declared, like,
};
