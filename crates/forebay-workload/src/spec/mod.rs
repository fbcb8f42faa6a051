//! The sections of a workload, with DLIO's defaults.

mod data;
mod format;
mod model;
mod reader;

use serde::{Deserialize, Serialize};

pub use data::{Dataset, Hdf5, Parquet, ParquetColumn};
pub use forebay_units::Element;
pub use format::{Compression, Format};
pub use model::{Checkpoint, CheckpointMode, Model, Parallelism, Transformer};
pub use reader::{Loader, Reader, Shuffle};

use crate::time::Time;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// The name of the built-in workload, or of the file without its extension.
    pub name: String,
    pub framework: Framework,
    /// The model, as far as checkpoints know it.
    pub model: Model,
    pub workflow: Workflow,
    /// Prefix of [`Dataset::data_folder`].
    pub storage_root: String,
    pub dataset: Dataset,
    pub reader: Reader,
    pub train: Train,
    pub evaluation: Evaluation,
    pub checkpoint: Checkpoint,
    /// The folder for results, if set.
    pub output_folder: Option<String>,
    /// What is left out of DLIO's figures, and what must be reached.
    pub limits: Limits,
}

/// The framework whose loader is imitated; it has no effect, but is kept for the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    #[default]
    Tensorflow,
    Pytorch,
}

/// Which phases a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workflow {
    /// Runs before the other phases.
    pub generate_data: bool,
    pub train: bool,
    pub evaluation: bool,
    pub checkpoint: bool,
}

impl Default for Workflow {
    fn default() -> Self {
        Self { generate_data: false, train: true, evaluation: false, checkpoint: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    pub epochs: u64,
    /// Computing time per step.
    pub computation_time: Time,
    /// Maximum steps per epoch; `None` for all.
    pub max_steps: Option<u64>,
    pub seed: u64,
    /// Whether each epoch has a different order.
    pub seed_change_epoch: bool,
}

impl Default for Train {
    fn default() -> Self {
        Self { epochs: 1, computation_time: Time::default(), max_steps: None, seed: 123, seed_change_epoch: true }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Computing time per step of an evaluation.
    pub eval_time: Time,
    /// The first epoch that is followed by an evaluation.
    pub after_epoch: u64,
    /// Epochs from one evaluation to the next.
    pub epochs_between: u64,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { eval_time: Time::default(), after_epoch: 1, epochs_between: 1 }
    }
}

/// What is left out of DLIO's figures, and what must be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The required accelerator utilisation, as a fraction of 1.
    pub au: f64,
    /// Steps excluded at the start of an epoch.
    pub exclude_start_steps: u64,
    pub exclude_end_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { au: 0.90, exclude_start_steps: 1, exclude_end_steps: 0 }
    }
}
