//! The cells of `forebay train`.
//!
//! Time is divided as the accelerator sees it: every moment is a wait for data, a copy to the device, a computation, a checkpoint, a
//! validation, or other, and the parts sum to the wall clock.

mod metrics;

use std::collections::BTreeMap;

use forebay_units::{count, group_digits};
use serde::{Deserialize, Serialize};

use crate::cause::ByCause;
use crate::metric::Measurement;
use crate::{Disturbed, Failure, Lever, Limit, Medium, Reads, TrainCheckpoints, TriedThreads, Tuning};

/// One training step, divided as the accelerator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainStep {
    /// Seconds the accelerator was idle without a batch.
    pub wait_s: f64,
    /// Seconds it was idle while its batch was copied to the device.
    pub copy_s: f64,
    /// Seconds it computed; where batches are sent ahead, including the rest of a copy in progress.
    pub compute_s: f64,
    /// Seconds it waited for other ranks and exchanged gradients with them; missing for one process.
    #[serde(default, skip_serializing_if = "is_none")]
    pub exchange_s: f64,
    /// Seconds training stood still for a checkpoint.
    pub checkpoint_s: f64,
    /// Seconds between the other parts, without validation.
    #[serde(default)]
    pub other_s: f64,
    /// Loss of the batch, of several ranks the mean over theirs; `None` when nothing was computed or it was not a number.
    pub loss: Option<f32>,
}

/// For fields of several ranks, which records of one process do not have.
fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Totals of one run. Of several ranks, counts are sums and times are means over the ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainTotals {
    /// Steps that ended; an interrupted one is not counted.
    pub n_steps: u64,
    /// Images trained on, failed samples not included.
    pub images: u64,
    /// Samples that failed and were skipped.
    pub failed: u64,
    /// Bytes read from storage, including prefetched data.
    pub bytes: u64,
    /// Requests to the storage; `None` in old records and where nothing was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Wall clock from the start of the pipeline threads to the end of the last step, in seconds: the sum of the next
    /// fields, up to `other_s`.
    pub wall_s: f64,
    /// Seconds the accelerator was idle without a batch.
    pub wait_s: f64,
    /// Seconds it was idle while its batch was copied to the device.
    pub copy_s: f64,
    /// Seconds it computed, summed over the steps.
    pub compute_s: f64,
    /// Seconds it waited for other ranks and exchanged gradients with them; missing for one process.
    #[serde(default, skip_serializing_if = "is_none")]
    pub exchange_s: f64,
    /// Seconds training stood still for checkpoints.
    pub checkpoint_s: f64,
    /// Seconds training stood still for validation.
    #[serde(default)]
    pub validate_s: f64,
    /// Seconds between the other parts: bookkeeping of the harness.
    pub other_s: f64,
    /// Part of `wait_s` before the first batch, in seconds.
    pub first_wait_s: f64,
    /// Seconds until the first step ended: one-time costs such as locking memory, the first wait, the first step; `None` in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_s: Option<f64>,
    /// Images of the first step; `None` in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_images: Option<u64>,
    /// CPU time of the whole process during the run, user and system, in seconds.
    pub cpu_s: f64,
    /// Accelerator utilisation: `compute_s` over the wall clock without validation.
    pub au_epoch: f64,
    /// The same without the first wait; `None` when no time is left.
    pub au_steady: Option<f64>,
    /// Utilisation as DLIO computes it: without checkpoints and the first step of each epoch, mean over epochs; `None` where an epoch
    /// has one step.
    pub au_dlio: Option<f64>,
    /// Fraction of the pipeline work done while the accelerator did not wait; `None` without a pipeline.
    pub overlap: Option<f64>,
    /// `wait_s` split by cause, in seconds.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::by_cause"))]
    pub stall_by_cause: ByCause,
    /// Seconds per activity, summed over the worker threads.
    #[serde(default)]
    pub worker_time: BTreeMap<String, f64>,
    /// Seconds the workers ran on a core, by the scheduler; `None` where the kernel does not report it.
    #[serde(default)]
    pub on_core_s: Option<f64>,
    /// Seconds they were runnable and waited for a core; `None` where the kernel does not report it.
    #[serde(default)]
    pub for_core_s: Option<f64>,
    /// Seconds per activity, restricted to the time the accelerator waited.
    #[serde(default)]
    pub stall_time: BTreeMap<String, f64>,
    /// Loss of the last step; `None` when nothing was computed or it was not a number.
    pub loss: Option<f32>,
}

