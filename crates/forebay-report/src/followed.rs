//! Where following the advice leads: from a cell, the named change is looked up among the other cells of the study, and kept if its cell
//! was faster; then the change that this cell names. That is what `forebay tune` does with runs.

use forebay_record::{FigureKind, Level, Lever, StudyCell, TrainCell};
use forebay_units::{count, median};

use crate::advised::{self, Tried};
use crate::grid::wanted;
use crate::number::percent;
use crate::run::Run;

/// A gain below this is none, as in tuning.
const GAIN: f64 = 0.02;
/// At most so much slower than the fastest of all is where it should end.
const CLOSE: f64 = 0.05;

/// From one cell to where its advice leads.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Walked {
    /// Run time at the end over that of the fastest settings, minus 1.
    behind: f64,
    /// Cells that were looked up, the first included.
    n_runs: usize,
    /// Cells that an exhaustive search would run.
    n_settings: usize,
}

/// What following the advice of each cell gives; `None` where nothing can be followed.
pub(crate) fn said(run: &Run<'_>) -> Option<String> {
    let figures = run.spec().figures.iter().filter(|figure| figure.kind == FigureKind::Advice);
    let walked: Vec<Walked> = figures.flat_map(|figure| walks(&wanted(run, figure))).collect();
    let of = |f: fn(&Walked) -> f64| median(&walked.iter().map(f).collect::<Vec<_>>());
    let (n_runs, n_settings) = (of(|one| one.n_runs as f64)?, of(|one| one.n_settings as f64)?);
    let close = walked.iter().filter(|one| one.behind <= CLOSE).count();
    Some(format!(
        "Following the advice from run to run ends within 5 % of the fastest of all settings in {close} of {} ({}), after {n_runs:.0} \
         runs in the median; trying all settings takes {n_settings:.0}.",
        count(walked.len() as u64, "case"),
        percent(close as f64 / walked.len() as f64)
    ))
}

fn walks(cells: &[&StudyCell]) -> Vec<Walked> {
    let tried: Vec<Tried<'_>> = cells.iter().filter_map(|cell| Tried::of(cell)).collect();
    tried.iter().filter_map(|start| walk(*start, &tried)).collect()
}

fn walk(start: Tried<'_>, all: &[Tried<'_>]) -> Option<Walked> {
    lever(start.cell)?;
    let group: Vec<Tried<'_>> = all.iter().copied().filter(|other| fixed(other.cell) == fixed(start.cell)).collect();
    let best = group.iter().map(|tried| tried.wall_s).fold(f64::INFINITY, f64::min);
    let (mut now, mut seen) = (start, vec![start.cell.id.as_str()]);
    while let Some(next) = faster(now, &group, &mut seen) {
        now = next;
    }
    (group.len() > 1).then(|| Walked { behind: now.wall_s / best - 1.0, n_runs: seen.len(), n_settings: group.len() })
}

/// The first change of a cell's advice whose cell was faster; all that are looked up are seen.
fn faster<'a>(now: Tried<'a>, group: &[Tried<'a>], seen: &mut Vec<&'a str>) -> Option<Tried<'a>> {
    let chain = std::iter::successors(lever(now.cell), |lever| lever.runner_up.as_deref());
    for change in chain.filter_map(|lever| lever.setting.as_ref()) {
        let mut wanted = now.cell.factors.clone();
        // A setting that the study does not vary cannot be changed here.
        let Some(level) = wanted.get_mut(&change.setting) else { continue };
        level.clone_from(&change.value);
        let Some(next) = group.iter().find(|other| other.cell.factors == wanted) else { continue };
        if seen.contains(&next.cell.id.as_str()) {
            continue;
        }
        seen.push(&next.cell.id);
        if next.wall_s < now.wall_s * (1.0 - GAIN) {
            return Some(*next);
        }
    }
    None
}

fn lever(cell: &StudyCell) -> Option<&Lever> {
    cell.measured_one::<TrainCell>()
        .filter(|train| !train.synthetic && !train.lever.name.is_empty())
        .map(|train| &train.lever)
}

/// What no flag changes: experiment and levels.
fn fixed(cell: &StudyCell) -> (&str, Vec<(&String, &Level)>) {
    let levels = cell.factors.iter().filter(|(factor, _)| !advised::FREE.contains(&factor.as_str()));
    (cell.experiment.as_str(), levels.collect())
}
