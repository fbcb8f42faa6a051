//! Summaries of a training: the median run, the sums over its steps, and what follows from them.

use forebay_units::{Summary, median};
use serde_json::Value;

use super::{Checked, Wrong, is_close, is_within, same, same_cache, same_known, same_spread, wrong};
use crate::train::{au_dlio, by_epoch};
use crate::{Lever, TrainCell, TrainStep, TrainTotals};

const FROM_RUNS: &str = "runs give";
const FROM_STEPS: &str = "steps give";
const FROM_PARTS: &str = "its parts give";

/// A shorter rest of the wall clock, in seconds, has no meaningful shares.
const TOO_SHORT_S: f64 = 1e-6;

pub(crate) fn check(cell: &TrainCell) -> Checked {
    runs(cell)?;
    same_cache(&cell.medium)?;
    cell.samples.iter().try_for_each(of_one)?;
    of_one(&cell.totals)?;
    if !cell.steps.is_empty() {
        steps(cell)?;
    }
    follows(cell)
}

/// The cell's totals are those of the run whose wall clock is nearest to the median.
fn runs(cell: &TrainCell) -> Checked {
    let walls: Vec<f64> = cell.samples.iter().map(|run| run.wall_s).collect();
    let rates: Vec<f64> = cell.samples.iter().map(TrainTotals::images_per_s).collect();
    let Some(wall) = Summary::of(&walls) else { return Ok(()) };
    same_known("images_per_s", Some(cell.images_per_s), median(&rates), FROM_RUNS)?;
    same_spread(cell.spread, &walls)?;
    let distance = |run: &TrainTotals| (run.wall_s - wall.median).abs();
    let least = cell.samples.iter().map(distance).fold(f64::INFINITY, f64::min);
    let typical = cell.samples.iter().filter(|run| distance(run) <= least + super::ROUNDING * wall.median);
    one_of(&cell.totals, typical)
}

/// If it equals none of these, reports how it differs from the first.
pub(super) fn one_of<'a, T: serde::Serialize + 'a>(written: &T, of: impl Iterator<Item = &'a T>) -> Checked {
    let value = |of: &T| serde_json::to_value(of).unwrap_or_default();
    let written = value(written);
    let mut first = None;
    for run in of {
        match differs("", &written, &value(run)) {
            None => return Ok(()),
            found => first = first.or(found),
        }
    }
    first.map_or(Ok(()), Err)
}

fn differs(place: &str, written: &Value, derived: &Value) -> Option<Wrong> {
    match (written, derived) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            (!is_close(a, b)).then(|| wrong(place, a, b, FROM_RUNS))
        }
        (Value::Object(a), Value::Object(b)) => {
            let inner = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
            a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))).find_map(|name| {
                differs(&inner(name), a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null))
            })
        }
        (a, b) if a == b => None,
        (a, b) => {
            Some(Wrong { field: place.to_owned(), written: a.to_string(), derived: b.to_string(), from: FROM_RUNS })
        }
    }
}

/// The parts must sum to the wall clock, and the shares follow from them.
fn of_one(run: &TrainTotals) -> Checked {
    same("wall_s", run.wall_s, run.parts_s(), FROM_PARTS)?;
    let trained_s = run.wall_s - run.validate_s;
    if trained_s > TOO_SHORT_S {
        same("au_epoch", run.au_epoch, run.compute_s / trained_s, FROM_PARTS)?;
    }
    let steady_s = trained_s - run.first_wait_s;
    if steady_s > TOO_SHORT_S {
        same_known("au_steady", run.au_steady, Some(run.compute_s / steady_s), FROM_PARTS)?;
    }
    let charged: f64 = run.stall_by_cause.values().sum();
    match run.stall_by_cause.is_empty() || is_within(run.wait_s, charged, run.wall_s) {
        true => Ok(()),
        false => Err(wrong("wait_s", run.wait_s, charged, "stall_by_cause gives")),
    }
}

