//! The path of `forebay tune`: what was changed before each run, and what came of it.

use serde::{Deserialize, Serialize};

use crate::{Change, Level, Levels};

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TuningOutcome {
    /// The run before any change.
    Start,
    /// The run became faster beyond noise: later runs have the change too.
    Kept,
    /// It did not: later runs are without the change.
    Dropped,
}

/// Why tuning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TuningEnd {
    /// The accelerator is the limit of the fastest run.
    Accelerator,
    /// No change of settings is left that may help.
    Exhausted,
    /// Another run would have exceeded the time for all of them.
    Budget,
    /// The user stopped it.
    Stopped,
    /// The first run failed after some of its steps; the notes say why.
    Failed,
}

/// A run of `forebay tune`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tuning {
    /// Change from the fastest run before; `None` for the first run.
    pub change: Option<Change>,
    /// What to change, with the flag, and why.
    #[serde(default)]
    pub advice: String,
    /// Predicted wall clock in seconds; `None` where the model made no prediction.
    #[serde(default)]
    pub predicted_s: Option<f64>,
    /// Half the width of the prediction's interval, in seconds.
    #[serde(default)]
    pub error_s: Option<f64>,
    /// Median wall clock of the fastest run before, in seconds; `None` for the first run.
    #[serde(default)]
    pub before_s: Option<f64>,
    /// Fraction of that wall clock below which a difference between the two runs is noise.
    #[serde(default)]
    pub noise: Option<f64>,
    /// What came of the change.
    pub outcome: TuningOutcome,
    /// All changes from the first run, this one included.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Settings of the run that are not defaults, by name, as in a study file.
    #[serde(default)]
    pub settings: Levels,
    /// Flags that are no settings: `tier`, `image_key`, `label_key`; with checkpoints `checkpoint_dir`, `checkpoint_tier`, `burst_dir`,
    /// `burst_tier`, the folders escaped.
    #[serde(default)]
    pub data_flags: Levels,
    /// Flags of `forebay data pack` that make the data of this run; `None` for the user's own data.
    #[serde(default)]
    pub pack: Option<String>,
    /// Why tuning ended; only in the last run.
    #[serde(default)]
    pub end: Option<TuningEnd>,
}

impl Tuning {
    /// The format that the samples were packed in for the run; `None` for the user's own data.
    pub fn dataset(&self) -> Option<&str> {
        let change = self.changes.iter().find(|change| change.setting == Change::DATASET)?;
        match &change.value {
            Level::Text(format) => Some(format),
            _ => None,
        }
    }
}
