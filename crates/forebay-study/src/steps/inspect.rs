//! The inspect step: a cell of it looks at one dataset.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use forebay_dataset::{Control, InspectOptions};
use forebay_record::Level;

use super::value::{self, Refused};
use super::{Failed, StepResult};

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &["dataset", "tier"];

/// An inspect cell's settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InspectSettings {
    /// The dataset's name.
    pub dataset: Option<String>,
    /// The tier that it lies on.
    pub tier: Option<String>,
}

impl InspectSettings {
    /// Sets one of [`NAMES`].
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "dataset" => self.dataset = Some(value::text(level)?.to_owned()),
            "tier" => self.tier = Some(value::text(level)?.to_owned()),
            _ => return Err("not a setting of inspect".to_owned()),
        }
        Ok(())
    }
}

/// Looks at the dataset of a cell.
pub(super) fn run(data: &Path, cancel: &AtomicBool) -> Result<StepResult, Failed> {
    let control = Control { threads: 0, cancel, progress: &|_| {} };
    let found = forebay_dataset::inspect(data, &InspectOptions::default(), &control)?;
    Ok(StepResult { measured: Some(found.into()), notes: Vec::new() })
}
