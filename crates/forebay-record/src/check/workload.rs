//! Summaries of a workload: the median run, and sums over accelerators, epochs and steps.

use std::collections::BTreeMap;

use super::{Checked, Wrong, is_close, is_within, same, same_known, wrong};
use crate::check::train::{lever, one_of};
use crate::{Cause, Quantiles, WorkloadCell, WorkloadEpoch, WorkloadTotals};

const FROM_EPOCHS: &str = "epochs give";
const FROM_STEPS: &str = "steps give";
const FROM_PARTS: &str = "its parts give";

pub(crate) fn check(cell: &WorkloadCell) -> Checked {
    if !cell.runs.is_empty() {
        one_of(&cell.totals, middle(&cell.runs).into_iter())?;
    }
    cell.runs.iter().try_for_each(|run| of_one(cell, run))?;
    of_one(cell, &cell.totals)?;
    if !cell.epochs_of.is_empty() {
        epochs(cell)?;
    }
    for judged in &cell.judged {
        let value = match judged.what.as_str() {
            "au_epoch" => cell.totals.au_epoch,
            "au_dlio" => cell.totals.au_dlio,
            _ => None,
        };
        same_known(&format!("judged {}", judged.what), judged.value, value, "the run gives")?;
        let is_met = judged.value.is_some_and(|value| value >= judged.limit);
        if judged.is_met != is_met {
            let (field, written) = (format!("judged {}: is_met", judged.what), judged.is_met.to_string());
            return Err(Wrong { field, written, derived: is_met.to_string(), from: "value and limit give" });
        }
    }
    lever(&cell.lever, cell.totals.accelerator_s / cell.totals.accelerators.max(1) as f64)
}

/// Candidates for the median run by utilisation: of equal ones, any.
fn middle(runs: &[WorkloadTotals]) -> Vec<&WorkloadTotals> {
    let by = |run: &WorkloadTotals| run.au_epoch.unwrap_or(run.wall_s);
    let mut sorted: Vec<f64> = runs.iter().map(by).collect();
    sorted.sort_by(f64::total_cmp);
    let wanted = sorted.get((runs.len() - 1) / 2).copied().unwrap_or_default();
    runs.iter().filter(|run| is_close(by(run), wanted)).collect()
}

fn of_one(cell: &WorkloadCell, run: &WorkloadTotals) -> Checked {
    // DLIO times no barriers, and its files mix several clocks.
    if cell.made_by.is_none() {
        let parts = run.wait_s + run.compute_s + run.barrier_s + run.checkpoint_s + run.other_s;
        same("accelerator_s", run.accelerator_s, parts, FROM_PARTS)?;
    }
    if run.wall_s > 0.0 {
        const FROM: &str = "amount and wall clock give";
        same("samples_per_s", run.samples_per_s, run.samples as f64 / run.wall_s, FROM)?;
        same("mb_per_s_moved", run.mb_per_s_moved, run.bytes_moved as f64 / 1e6 / run.wall_s, FROM)?;
        let device = run.bytes_device.map(|bytes| bytes as f64 / 1e6 / run.wall_s);
        same_known("mb_per_s_device", run.mb_per_s_device, device, FROM)?;
    }
    let mib = run.dlio_samples_per_s.map(|rate| rate * cell.record_length_bytes / f64::from(1 << 20));
    if cell.made_by.is_none() {
        same_known("dlio_mib_per_s", run.dlio_mib_per_s, mib, "samples per second give")?;
    }
    same_known(
        "stall_by_cause.barrier",
        run.stall_by_cause.get(&Cause::Barrier).copied(),
        Some(run.barrier_s),
        FROM_PARTS,
    )?;
    let causes = run.stall_by_cause.iter().filter(|(cause, _)| **cause != Cause::Barrier);
    let charged: f64 = causes.clone().map(|(_, seconds)| seconds).sum();
    match causes.count() == 0 || is_within(run.wait_s, charged, run.accelerator_s) {
        true => Ok(()),
        false => Err(wrong("wait_s", run.wait_s, charged, "stall_by_cause gives")),
    }
}

