//! Runs a workload cell several times; the result is the median run.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use forebay_emulation::Plan;
use forebay_measure::cold::Before;
use forebay_measure::{Done, Observer, Place, Rounds, Trial};
use forebay_ranks::Solo;
use forebay_record::{Record, WorkloadCell, WorkloadTotals};
use forebay_units::PathText;

use super::WorkloadTask;
use crate::steps::{Failed, StepContext, StepResult, record};

/// `checkpoints` is emptied before each run and removed at the end.
pub(in crate::steps) fn run(
    task: &WorkloadTask,
    data: PathBuf,
    checkpoints: PathBuf,
    on: StepContext,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let rounds = Rounds { warmups: on.warmups, repeats: on.repeats, unit: "run", until: None };
    let plan = plan(task, data, &checkpoints, on)?;
    let mut runs = Runs { plan, checkpoint_dir: CheckpointDir(checkpoints) };
    let ran = rounds.run(slice::from_mut(&mut runs), observer)?;
    let (mut cells, mut notes) = (Vec::new(), Vec::new());
    for record in ran.cells.into_iter().flatten() {
        cells.extend(record.cells.into_iter().map(of_cell));
        let new = record.notes.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>();
        notes.extend(new);
    }
    match middle(cells) {
        Some(cell) => {
            let cell = WorkloadCell { disturbed: ran.disturbed[0], ..cell };
            Ok(StepResult { measured: Some(cell.into()), notes })
        }
        None => Err("no run finished".into()),
    }
}

struct Runs {
    plan: Plan,
    checkpoint_dir: CheckpointDir,
}

impl Trial for Runs {
    type Repeat = Record<WorkloadCell>;
    type Error = Failed;

    fn name(&self) -> String {
        self.plan.workload.name.clone()
    }

    fn prepare(&mut self) -> Result<(), Failed> {
        self.checkpoint_dir.empty()
    }

    fn repeat(&mut self, _: u64, _: &Before, observer: Observer<'_>) -> Result<Done<Self::Repeat>, Failed> {
        let ran = forebay_emulation::run(&self.plan, &Solo, record(), observer)?;
        Ok(Done::Whole(ran.ok_or("the only rank returned no record")?))
    }
}

/// Removes values that describe the process, which has run other cells before.
fn of_cell(mut cell: WorkloadCell) -> WorkloadCell {
    (cell.totals.first_step_s, cell.totals.peak_rss_bytes) = (None, None);
    cell.processes.iter_mut().for_each(|process| process.peak_rss_bytes = None);
    cell
}

/// The run with the median AU over whole epochs, and the totals of all runs.
pub(super) fn middle(mut runs: Vec<WorkloadCell>) -> Option<WorkloadCell> {
    let all: Vec<WorkloadTotals> = runs.iter().map(|run| run.totals.clone()).collect();
    // Runs that only save have no AU and are ordered by time.
    let by = |run: &WorkloadCell| run.totals.au_epoch.unwrap_or(run.totals.wall_s);
    runs.sort_by(|a, b| by(a).total_cmp(&by(b)));
    let cell = runs.into_iter().nth(all.len().saturating_sub(1) / 2)?;
    Some(WorkloadCell { runs: if all.len() > 1 { all } else { Vec::new() }, ..cell })
}

pub(super) fn plan(task: &WorkloadTask, data: PathBuf, saves: &Path, on: StepContext) -> Result<Plan, String> {
    Ok(Plan {
        settings: task.settings.clone(),
        workload: task.read()?,
        data,
        checkpoints: Place::new(saves),
        // `CheckpointDir` removes them.
        keeps_checkpoints: true,
        access_log: None,
        tier: on.shaped,
        out: None,
    })
}

/// Emptied before each run, removed after the cell.
struct CheckpointDir(PathBuf);

impl CheckpointDir {
    fn empty(&self) -> Result<(), Failed> {
        let failed = |error: std::io::Error| format!("cannot empty {}: {error}", self.0.escaped());
        if self.0.exists() {
            fs::remove_dir_all(&self.0).map_err(failed)?;
        }
        Ok(fs::create_dir_all(&self.0).map_err(failed)?)
    }
}

impl Drop for CheckpointDir {
    fn drop(&mut self) {
        // If this fails, the next run tries again.
        let _ = fs::remove_dir_all(&self.0);
    }
}
