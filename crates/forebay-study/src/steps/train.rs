//! The train step: a cell of it is one training run, or one of an emulated accelerator.
//!
//! With `device = "auto"` a study says the same on every machine: the network is trained where there is a GPU, and where
//! there is none the emulated accelerator stands in for it, which the cell's notes say.

use std::path::PathBuf;

use forebay_bench::train::{self, Ended, Length, Plan, Saves, TrainSettings};
use forebay_format::example::KeyNames;
use forebay_measure::{Observer, Refused};

use forebay_bench::checkpoint::network_bytes;

use super::{Failed, Stage, StepResult, Work, record};

/// Classes of a network whose data is not looked at yet: no dataset here has more.
const MOST_CLASSES: usize = 1_000;

/// What a cell's settings and the places of its checkpoints say against each other.
pub(super) fn check_saves(settings: &TrainSettings, work: &Work) -> Result<(), Refused> {
    match &work.checkpoint {
        // A level of a factor that has others: what is said of those stands beside it.
        Some(None) => Ok(()),
        None if work.burst.is_some() => {
            Err("burst is for checkpoints, of which there are none: give checkpoint".to_owned())
        }
        None => settings.check_saves(None),
        Some(Some(route)) => {
            let route = route.clone().behind(work.burst.as_deref())?;
            route.check(None)?;
            settings.check_saves(Some(route.fast.is_some()))
        }
    }
}

/// Runs a cell; `data` is where its dataset lies, `None` for synthetic batches.
pub(super) fn run(
    settings: &TrainSettings,
    data: Option<PathBuf>,
    on: Stage,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let plan = plan(settings, data, on);
    let Ended { record, failure } = train::run(&plan, record(), observer)?;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    match record.cells.into_iter().next() {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes: record.notes }),
        None => Err("no run was finished".into()),
    }
}

fn plan(settings: &TrainSettings, data: Option<PathBuf>, on: Stage) -> Plan {
    // Synthetic batches come through no device.
    let is_read = data.is_some();
    Plan {
        settings: settings.clone(),
        data,
        keys: KeyNames::default(),
        tier: on.shaped.filter(|_| is_read),
        kernel_tier: on.kernel.filter(|_| is_read),
        cuda_folders: on.cuda_folders,
        validate: None,
        saves: on.saves.map(|places| Saves { places, resume: false }),
        warmups: on.warmups,
        repeats: on.repeats,
    }
}

/// The most bytes that the state of a cell may have.
pub(crate) fn state_bytes(settings: &TrainSettings) -> u64 {
    let emulated = settings.checkpoint_size.map_or(0, |size| size.0);
    match settings.is_emulated() {
        true => emulated,
        false => {
            let classes = settings.classes.unwrap_or(MOST_CLASSES);
            emulated.max(network_bytes(settings.model(), classes))
        }
    }
}

/// The most checkpoints of a cell that a tier has at a time.
pub(crate) fn most_copies(settings: &TrainSettings) -> u64 {
    let kept = settings.keep() as u64 + 1;
    match settings.length() {
        Length::Steps(_) => kept.min(n_saves(settings, 0)),
        Length::Epochs(_) => kept,
    }
}

/// Checkpoints of a run over so many samples.
pub(crate) fn n_saves(settings: &TrainSettings, n_samples: u64) -> u64 {
    let n_steps = settings.images_per_run(n_samples) / settings.batch as u64;
    settings.checkpoint_every.map_or(0, |every| n_steps / every)
}

#[cfg(test)]
mod tests;
