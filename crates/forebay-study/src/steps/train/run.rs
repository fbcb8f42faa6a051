//! Running a train cell.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use forebay_bench::train::{self, Accelerator, Device, Input, Plan};
use forebay_format::example::KeyNames;
use forebay_measure::Cache;
use forebay_record::Environment;
use forebay_units::Bytes;

use super::device::{Gpu, accelerator};
use super::{Io, TrainSettings, saving};
use crate::steps::{Failed, Progress, Stage, StepResult};

/// Runs a cell; `data` is where its dataset lies, `None` for synthetic batches.
pub(in crate::steps) fn run(
    settings: &TrainSettings,
    data: Option<PathBuf>,
    on: Stage,
    gpu: &Gpu,
    observe: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<StepResult, Failed> {
    let (plan, note) = plan(settings, data, on, gpu);
    let mut failed = None;
    let mut tell = |event: train::Event| match event {
        train::Event::Preparing { what } | train::Event::Started { what, .. } => observe(Progress::Repeat { what }),
        train::Event::Step { images, bytes, .. } => observe(Progress::Moved { images, bytes }),
        train::Event::Failed { error } => failed = Some(error),
        train::Event::Validated { .. }
        | train::Event::Remark { .. }
        | train::Event::Saved { .. }
        | train::Event::Draining { .. } => {}
    };
    // Where and by which command it ran stands in the study's own head.
    let record = train::run(&plan, Environment::default(), Vec::new(), &mut tell, cancel)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let notes = note.into_iter().chain(record.notes).collect();
    match record.cells.into_iter().next() {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes }),
        None => Err("no run was finished".into()),
    }
}

/// The plan of a cell, and what a reader must know of its device.
pub(super) fn plan(settings: &TrainSettings, data: Option<PathBuf>, on: Stage, gpu: &Gpu) -> (Plan, Option<String>) {
    let (accelerator, note) = accelerator(settings, || gpu.clone());
    let has_memory = matches!(accelerator, Accelerator::Network { device: Device::Cuda { .. }, .. });
    let device_prefetch = match (has_memory, settings.device_prefetch) {
        (false, _) => 0,
        (true, Some(n)) => n as usize,
        (true, None) => usize::from(settings.prefetch > 0),
    };
    let is_synthetic = data.is_none();
    let checkpoint = on.saves.and_then(|places| saving::plan(&settings.saving, places, &accelerator));
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
