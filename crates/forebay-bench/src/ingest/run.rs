//! Runs the thread counts of an ingest plan in rounds.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_measure::{Cache, Event, Observer, Rounds, ThreadCount};
use forebay_pipeline::Source;
use forebay_record::{CacheState, DatasetNote, IngestCell, Record};
use forebay_storage::Routed;
use forebay_units::PathText;

use super::cell::{Repeats, cell};
use super::plan::Plan;
use super::trial::Trial;
use crate::decoder::{DecodeOn, Decoder, DecoderError};
use crate::supply;

/// The GPU that decodes; `CUDA_VISIBLE_DEVICES` selects another.
pub(super) const GPU: usize = 0;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Shared(forebay_measure::Error),
    #[error("{}: only tensor shards can be mapped into memory", path.escaped())]
    NotMappable { path: PathBuf },
    #[error("{}: the images are already decoded, so scaled decoding has no effect", path.escaped())]
    NotEncoded { path: PathBuf },
    #[error(transparent)]
    Decoder(#[from] DecoderError),
    #[error("{}: {name}: {reason}", crate::supply::none_usable(*n_failed))]
    AllFailed {
        n_failed: u64,
        /// Of the first failed sample.
        name: String,
        reason: String,
    },
}

forebay_measure::share_errors!(Error);

#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub dataset: DatasetNote,
    pub images_per_repeat: u64,
    /// Over all thread counts, warm-ups included.
    pub n_repeats: u64,
}

/// Inspects the data, and opens a GPU that was asked for, without measuring.
///
/// # Errors
/// If the data or the GPU cannot be used.
pub fn preview(plan: &Plan) -> Result<Preview, Error> {
    let source = Source::discover_with(Arc::new(Routed::default()), &plan.data, &plan.keys)?;
    if plan.settings.decode == DecodeOn::Gpu {
        Decoder::on_gpu(&plan.gpus, GPU, &source, plan.settings.output())?;
    }
    Ok(Preview {
        dataset: supply::note_of(&plan.data, &source),
        images_per_repeat: plan.settings.images_per_repeat(source.n_samples() as u64),
        n_repeats: ((plan.warmups + plan.repeats) * plan.settings.threads.len()) as u64,
    })
}

/// Runs the plan. If cancelled, it stops at the next sample and returns the finished results.
///
/// # Errors
/// If the data, or every sample, is unusable.
pub fn run(plan: &Plan, mut record: Record<IngestCell>, observer: Observer<'_>) -> Result<Record<IngestCell>, Error> {
    let source = Source::discover_with(Arc::new(Routed::default()), &plan.data, &plan.keys)?;
    let source = source.with_max_sample_size(plan.settings.max_sample_size);
    record.dataset = supply::note_of(&plan.data, &source);
    record.notes.extend(supply::notes_of(&source));
    let mut trial = Trial::new(plan, source, &mut record.notes)?;
    trial.choose_decoder(observer, &mut record.notes)?;
    measure(&trial, &mut record, observer)?;
    Ok(record)
}

pub(super) fn measure(trial: &Trial<'_>, record: &mut Record<IngestCell>, observer: Observer<'_>) -> Result<(), Error> {
    let plan = trial.plan;
    let rounds = Rounds { warmups: plan.warmups, repeats: plan.repeats, unit: "repeat", until: plan.until };
    let n_repeats = (plan.warmups + plan.repeats) * plan.settings.threads.len();
    observer.tell(Event::Planned { images: trial.images_per_repeat().saturating_mul(n_repeats as u64), bytes: 0 });
    let mut levels = Vec::new();
    for threads in &plan.settings.threads {
        if *threads == ThreadCount::Auto {
            observer.tell(Event::phase("finding the thread count"));
        }
        levels.push(trial.level(*threads, observer.cancel)?);
    }
    let before = trial.requests();
    let ran = rounds.run(&mut levels, observer)?;
    record.notes.extend(supply::note_of_requests(before, trial.requests()));
    let mut failure = None;
    for ((level, finished), disturbed) in levels.iter().zip(ran.cells).zip(ran.disturbed) {
        let repeats = Repeats::new(finished);
        record.notes.extend(repeats.note(level));
        failure = failure.or_else(|| repeats.failure());
        record.cells.extend(cell(trial, level, repeats)?.map(|cell| IngestCell { disturbed, ..cell }));
    }
    if let Some(failure) = failure.filter(|_| record.cells.is_empty()) {
        return Err(failure);
    }
    record.notes.extend(ran.is_cut.then(|| rounds.interrupted(record.cells.len())));
    warn_of_cache(plan, &record.cells, &mut record.notes);
    Ok(())
}

fn warn_of_cache(plan: &Plan, cells: &[IngestCell], notes: &mut Vec<String>) {
    let wanted = match plan.settings.cache() {
        Cache::Cold => CacheState::Cold,
        Cache::Warm => CacheState::Warm,
    };
    let other: Vec<String> = cells
        .iter()
        .filter(|cell| cell.medium.cache.is_some_and(|found| found != wanted))
        .map(|c| c.threads.to_string())
        .collect();
    if other.is_empty() {
        return;
    }
    let threads = format!("{} thread{}", other.join(", "), if other == ["1"] { "" } else { "s" });
    notes.push(match plan.settings.cache() {
        Cache::Cold => format!(
            "a cold cache was requested, but with {threads} more than 5 % of the bytes came from memory: the \
             files may be on a file system in memory, or another process may have read them too"
        ),
        Cache::Warm => format!(
            "a warm cache was requested, but with {threads} more than 5 % of the bytes came from the device: \
             the data may not fit into memory, or direct I/O bypassed the cache"
        ),
    });
}
