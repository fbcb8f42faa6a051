//! The inspect step: a cell inspects one dataset.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use forebay_dataset::{Control, InspectOptions};

use super::{Failed, StepResult};

pub(super) fn run(data: &Path, cancel: &AtomicBool) -> Result<StepResult, Failed> {
    let control = Control { threads: 0, cancel, progress: &|_| {} };
    let found = forebay_dataset::inspect(data, &InspectOptions::default(), &control)?;
    Ok(StepResult { measured: Some(found.into()), notes: Vec::new() })
}
