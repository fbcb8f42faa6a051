//! The train step: a cell is one training run, or one of an emulated accelerator.
//!
//! With `device = "auto"` a study runs on every machine: with a GPU the network trains; otherwise an emulated accelerator
//! replaces it, and the cell's notes say so.

use std::path::PathBuf;

use forebay_bench::train::{self, Ended, Length, Plan, Saves, TrainSettings};
use forebay_format::example::KeyNames;
use forebay_measure::{Observer, Refused};

use forebay_bench::checkpoint::network_bytes;

use super::{Failed, StepContext, StepResult, Work, record};

/// Upper bound for a network whose data was not inspected yet; no supported dataset has more.
const MOST_CLASSES: usize = 1_000;

pub(super) fn check_saves(settings: &TrainSettings, work: &Work) -> Result<(), Refused> {
    match &work.checkpoint {
        // `none` is one level of a factor: the settings apply to the other levels.
        Some(None) => Ok(()),
        None if work.burst.is_some() => Err("`burst` needs `checkpoint`".to_owned()),
        None => settings.check_saves(None),
        Some(Some(route)) => {
            let route = route.clone().behind(work.burst.as_deref())?;
            route.check(None)?;
            settings.check_saves(Some(route.fast.is_some()))
        }
    }
}

/// `data` is `None` for synthetic batches.
pub(super) fn run(
    settings: &TrainSettings,
    data: Option<PathBuf>,
    on: StepContext,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let plan = plan(settings, data, on);
    let Ended { record, failure } = train::run(&plan, record(), observer)?;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    match record.cells.into_iter().next() {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes: record.notes }),
        None => Err("no run finished".into()),
    }
}

fn plan(settings: &TrainSettings, data: Option<PathBuf>, on: StepContext) -> Plan {
    // Synthetic batches are not read.
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
        until: settings.until(true),
    }
}

/// Upper bound of a checkpoint's size.
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

/// Peak number of checkpoints on a tier.
pub(crate) fn most_copies(settings: &TrainSettings) -> u64 {
    let kept = settings.kept();
    let kept = kept.slow.max(kept.fast) as u64 + 1;
    match settings.length() {
        Length::Steps(_) => kept.min(n_saves(settings, 0)),
        Length::Epochs(_) => kept,
    }
}

pub(crate) fn n_saves(settings: &TrainSettings, n_samples: u64) -> u64 {
    let n_steps = settings.images_per_run(n_samples) / settings.images_per_step();
    settings.checkpoint_every.map_or(0, |every| n_steps / every)
}

#[cfg(test)]
mod tests;
