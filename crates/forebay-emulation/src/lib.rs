//! Runs workloads as DLIO does: real reads by many emulated accelerators, in one process or on MPI ranks.
//!
//! Every accelerator has its own pipeline, takes a batch, computes for as long as the workload says, and waits for the
//! others at the step's barrier. Time is divided from the accelerator's point of view; the parts of an epoch sum to its
//! wall clock.

mod accelerator;
mod accelerator_group;
mod access;
mod batch_source;
mod cell;
mod compute;
mod draw;
mod feed;
mod foresee;
mod host;
mod lever;
mod loader;
mod local_time;
mod place;
mod plan;
mod prepare;
mod rank_report;
mod read;
mod replay;
mod results;
mod run;
mod saving;
mod settings;
mod shares;
mod shrink;
mod side_by_side;
mod slurm;
mod state;
#[cfg(test)]
mod tests;
mod times;
mod totals;
mod warnings;

pub use cell::INTERRUPTED;
pub use foresee::foresee;
pub use place::{checkpoint_place, checkpoint_warning};
pub use plan::Plan;
pub use replay::{MadeReplay, ReplayPlan, make_replay, run_replay};
pub use run::{Error, run};
pub use settings::WorkloadSettings;
pub use slurm::{Job, job_script};
