//! The cells of `forebay workload run`.
//!
//! The time of an accelerator is cut as in training: every moment of an epoch is a wait for data, a computation, the step's
//! barrier, a checkpoint, or something else, and the parts sum to the wall clock. An evaluation has its own time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cause::ByCause;
use crate::check::Checked;
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, CheckpointPlace, Failure, Levels, Lever, Medium, Reads, Step};

/// Quantiles of times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct Quantiles {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// What a whole run came to. Rates are over the training time of all epochs: evaluations are left out, checkpoints are not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadTotals {
    /// Computing over the wall clock of whole epochs: the headline. Mean over accelerators.
    pub au_epoch: Option<f64>,
    /// The same without the wait for the first batch of every epoch.
    pub au_steady: Option<f64>,
    /// As DLIO computes it, for comparison.
    pub au_dlio: Option<f64>,
    /// Samples trained on a second, over all accelerators.
    pub samples_per_s: f64,
    /// Megabytes (10^6 bytes) a second that were moved from storage or page cache.
    pub mb_per_s_moved: f64,
    /// Those of them that came from a block device; `None` where the kernel does not tell.
    pub mb_per_s_device: Option<f64>,
    /// From the start of an epoch to its first batch: mean over epochs and accelerators.
    pub first_batch_s: f64,
    /// From the start of the process to the first step.
    #[serde(default)]
    pub first_step_s: Option<f64>,
    /// The wait by what it is charged to, summed over accelerators. The wait at the steps' barriers is no part of
    /// [`wait_s`](Self::wait_s).
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::by_cause"))]
    pub stall_by_cause: ByCause,
    /// Waited at the steps' barriers, summed over accelerators.
    pub barrier_s: f64,
    /// Steps made, summed over accelerators.
    pub steps: u64,
    /// Processes.
    pub ranks: u64,
    /// Accelerators over all of them.
    pub accelerators: u64,
    /// What changes the meaning of these numbers.
    pub warnings: Vec<String>,
    /// Samples trained on.
    pub samples: u64,
    /// Bytes moved for them.
    pub bytes_moved: u64,
    /// Bytes of them that came from a block device.
    #[serde(default)]
    pub bytes_device: Option<u64>,
    /// The training time of all epochs, of the accelerator that took longest.
    pub wall_s: f64,
    /// Training time, summed over accelerators: the sum of the five below.
    pub accelerator_s: f64,
    /// Waited for data, summed over accelerators.
    pub wait_s: f64,
    /// Computed.
    pub compute_s: f64,
    /// Stood still for checkpoints.
    pub checkpoint_s: f64,
    /// None of these and no barrier.
    pub other_s: f64,
    /// Evaluated; no part of the training time.
    #[serde(default)]
    pub eval_s: f64,
    /// The wait for batches, step by step.
    pub load: Quantiles,
    /// Whole steps with their barrier.
    pub step: Quantiles,
    /// What DLIO would print: samples a second.
    #[serde(default)]
    pub dlio_samples_per_s: Option<f64>,
    /// And its "MB/s", which are MiB of the configured length.
    #[serde(default)]
    pub dlio_mib_per_s: Option<f64>,
    /// Accelerator utilisation of the evaluations, whole.
    #[serde(default)]
    pub au_eval: Option<f64>,
    /// Peak resident memory, summed over processes.
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
    /// Cores' seconds, summed over processes.
    #[serde(default)]
    pub cpu_s: Option<f64>,
}

/// One accelerator in one epoch. The arrays have an entry a step; they are empty where the record would have become too big.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadEpoch {
    /// Which accelerator, over all ranks.
    pub accelerator: u64,
    /// Which epoch, from 1.
    pub epoch: u64,
    /// When it began, in seconds since the run did.
    pub start_s: f64,
    /// Its training time.
    pub wall_s: f64,
    /// From its start to the first batch.
    pub first_batch_s: f64,
    /// Steps made.
    pub n_steps: u64,
    /// Steps after which a checkpoint was saved, counted from 1.
    #[serde(default)]
    pub saved_after: Vec<u64>,
    /// Sums over its steps.
    #[allow(missing_docs)]
    pub wait_s: f64,
    #[allow(missing_docs)]
    pub compute_s: f64,
    #[allow(missing_docs)]
    pub barrier_s: f64,
    #[allow(missing_docs)]
    pub checkpoint_s: f64,
    #[allow(missing_docs)]
    pub other_s: f64,
    /// DLIO's utilisation of it.
    #[serde(default)]
    pub au_dlio: Option<f64>,
    /// The evaluation after it, in seconds.
    #[serde(default)]
    pub eval_s: Option<f64>,
    /// Steps of that evaluation.
    #[serde(default)]
    pub eval_steps: u64,
    /// What it computed.
    #[serde(default)]
    pub eval_compute_s: f64,
    /// The wait for every batch.
    #[serde(default)]
    pub load: Vec<f64>,
    /// What every step computed.
    #[serde(default)]
    pub compute: Vec<f64>,
    /// Every step's barrier.
    #[serde(default)]
    pub barrier: Vec<f64>,
}

