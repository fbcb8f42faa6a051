//! The cells of `forebay train`.
//!
//! The time of a run is cut as the accelerator sees it: every moment is a wait for data, a copy to the device, a
//! computation, a checkpoint, a validation, or something else, and the parts sum to the wall clock.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cause::ByCause;
use crate::check::Checked;
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, Failure, Levels, Medium, Step, TrainCheckpoints, TriedThreads};

/// One training step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainStep {
    /// The accelerator was idle and there was no batch.
    pub wait_s: f64,
    /// The accelerator was idle and its batch was on the way.
    pub copy_s: f64,
    /// The accelerator computed; where batches are sent ahead, also what was left of a copy that was under way.
    pub compute_s: f64,
    /// Training stood still for a checkpoint.
    pub checkpoint_s: f64,
    /// None of these, validation left out.
    #[serde(default)]
    pub other_s: f64,
    /// The batch's loss; `None` when nothing was computed, or when it was not a number.
    pub loss: Option<f32>,
}

/// What one whole run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainTotals {
    /// Steps made.
    pub n_steps: u64,
    /// Images trained on.
    pub images: u64,
    /// Samples that failed and were left out.
    pub failed: u64,
    /// Bytes moved from storage, prefetched ones included.
    pub bytes: u64,
    /// From the start of the pipeline's threads to the end of the last step, in seconds: the sum of the six below.
    pub wall_s: f64,
    /// The accelerator was idle and there was no batch.
    pub wait_s: f64,
    /// It was idle and its batch was on the way.
    pub copy_s: f64,
    /// It computed.
    pub compute_s: f64,
    /// Training stood still for a checkpoint.
    pub checkpoint_s: f64,
    /// Training stood still for a validation.
    #[serde(default)]
    pub validate_s: f64,
    /// None of these: bookkeeping.
    pub other_s: f64,
    /// The part of the wait before the first batch.
    pub first_wait_s: f64,
    /// Processor time of the whole process meanwhile, user and system.
    pub cpu_s: f64,
    /// Computing over the wall clock, validation left out: the headline.
    pub au_epoch: f64,
    /// The same without the first wait; `None` when nothing is left.
    pub au_steady: Option<f64>,
    /// As DLIO counts it: the first step of every epoch and all checkpoints left out, mean over epochs; `None` where an epoch
    /// has one step.
    pub au_dlio: Option<f64>,
    /// The share of the pipeline's work that was done while the accelerator did not wait; `None` without a pipeline.
    pub overlap: Option<f64>,
    /// The wait by what it is charged to; the values sum to it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::by_cause"))]
    pub stall_by_cause: ByCause,
    /// What the workers did, in seconds by activity, summed over them.
    #[serde(default)]
    pub worker_time: BTreeMap<String, f64>,
    /// Seconds that they were on a core, by the scheduler's count; `None` where the kernel does not tell.
    #[serde(default)]
    pub on_core_s: Option<f64>,
    /// Seconds that they were ready and waited for a core.
    #[serde(default)]
    pub for_core_s: Option<f64>,
    /// What they did while the accelerator waited.
    #[serde(default)]
    pub stall_time: BTreeMap<String, f64>,
    /// The last step's loss.
    pub loss: Option<f32>,
}

impl TrainTotals {
    /// Images a second of the wall clock, validation left out.
    pub fn images_per_s(&self) -> f64 {
        self.images as f64 / (self.wall_s - self.validate_s)
    }

    /// Megabytes (10^6 bytes) moved a second, validation left out.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / (self.wall_s - self.validate_s)
    }

    /// The share of the wait in the time after the first batch, validation left out.
    pub fn wait_share(&self) -> Option<f64> {
        let after = self.wall_s - self.validate_s - self.first_wait_s;
        (after > 0.0).then(|| (self.wait_s - self.first_wait_s) / after)
    }

    /// The sum of the parts, which is the wall clock.
    pub fn parts_s(&self) -> f64 {
        self.wait_s + self.copy_s + self.compute_s + self.checkpoint_s + self.validate_s + self.other_s
    }
}

