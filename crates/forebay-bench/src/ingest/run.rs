//! Running the plan.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_measure::{Cache, ThreadCount};
use forebay_pipeline::Source;
use forebay_record::{CacheState, DatasetNote, Environment, IngestCell, Record};
use forebay_storage::Local;
use forebay_units::PathText;

use super::cell::{Repeats, cell};
use super::plan::Plan;
use super::trial::{Level, Repeated, Trial};
use crate::supply;

/// A run that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data cannot be used, or the pipeline not be built.
    #[error(transparent)]
    Pipeline(#[from] forebay_pipeline::Error),
    /// The storage failed outside the pipeline.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// Only pre-decoded shards can be mapped.
    #[error("{}: only tensor shards can be mapped into memory", path.escaped())]
    NotMappable {
        /// What was to be mapped.
        path: PathBuf,
    },
    /// Only encoded images can be decoded at a smaller scale.
    #[error("{}: the images are decoded already, so that scaled decoding does nothing", path.escaped())]
    NotEncoded {
        /// What was to be decoded.
        path: PathBuf,
    },
    /// Not a single sample could be made.
    #[error("{}: {name}: {reason}", crate::supply::none_usable(*n_failed))]
    AllFailed {
        /// How many failed.
        n_failed: u64,
        /// The first of them.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Before the first round: how many images all rounds will take, if nothing fails.
    Started {
        /// Images over all rounds and thread counts.
        images: u64,
    },
    /// A repeat begins.
    Repeat {
        /// What is being measured, in words: "4 threads, repeat 2 of 5".
        what: String,
    },
    /// Images delivered since the last time.
    Advanced {
        /// How many.
        images: u64,
        /// Bytes moved from storage since the last time.
        bytes: u64,
    },
}

/// What a plan would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// What would be read.
    pub dataset: DatasetNote,
    /// Images of one repeat.
    pub images_a_repeat: u64,
    /// Repeats over all thread counts, warm-ups included.
    pub n_repeats: u64,
}

/// Looks at the data and says what the plan would do; measures nothing.
///
/// # Errors
/// When the data cannot be used.
pub fn preview(plan: &Plan) -> Result<Preview, Error> {
    let source = Source::discover_with(Arc::new(Local::default()), &plan.data, &plan.keys)?;
    Ok(Preview {
        dataset: supply::note_of(&plan.data, &source),
        images_a_repeat: plan.images_a_repeat(source.n_samples() as u64),
        n_repeats: ((plan.warmups + plan.repeats) * plan.threads.len()) as u64,
    })
}

/// Runs the plan. When `cancel` is set it stops at the next sample and yields what it has.
///
/// # Errors
/// When the data cannot be used, or not a single sample can.
pub fn run(
    plan: &Plan,
    environment: Environment,
    command_line: Vec<String>,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Record<IngestCell>, Error> {
    let source = Source::discover_with(Arc::new(Local::default()), &plan.data, &plan.keys)?;
    let source = source.with_max_sample_size(plan.max_sample);
    let mut record = Record::new(command_line, environment);
    record.dataset = supply::note_of(&plan.data, &source);
    record.notes.extend(supply::notes_of(&source));
    let trial = Trial::new(plan, source, &mut record.notes)?;
    measure(&trial, &mut record, observe, cancel)?;
    Ok(record)
}

/// Runs the rounds of a plan made ready.
pub(super) fn measure(
    trial: &Trial<'_>,
    record: &mut Record<IngestCell>,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let plan = trial.plan;
    let n_rounds = plan.warmups + plan.repeats;
    let images = trial.images_a_repeat().saturating_mul((n_rounds * plan.threads.len()) as u64);
    observe(Event::Started { images });
    let mut levels = Vec::new();
    for threads in &plan.threads {
        if *threads == ThreadCount::Auto {
            observe(Event::Repeat { what: "finding the thread count".to_owned() });
        }
        levels.push(trial.level(*threads, cancel)?);
    }
    let mut measured: Vec<Vec<Repeated>> = levels.iter().map(|_| Vec::new()).collect();
    let mut interrupted = false;
    'rounds: for round in 0..n_rounds {
        for (level, kept) in levels.iter().zip(&mut measured) {
            observe(Event::Repeat { what: describe(plan, level, round) });
            let repeat = trial.repeat(level.threads, observe, cancel)?;
            if cancel.load(Ordering::Relaxed) {
                interrupted = true;
                break 'rounds;
            }
            if round >= plan.warmups {
                kept.push(repeat);
            }
        }
    }
    let mut failure = None;
    for (level, finished) in levels.iter().zip(measured) {
        let repeats = Repeats::new(finished);
        record.notes.extend(repeats.note(level));
        failure = failure.or_else(|| repeats.failure());
        record.cells.extend(cell(trial, level, repeats)?);
    }
    if let Some(failure) = failure.filter(|_| record.cells.is_empty()) {
        return Err(failure);
    }
    if interrupted {
        record.notes.push(match record.cells.as_slice() {
            [] => "interrupted before the first repeat that would be kept".to_owned(),
            _ => "interrupted: the repeats finished before that are kept".to_owned(),
        });
    }
    warn_of_cache(plan, &record.cells, &mut record.notes);
    Ok(())
}

fn describe(plan: &Plan, level: &Level, round: usize) -> String {
    let threads = format!("{} thread{}", level.threads, if level.threads == 1 { "" } else { "s" });
    match round.checked_sub(plan.warmups) {
        None => format!("{threads}, warm-up"),
        Some(n) => format!("{threads}, repeat {} of {}", n + 1, plan.repeats),
    }
}

fn warn_of_cache(plan: &Plan, cells: &[IngestCell], notes: &mut Vec<String>) {
    let wanted = match plan.cache {
        Cache::Cold => CacheState::Cold,
        Cache::Warm => CacheState::Warm,
    };
    let other: Vec<String> =
        cells.iter().filter(|cell| cell.medium.cache != Some(wanted)).map(|c| c.threads.to_string()).collect();
    if other.is_empty() {
        return;
    }
    let threads = format!("{} thread{}", other.join(", "), if other == ["1"] { "" } else { "s" });
    notes.push(match plan.cache {
        Cache::Cold => format!(
            "a cold cache was asked for, but with {threads} more than 5 % of the bytes came from memory: the \
             files may lie on a file system in memory, or somebody else reads them too"
        ),
        Cache::Warm => format!(
            "a warm cache was asked for, but with {threads} more than 5 % of the bytes came from the device: \
             the data may not fit into memory, or direct I/O bypasses the cache"
        ),
    });
}