/// One checkpoint of all ranks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadSave {
    /// After which epoch, from 1; 0 in a run that only saves.
    pub epoch: u64,
    /// After which step of it.
    pub step: u64,
    /// Whether it was read rather than written.
    #[serde(default)]
    pub is_restore: bool,
    /// Bytes over all ranks.
    pub bytes: u64,
    /// How long the slowest rank took: the checkpoint's time.
    pub seconds: f64,
    /// How long the first rank took, which is what DLIO reports.
    pub seconds_rank_0: f64,
    /// Whether it was durable when it ended.
    pub is_durable: bool,
}

/// One value against the limit that was set for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// `au_epoch`, `au_dlio`.
    pub what: String,
    /// What was reached.
    pub value: Option<f64>,
    /// What must be.
    pub limit: f64,
    /// Whether it was, and the run is judged by it: the exit status goes by those that are.
    pub is_met: bool,
    /// Whether the exit status goes by it.
    pub is_decisive: bool,
}

/// One process of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadRank {
    /// Which, from 0.
    pub rank: u64,
    /// Its host.
    pub host: String,
    /// Cores it may use.
    pub n_cores: u64,
    /// Accelerators it emulated.
    pub accelerators: u64,
    /// Bytes it moved.
    pub bytes_moved: u64,
    /// Bytes it had from block devices.
    #[serde(default)]
    pub bytes_device: Option<u64>,
    /// Its peak resident memory.
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
}

/// One run of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadCell {
    /// The workload's name.
    pub workload: String,
    /// What samples lie in.
    pub format: String,
    /// Files trained on.
    pub n_files: u64,
    /// Samples in each.
    pub samples_per_file: u64,
    /// Bytes of a sample's values as configured: what DLIO reckons with.
    pub record_length_bytes: f64,
    /// Samples a step and accelerator.
    pub batch: u64,
    /// Threads an accelerator.
    pub read_threads: u64,
    /// Batches made ahead.
    pub prefetch: u64,
    /// The mean of the computing time as configured.
    pub computation_s: f64,
    /// Epochs.
    pub epochs: u64,
    /// Steps of an epoch and accelerator.
    pub steps_per_epoch: u64,
    /// The orders: "files: off, samples: seed 123".
    pub order: String,
    /// The storage that was read.
    #[serde(default)]
    pub medium: Medium,
    /// Bytes a second that one accelerator asks for when it never waits.
    #[serde(default)]
    pub demand_bytes_per_s: Option<f64>,
    /// The whole run; of several, the one in the middle by its utilisation over whole epochs.
    #[serde(flatten)]
    pub totals: WorkloadTotals,
    /// Every run that was kept, in their order; empty where there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<WorkloadTotals>,
    /// Each value against its limit.
    #[serde(default)]
    pub judged: Vec<Judged>,
    /// What would help most.
    #[serde(default)]
    pub lever: Lever,
    /// The processes.
    #[serde(default)]
    pub processes: Vec<WorkloadRank>,
    /// Accelerators and epochs.
    #[serde(default)]
    pub epochs_of: Vec<WorkloadEpoch>,
    /// Checkpoints.
    #[serde(default)]
    pub saves: Vec<WorkloadSave>,
    /// Where they went; `None` where none are saved, or nobody says.
    #[serde(default)]
    pub checkpoint_place: Option<CheckpointPlace>,
    /// What was read when, in the first process.
    #[serde(default)]
    pub reads: Option<Reads>,
    /// Samples that failed and why.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// What the readers did, in seconds by activity, summed over them.
    #[serde(default)]
    pub worker_time: BTreeMap<String, f64>,
    /// Where the numbers are from, if not from forebay: "DLIO".
    #[serde(default)]
    pub made_by: Option<String>,
}

impl WorkloadCell {
    /// The median of the runs, each quantity for itself; of a workload that was run once, that run's.
    fn median(&self, value: fn(&WorkloadTotals) -> Option<f64>) -> Option<Measurement> {
        Measurement::median(self.runs.iter().filter_map(value).collect(), value(&self.totals))
    }

    /// Checkpoints that were written.
    pub fn written(&self) -> impl Iterator<Item = &WorkloadSave> {
        self.saves.iter().filter(|save| !save.is_restore)
    }
}

