//! What checkpoints and their drain cost the reads of training on the same device, and what a slower drain gives back.
//!
//! A run without checkpoints, of the same steps, is what the others are compared with, whichever experiment it is in.

use forebay_record::{FigureSpec, Level, StudyCell, TrainCell};
use forebay_units::Bytes;

use crate::grid::wanted;
use crate::level;
use crate::number::brief_seconds;
use crate::order::Order;
use crate::run::Run;

/// The factor whose fastest and slowest levels are set against each other.
const DRAIN_RATE: &str = "drain_rate";

/// A run with checkpoints beside the one without.
struct Cost<'a> {
    cell: &'a StudyCell,
    name: String,
    /// Waiting for data beyond that of the run without checkpoints.
    more_wait_s: f64,
    stall_s: f64,
    drain_after_s: Option<f64>,
}

/// Empty if the figure has no runs with checkpoints, or the study none without.
pub(crate) fn said(run: &Run<'_>, spec: &FigureSpec) -> String {
    let mut cells = wanted(run, spec);
    let order = Order::of(run);
    cells.sort_by(|a, b| order.compare(a, b));
    let saving = |cell: &&StudyCell| trained(cell).is_some_and(|train| train.checkpoints.is_some());
    let Some(first) = cells.iter().copied().find(saving) else { return String::new() };
    let Some((base, base_wait_s)) = base(run, first) else { return String::new() };
    let costs: Vec<Cost<'_>> =
        cells.iter().copied().filter(saving).filter_map(|cell| cost(cell, spec, base_wait_s)).collect();
    let wall_s = base.value(&TrainCell::WALL_S).unwrap_or(0.0);
    let mut parts: Vec<String> = given_back(&costs).into_iter().collect();
    parts.extend(costs.iter().map(Cost::said));
    parts.push(format!(
        "Without checkpoints, training takes {} and waits {} for data.",
        brief_seconds(wall_s),
        brief_seconds(base_wait_s)
    ));
    parts.join(" ")
}

fn trained(cell: &StudyCell) -> Option<&TrainCell> {
    cell.measured_one::<TrainCell>().filter(|_| cell.error.is_none())
}

/// The run without checkpoints that has the steps of this one, and its wait.
fn base<'a>(run: &'a Run<'_>, like: &StudyCell) -> Option<(&'a StudyCell, f64)> {
    let wanted = trained(like)?;
    let is_base = |cell: &&StudyCell| {
        trained(cell).is_some_and(|train| {
            train.checkpoints.is_none()
                && (train.totals.n_steps, train.batch, &train.accelerator)
                    == (wanted.totals.n_steps, wanted.batch, &wanted.accelerator)
        })
    };
    let found = run.study.cells.iter().find(is_base)?;
    Some((found, found.value(&TrainCell::WAIT_S)?))
}

fn cost<'a>(cell: &'a StudyCell, spec: &FigureSpec, base_wait_s: f64) -> Option<Cost<'a>> {
    let factor = spec.x.as_deref().or(spec.series.as_deref())?;
    Some(Cost {
        cell,
        name: level::named(factor, cell.level(factor)?),
        more_wait_s: cell.value(&TrainCell::WAIT_S)? - base_wait_s,
        stall_s: cell.value(&TrainCell::CHECKPOINT_S)?,
        drain_after_s: cell.value(&TrainCell::DRAIN_AFTER_S).filter(|seconds| *seconds > 0.0),
    })
}

impl Cost<'_> {
    fn said(&self) -> String {
        let drain = self.drain_after_s.map(|seconds| format!("; the drain ends {} after it", brief_seconds(seconds)));
        let less_or_more = if self.more_wait_s < 0.0 { "less" } else { "more" };
        format!(
            "{}: {} of stalls and {} {less_or_more} waiting for data{}.",
            crate::number::capital(&self.name),
            brief_seconds(self.stall_s),
            brief_seconds(self.more_wait_s.abs()),
            drain.unwrap_or_default()
        )
    }

    fn rate(&self) -> Option<f64> {
        let rate = self.cell.level(DRAIN_RATE)?.to_string();
        rate.trim_end_matches("/s").parse().ok().map(|Bytes(n)| n as f64)
    }

    fn lost_s(&self) -> f64 {
        self.more_wait_s + self.stall_s
    }
}

/// The rate that costs least against the fastest.
fn given_back(costs: &[Cost<'_>]) -> Option<String> {
    let with_rate = || costs.iter().filter_map(|cost| Some((cost, cost.rate()?)));
    let (fastest, _) = with_rate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (best, _) = with_rate().min_by(|a, b| a.0.lost_s().total_cmp(&b.0.lost_s()))?;
    let name = |cost: &Cost<'_>| {
        cost.cell.level(DRAIN_RATE).map_or(String::new(), |level: &Level| level::bare(DRAIN_RATE, level))
    };
    if std::ptr::eq(best, fastest) {
        return Some(format!("No limit on the drain gives time back: {} costs least.", name(fastest)));
    }
    let given = fastest.lost_s() - best.lost_s();
    Some(format!(
        "A drain limited to {} gives back {} of the {} that checkpoints cost at {}.",
        name(best),
        brief_seconds(given),
        brief_seconds(fastest.lost_s()),
        name(fastest)
    ))
}
