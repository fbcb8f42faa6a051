//! Workloads in the manner of DLIO: real reads by many emulated accelerators, in one process or over MPI ranks.
//!
//! Every accelerator has a pipeline of its own, takes a batch, computes for as long as the workload says, and waits for the
//! others at the step's barrier. Time is cut as the accelerator sees it; the parts of an epoch sum to its wall clock.

mod access;
mod cell;
mod compute;
mod crew;
mod draw;
mod feed;
mod foresee;
mod host;
mod lever;
mod local_time;
mod place;
mod plan;
mod prepare;
pub mod ranks;
mod read;
mod results;
mod run;
mod saving;
mod seat;
mod shares;
mod side_by_side;
mod state;
mod stock;
#[cfg(test)]
mod tests;
mod times;
mod told;
mod totals;
mod warnings;

pub use cell::INTERRUPTED;
pub use foresee::foresee;
pub use place::{checkpoint_place, checkpoint_warning};
pub use plan::Plan;
pub use run::{Error, run};
