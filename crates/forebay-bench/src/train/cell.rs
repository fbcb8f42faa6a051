//! Cells of the record: the median run beside the raw totals.

use std::sync::atomic::AtomicBool;

use forebay_pipeline::Tuning;
use forebay_record::{
    Baseline, CacheEvidence, Disturbed, Epoch, Feed, Lever, Medium, TierKind, TrainCell, TrainTotals,
};
use forebay_storage::Profile;
use forebay_units::Summary;

use super::advice::{Observed, advice};
use super::drive::Step;
use super::plan::Plan;
use super::run::Error;
use super::totals;
use super::trial::{Trained, Trial};
use crate::supply;

/// Settled before the first run.
pub(super) struct Settled<'a> {
    pub(super) trial: &'a Trial<'a>,
    pub(super) baseline: Option<Baseline>,
    pub(super) tuning: Option<Tuning>,
    /// The tuner found the thread count.
    pub(super) auto: bool,
    /// What other programs took of the machine in the kept repeats, where that was too much.
    pub(super) disturbed: Option<Disturbed>,
}

/// `None` if no run has a step.
pub(super) fn cell(
    settled: &Settled<'_>,
    runs: Vec<Trained>,
    notes: &mut Vec<String>,
    cancel: &AtomicBool,
) -> Result<Option<TrainCell>, Error> {
    let trial = settled.trial;
    let samples: Vec<TrainTotals> = runs.iter().map(|run| run.totals.clone()).collect();
    let evidence: Vec<CacheEvidence> = runs.iter().filter_map(|run| run.evidence.clone()).collect();
    let walls: Vec<f64> = samples.iter().map(|run| run.wall_s).collect();
    let rates: Vec<f64> = samples.iter().map(TrainTotals::images_per_s).collect();
    let (Some(wall), Some(rate)) = (Summary::of(&walls), Summary::of(&rates)) else { return Ok(None) };
    let typical = runs.into_iter().min_by(|a, b| distance(a, wall.median).total_cmp(&distance(b, wall.median)));
    let Some(run) = typical else { return Ok(None) };
    let plan = trial.plan;
    let storage = trial.data.as_ref().map(|data| data.storage_description.clone()).unwrap_or_default();
    let medium = Medium::new(storage, tier_of(plan).map(|(profile, kind)| (profile.name.as_str(), kind)), evidence);
    let baseline = settled.baseline.or_else(|| own_baseline(trial, &run));
    let step_s = baseline.map(|baseline| baseline.step_s).or_else(|| totals::step_s(&run.driven.steps));
    let feed = step_s.and_then(|step_s| feed(trial, &run, step_s));
    warn(trial, &run, notes);
    let spread = if walls.len() > 1 { wall.relative_spread() } else { None };
    let (limit, lever) = match run.ranks.len() {
        0 => advice(&Observed { trial, run: &run, baseline, spread, disturbed: settled.disturbed }, cancel),
        // The model knows one process.
        _ => (None, Lever::default()),
    };
    Ok(Some(TrainCell {
        model: trial.kind.model(),
        n_parameters: trial.kind.n_parameters()?,
        device: run.device.clone(),
        precision: trial.kind.precision(),
        accelerator: trial.kind.emulation(),
        synthetic: plan.data.is_none(),
        optimizer: trial.kind.optimizer(),
        learning_rate: trial.kind.learning_rate(),
        classes: trial.kind.classes(),
        batch: plan.settings.batch as u64,
        ranks: run.ranks.clone(),
        steps_per_epoch: trial.steps_per_epoch,
        threads: trial.threads as u64,
        threads_auto: settled.auto,
        tried: supply::tried(settled.tuning.as_ref()),
        prefetch: plan.settings.made_ahead() as u64,
        device_prefetch: trial.sent_ahead() as u64,
        shuffle: plan.settings.shuffle.map(|order| order.to_string()),
        interleave: plan.settings.interleave.map(|order| order.to_string()),
        output: trial.data.as_ref().map(|data| data.output()),
        medium,
        images_per_s: rate.median,
        spread,
        io_cost_s: baseline.filter(|_| run.ranks.is_empty()).map(|baseline| cost_of_io(&run.totals, baseline)),
        lever,
        limit,
        tuning: None,
        feed,
        epochs: epochs(&run, trial.steps_per_epoch),
        steps: run.steps,
        failures: run.failures,
        totals: run.totals,
        reads: run.reads,
        baseline,
        checkpoints: run.checkpoints,
        resumed_from: (run.first > 0).then_some(run.first),
        samples,
        disturbed: settled.disturbed,
    }))
}