/// What the accelerator does when it never waits: steps on one batch in memory, or an emulated one's own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// Steps measured, warm-up left out.
    pub n_steps: u64,
    /// Median time of a step, in seconds.
    pub step_s: f64,
    /// Whether it is the mean of the run's own computing instead: an emulated step takes no longer for having waited.
    #[serde(default)]
    pub is_mean: bool,
}

/// What would help most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lever {
    /// `prefetch`, `threads`, `storage`, `decode`, `order`, `checkpoint`, or `none` when the accelerator is the limit;
    /// empty where the record does not say.
    pub name: String,
    /// What to do, in words.
    pub advice: String,
    /// Seconds it would save of this run.
    pub saves_s: f64,
    /// The wall clock it predicts.
    pub wall_s: f64,
    /// Whether that is a bound ("at most so much is saved") rather than a prediction.
    #[serde(default)]
    pub is_bound: bool,
}

/// What the accelerator takes beside what the pipeline gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Feed {
    /// Images a second that the accelerator takes when it never waits.
    pub takes_images_per_s: f64,
    /// Images a second that these threads give when they never rest, by the work a sample cost them.
    pub gives_images_per_s: f64,
    /// Threads that would give what is taken, each as fast as these; `None` where storage is the limit, which threads share.
    pub threads_needed: Option<u64>,
}

/// Megabytes moved from storage by time since the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reads {
    /// Seconds an entry stands for.
    pub every_s: f64,
    /// Megabytes (10^6 bytes) moved in each.
    pub mb: Vec<f64>,
}

/// As many steps as one pass over the data has whole batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Epoch {
    /// Steps of it that were made.
    pub n_steps: u64,
    /// Mean loss of its steps.
    pub loss: Option<f32>,
    /// What the network made of samples it does not learn from.
    #[serde(default)]
    pub validation: Option<Validation>,
}

/// A network judged on samples it does not learn from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Validation {
    /// How many samples.
    pub n_samples: u64,
    /// Mean loss.
    pub loss: Option<f32>,
    /// The share whose largest output is their label.
    pub accuracy: f64,
    /// How long it took.
    pub seconds: f64,
}

