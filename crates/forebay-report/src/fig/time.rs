//! Where the accelerator's time went: a bar a cell, as long as its wall clock; of several accelerators, their mean.

use forebay_record::{StudyCell, TrainCell, WorkloadCell};

use crate::number::percent;
use crate::palette::ACCELERATOR;

use super::stack::{self, Axis, Part, Row, Stack};
use super::{Context, Drawn, Grid};

const TIME: Stack = Stack {
    axis: Axis::Seconds,
    title: "What the accelerator did",
    unit: "Seconds of the wall clock",
    order: ACCELERATOR,
    parts,
    caption,
    reading,
    nothing: "No cell of this figure was trained or run.",
};

pub(super) fn make(context: &Context<'_>) -> Drawn {
    stack::make(context, &TIME)
}

fn reading(grid: &Grid<'_>) -> &'static str {
    if grid.cells.iter().any(|cell| cell.measured_one::<WorkloadCell>().is_some()) {
        return "The parts of a bar add up to the training time of one accelerator, averaged over all. At the barrier it waits \
                for the other accelerators.";
    }
    "The parts of a bar add up to the wall clock of the run nearest to the median. Waiting for data means that the \
     accelerator was idle without a batch."
}

fn parts(cell: &StudyCell) -> Vec<Part<'_>> {
    let seconds = match (cell.measured_one::<TrainCell>(), cell.measured_one::<WorkloadCell>()) {
        (Some(train), _) => {
            let of = &train.totals;
            [of.compute_s, of.wait_s, of.copy_s, of.exchange_s, of.checkpoint_s, of.validate_s, of.other_s]
        }
        (None, Some(workload)) => {
            let of = &workload.totals;
            // All accelerators together, so a bar is as long as the time of one of them.
            let n = of.accelerators.max(1) as f64;
            [of.compute_s, of.wait_s, 0.0, of.barrier_s, of.checkpoint_s, 0.0, of.other_s].map(|seconds| seconds / n)
        }
        (None, None) => return Vec::new(),
    };
    let named = ACCELERATOR.iter().zip(seconds).filter(|(_, seconds)| seconds.is_finite() && *seconds > 0.0);
    named.map(|((key, word, class), seconds)| Part { key, word, class, seconds }).collect()
}

fn caption(rows: &[&Row<'_>]) -> String {
    let share = |row: &&Row<'_>| {
        let wait =
            row.parts.iter().find(|part| part.key == TrainCell::WAIT_S.info.name).map_or(0.0, |part| part.seconds);
        wait / row.total
    };
    let shares: Vec<f64> = rows.iter().map(share).collect();
    let least = shares.iter().copied().fold(f64::MAX, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    match shares.len() {
        1 => format!("The accelerator waited for data {} of the time.", percent(most)),
        _ => format!("The accelerator waited for data {} to {} of the time.", percent(least), percent(most)),
    }
}
