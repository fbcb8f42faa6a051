//! Runs the cells of a plan in random order and records each one when it is done.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use forebay_measure::{Observer, utc_now};
use forebay_record::{Environment, StudyCell, StudyLine, StudyResumed, StudyRun};
use forebay_units::chain;

use super::error::Result;
use super::folder::Folder;
use super::plan::{CellPlan, Plan};
use super::steps::{Bench, Failed, StepResult};

#[derive(Debug)]
pub enum Event<'a> {
    Started {
        cell: &'a CellPlan,
        at: At,
    },
    /// From the running cell.
    Within(forebay_measure::Event),
    /// Recorded, whether measured or failed.
    Finished {
        cell: &'a StudyCell,
        at: At,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At {
    /// Includes cells of earlier runs.
    pub n_done: usize,
    pub n_cells: usize,
    /// Estimate of the remaining time, corrected by the times of finished cells.
    pub left_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub n_cells: usize,
    /// Includes cells of earlier runs.
    pub n_done: usize,
    /// Of `n_done`.
    pub n_failed: usize,
    /// Of `n_done`.
    pub n_left_out: usize,
    pub stopped: bool,
}

#[derive(Debug, Clone)]
pub struct Remaining {
    /// Indices in the plan, in running order.
    pub cells: Vec<usize>,
    pub n_done: usize,
    /// Of `n_done`.
    pub n_failed: usize,
    /// Of `n_done`; would be left out again on this machine.
    pub n_left_out: usize,
}

impl Remaining {
    pub fn whole(plan: &Plan) -> Self {
        Self { cells: plan.order(), n_done: 0, n_failed: 0, n_left_out: 0 }
    }

    /// A failed cell counts as done unless `retry_failed` is set.
    pub fn after(plan: &Plan, run: &StudyRun, retry_failed: bool) -> Self {
        let known: HashMap<&str, &StudyCell> = run.cells.iter().map(|cell| (cell.id.as_str(), cell)).collect();
        let mut rest = Self { cells: Vec::new(), n_done: 0, n_failed: 0, n_left_out: 0 };
        for number in plan.order() {
            let planned = &plan.cells[number];
            // A cell that another machine left out runs on a machine that can run it.
            let stays = |cell: &StudyCell| match (&cell.error, &cell.left_out) {
                (Some(_), _) => !retry_failed,
                (None, Some(_)) => planned.left_out.is_some(),
                (None, None) => true,
            };
            match known.get(planned.id.as_str()) {
                Some(cell) if stays(cell) => {
                    rest.n_done += 1;
                    rest.n_failed += usize::from(cell.error.is_some());
                    rest.n_left_out += usize::from(cell.left_out.is_some());
                }
                _ => rest.cells.push(number),
            }
        }
        rest
    }

    pub fn cells_of<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a CellPlan> {
        self.cells.iter().map(|number| &plan.cells[*number])
    }

    /// The line that marks a resumed run in the record.
    pub fn resumed(&self, environment: Environment) -> StudyLine {
        StudyLine::Resumed(Box::new(StudyResumed { environment, n_done: self.n_done as u64 }))
    }
}

/// Runs the remaining cells and records each when it is done. When `cancel` is set, the current cell is discarded.
///
/// `seconds` estimates a cell's time, `None` if unknown.
///
/// # Errors
/// When a cell cannot be recorded. A failed cell is recorded with its reason and is not an error.
pub fn run(
    plan: &Plan,
    rest: &Remaining,
    folder: &mut Folder,
    bench: &mut dyn Bench,
    seconds: &dyn Fn(&CellPlan) -> Option<f64>,
    observe: &(dyn Fn(Event<'_>) + Sync),
    cancel: &AtomicBool,
) -> Result<Outcome> {
    let mut pace = Pace::new(rest.cells_of(plan).filter(|cell| cell.left_out.is_none()).map(seconds));
    let n_cells = plan.cells.len();
    let mut outcome =
        Outcome { n_cells, n_done: rest.n_done, n_failed: rest.n_failed, n_left_out: rest.n_left_out, stopped: false };
    for cell in rest.cells_of(plan) {
        outcome.stopped = cancel.load(Ordering::Relaxed);
        if outcome.stopped {
            break;
        }
        if let Some(reason) = &cell.left_out {
            let kept = StudyCell {
                left_out: Some(reason.clone()),
                ..finished(cell, utc_now(), 0.0, Ok(StepResult::default()))
            };
            outcome.n_done += 1;
            outcome.n_left_out += 1;
            keep(folder, kept, At { n_done: outcome.n_done, n_cells, left_s: pace.left_s() }, observe)?;
            continue;
        }
        observe(Event::Started { cell, at: At { n_done: outcome.n_done, n_cells, left_s: pace.left_s() } });
        let (started_at, start) = (utc_now(), Instant::now());
        let forward = |event| observe(Event::Within(event));
        let measured = bench.measure(cell, Observer::new(&forward, cancel));
        // The result of an interrupted cell is never used.
        outcome.stopped = cancel.load(Ordering::Relaxed);
        if outcome.stopped {
            break;
        }
        let cell = finished(cell, started_at, start.elapsed().as_secs_f64(), measured);
        pace.done(cell.elapsed_s);
        outcome.n_done += 1;
        outcome.n_failed += usize::from(cell.error.is_some());
        keep(folder, cell, At { n_done: outcome.n_done, n_cells, left_s: pace.left_s() }, observe)?;
    }
    Ok(outcome)
}

fn keep(folder: &mut Folder, cell: StudyCell, at: At, observe: &(dyn Fn(Event<'_>) + Sync)) -> Result<()> {
    let line = StudyLine::Cell(Box::new(cell));
    folder.append(&line)?;
    if let StudyLine::Cell(cell) = &line {
        observe(Event::Finished { cell, at });
    }
    Ok(())
}

fn finished(cell: &CellPlan, started_at: String, elapsed_s: f64, result: Result<StepResult, Failed>) -> StudyCell {
    let (result, error) = match result {
        Ok(result) => (result, None),
        Err(error) => (StepResult::default(), Some(chain(error.as_ref()))),
    };
    StudyCell {
        id: cell.id.clone(),
        experiment: cell.experiment.clone(),
        step: cell.work.step(),
        factors: cell.factors.clone(),
        started_at,
        elapsed_s,
        error,
        left_out: None,
        measured: result.measured,
        notes: result.notes,
    }
}

struct Pace {
    /// Of the remaining cells, the next one last; `None` if any is unknown.
    left: Option<Vec<f64>>,
    /// Of the cells that are done.
    estimated_s: f64,
    taken_s: f64,
    /// A tenth of the whole estimate counts as confirmed, which damps the correction by the first cells.
    trusted_s: f64,
}

impl Pace {
    fn new(estimates: impl Iterator<Item = Option<f64>>) -> Self {
        let mut left: Option<Vec<f64>> = estimates.collect();
        if let Some(left) = &mut left {
            left.reverse();
        }
        let trusted_s = left.iter().flatten().sum::<f64>() / 10.0;
        Self { left, estimated_s: 0.0, taken_s: 0.0, trusted_s }
    }

    fn done(&mut self, elapsed_s: f64) {
        self.taken_s += elapsed_s;
        self.estimated_s += self.left.as_mut().and_then(Vec::pop).unwrap_or(0.0);
    }

    fn left_s(&self) -> Option<f64> {
        let sum: f64 = self.left.as_ref()?.iter().sum();
        let (taken, estimated) = (self.taken_s + self.trusted_s, self.estimated_s + self.trusted_s);
        Some(if sum > 0.0 { sum * taken / estimated } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_what_cells_have_taken() {
        let mut pace = Pace::new([2.0, 8.0, 10.0].into_iter().map(Some));
        assert_eq!(pace.left_s(), Some(20.0));
        pace.done(4.0);
        assert_eq!(pace.left_s(), Some(18.0 * 6.0 / 4.0), "two trusted seconds, and two that became four");
        pace.done(16.0);
        assert_eq!(pace.left_s(), Some(10.0 * 22.0 / 12.0));
        pace.done(20.0);
        assert_eq!(pace.left_s(), Some(0.0));
        let mut unknown = Pace::new([Some(1.0), None].into_iter());
        unknown.done(1.0);
        assert_eq!(unknown.left_s(), None);
    }

    #[test]
    fn an_error_is_kept_with_its_causes_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("reading set")]
        struct Outer(#[source] std::io::Error);
        #[derive(Debug, thiserror::Error)]
        #[error(transparent)]
        struct Through(Outer);
        let error = Through(Outer(std::io::Error::other("gone")));
        assert_eq!(chain(&error), "reading set: gone");
    }
}