impl TrainTotals {
    /// Over the wall clock without validation.
    pub fn images_per_s(&self) -> f64 {
        self.images as f64 / (self.wall_s - self.validate_s)
    }

    /// Images per second after the first step, without one-time costs; `None` where a run has one step or is of an old version.
    pub fn steady_images_per_s(&self) -> Option<f64> {
        let (start_s, start_images) = (self.start_s?, self.start_images?);
        let (images, seconds) = (self.images.checked_sub(start_images)?, self.wall_s - self.validate_s - start_s);
        (images > 0 && seconds > 0.0).then(|| images as f64 / seconds)
    }

    /// MB (10^6 bytes) per second read, over the wall clock without validation.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / (self.wall_s - self.validate_s)
    }

    /// Wait over the time after the first batch, without validation.
    pub fn wait_share(&self) -> Option<f64> {
        let after = self.wall_s - self.validate_s - self.first_wait_s;
        (after > 0.0).then(|| (self.wait_s - self.first_wait_s) / after)
    }

    /// Must equal the wall clock.
    pub fn parts_s(&self) -> f64 {
        let stops_s = self.exchange_s + self.checkpoint_s + self.validate_s;
        self.wait_s + self.copy_s + self.compute_s + stops_s + self.other_s
    }
}

/// The steps by epoch; of a run that resumed after `first` steps, the first epoch has only those that were left.
pub(crate) fn by_epoch(steps: &[TrainStep], first: u64, steps_per_epoch: u64) -> impl Iterator<Item = &[TrainStep]> {
    let an_epoch = steps_per_epoch.max(1);
    let left = (an_epoch - first % an_epoch).min(steps.len() as u64) as usize;
    let (begun, whole) = steps.split_at(left);
    let an_epoch = usize::try_from(an_epoch).unwrap_or(usize::MAX);
    std::iter::once(begun).filter(|steps| !steps.is_empty()).chain(whole.chunks(an_epoch))
}

/// Utilisation as DLIO counts: without the first step of every epoch and without checkpoints, mean over the epochs.
pub fn au_dlio(steps: &[TrainStep], first: u64, steps_per_epoch: u64) -> Option<f64> {
    let counted = by_epoch(steps, first, steps_per_epoch).filter(|epoch| epoch.len() > 1).map(|epoch| {
        let sum = |part: fn(&TrainStep) -> f64| epoch[1..].iter().map(part).sum::<f64>();
        let whole = sum(|step| step.wait_s + step.copy_s + step.compute_s + step.exchange_s + step.other_s);
        sum(|step| step.compute_s) / whole
    });
    let counted: Vec<f64> = counted.collect();
    (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64)
}

/// Speed of an accelerator that never waits: steps on one batch in memory, or the emulated step time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// Measured steps, without warm-up.
    pub n_steps: u64,
    /// Median time of a step, in seconds.
    pub step_s: f64,
    /// Whether `step_s` is the mean compute time of the run itself, as for an emulated accelerator.
    #[serde(default)]
    pub is_mean: bool,
}

/// Supply of the pipeline and demand of the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Feed {
    /// Images per second the accelerator consumes when it never waits.
    pub takes_images_per_s: f64,
    /// Images per second these threads deliver when never idle, from their work per sample.
    pub gives_images_per_s: f64,
    /// Threads needed to match the accelerator at the same speed per thread; `None` where storage is the limit.
    pub threads_needed: Option<u64>,
}