/// One combination of settings, trained once or several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainCell {
    /// The model; `None` when the accelerator was emulated.
    pub model: Option<String>,
    /// How many values it learns.
    #[serde(default)]
    pub n_parameters: Option<u64>,
    /// What computed, in words: "cpu, 2 threads, avx512", "emulated:224ms".
    pub device: String,
    /// `f32`, `tf32` or `bf16`; `None` when the accelerator was emulated.
    #[serde(default)]
    pub precision: Option<String>,
    /// The emulated accelerator, as the command line has it.
    #[serde(default)]
    pub accelerator: Option<String>,
    /// Whether batches were made once, in memory, instead of read.
    #[serde(default)]
    pub synthetic: bool,
    /// The optimiser.
    #[serde(default)]
    pub optimizer: Option<String>,
    /// How far a step goes.
    #[serde(default)]
    pub learning_rate: Option<f64>,
    /// Classes told apart.
    #[serde(default)]
    pub classes: Option<u64>,
    /// Samples a step.
    pub batch: u64,
    /// Steps of one pass over the data.
    pub steps_per_epoch: u64,
    /// Threads that make samples; with `auto`, the number that was chosen. 0 for synthetic batches.
    pub threads: u64,
    /// Whether the number was found by the tuner.
    #[serde(default)]
    pub threads_auto: bool,
    /// What the tuner tried, in its order.
    #[serde(default)]
    pub tried: Vec<TriedThreads>,
    /// Batches made ahead.
    pub prefetch: u64,
    /// Batches sent to the device ahead.
    #[serde(default)]
    pub device_prefetch: u64,
    /// What an image became, as "224x224 f32 nhwc".
    #[serde(default)]
    pub output: Option<String>,
    /// The storage that was read.
    #[serde(default)]
    pub medium: Medium,
    /// Median of images a second over the runs.
    pub images_per_s: f64,
    /// Half the range of the wall clocks over their median; `None` of a single run.
    #[serde(default)]
    pub spread: Option<f64>,
    /// The totals of the run nearest to the median wall clock.
    #[serde(flatten)]
    pub totals: TrainTotals,
    /// The accelerator without a pipeline, measured beforehand.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// The cost of I/O: the wall clock, validation left out, over that of as many steps of the baseline, in seconds.
    #[serde(default)]
    pub io_cost_s: Option<f64>,
    /// What would help most.
    #[serde(default)]
    pub lever: Lever,
    /// What is taken beside what is given; `None` for synthetic batches.
    #[serde(default)]
    pub feed: Option<Feed>,
    /// The passes over the data.
    #[serde(default)]
    pub epochs: Vec<Epoch>,
    /// The steps of the run whose totals these are.
    #[serde(default)]
    pub steps: Vec<TrainStep>,
    /// What was read when in that run.
    #[serde(default)]
    pub reads: Option<Reads>,
    /// The checkpoints of that run; `None` when none were asked for.
    #[serde(default)]
    pub checkpoints: Option<TrainCheckpoints>,
    /// The step of the checkpoint that the run went on from; `None` when it began anew.
    #[serde(default)]
    pub resumed_from: Option<u64>,
    /// Samples that failed and why, up to a limit.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// The totals of all runs, warm-ups left out.
    #[serde(default)]
    pub samples: Vec<TrainTotals>,
}

/// The number of accelerators that [`TrainCell::needs_mb_per_s`] is published for.
pub const NEED_ACCELERATORS: f64 = 8.0;

