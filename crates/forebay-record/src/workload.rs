//! The cells of `forebay workload run`.
//!
//! The time of an accelerator is cut as in training: every moment of an epoch is a wait for data, a computation, the step's
//! barrier, a checkpoint, or something else, and the parts sum to the wall clock. An evaluation has its own time.

mod metrics;

use std::collections::BTreeMap;

use forebay_units::quantile;
use serde::{Deserialize, Serialize};

use crate::cause::ByCause;
use crate::metric::Measurement;
use crate::{CheckpointPlace, Disturbed, Failure, Lever, Medium, Reads};

/// Quantiles of times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// Arithmetic mean over the steps.
    pub mean: f64,
    /// Half of the steps were faster.
    pub p50: f64,
    /// Time that 90 % of the steps stay within.
    pub p90: f64,
    /// Time that 99 % of the steps stay within.
    pub p99: f64,
    /// Time of the slowest step.
    pub max: f64,
}

impl Quantiles {
    /// Of times in any order; all 0 where there are none.
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let Some(max) = times.last().copied() else { return Self::default() };
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let at = |q| quantile(&times, q);
        Self { mean, p50: at(0.5), p90: at(0.9), p99: at(0.99), max }
    }
}

/// Totals of one run. Rates are over the training time of all epochs, with checkpoints and without evaluations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadTotals {
    /// Accelerator utilisation: compute time over the wall clock of whole epochs, mean over accelerators; `None` where unknown.
    pub au_epoch: Option<f64>,
    /// The same without the wait for the first batch of each epoch; `None` where unknown.
    pub au_steady: Option<f64>,
    /// Utilisation as DLIO computes it; `None` where unknown.
    pub au_dlio: Option<f64>,
    /// Samples trained per second, over all accelerators.
    pub samples_per_s: f64,
    /// MB (10^6 bytes) per second read from storage or page cache.
    pub mb_per_s_moved: f64,
    /// MB per second read from block devices; `None` where the kernel does not report it.
    pub mb_per_s_device: Option<f64>,
    /// Seconds from the start of an epoch to its first batch, mean over epochs and accelerators.
    pub first_batch_s: f64,
    /// Seconds from process start to the first step; `None` where unknown.
    #[serde(default)]
    pub first_step_s: Option<f64>,
    /// Waiting time by cause, in seconds, summed over accelerators. The cause `barrier` is not part of `wait_s`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::by_cause"))]
    pub stall_by_cause: ByCause,
    /// Seconds waited at step barriers, summed over accelerators.
    pub barrier_s: f64,
    /// Steps, summed over accelerators.
    pub steps: u64,
    /// Processes of the run: MPI ranks, or 1.
    pub ranks: u64,
    /// Number of accelerators over all processes.
    pub accelerators: u64,
    /// Conditions that change the meaning of these numbers.
    pub warnings: Vec<String>,
    /// Samples trained on, over all accelerators and epochs.
    pub samples: u64,
    /// Bytes read for them, from storage or page cache.
    pub bytes_moved: u64,
    /// Bytes read from block devices; `None` where the kernel does not report it.
    #[serde(default)]
    pub bytes_device: Option<u64>,
    /// Training time of all epochs of the slowest accelerator, in seconds.
    pub wall_s: f64,
    /// Training time summed over accelerators, in seconds: the sum of wait, compute, barrier, checkpoint and other.
    pub accelerator_s: f64,
    /// Seconds waited for data, summed over accelerators.
    pub wait_s: f64,
    /// Seconds computed, summed over accelerators.
    pub compute_s: f64,
    /// Seconds stalled for checkpoints, summed over accelerators.
    pub checkpoint_s: f64,
    /// Seconds of anything else, summed over accelerators.
    pub other_s: f64,
    /// Seconds of evaluation, not part of the training time.
    #[serde(default)]
    pub eval_s: f64,
    /// Wait for a batch per step, in seconds.
    pub load: Quantiles,
    /// Duration of a step including its barrier, in seconds.
    pub step: Quantiles,
    /// Samples per second as DLIO reports them; `None` where unknown.
    #[serde(default)]
    pub dlio_samples_per_s: Option<f64>,
    /// The "MB/s" DLIO reports: MiB of the configured sample length per second; `None` where unknown.
    #[serde(default)]
    pub dlio_mib_per_s: Option<f64>,
    /// Accelerator utilisation of the evaluations; `None` without one.
    #[serde(default)]
    pub au_eval: Option<f64>,
    /// Peak resident memory in bytes, summed over processes; `None` where unknown.
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
    /// Processor time in seconds, summed over processes; `None` where unknown.
    #[serde(default)]
    pub cpu_s: Option<f64>,
}

