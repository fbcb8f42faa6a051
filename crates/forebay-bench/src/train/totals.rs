//! Totals of a run, from its steps and its workers' times.

use forebay_measure::laps::Part;
use forebay_measure::stall::Work;
use forebay_pipeline::{Stats, Times};
use forebay_record::{TrainStep, TrainTotals};
use forebay_units::Summary;

use super::drive::{Driven, Step};

pub(super) struct Around {
    pub(super) stats: Option<Stats>,
    pub(super) cpu_s: f64,
    pub(super) steps_per_epoch: u64,
    /// Steps of the run that this one resumes.
    pub(super) first: u64,
}

/// In a resumed run, the first epoch has only its remaining steps.
pub(super) fn by_epoch(steps: &[Step], first: u64, steps_per_epoch: u64) -> impl Iterator<Item = &[Step]> {
    let an_epoch = steps_per_epoch.max(1);
    let left = (an_epoch - first % an_epoch).min(steps.len() as u64) as usize;
    let (begun, whole) = steps.split_at(left);
    std::iter::once(begun).filter(|steps| !steps.is_empty()).chain(whole.chunks(an_epoch as usize))
}

pub(super) fn totals(driven: &Driven, around: &Around) -> TrainTotals {
    let Driven { steps, total, .. } = driven;
    let seconds = |part: Part| total.seconds(part);
    let stats = around.stats.clone().unwrap_or_default();
    let (wall_s, validate_s) = (total.total_ns() as f64 / 1e9, seconds(Part::Validate));
    let first_wait_s = driven.first_wait_ns as f64 / 1e9;
    let busy_s = Work::of(&stats.worker_time).busy_s();
    let steady_s = wall_s - validate_s - first_wait_s;
    TrainTotals {
        n_steps: steps.len() as u64,
        images: steps.iter().map(|step| step.images).sum(),
        failed: stats.n_failed,
        bytes: stats.bytes_read,
        requests: around.stats.as_ref().map(|stats| stats.n_requests),
        wall_s,
        wait_s: seconds(Part::Wait),
        copy_s: seconds(Part::Copy),
        compute_s: seconds(Part::Compute),
        exchange_s: seconds(Part::Barrier),
        checkpoint_s: seconds(Part::Checkpoint),
        validate_s,
        other_s: seconds(Part::Other),
        first_wait_s,
        start_s: steps.first().map(|first| first_ns(first) as f64 / 1e9),
        start_images: steps.first().map(|first| first.images),
        cpu_s: around.cpu_s,
        au_epoch: seconds(Part::Compute) / (wall_s - validate_s),
        au_steady: (steady_s > 0.0).then(|| seconds(Part::Compute) / steady_s),
        au_dlio: au_dlio(steps, around),
        overlap: (busy_s > 0.0).then(|| 1.0 - Work::of(&stats.stall_time).busy_s() / busy_s),
        stall_by_cause: driven.charges.all.by_cause(),
        worker_time: named(around, &stats.worker_time),
        on_core_s: stats.scheduled.map(|scheduled| scheduled.running_ns as f64 / 1e9),
        for_core_s: stats.scheduled.map(|scheduled| scheduled.waiting_ns as f64 / 1e9),
        stall_time: named(around, &stats.stall_time),
        loss: steps.last().and_then(|step| step.loss).filter(|loss| loss.is_finite()),
    }
}

/// Until the end of the first step. A save after it is counted to it, but comes later.
fn first_ns(first: &Step) -> u64 {
    first.parts.total_ns() - first.parts.ns(Part::Checkpoint)
}

/// Empty instead of zeros if there were no workers.
fn named(around: &Around, times: &Times) -> std::collections::BTreeMap<String, f64> {
    around.stats.as_ref().map(|_| times.seconds()).unwrap_or_default()
}

/// As DLIO counts: without checkpoints, and without the first step of every epoch and its wait; then the mean over
/// epochs.
fn au_dlio(steps: &[Step], around: &Around) -> Option<f64> {
    let epochs = by_epoch(steps, around.first, around.steps_per_epoch);
    let counted = epochs.filter(|epoch| epoch.len() > 1).map(|epoch| {
        let sum = |value: &dyn Fn(&Step) -> u64| epoch[1..].iter().map(value).sum::<u64>() as f64;
        let aside = |step: &Step| step.parts.ns(Part::Validate) + step.parts.ns(Part::Checkpoint);
        sum(&|step| step.parts.ns(Part::Compute)) / sum(&|step| step.parts.total_ns() - aside(step))
    });
    let counted: Vec<f64> = counted.collect();
    (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64)
}

pub(super) fn steps(steps: &[Step]) -> Vec<TrainStep> {
    let step = |step: &Step| TrainStep {
        wait_s: step.parts.seconds(Part::Wait),
        copy_s: step.parts.seconds(Part::Copy),
        compute_s: step.parts.seconds(Part::Compute),
        exchange_s: step.parts.seconds(Part::Barrier),
        checkpoint_s: step.parts.seconds(Part::Checkpoint),
        other_s: step.parts.seconds(Part::Other),
        loss: step.loss.filter(|loss| loss.is_finite()),
    };
    steps.iter().map(step).collect()
}

/// Median over the steps, without waits.
pub(super) fn step_s(steps: &[Step]) -> Option<f64> {
    let aside = [Part::Wait, Part::Barrier, Part::Checkpoint, Part::Validate];
    let without = |step: &Step| step.parts.total_ns() - aside.map(|part| step.parts.ns(part)).iter().sum::<u64>();
    let times: Vec<f64> = steps.iter().map(|step| without(step) as f64 / 1e9).collect();
    Summary::of(&times).map(|summary| summary.median)
}