impl Cell for WorkloadCell {
    const STEP: Step = Step::Workload;
    const METRICS: &'static [Metric<Self>] = &[
        Metric::lower("wall_s", "wall clock", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wall_s))),
        Metric::higher("au_epoch", "AU, whole epoch", Unit::Share, |cell: &Self| cell.median(|run| run.au_epoch))
            .headline()
            .compared(),
        Metric::higher("au_steady", "AU, steady state", Unit::Share, |cell: &Self| cell.median(|run| run.au_steady)),
        Metric::higher("au_dlio", "AU, as DLIO counts", Unit::Share, |cell: &Self| cell.median(|run| run.au_dlio)),
        Metric::higher("samples_per_s", "samples/s", Unit::Rate("samples"), |cell: &Self| {
            cell.median(|run| Some(run.samples_per_s))
        })
        .headline()
        .compared(),
        Metric::higher("mb_per_s_moved", "moved", Unit::Rate("MB"), |cell: &Self| {
            cell.median(|run| Some(run.mb_per_s_moved))
        })
        .headline(),
        Metric::higher("mb_per_s_device", "from the device", Unit::Rate("MB"), |cell: &Self| {
            cell.median(|run| run.mb_per_s_device)
        }),
        Metric::lower("wait_s", "wait", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wait_s)))
            .for_programs(),
        Metric::fact("steps_per_epoch", "steps per epoch", Unit::Count("steps"), |cell: &Self| {
            Some(Measurement::single(cell.steps_per_epoch as f64))
        }),
        Metric::lower("first_batch_s", "first batch of an epoch", Unit::Seconds, |cell: &Self| {
            cell.median(|run| Some(run.first_batch_s))
        }),
        Metric::lower("barrier_s", "barriers", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.barrier_s))),
        Metric::higher("dlio_mib_per_s", "as DLIO counts", Unit::Rate("MiB"), |cell: &Self| {
            cell.median(|run| run.dlio_mib_per_s)
        }),
        Metric::higher("dlio_samples_per_s", "as DLIO counts", Unit::Rate("samples"), |cell: &Self| {
            cell.median(|run| run.dlio_samples_per_s)
        })
        .for_programs(),
        Metric::fact("checkpoints", "checkpoints", Unit::Count("checkpoints"), |cell: &Self| {
            let n = cell.written().count();
            (n > 0).then(|| Measurement::single(n as f64))
        }),
        Metric::lower("checkpoint_s", "checkpoints in all", Unit::Seconds, |cell: &Self| {
            cell.written().next()?;
            cell.median(|run| Some(run.checkpoint_s))
        }),
        // Of the run in the middle: the record keeps no other run's saves.
        Metric::lower("checkpoint_max_s", "checkpoint, slowest rank", Unit::Seconds, |cell: &Self| {
            let seconds: Vec<f64> = cell.written().map(|save| save.seconds).collect();
            forebay_units::median(&seconds).map(Measurement::single)
        })
        .for_programs(),
        Metric::lower("failed_samples", "failed samples", Unit::Count("samples"), |cell: &Self| {
            let n = cell.failures.len();
            (n > 0).then(|| Measurement::single(n as f64))
        }),
    ];
    const ALWAYS: &'static [&'static str] = &["workload", "accelerators", "tier"];

    fn levels(&self) -> Levels {
        LevelsOf::default()
            .integer("accelerators", self.totals.accelerators)
            .integer("ranks", self.totals.ranks)
            .integer("batch", self.batch)
            .integer("epochs", self.epochs)
            .integer("files", self.n_files)
            .integer("prefetch", self.prefetch)
            .integer("threads", self.read_threads)
            .text("workload", self.workload.as_str())
            .text("format", self.format.as_str())
            .text("order", self.order.as_str())
            .medium(&self.medium)
            .text("made_by", self.made_by.as_deref())
            .done()
    }

    fn media(&self) -> Vec<&Medium> {
        let saved = self.checkpoint_place.as_ref().filter(|place| place.medium.tier.is_some());
        std::iter::once(&self.medium).chain(saved.map(|place| &place.medium)).collect()
    }

    fn n_repeats(&self) -> usize {
        self.runs.len().max(1)
    }

    fn spread(&self) -> Option<f64> {
        let walls: Vec<f64> = self.runs.iter().map(|run| run.wall_s).collect();
        forebay_units::Summary::of(&walls).filter(|summary| summary.n > 1)?.relative_spread()
    }

    fn remarks(&self) -> Vec<(&'static str, &'static str, String)> {
        let place = self.checkpoint_place.as_ref().filter(|_| !self.saves.is_empty());
        let place = place.map(CheckpointPlace::describe).unwrap_or_default();
        vec![("lever", "lever", self.lever.name.clone()), ("checkpoint_place", "checkpoints in", place)]
    }

    fn check(&self) -> Checked {
        crate::check::workload::check(self)
    }
}