/// One pass over the data in whole batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Epoch {
    /// Completed steps of the epoch.
    pub n_steps: u64,
    /// Mean loss of the steps; `None` when nothing was computed.
    pub loss: Option<f32>,
    /// Validation after the epoch; `None` when there was none.
    #[serde(default)]
    pub validation: Option<Validation>,
}

/// Validation on samples that are not trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Validation {
    /// Samples that were evaluated.
    pub n_samples: u64,
    /// Mean loss; `None` when it was not a number.
    pub loss: Option<f32>,
    /// Top-1 accuracy, as a fraction of 1.
    pub accuracy: f64,
    /// Time that training stood still for it, in seconds.
    pub seconds: f64,
}

/// A rank of a run on several, and its own totals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainRank {
    /// Number of the rank, from 0.
    pub rank: u64,
    /// Host it ran on.
    pub host: String,
    /// Its compute device.
    pub device: String,
    /// Its worker threads.
    pub threads: u64,
    /// Its own totals.
    #[serde(flatten)]
    pub totals: TrainTotals,
}

/// One combination of settings, run once or several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainCell {
    /// Model; `None` for an emulated accelerator.
    pub model: Option<String>,
    /// Number of trainable parameters; `None` for an emulated accelerator.
    #[serde(default)]
    pub n_parameters: Option<u64>,
    /// Compute device: "cpu, 2 threads, avx512", "emulated:224ms".
    pub device: String,
    /// `f32`, `tf32` or `bf16`; `None` for an emulated accelerator.
    #[serde(default)]
    pub precision: Option<String>,
    /// Emulated accelerator, as given on the command line; `None` for a real one.
    #[serde(default)]
    pub accelerator: Option<String>,
    /// Whether batches were generated once in memory instead of read.
    #[serde(default)]
    pub synthetic: bool,
    /// Optimizer; `None` for an emulated accelerator.
    #[serde(default)]
    pub optimizer: Option<String>,
    /// Learning rate; `None` for an emulated accelerator.
    #[serde(default)]
    pub learning_rate: Option<f64>,
    /// Number of classes; `None` for an emulated accelerator.
    #[serde(default)]
    pub classes: Option<u64>,
    /// Samples in the batch of each step; of several ranks, of each of them.
    pub batch: u64,
    /// Ranks that trained together, in the run that the totals are from; empty for one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<TrainRank>,
    /// Steps per pass over the data.
    pub steps_per_epoch: u64,
    /// Worker threads; with `auto`, the number that was chosen; 0 for synthetic batches.
    pub threads: u64,
    /// Whether the tuner chose the number of threads.
    #[serde(default)]
    pub threads_auto: bool,
    /// Thread counts that the tuner tried, in order.
    #[serde(default)]
    pub tried: Vec<TriedThreads>,
    /// Batches prepared ahead; 0 means that work happened only while the accelerator waited.
    pub prefetch: u64,
    /// Batches copied to the device ahead.
    #[serde(default)]
    pub device_prefetch: u64,
    /// Order of the samples: `full`, `window:N`, `shards` or `none`; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<String>,
    /// Shards read at a time and samples of each in turn, such as `4:16`; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave: Option<String>,
    /// Shape of a decoded image, such as "224x224 f32 nhwc"; `None` for synthetic batches.
    #[serde(default)]
    pub output: Option<String>,
    /// Storage that was read.
    #[serde(default)]
    pub medium: Medium,
    /// Median images per second over the runs.
    pub images_per_s: f64,
    /// Half the range of the wall clocks over their median; `None` for a single run.
    #[serde(default)]
    pub spread: Option<f64>,
    /// The totals of the run nearest to the median wall clock.
    #[serde(flatten)]
    pub totals: TrainTotals,
    /// Step time of the accelerator without a pipeline, measured before the run; `None` when not measured.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// Cost of I/O in seconds: the wall clock without validation minus as many baseline steps; `None` without a baseline.
    #[serde(default)]
    pub io_cost_s: Option<f64>,
    /// Change that would save most time.
    #[serde(default)]
    pub lever: Lever,
    /// What limits the run; `None` in old records and for synthetic batches.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Change before this run and what came of it; missing unless `forebay tune` made the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// Supply of the pipeline and demand of the accelerator; `None` for synthetic batches.
    #[serde(default)]
    pub feed: Option<Feed>,
    /// Passes over the data.
    #[serde(default)]
    pub epochs: Vec<Epoch>,
    /// Steps of the run that the totals are from.
    #[serde(default)]
    pub steps: Vec<TrainStep>,
    /// Bytes read over time in that run; `None` where nothing was read.
    #[serde(default)]
    pub reads: Option<Reads>,
    /// Checkpoints of that run; `None` when none were requested.
    #[serde(default)]
    pub checkpoints: Option<TrainCheckpoints>,
    /// Step of the checkpoint the run resumed from; `None` for a fresh run.
    #[serde(default)]
    pub resumed_from: Option<u64>,
    /// The first failed samples with reasons, up to a limit.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Totals of all runs, without warm-ups.
    #[serde(default)]
    pub samples: Vec<TrainTotals>,
    /// Kept repeats that other processes disturbed; missing when none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
}