/// Steps of an emulated accelerator do not depend on waits, so the run's own serve as the baseline.
fn own_baseline(trial: &Trial<'_>, run: &Trained) -> Option<Baseline> {
    let wanted = trial.plan.settings.baseline_steps() > 0 && trial.data.is_some() && trial.kind.emulation().is_some();
    let n_steps = run.totals.n_steps;
    (wanted && n_steps > 0).then(|| Baseline { n_steps, step_s: run.totals.compute_s / n_steps as f64, is_mean: true })
}

fn distance(run: &Trained, wall_s: f64) -> f64 {
    (run.totals.wall_s - wall_s).abs()
}

/// The in-process device if there are two, since it is the outer one.
fn tier_of(plan: &Plan) -> Option<(&Profile, TierKind)> {
    let shaped = plan.tier.as_ref().map(|profile| (profile, TierKind::Shaped));
    shaped.or_else(|| plan.kernel_tier.as_ref().map(|profile| (profile, TierKind::Kernel)))
}

/// The run's time beyond as many steps that never wait.
fn cost_of_io(run: &TrainTotals, baseline: Baseline) -> f64 {
    run.wall_s - run.validate_s - run.n_steps as f64 * baseline.step_s
}

/// Demand of the accelerator beside the supply of the threads.
fn feed(trial: &Trial<'_>, run: &Trained, step_s: f64) -> Option<Feed> {
    let (images, busy_s) = (run.totals.images as f64, run.work.busy_s());
    // Of several ranks, each has its own.
    if trial.data.is_none() || !run.ranks.is_empty() || busy_s == 0.0 || images == 0.0 || step_s == 0.0 {
        return None;
    }
    let takes = trial.plan.settings.batch as f64 / step_s;
    let gives = trial.threads as f64 * images / busy_s;
    let needed = (takes * busy_s / images).ceil() as u64;
    // Threads share the storage: if it dominates their work, more of them do not get more of it.
    let is_storage = run.work.storage / 1e9 > 0.5 * busy_s && needed > trial.threads as u64;
    let threads_needed = (!is_storage).then_some(needed);
    Some(Feed { takes_images_per_s: takes, gives_images_per_s: gives, threads_needed })
}

fn epochs(run: &Trained, steps_per_epoch: u64) -> Vec<Epoch> {
    let mean = |steps: &[Step]| {
        let losses: Option<Vec<f32>> = steps.iter().map(|step| step.loss).collect();
        losses
            .map(|losses| (losses.iter().map(|loss| f64::from(*loss)).sum::<f64>() / losses.len() as f64) as f32)
            .filter(|loss| loss.is_finite())
    };
    let epochs = totals::by_epoch(&run.driven.steps, run.first, steps_per_epoch).enumerate();
    let epoch = |(i, steps): (usize, &[Step])| Epoch {
        n_steps: steps.len() as u64,
        loss: mean(steps),
        validation: run.validations.get(i).copied().flatten(),
    };
    epochs.map(epoch).collect()
}

/// Notes on what limits the numbers.
fn warn(trial: &Trial<'_>, run: &Trained, notes: &mut Vec<String>) {
    notes.extend(run.notes.clone());
    if let Some(at) = run.driven.steps.iter().position(|step| step.loss.is_some_and(|loss| !loss.is_finite())) {
        notes.push(format!(
            "the loss is not a number from step {} on: the network diverged; try a smaller learning rate",
            run.first + at as u64 + 1
        ));
    }
    let wanted = match trial.plan.settings.cache() {
        forebay_measure::Cache::Cold => forebay_record::CacheState::Cold,
        forebay_measure::Cache::Warm => return,
    };
    let is_other = |evidence: &CacheEvidence| evidence.block_bytes.is_some() && evidence.state() != wanted;
    if run.evidence.as_ref().is_some_and(is_other) {
        notes.push(
            "a cold cache was asked for, but more than 5 % of the bytes came from memory: the files may lie on a file \
             system in memory, another process may read them too, or there was more than one pass over them"
                .to_owned(),
        );
    }
}