impl TrainCell {
    /// Images per second that the accelerator takes when it never waits.
    pub fn takes_images_per_s(&self) -> Option<f64> {
        let rate = match self.baseline {
            Some(baseline) => self.batch as f64 / baseline.step_s,
            None => self.totals.images as f64 / self.totals.compute_s,
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

impl Cell for TrainCell {
    const STEP: Step = Step::Train;
    const METRICS: &'static [Metric<Self>] = &[
        Metric::lower("wall_s", "wall clock", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wall_s)))
            .headline()
            .compared()
            .or_by_rate("images_per_s"),
        Metric::higher("images_per_s", "images/s", Unit::Rate("images"), |cell: &Self| {
            cell.median(|run| Some(run.images_per_s()))
        })
        .headline(),
        Metric::higher("mb_per_s", "MB/s", Unit::Rate("MB"), |cell: &Self| {
            cell.median(|run| (run.bytes > 0).then(|| run.mb_per_s()))
        }),
        Metric::lower("wait_s", "wait", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wait_s)))
            .headline()
            .for_programs(),
        Metric::lower("compute_s", "compute", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.compute_s)))
            .for_programs(),
        Metric::lower("copy_s", "copy to the device", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.copy_s)))
            .for_programs(),
        Metric::lower("wait_share", "wait after the first batch", Unit::Share, |cell: &Self| {
            cell.median(TrainTotals::wait_share)
        }),
        Metric::higher("au_epoch", "AU, whole epoch", Unit::Share, |cell: &Self| cell.median(|run| Some(run.au_epoch))),
        Metric::higher("au_steady", "AU, steady state", Unit::Share, |cell: &Self| cell.median(|run| run.au_steady)),
        Metric::higher("au_dlio", "AU, as DLIO counts", Unit::Share, |cell: &Self| cell.median(|run| run.au_dlio)),
        Metric::higher("overlap", "overlap", Unit::Share, |cell: &Self| cell.median(|run| run.overlap)).for_programs(),
        Metric::lower("io_cost_s", "cost of I/O", Unit::Seconds, Self::io_cost).signed(),
        Metric::fact("need_mb_per_s", "disk for 8 accelerators", Unit::Rate("MB"), |cell: &Self| {
            cell.needs_mb_per_s(NEED_ACCELERATORS).map(Measurement::single)
        })
        .for_programs(),
        Metric::lower("failed_samples", "failed samples", Unit::Count("samples"), |cell: &Self| {
            (cell.totals.failed > 0).then(|| Measurement::single(cell.totals.failed as f64))
        }),
        Metric::fact("resumed_from", "resumed from step", Unit::Count("steps"), |cell: &Self| {
            cell.resumed_from.map(|step| Measurement::single(step as f64))
        }),
        Metric::fact("checkpoints", "checkpoints", Unit::Count("checkpoints"), |cell: &Self| {
            cell.checkpoints.as_ref().map(|made| Measurement::single(made.n_made() as f64))
        }),
        Metric::lower("not_saved", "not saved", Unit::Count("checkpoints"), |cell: &Self| {
            let not_saved = cell.checkpoints.as_ref()?.n_not_saved();
            (not_saved > 0).then(|| Measurement::single(not_saved as f64))
        }),
        Metric::lower("checkpoint_s", "checkpoints in all", Unit::Seconds, |cell: &Self| {
            cell.checkpoints.as_ref()?;
            cell.median(|run| Some(run.checkpoint_s))
        }),
        Metric::lower("stall_s", "stall of a checkpoint", Unit::Seconds, |cell: &Self| {
            let saved = cell.checkpoints.as_ref()?;
            Some(Measurement { value: saved.median_stall_s?, repeats: saved.stalls().collect() })
        })
        .headline()
        .compared(),
        Metric::lower("drain_after_s", "draining after the end", Unit::Seconds, |cell: &Self| {
            cell.checkpoints.as_ref()?.drain_after_s.map(Measurement::single)
        })
        .headline(),
    ];
    const ALWAYS: &'static [&'static str] = &["model", "tier", "batch", "threads", "prefetch"];

    fn levels(&self) -> Levels {
        let is_read = !self.synthetic;
        let levels = LevelsOf::default()
            .integer("batch", self.batch)
            .integer("steps", self.totals.n_steps)
            .flag("synthetic", self.synthetic.then_some(true))
            .integer("threads", is_read.then_some(self.threads))
            .integer("prefetch", is_read.then_some(self.prefetch))
            .flag("threads_auto", self.threads_auto.then_some(true))
            .integer("device_prefetch", (self.device_prefetch > 0).then_some(self.device_prefetch))
            .text("model", self.model.as_deref())
            .text("device", self.device.as_str())
            .text("precision", self.precision.as_deref())
            .text("optimizer", self.optimizer.as_deref())
            .medium(&self.medium)
            .integer("resumed_from", self.resumed_from);
        let Some(saved) = &self.checkpoints else { return levels.done() };
        levels
            .integer("checkpoint_every", saved.every)
            .text("checkpoint_mode", saved.mode.as_str())
            .text("checkpoint_format", saved.format.as_str())
            .text("checkpoint_tier", saved.medium.tier.as_deref())
            .text("burst_tier", saved.burst_tier())
            .done()
    }

    fn media(&self) -> Vec<&Medium> {
        let saved = self.checkpoints.iter().flat_map(|saved| saved.burst.iter().chain([&saved.medium]));
        std::iter::once(&self.medium).chain(saved).collect()
    }

    fn n_repeats(&self) -> usize {
        self.samples.len()
    }

    fn spread(&self) -> Option<f64> {
        self.spread
    }

    fn work(&self) -> Option<u64> {
        Some(self.totals.images)
    }

    fn remarks(&self) -> Vec<(&'static str, &'static str, String)> {
        vec![("lever", "lever", self.lever.name.clone())]
    }

    fn check(&self) -> Checked {
        crate::check::train::check(self)
    }
}