/// One accelerator in one epoch. Lists have one entry per step and are empty where the record would be too large.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadEpoch {
    /// Index of the accelerator over all ranks.
    pub accelerator: u64,
    /// Epoch of the run, from 1.
    pub epoch: u64,
    /// Start in seconds since the start of the run.
    pub start_s: f64,
    /// Training time in seconds.
    pub wall_s: f64,
    /// Seconds from its start to the first batch.
    pub first_batch_s: f64,
    /// Steps that ended; an interrupted one is not counted.
    pub n_steps: u64,
    /// Steps after which a checkpoint was saved, from 1.
    #[serde(default)]
    pub saved_after: Vec<u64>,
    /// Seconds waited for data.
    pub wait_s: f64,
    /// Seconds of emulated computation.
    pub compute_s: f64,
    /// Seconds waited at barriers.
    pub barrier_s: f64,
    /// Seconds stalled for checkpoints.
    pub checkpoint_s: f64,
    /// Seconds of anything else.
    pub other_s: f64,
    /// Utilisation as DLIO computes it; `None` where unknown.
    #[serde(default)]
    pub au_dlio: Option<f64>,
    /// Seconds of the evaluation after the epoch; `None` when there was none.
    #[serde(default)]
    pub eval_s: Option<f64>,
    /// Steps of that evaluation.
    #[serde(default)]
    pub eval_steps: u64,
    /// Seconds of emulated computation in that evaluation.
    #[serde(default)]
    pub eval_compute_s: f64,
    /// Wait for the batch of each step, in seconds.
    #[serde(default)]
    pub load: Vec<f64>,
    /// Compute time of each step, in seconds.
    #[serde(default)]
    pub compute: Vec<f64>,
    /// Barrier wait of each step, in seconds.
    #[serde(default)]
    pub barrier: Vec<f64>,
}

/// One checkpoint of all ranks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadSave {
    /// Epoch after which it was saved, from 1; 0 in a run that only saves.
    pub epoch: u64,
    /// Step of that epoch.
    pub step: u64,
    /// Whether the checkpoint was read rather than written.
    #[serde(default)]
    pub is_restore: bool,
    /// Bytes over all ranks.
    pub bytes: u64,
    /// Time of the slowest rank, in seconds.
    pub seconds: f64,
    /// Time of rank 0, in seconds, which DLIO reports.
    pub seconds_rank_0: f64,
    /// Whether the checkpoint was durable at the end of that time.
    pub is_durable: bool,
}

/// A value and the limit set for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// Metric: `au_epoch` or `au_dlio`.
    pub what: String,
    /// Measured value; `None` where unknown.
    pub value: Option<f64>,
    /// Least value that meets it, as a fraction of 1.
    pub limit: f64,
    /// Whether the value reaches the limit.
    pub is_met: bool,
    /// Whether the exit status depends on it.
    pub is_decisive: bool,
}

/// One process of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadRank {
    /// MPI rank, from 0.
    pub rank: u64,
    /// Name of the host it ran on.
    pub host: String,
    /// Cores available to the process.
    pub n_cores: u64,
    /// Number of accelerators it emulated.
    pub accelerators: u64,
    /// Bytes it read, from storage or page cache.
    pub bytes_moved: u64,
    /// Bytes it read from block devices; `None` where the kernel does not report it.
    #[serde(default)]
    pub bytes_device: Option<u64>,
    /// Peak resident memory in bytes; `None` where unknown.
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
}

/// One run of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadCell {
    /// Name of the workload.
    pub workload: String,
    /// File format of the samples.
    pub format: String,
    /// Number of training files.
    pub n_files: u64,
    /// Samples in each training file.
    pub samples_per_file: u64,
    /// Configured bytes per sample, which DLIO uses for its rates.
    pub record_length_bytes: f64,
    /// Samples per step and accelerator.
    pub batch: u64,
    /// Reader threads per accelerator.
    pub read_threads: u64,
    /// Batches prepared ahead per accelerator; 0 means none.
    pub prefetch: u64,
    /// Configured mean compute time per step, in seconds.
    pub computation_s: f64,
    /// Passes over the training data.
    pub epochs: u64,
    /// Steps per epoch and accelerator.
    pub steps_per_epoch: u64,
    /// Shuffling: "files: off, samples: seed 123".
    pub order: String,
    /// Storage that was read.
    #[serde(default)]
    pub medium: Medium,
    /// Bytes per second that one accelerator needs to never wait; `None` where unknown.
    #[serde(default)]
    pub demand_bytes_per_s: Option<f64>,
    /// The whole run; of several, the one in the middle by its utilisation over whole epochs.
    #[serde(flatten)]
    pub totals: WorkloadTotals,
    /// Totals of every kept run, in order; missing for a single run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<WorkloadTotals>,
    /// Values and the limits set for them.
    #[serde(default)]
    pub judged: Vec<Judged>,
    /// Change that would save most time.
    #[serde(default)]
    pub lever: Lever,
    /// Processes of the run.
    #[serde(default)]
    pub processes: Vec<WorkloadRank>,
    /// One entry per accelerator and epoch.
    #[serde(default)]
    pub epochs_of: Vec<WorkloadEpoch>,
    /// Checkpoints of all ranks.
    #[serde(default)]
    pub saves: Vec<WorkloadSave>,
    /// Where they were written; `None` without checkpoints, or where unknown.
    #[serde(default)]
    pub checkpoint_place: Option<CheckpointPlace>,
    /// Bytes read over time in the first process; `None` where unknown.
    #[serde(default)]
    pub reads: Option<Reads>,
    /// Failed samples with reasons.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Seconds per activity, summed over the reader threads.
    #[serde(default)]
    pub worker_time: BTreeMap<String, f64>,
    /// Program that measured, if not forebay: "DLIO".
    #[serde(default)]
    pub made_by: Option<String>,
    /// Kept repeats that other processes disturbed; missing when none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
}

impl WorkloadCell {
    /// Each metric's median over the runs; of a workload that ran once, that run's value.
    fn median(&self, value: fn(&WorkloadTotals) -> Option<f64>) -> Option<Measurement> {
        Measurement::median(self.runs.iter().filter_map(value).collect(), value(&self.totals))
    }

    /// Checkpoints that were written, without restores.
    pub fn written(&self) -> impl Iterator<Item = &WorkloadSave> {
        self.saves.iter().filter(|save| !save.is_restore)
    }
}
