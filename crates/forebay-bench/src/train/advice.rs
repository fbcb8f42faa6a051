//! Limit and lever of a run: its parts as the model of [`forebay_plan`] wants them, and another concurrency where the run saw only one.

use std::sync::atomic::AtomicBool;

use forebay_measure::Cache;
use forebay_measure::laps::Part;
use forebay_measure::usage::cores;
use forebay_pipeline::Activity;
use forebay_plan::{Case, Crowding, Curve, Flags, Run, Server, Spelling, advise};
use forebay_record::{Baseline, Cause, Disturbed, Lever, Limit};

use super::alternatives::alternatives;
use super::data::TrainingData;
use super::lever::{Saving, Stalls};
use super::trial::{Trained, Trial};
use crate::explore;

const FLAGS: Spelling = Spelling { threads: |n| format!("--threads {n}"), prefetch: |n| format!("--prefetch {n}") };
/// A sample that waits for the storage for less than this fraction of its time on a core comes from memory.
const FROM_MEMORY: f64 = 0.03;
/// Steps whose times are repeated in the model.
const MOST_STEPS: usize = 1_024;
/// One thread makes samples from memory for about so long.
const AGAIN_S: f64 = 0.25;
/// Waits below this fraction of a run need no other concurrency to be explained.
const WORTH: f64 = 0.02;

/// Measured for a run to be explained.
pub(super) struct Observed<'a> {
    pub(super) trial: &'a Trial<'a>,
    pub(super) run: &'a Trained,
    pub(super) baseline: Option<Baseline>,
    /// Of the repeats' run times.
    pub(super) spread: Option<f64>,
    /// What other programs took of the machine in a kept repeat, where that was too much.
    pub(super) disturbed: Option<Disturbed>,
}

/// `None` for a limit where nothing was read.
pub(super) fn advice(observed: &Observed<'_>, cancel: &AtomicBool) -> (Option<Limit>, Lever) {
    let Observed { trial, run, .. } = observed;
    let wall_s = run.totals.wall_s - run.totals.validate_s;
    let of_data = trial.data.as_ref().map(|data| observed.model(data, cancel));
    let (limit, lever) = match (observed.saves(), of_data) {
        (Some((limit, saves, true)), of_data) => {
            (Some(limit), followed(saves, of_data.map(|(_, lever)| lever).unwrap_or_default()))
        }
        (Some((_, saves, false)), Some((limit, lever))) => (Some(limit), followed(lever, saves)),
        (None, Some((limit, lever))) => (Some(limit), lever),
        (Some((_, _, false)) | None, None) => {
            let advice = "nothing was read".to_owned();
            (None, Lever { name: "none".to_owned(), advice, wall_s, ..Lever::default() })
        }
    };
    // Validation is no part of the model and stays as it is.
    (limit, later(lever, run.totals.validate_s))
}

/// The changes with further ones after the last; as they are if either names no change.
fn followed(lever: Lever, next: Lever) -> Lever {
    if lever.saves_s <= 0.0 || next.saves_s <= 0.0 {
        return lever;
    }
    let runner_up = match lever.runner_up {
        Some(second) => followed(*second, next),
        None => next,
    };
    Lever { runner_up: Some(Box::new(runner_up)), ..lever }
}

/// The same changes of a run that takes longer.
fn later(lever: Lever, seconds: f64) -> Lever {
    let runner_up = lever.runner_up.map(|second| Box::new(later(*second, seconds)));
    Lever { wall_s: lever.wall_s + seconds, runner_up, ..lever }
}

