//! Running the plan.

use std::sync::atomic::AtomicBool;

use forebay_record::{Environment, Record, WorkloadCell};

use super::plan::Plan;
use super::ranks::{Failed, Ranks};

/// A run that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pipeline could not be built.
    #[error(transparent)]
    Pipeline(#[from] forebay_pipeline::Error),
    /// The storage failed outside the pipeline.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// A checkpoint could not be saved, or read again.
    #[error(transparent)]
    Checkpoint(#[from] forebay_checkpoint::Error),
    /// One rank failed, and all end.
    #[error(transparent)]
    Rank(#[from] Failed),
    /// The workload cannot be run so.
    #[error(transparent)]
    Plan(#[from] forebay_workload::Problem),
}

/// What happens meanwhile, for a display.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Something is prepared: files are listed, caches emptied.
    Preparing {
        /// What, in words.
        what: String,
    },
    /// An epoch begins.
    Epoch {
        /// Which, from 1.
        epoch: u64,
        /// Of how many.
        of: u64,
        /// Steps it has.
        n_steps: u64,
    },
    /// The first accelerator of this process has made so many steps of the epoch.
    Step {
        /// How many.
        done: u64,
        /// Its wait so far, of its time so far.
        wait_share: f64,
    },
    /// A checkpoint was saved or restored by this rank.
    Saved {
        /// Bytes of it.
        bytes: u64,
        /// How long it took.
        seconds: f64,
    },
    /// The part of an epoch that evaluates.
    Evaluating {
        /// After which epoch.
        epoch: u64,
    },
}

/// Runs a workload. The record is the first rank's; others get `None`.
///
/// # Errors
/// When it could not be run, on any rank: all end with the same reason. A run that is stopped yields what was measured, with a note.
pub fn run(
    plan: &Plan,
    ranks: &dyn Ranks,
    environment: Environment,
    command_line: Vec<String>,
    observe: &(dyn Fn(Event) + Sync),
    stop: &AtomicBool,
) -> Result<Option<Record<WorkloadCell>>, Error> {
    let _ = (plan, ranks, environment, command_line, observe, stop);
    unimplemented!()
}