/// The number of accelerators that [`TrainCell::needs_mb_per_s`] is published for.
pub const NEED_ACCELERATORS: f64 = 8.0;

impl TrainCell {
    /// Images per second that one accelerator takes when it never waits.
    pub fn takes_images_per_s(&self) -> Option<f64> {
        let rate = match self.baseline {
            Some(baseline) => self.batch as f64 / baseline.step_s,
            None => self.totals.images as f64 / self.ranks.len().max(1) as f64 / self.totals.compute_s,
        };
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }

    /// Bytes that an image took in storage; `None` when none was read.
    pub fn bytes_per_image(&self) -> Option<f64> {
        let (bytes, images) = (self.totals.bytes, self.totals.images);
        (bytes > 0 && images > 0).then(|| bytes as f64 / images as f64)
    }

    /// Megabytes per second that a disk has to give so many accelerators like this one, for none of them to wait.
    pub fn needs_mb_per_s(&self, n_accelerators: f64) -> Option<f64> {
        Some(n_accelerators * self.takes_images_per_s()? * self.bytes_per_image()? / 1e6)
    }

    /// Its size and how it learns: "57,286,885 parameters, 101 classes, learning rate 0.0001"; empty where none was trained.
    fn network(&self) -> String {
        let rate = |rate: f64| if (1e-5..1e6).contains(&rate) { rate.to_string() } else { format!("{rate:e}") };
        let said = [
            self.n_parameters.map(|n| count(n, "parameter")),
            self.classes.map(|n| if n == 1 { "1 class".to_owned() } else { format!("{} classes", group_digits(n)) }),
            self.learning_rate.map(|of| format!("learning rate {}", rate(of))),
        ];
        said.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Median steady rate over the runs; the rate over the whole run where a run has no steady part.
    pub fn comparable_images_per_s(&self) -> f64 {
        self.median(TrainTotals::steady_images_per_s).map_or(self.images_per_s, |rate| rate.value)
    }

    /// The median of the runs; of a record that kept no runs, the totals it has.
    fn median(&self, value: impl Fn(&TrainTotals) -> Option<f64>) -> Option<Measurement> {
        Measurement::median(self.samples.iter().filter_map(&value).collect(), value(&self.totals))
    }

    fn io_cost(&self) -> Option<Measurement> {
        match (self.io_cost_s, self.baseline) {
            (Some(_), Some(baseline)) if self.samples.len() > 1 => {
                self.median(|run| Some(run.wall_s - run.validate_s - baseline.step_s * run.n_steps as f64))
            }
            (cost, _) => cost.map(Measurement::single),
        }
    }
}
