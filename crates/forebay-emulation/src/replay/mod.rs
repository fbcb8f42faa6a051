//! Plays a traced job again without its framework: the same calls on files, batches, pauses and checkpoints.
//!
//! Workers are threads rather than processes, and computing and decoding are emulated by waiting. Files are read by plain calls, as
//! the job did, so an emulated device must be a mounted one.

mod cell;
mod data;
mod fetch;
mod passes;
mod saves;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_measure::{Event, Observer, Scratch, cold, remove_left_overs, usage};
use forebay_record::{Record, WorkloadCell};
use forebay_units::SystemClock;
use forebay_workload::replay::Replay;

use super::place::PREFIX;
use super::run::Error;
use cell::Known;
pub use data::{MadeReplay, make_replay};
use fetch::Files;
use passes::Player;
use saves::Saves;

/// A replay with its places.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    /// The job.
    pub replay: Replay,
    /// Name for the record.
    pub name: String,
    /// Folder of the data.
    pub data: PathBuf,
    /// Folder of the checkpoints; `None` for a scratch folder in that of the data.
    pub checkpoints: Option<PathBuf>,
    /// Whether to evict the files from the page cache first.
    pub is_cold: bool,
    /// The least utilisation, if one is required.
    pub threshold: Option<f64>,
}

impl ReplayPlan {
    /// The files of each loader.
    fn files(&self) -> Result<Vec<Files>, Error> {
        let loaders = self.replay.loader.iter();
        loaders
            .map(|loader| {
                let found =
                    loader.files.iter().map(|files| data::find(&self.data, files)).collect::<Result<Vec<_>, _>>();
                found.map(Files::new)
            })
            .collect()
    }

    /// Finds the data, without running.
    ///
    /// # Errors
    /// If there are fewer files than the job read.
    pub fn foresee(&self) -> Result<(), Error> {
        self.files().map(drop)
    }
}

/// Plays the job, and adds the cell and notes to the record.
///
/// # Errors
/// If data is missing or a call fails. A stopped run returns what was measured, with a note.
pub fn run_replay(
    plan: &ReplayPlan,
    mut record: Record<WorkloadCell>,
    observer: Observer<'_>,
) -> Result<Record<WorkloadCell>, Error> {
    observer.tell(Event::phase("listing the data"));
    let files = plan.files()?;
    let paths: Vec<PathBuf> =
        files.iter().flat_map(|files| &files.found).flatten().map(|found| found.path.clone()).collect();
    let scratch = (plan.checkpoints.is_none() && !plan.replay.checkpoint.is_empty()).then(|| scratch(&plan.data));
    let scratch = scratch.transpose()?;
    let dir = scratch.as_ref().map(|scratch| scratch.path().to_owned()).or_else(|| plan.checkpoints.clone());
    let dir = dir.unwrap_or_default();
    let before = cold::prepare(&paths, plan.is_cold)?;
    let (cpu_s, age_s) = (usage::cpu_seconds(), usage::age_s());
    let player = Player { replay: &plan.replay, files: &files, clock: Arc::new(SystemClock::default()), observer };
    let played = player.play(&mut Saves::new(&dir, &plan.replay.checkpoint))?;
    let known = Known {
        plan,
        files: &files,
        evidence: cold::conclude(&before, played.done.bytes),
        checkpoints: &dir,
        is_scratch: scratch.is_some(),
        cpu_s: usage::cpu_seconds() - cpu_s,
        age_s,
    };
    known.add_to(&mut record, played);
    Ok(record)
}

fn scratch(data: &Path) -> Result<Scratch, Error> {
    remove_left_overs(data, PREFIX);
    Scratch::create(data, PREFIX).map_err(|source| Error::Scratch { path: data.to_owned(), source: Box::new(source) })
}