impl Observed<'_> {
    fn wall_s(&self) -> f64 {
        self.run.totals.wall_s - self.run.totals.validate_s
    }

    /// And whether they hold the run up longer than waits do.
    fn saves(&self) -> Option<(Limit, Lever, bool)> {
        let Self { trial, run, .. } = self;
        trial.plan.saves.as_ref()?;
        let saves = run.checkpoints.as_ref().map(|made| made.saves.as_slice()).unwrap_or_default();
        let saving = Saving::of(trial.plan, run.totals.checkpoint_s, saves);
        let waits_s = run.totals.wait_s - run.totals.first_wait_s;
        let stalls = Stalls { wall_s: self.wall_s(), waits_s };
        let (limit, lever) = stalls.lever(saving)?;
        Some((limit, lever, stalls.come_first(saving)))
    }

    fn model(&self, data: &TrainingData, cancel: &AtomicBool) -> (Limit, Lever) {
        let (trial, run) = (self.trial, self.run);
        let cpu_s = self.cpu_s();
        let (storage, was_measured) = self.storage(data, cpu_s, cancel);
        let served_by = if self.gpu_s() > self.blocked_s() { Server::Gpu } else { Server::Storage };
        let case = Case {
            batch: trial.plan.settings.batch,
            steps: run.totals.n_steps,
            cores: cores() as f64,
            storage,
            served_by,
            cpu_s,
            crowding: self.crowding(data, cancel),
            delay_s: 0.0,
            weights: explore::weights(&data.source),
            read_by_size: explore::READ_BY_SIZE,
            sent_ahead: trial.sent_ahead(),
            step_s: self.steps_s(),
            between_s: self.between_s(),
            consumer_threads: trial.kind.threads_on_cores(),
            start_s: 0.0,
        };
        let measured = self.measured();
        let case = match run.stats.as_ref().and_then(|stats| stats.scheduled) {
            // Reads that were measured after the run were late for the same reason.
            Some(scheduled) if !was_measured => {
                case.delayed(measured.flags, scheduled.waiting_ns as f64 / 1e9 / self.n_samples())
            }
            _ => case,
        };
        let alternatives = alternatives(self, data, &case, measured.decode_share, cancel);
        let advice = advise(&case, &measured, &alternatives, FLAGS);
        (advice.limit, advice.lever)
    }

    fn measured(&self) -> Run {
        let (trial, run) = (self.trial, self.run);
        let times = run.stats.as_ref().map(|stats| stats.worker_time).unwrap_or_default();
        let scheduled = run.stats.as_ref().and_then(|stats| stats.scheduled).unwrap_or_default();
        let decoding_s = (times.ns(Activity::Decoding) + times.ns(Activity::Resizing)) as f64 / 1e9;
        let on_core_s = scheduled.running_ns as f64 / 1e9;
        Run {
            flags: Flags { threads: trial.threads, prefetch: trial.plan.settings.made_ahead() },
            wall_s: self.wall_s(),
            spread: self.spread,
            wait_s: run.totals.wait_s,
            first_wait_s: run.totals.first_wait_s,
            order_s: run.totals.stall_by_cause.get(&Cause::Order).copied().unwrap_or(0.0),
            decode_share: if on_core_s > 0.0 { (decoding_s / on_core_s).min(1.0) } else { 1.0 },
            disturbed: self.disturbed,
        }
    }

    /// Whether it waited long enough to look for a cause.
    pub(super) fn waits(&self) -> bool {
        self.run.totals.wait_s - self.run.totals.first_wait_s >= WORTH * self.wall_s()
    }

    /// Samples that the workers made.
    pub(super) fn n_samples(&self) -> f64 {
        (self.run.totals.images + self.run.totals.failed).max(1) as f64
    }

    /// By the scheduler's count, or by the workers' own clock where the kernel does not count.
    fn cpu_s(&self) -> f64 {
        let Some(stats) = &self.run.stats else { return 0.0 };
        let by_clock = self.run.work.decode / 1e9;
        stats.scheduled.map_or(by_clock, |scheduled| scheduled.running_ns as f64 / 1e9) / self.n_samples()
    }

    /// Seconds per sample that a thread waited for the storage.
    fn blocked_s(&self) -> f64 {
        self.run.work.storage / 1e9 / self.n_samples()
    }

    /// Seconds per sample that a thread waited for a GPU that decodes.
    fn gpu_s(&self) -> f64 {
        let times = self.run.stats.as_ref().map(|stats| stats.worker_time).unwrap_or_default();
        times.ns(Activity::DecodingOnGpu) as f64 / 1e9 / self.n_samples()
    }

    /// `None` when samples come from memory; and whether reads were measured for it.
    fn storage(&self, data: &TrainingData, cpu_s: f64, cancel: &AtomicBool) -> (Option<Curve>, bool) {
        let (trial, run) = (self.trial, self.run);
        let (blocked_s, gpu_s) = (self.blocked_s(), self.gpu_s());
        if blocked_s + gpu_s < FROM_MEMORY * cpu_s {
            return (None, false);
        }
        if gpu_s > 0.0 {
            // A thread waits for both in turn, and what the GPU gives to more threads was not measured.
            return (explore::seen(trial.threads, blocked_s + gpu_s), false);
        }
        // A profile tells the rate of single samples, not that of shards read in blocks.
        let order = trial.plan.settings.order();
        if let Some(profile) = trial.plan.tier.as_ref().filter(|_| !order.is_streamed()) {
            return (explore::of_profile(profile, run.totals.bytes as f64 / self.n_samples()), false);
        }
        // What the run itself saw: so many threads, each blocked so long.
        let seen = || explore::seen(trial.threads, blocked_s);
        if !self.waits() {
            return (seen(), false);
        }
        let is_cold = trial.plan.settings.cache() == Cache::Cold;
        let takes = run.totals.images as f64 / run.totals.compute_s.max(1e-9);
        let enough = 2.0 * takes.min(cores() as f64 / cpu_s.max(1e-9));
        match explore::measure(&data.source, order, is_cold, enough, cancel) {
            Some(curve) => (Some(curve), true),
            None => (seen(), false),
        }
    }

    /// How much longer samples take when all cores work, measured where more threads may help.
    fn crowding(&self, data: &TrainingData, cancel: &AtomicBool) -> Option<Crowding> {
        let (few, many) = (self.trial.threads, cores());
        if few >= many || !self.waits() || data.is_remote() {
            return None;
        }
        // Of different sizes, and few enough for a quarter of a second.
        let affordable = (AGAIN_S / self.cpu_s().max(1e-9)) as u64;
        let n_samples = affordable.clamp(many as u64, 8 * many as u64);
        let cpu_s = |threads| explore::costs(&data.again(threads, n_samples), n_samples, cancel);
        let ratio = cpu_s(many)?.cpu_s / cpu_s(few)?.cpu_s;
        Some(Crowding { few: few as f64, many: many as f64, ratio })
    }

    /// A network on the workers' cores takes longer the more they work: its steps alone are what the model needs.
    fn steps_s(&self) -> Vec<f64> {
        let shares_cores = self.trial.kind.threads_on_cores() > 0;
        match self.baseline.filter(|_| shares_cores) {
            Some(baseline) => vec![baseline.step_s],
            None => {
                self.run.driven.steps.iter().take(MOST_STEPS).map(|step| step.parts.seconds(Part::Compute)).collect()
            }
        }
    }

    fn between_s(&self) -> f64 {
        let totals = &self.run.totals;
        (totals.copy_s + totals.checkpoint_s + totals.other_s) / totals.n_steps.max(1) as f64
    }
}