/// The steps belong to the run of the totals. A last wait, for data that had ended, is in none of them.
fn steps(cell: &TrainCell) -> Checked {
    let totals = &cell.totals;
    let sum = |part: fn(&TrainStep) -> f64| cell.steps.iter().map(part).sum::<f64>();
    same("n_steps", totals.n_steps as f64, cell.steps.len() as f64, FROM_STEPS)?;
    same("compute_s", totals.compute_s, sum(|step| step.compute_s), FROM_STEPS)?;
    same("copy_s", totals.copy_s, sum(|step| step.copy_s), FROM_STEPS)?;
    same("exchange_s", totals.exchange_s, sum(|step| step.exchange_s), FROM_STEPS)?;
    same("checkpoint_s", totals.checkpoint_s, sum(|step| step.checkpoint_s), FROM_STEPS)?;
    let waited = sum(|step| step.wait_s);
    if totals.wait_s < waited && !is_close(totals.wait_s, waited) {
        return Err(wrong("wait_s", totals.wait_s, waited, FROM_STEPS));
    }
    let last = cell.steps.last().and_then(|step| step.loss);
    same_known("loss", totals.loss.map(f64::from), last.map(f64::from), FROM_STEPS)?;
    let first = cell.resumed_from.unwrap_or(0);
    // Older versions did not record the other time of steps.
    if cell.steps.iter().any(|step| step.other_s > 0.0) {
        same_known("au_dlio", totals.au_dlio, au_dlio(&cell.steps, first, cell.steps_per_epoch), FROM_STEPS)?;
    }
    epochs(cell)
}

fn epochs(cell: &TrainCell) -> Checked {
    for (i, (epoch, steps)) in
        cell.epochs.iter().zip(by_epoch(&cell.steps, cell.resumed_from.unwrap_or(0), cell.steps_per_epoch)).enumerate()
    {
        same(&format!("epochs[{i}].n_steps"), epoch.n_steps as f64, steps.len() as f64, FROM_STEPS)?;
        let losses: Option<Vec<f64>> = steps.iter().map(|step| step.loss.map(f64::from)).collect();
        let mean = losses.map(|losses| losses.iter().sum::<f64>() / losses.len() as f64);
        same_known(
            &format!("epochs[{i}].loss"),
            epoch.loss.map(f64::from),
            mean.map(|mean| f64::from(mean as f32)),
            FROM_STEPS,
        )?;
    }
    Ok(())
}

fn follows(cell: &TrainCell) -> Checked {
    let totals = &cell.totals;
    if let Some(baseline) = cell.baseline {
        let own = totals.compute_s / totals.n_steps.max(1) as f64;
        if baseline.is_mean {
            same("baseline.step_s", baseline.step_s, own, FROM_STEPS)?;
        }
        let cost = totals.wall_s - totals.validate_s - totals.n_steps as f64 * baseline.step_s;
        match cell.io_cost_s {
            Some(written) if !is_within(written, cost, totals.wall_s) => {
                return Err(wrong("io_cost_s", written, cost, "wall clock and baseline give"));
            }
            _ => {}
        }
        let takes = cell.feed.map(|feed| feed.takes_images_per_s);
        same_known("feed.takes_images_per_s", takes, Some(cell.batch as f64 / baseline.step_s), "the baseline gives")?;
    }
    lever(&cell.lever, totals.wall_s)?;
    let Some(saved) = &cell.checkpoints else { return Ok(()) };
    for failure in cell.injected().iter().flat_map(|injected| &injected.failures) {
        if failure.resumed_from > failure.step {
            let (from, step) = (failure.resumed_from as f64, failure.step as f64);
            return Err(wrong("checkpoints.injected.resumed_from", from, step, "steps until the failure"));
        }
    }
    let stalls: Vec<f64> = saved.stalls().collect();
    same_known("checkpoints.median_stall_s", saved.median_stall_s, median(&stalls), "saves give")
}

/// The predicted wall clock is the measured one without the savings.
pub(super) fn lever(lever: &Lever, wall_s: f64) -> Checked {
    let predicted = wall_s - lever.saves_s;
    match lever.name.is_empty() || is_within(lever.wall_s, predicted, wall_s) {
        true => Ok(()),
        false => Err(wrong("lever.wall_s", lever.wall_s, predicted, "wall clock and savings give")),
    }
}
