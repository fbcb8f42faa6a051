//! Workloads in the manner of DLIO: real reads by many emulated accelerators, in one process or over MPI ranks.
//!
//! Every accelerator has a pipeline of its own, takes a batch, computes for as long as the workload says, and waits for the
//! others at the step's barrier. Time is cut as the accelerator sees it; the parts of an epoch sum to its wall clock.

mod draw;
mod plan;
pub mod ranks;
mod read;
mod run;

pub use plan::Plan;
pub use run::{Error, Event, run};
