//! The probe step: a cell is one probe of one place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_dataset::{Control, InspectOptions};
use forebay_measure::Observer;
use forebay_pipeline::Source;
use forebay_probe::{self as probe, Kind, Like, Plan, ProbeSettings};
use forebay_record::Measured;
use forebay_storage::Local;

use super::{Failed, StepContext, StepResult, record};

/// The plan guarantees exactly one warm-up.
pub(super) fn run(
    settings: &ProbeSettings,
    dir: PathBuf,
    data: Option<PathBuf>,
    on: StepContext,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let is_there = dir.exists();
    std::fs::create_dir_all(&dir)?;
    let control = Control { threads: 0, cancel: observer.cancel, progress: &|_| {} };
    let inspect = data.as_ref().map(|data| || like(data, settings, &control));
    let probed: Result<_, Failed> =
        Plan::new(settings.clone(), dir.clone(), inspect, on.shaped, on.warmups + on.repeats)
            .and_then(|plan| Ok(probe::run(&plan, record(), observer)?));
    if !is_there {
        // Removes only an empty folder.
        let _ = std::fs::remove_dir(&dir);
    }
    let mut record = probed?;
    if let Some(profile) = &on.kernel {
        record.cells.iter_mut().for_each(|cell| cell.on_kernel_tier(&profile.name));
    }
    if record.cells.is_empty() {
        return Err("no run finished".into());
    }
    Ok(StepResult { measured: Some(Measured::Probe(record.cells)), notes: record.notes })
}

/// Reads the sizes that a probe imitates from a dataset.
///
/// # Errors
/// When the dataset cannot be read, or has no readable sample.
pub fn like<E>(data: &Path, settings: &ProbeSettings, control: &Control<'_>) -> Result<Like, E>
where
    E: From<forebay_dataset::Error> + From<forebay_pipeline::Error> + From<probe::Error>,
{
    let found = forebay_dataset::inspect(data, &InspectOptions::default(), control)?;
    // Discovery also reads shards, so it runs only if files are imitated.
    let files = match settings.does(Kind::Files) || found.n_samples <= found.n_files {
        true => Source::discover(Arc::new(Local::default()), data)?.files().to_vec(),
        false => Vec::new(),
    };
    Ok(Like::new(data, found.bssplit.as_deref(), files)?)
}