fn epochs(cell: &WorkloadCell) -> Checked {
    cell.epochs_of.iter().try_for_each(of_epoch)?;
    let totals = &cell.totals;
    let sum = |of: fn(&WorkloadEpoch) -> f64| cell.epochs_of.iter().map(of).sum::<f64>();
    let walls = by_accelerator(cell, |epoch| epoch.wall_s);
    same("wall_s", totals.wall_s, walls.values().copied().fold(0.0, f64::max), FROM_EPOCHS)?;
    for (name, written, derived) in [
        ("accelerator_s", totals.accelerator_s, sum(|epoch| epoch.wall_s)),
        ("wait_s", totals.wait_s, sum(|epoch| epoch.wait_s)),
        ("compute_s", totals.compute_s, sum(|epoch| epoch.compute_s)),
        ("barrier_s", totals.barrier_s, sum(|epoch| epoch.barrier_s)),
        ("checkpoint_s", totals.checkpoint_s, sum(|epoch| epoch.checkpoint_s)),
        ("other_s", totals.other_s, sum(|epoch| epoch.other_s)),
        ("eval_s", totals.eval_s, sum(|epoch| epoch.eval_s.unwrap_or(0.0))),
        ("steps", totals.steps as f64, sum(|epoch| epoch.n_steps as f64)),
        ("first_batch_s", totals.first_batch_s, sum(|epoch| epoch.first_batch_s) / cell.epochs_of.len() as f64),
    ] {
        same(name, written, derived, FROM_EPOCHS)?;
    }
    same_known("au_epoch", totals.au_epoch, au(cell, &walls), FROM_EPOCHS)?;
    let steady = by_accelerator(cell, |epoch| epoch.wall_s - epoch.first_batch_s);
    same_known("au_steady", totals.au_steady, au(cell, &steady), FROM_EPOCHS)?;
    let (evaluated, computed) = (totals.eval_s, sum(|epoch| epoch.eval_compute_s));
    let au_eval = (evaluated > 0.0).then(|| computed / evaluated);
    same_known("au_eval", totals.au_eval, au_eval, FROM_EPOCHS)?;
    steps(cell)
}

fn by_accelerator(cell: &WorkloadCell, value: impl Fn(&WorkloadEpoch) -> f64) -> BTreeMap<u64, f64> {
    let mut sums = BTreeMap::new();
    cell.epochs_of.iter().for_each(|epoch| *sums.entry(epoch.accelerator).or_insert(0.0) += value(epoch));
    sums
}

