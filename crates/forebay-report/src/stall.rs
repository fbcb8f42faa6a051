//! How much shorter training stalls for a checkpoint when another mode than `direct` saves it.
//!
//! A stall is set beside that of the cell that writes the same state straight to the same last tier: what a burst buffer
//! is bought for.

use forebay_record::{CheckpointCell, Level, SPEED_UP, STALL_SPEED_UP, StudyCell, TrainCell};

use crate::published::{self, Published};
use crate::run::Run;

/// What a cell saves how, as far as it decides which other it is set beside.
#[derive(PartialEq)]
struct Saved<'a> {
    format: &'a str,
    bytes: u64,
    tier: Option<&'a str>,
}

fn saved(cell: &StudyCell) -> Option<(&str, Saved<'_>)> {
    if let Some(of) = cell.measured_one::<CheckpointCell>() {
        return Some((&of.mode, Saved { format: &of.format, bytes: of.bytes, tier: of.medium.tier.as_deref() }));
    }
    let of = cell.measured_one::<TrainCell>()?.checkpoints.as_ref()?;
    Some((&of.mode, Saved { format: &of.format, bytes: of.bytes, tier: of.medium.tier.as_deref() }))
}

pub(crate) fn mode(cell: &StudyCell) -> Option<&str> {
    saved(cell).map(|(mode, _)| mode)
}

/// The cell of the same experiment that saves the same straight to the same last tier; of several, the most alike. Where
/// two are equally alike, which one is meant cannot be told, and it is none.
pub(crate) fn direct<'a>(run: &'a Run<'a>, cell: &StudyCell) -> Option<&'a StudyCell> {
    let (mode, what) = saved(cell)?;
    let is_candidate = |other: &&StudyCell| {
        let is_direct = saved(other).is_some_and(|(mode, of)| mode == "direct" && of == what);
        other.experiment == cell.experiment && other.error.is_none() && is_direct
    };
    if mode == "direct" {
        return None;
    }
    let candidates: Vec<&StudyCell> = run.study.cells.iter().filter(is_candidate).collect();
    let most = candidates.iter().map(|other| n_alike(cell, other)).max()?;
    let mut best = candidates.into_iter().filter(|other| n_alike(cell, other) == most);
    best.next().filter(|_| best.next().is_none())
}

/// Factors in which a cell is like another: the same level, or a way whose end the other is, as "optane → hdd" has "hdd".
/// Real devices have no name but that.
fn n_alike(cell: &StudyCell, other: &StudyCell) -> usize {
    let alike = |(factor, level): &(&String, &Level)| {
        let end = |level: &Level| level.to_string().rsplit('→').next().unwrap_or_default().trim().to_owned();
        cell.level(factor).is_some_and(|own| own == *level || end(own) == level.to_string())
    };
    other.factors.iter().filter(alike).count()
}

/// How many times shorter a cell's stall is than the direct one's.
pub(crate) fn speed_up(run: &Run<'_>, cell: &StudyCell) -> Option<f64> {
    let stall = |cell: &StudyCell| stall_s(cell).filter(|stall| *stall > 0.0);
    Some(stall(direct(run, cell)?)? / stall(cell)?)
}

/// The same where the two may be told apart.
pub(crate) fn judged(run: &Run<'_>, cell: &StudyCell) -> Option<f64> {
    let (direct, ratio) = (direct(run, cell)?, speed_up(run, cell)?);
    run.differ(&[cell, direct], ratio).then_some(ratio)
}

pub(crate) fn stall_s(cell: &StudyCell) -> Option<f64> {
    cell.value(&CheckpointCell::STALL_S).or_else(|| cell.value(&TrainCell::STALL_S))
}

pub(crate) fn published<'a>(run: &Run<'_>, all: &'a [Published<'a>], cell: &StudyCell) -> Option<&'a Published<'a>> {
    let is_of = |row: &&Published<'_>| {
        let metric = row.reference.metric.as_str();
        let of_stalls = metric == STALL_SPEED_UP.name
            || (metric == SPEED_UP.name && published::is_of_stalls(run, &cell.experiment));
        of_stalls && row.cell.is_some_and(|of| std::ptr::eq(of, cell))
    };
    // What could have come out otherwise comes before what was put in.
    all.iter().filter(is_of).min_by_key(|row| row.is_calibrated)
}
