//! Running a train cell.

use std::path::PathBuf;

use forebay_bench::train::{self, Accelerator, Device, Ended, Input, Plan};
use forebay_format::example::KeyNames;
use forebay_measure::{Cache, Observer};
use forebay_units::Bytes;

use super::device::{Gpu, accelerator};
use super::{Io, TrainSettings, saving};
use crate::steps::{Failed, Route, Stage, StepResult, Work, record};

/// Runs a cell; `data` is where its dataset lies, `None` for synthetic batches.
pub(in crate::steps) fn run(
    settings: &TrainSettings,
    work: &Work,
    data: Option<PathBuf>,
    on: Stage,
    gpu: &Gpu,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let (plan, note) = plan(settings, work.route().as_ref(), data, on, gpu);
    let Ended { record, failure } = train::run(&plan, record(), observer)?;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    let notes = note.into_iter().chain(record.notes).collect();
    match record.cells.into_iter().next() {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes }),
        None => Err("no run was finished".into()),
    }
}

/// The plan of a cell, and what a reader must know of its device.
pub(super) fn plan(
    settings: &TrainSettings,
    route: Option<&Route>,
    data: Option<PathBuf>,
    on: Stage,
    gpu: &Gpu,
) -> (Plan, Option<String>) {
    let (accelerator, note) = accelerator(settings, || gpu.clone());
    let has_memory = matches!(accelerator, Accelerator::Network { device: Device::Cuda { .. }, .. });
    let device_prefetch = match (has_memory, settings.device_prefetch) {
        (false, _) => 0,
        (true, Some(n)) => n as usize,
        (true, None) => usize::from(settings.prefetch > 0),
    };
    let is_synthetic = data.is_none();
    let saves = route.zip(on.saves);
    let checkpoint = saves.and_then(|(route, places)| saving::plan(&settings.saving, route, places, &accelerator));
    let plan = Plan {
        input: data.map_or(Input::Synthetic, Input::Data),
        keys: KeyNames::default(),
        accelerator,
        batch: settings.batch as usize,
        length: settings.length(),
        threads: settings.threads,
        prefetch: settings.prefetch as usize,
        device_prefetch,
        cache: if settings.cold && !is_synthetic { Cache::Cold } else { Cache::Warm },
        io: if is_synthetic { Io::Fixed(forebay_storage::Mode::Buffered) } else { settings.io },
        max_sample: Bytes(forebay_format::MAX_SAMPLE_SIZE),
        tier: on.shaped.filter(|_| !is_synthetic),
        kernel_tier: on.kernel.filter(|_| !is_synthetic),
        cuda_folders: on.cuda_folders,
        validate: None,
        checkpoint,
        // Synthetic batches are their own baseline.
        baseline: if is_synthetic { 0 } else { settings.baseline },
        seed: settings.seed,
        warmups: on.warmups,
        repeats: on.repeats,
    };
    (plan, note)
}