/// Mean over accelerators of the computed fraction; `None` if one had hardly any time.
fn au(cell: &WorkloadCell, times: &BTreeMap<u64, f64>) -> Option<f64> {
    let computed = by_accelerator(cell, |epoch| epoch.compute_s);
    let shares: Option<Vec<f64>> = computed
        .iter()
        .map(|(who, compute_s)| times.get(who).filter(|time| **time > 1e-6).map(|time| compute_s / time))
        .collect();
    shares.filter(|shares| !shares.is_empty()).map(|shares| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// An epoch's parts sum to its time, and its steps are within them.
fn of_epoch(epoch: &WorkloadEpoch) -> Checked {
    let place = |name: &str| format!("epoch {}, accelerator {}: {name}", epoch.epoch, epoch.accelerator);
    let parts = epoch.wait_s + epoch.compute_s + epoch.barrier_s + epoch.checkpoint_s + epoch.other_s;
    if !is_within(epoch.wall_s, parts, epoch.wall_s) {
        return Err(wrong(&place("wall_s"), epoch.wall_s, parts, FROM_PARTS));
    }
    if epoch.barrier.is_empty() {
        return Ok(());
    }
    same(&place("n_steps"), epoch.n_steps as f64, epoch.barrier.len() as f64, FROM_STEPS)?;
    // An interrupted step is only in the sums.
    for (name, written, steps) in [
        ("wait_s", epoch.wait_s, &epoch.load),
        ("compute_s", epoch.compute_s, &epoch.compute),
        ("barrier_s", epoch.barrier_s, &epoch.barrier),
    ] {
        let derived: f64 = steps.iter().sum();
        if derived > written && !is_within(written, derived, epoch.wall_s) {
            return Err(wrong(&place(name), written, derived, FROM_STEPS));
        }
    }
    Ok(())
}

/// Only if the record keeps single steps.
fn steps(cell: &WorkloadCell) -> Checked {
    let n_kept: usize = cell.epochs_of.iter().map(|epoch| epoch.barrier.len()).sum();
    if n_kept as u64 != cell.totals.steps || n_kept == 0 {
        return Ok(());
    }
    let load = cell.epochs_of.iter().flat_map(|epoch| epoch.load.iter().copied());
    quantiles("load", &cell.totals.load, load.collect())?;
    let whole = cell.epochs_of.iter().flat_map(|epoch| {
        let parts = epoch.load.iter().zip(&epoch.compute).zip(&epoch.barrier);
        parts.map(|((load, compute), barrier)| load + compute + barrier)
    });
    quantiles("step", &cell.totals.step, whole.collect())
}

fn quantiles(name: &str, written: &Quantiles, times: Vec<f64>) -> Checked {
    if times.is_empty() {
        return Ok(());
    }
    let derived = Quantiles::of(times);
    for (of, written, derived) in [
        ("mean", written.mean, derived.mean),
        ("p50", written.p50, derived.p50),
        ("p90", written.p90, derived.p90),
        ("p99", written.p99, derived.p99),
        ("max", written.max, derived.max),
    ] {
        same(&format!("{name}.{of}"), written, derived, FROM_STEPS)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two accelerators, one epoch of three steps each.
    fn cell() -> WorkloadCell {
        let epoch = |accelerator: u64, slower: f64| WorkloadEpoch {
            accelerator,
            epoch: 1,
            wall_s: 6.0 + 3.0 * slower,
            first_batch_s: 1.0 + slower,
            n_steps: 3,
            wait_s: 2.0 + 3.0 * slower,
            compute_s: 3.0,
            barrier_s: 0.75,
            other_s: 0.25,
            load: vec![1.0 + slower, 0.5 + slower, 0.5 + slower],
            compute: vec![1.0; 3],
            barrier: vec![0.25; 3],
            ..WorkloadEpoch::default()
        };
        let epochs_of = vec![epoch(0, 0.0), epoch(1, 1.0)];
        let at = |mean, p50, p90, p99, max| Quantiles { mean, p50, p90, p99, max };
        let totals = WorkloadTotals {
            au_epoch: Some((0.5 + 3.0 / 9.0) / 2.0),
            au_steady: Some((3.0 / 5.0 + 3.0 / 7.0) / 2.0),
            samples_per_s: 60.0 / 9.0,
            mb_per_s_moved: 2.0,
            mb_per_s_device: Some(1.0),
            first_batch_s: 1.5,
            stall_by_cause: [(Cause::Storage, 7.0), (Cause::Barrier, 1.5)].into(),
            barrier_s: 1.5,
            steps: 6,
            accelerators: 2,
            samples: 60,
            bytes_moved: 18_000_000,
            bytes_device: Some(9_000_000),
            wall_s: 9.0,
            accelerator_s: 15.0,
            wait_s: 7.0,
            compute_s: 6.0,
            other_s: 0.5,
            load: at(7.0 / 6.0, 1.25, 1.75, 1.975, 2.0),
            step: at(7.0 / 6.0 + 1.25, 2.5, 3.0, 3.225, 3.25),
            ..WorkloadTotals::default()
        };
        WorkloadCell { totals, epochs_of, ..WorkloadCell::default() }
    }

    #[test]
    fn sums_shares_and_percentiles_are_derived_from_epochs_and_steps() {
        assert_eq!(check(&cell()), Ok(()));
        type Edit = fn(&mut WorkloadCell);
        let edits: [(&str, Edit); 17] = [
            ("au_epoch", |cell| cell.totals.au_epoch = Some(0.99)),
            ("au_steady", |cell| cell.totals.au_steady = Some(0.99)),
            ("samples_per_s", |cell| cell.totals.samples_per_s = 99.0),
            ("mb_per_s_moved", |cell| cell.totals.mb_per_s_moved = 99.0),
            ("mb_per_s_device", |cell| cell.totals.mb_per_s_device = Some(99.0)),
            ("first_batch_s", |cell| cell.totals.first_batch_s = 0.1),
            ("accelerator_s", |cell| cell.totals.wait_s = 1.0),
            ("steps", |cell| cell.totals.steps = 7),
            ("load.p90", |cell| cell.totals.load.p90 = 0.1),
            ("step.max", |cell| cell.totals.step.max = 0.1),
            ("stall_by_cause.barrier", |cell| {
                cell.totals.stall_by_cause.insert(Cause::Barrier, 9.0);
            }),
            ("epoch 1, accelerator 0: compute_s", |cell| {
                cell.epochs_of[0].compute = vec![2.0; 3];
            }),
            ("epoch 1, accelerator 1: wall_s", |cell| cell.epochs_of[1].wall_s = 7.0),
            ("judged au_epoch", |cell| {
                let judged = crate::Judged {
                    what: "au_epoch".to_owned(),
                    value: Some(0.99),
                    is_met: true,
                    ..crate::Judged::default()
                };
                cell.judged.push(judged);
            }),
            ("wait_s", |cell| {
                cell.totals.stall_by_cause.insert(Cause::Storage, 1.0);
            }),
            ("judged au_epoch: is_met", |cell| {
                let judged = crate::Judged { what: "au_epoch".to_owned(), is_met: true, ..crate::Judged::default() };
                cell.judged.push(judged);
            }),
            ("lever.wall_s", |cell| cell.lever = crate::Lever { name: "none".to_owned(), ..crate::Lever::default() }),
        ];
        for (field, edit) in edits {
            let mut edited = cell();
            edit(&mut edited);
            assert_eq!(check(&edited).unwrap_err().field, field);
        }
    }

    #[test]
    fn of_several_runs_the_one_in_the_middle_is_shown() {
        let mut several = cell();
        let with = |au: f64| WorkloadTotals { au_epoch: Some(au), ..several.totals.clone() };
        several.runs = vec![with(0.8), several.totals.clone(), with(0.1)];
        assert_eq!(check(&several), Ok(()));
        several.runs[1].samples = 61;
        several.runs[1].samples_per_s = 61.0 / 9.0;
        let found = check(&several).unwrap_err();
        assert_eq!((found.field.as_str(), found.written.as_str(), found.derived.as_str()), ("samples", "60", "61"));
    }

    #[test]
    fn a_record_without_its_steps_and_a_step_that_was_broken_off_are_sound() {
        let mut without = cell();
        for epoch in &mut without.epochs_of {
            (epoch.load, epoch.compute, epoch.barrier) = Default::default();
        }
        assert_eq!(check(&without), Ok(()));
        without.epochs_of.clear();
        assert_eq!(check(&without), Ok(()));
    }
}
