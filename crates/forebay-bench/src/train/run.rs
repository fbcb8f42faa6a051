//! Running the plan.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use forebay_record::{DatasetNote, Environment, Record, TrainCell, Validation};

use super::plan::Plan;

/// A run that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data cannot be used, or the pipeline not be built.
    #[error(transparent)]
    Pipeline(#[from] forebay_pipeline::Error),
    /// The storage failed outside the pipeline.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// The network cannot be built, or its device failed.
    #[error(transparent)]
    Train(#[from] forebay_train::Error),
    /// There are no labels to learn.
    #[error("{}: its samples have no labels, which a network needs; --accelerator emulates one that does not", path.display())]
    NoLabels {
        /// The data.
        path: PathBuf,
    },
    /// There is not a single whole batch.
    #[error("{}: {n_samples} samples are less than one batch of {batch}", path.display())]
    TooFewSamples {
        /// The data.
        path: PathBuf,
        /// What it has.
        n_samples: u64,
        /// What a step needs.
        batch: usize,
    },
    /// Too many samples failed for a single batch.
    #[error("not one batch could be made: {n_failed} samples failed; the first: {name}: {reason}")]
    AllFailed {
        /// How many failed.
        n_failed: u64,
        /// The first of them.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Something before the first step, in words: "planning alexnet", "12 steps on a batch in memory".
    Preparing {
        /// What.
        what: String,
    },
    /// A run begins.
    Started {
        /// In words: "training", "repeat 2 of 5".
        what: String,
        /// Steps it will have.
        n_steps: u64,
    },
    /// A step was made.
    Step {
        /// Which, from 1.
        step: u64,
        /// Images in it.
        images: u64,
        /// Its loss.
        loss: Option<f32>,
        /// The share of the wait in the run so far.
        wait_share: f64,
        /// Bytes moved from storage since the last time.
        bytes: u64,
    },
    /// An epoch was judged.
    Validated {
        /// Which, from 1.
        epoch: u64,
        /// What came of it.
        validation: Validation,
    },
}

/// What a plan would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// What would be read; its path is empty for synthetic batches.
    pub dataset: DatasetNote,
    /// Steps of a run.
    pub n_steps: u64,
    /// Steps of one pass over the data.
    pub steps_per_epoch: u64,
    /// Values the network learns; `None` for an emulated accelerator.
    pub n_parameters: Option<u64>,
    /// Classes it tells apart.
    pub classes: Option<u64>,
}

/// Looks at the data and says what the plan would do; measures nothing.
///
/// # Errors
/// When the data or the model cannot be used.
pub fn preview(plan: &Plan) -> Result<Preview, Error> {
    unimplemented!("{plan:?}")
}

/// Runs the plan. When `cancel` is set it stops after the step at work and yields what it has.
///
/// # Errors
/// When data, model or device cannot be used, or not a single batch can be made.
pub fn run(
    plan: &Plan,
    environment: Environment,
    command_line: Vec<String>,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Record<TrainCell>, Error> {
    let _ = (environment, command_line, observe, cancel);
    unimplemented!("{plan:?}")
}
