//! The cells of `forebay ingest`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::Checked;
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, Levels, Medium, Step};

/// One measured repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IngestRepeat {
    /// Images delivered to the consumer.
    pub images: u64,
    /// Samples that failed and were left out.
    pub failed: u64,
    /// Bytes moved from storage.
    pub bytes: u64,
    /// First request to end of data, in seconds.
    pub wall_s: f64,
    /// Processor time of the whole process meanwhile, user and system.
    pub cpu_s: f64,
    /// The consumer's wait for batches.
    pub wait_s: f64,
    /// From the start of the threads to the first batch.
    pub first_batch_s: Option<f64>,
    /// What the workers did, in seconds by activity, summed over them.
    pub worker_time: BTreeMap<String, f64>,
    /// What they did while the consumer waited.
    pub stall_time: BTreeMap<String, f64>,
}

impl IngestRepeat {
    /// Images a second.
    pub fn images_per_s(&self) -> f64 {
        self.images as f64 / self.wall_s
    }

    /// Megabytes (10^6 bytes) moved a second.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.wall_s
    }
}

/// A number of threads the tuner tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TriedThreads {
    /// How many.
    pub threads: u64,
    /// Their rate while they were tried.
    pub images_per_s: f64,
}

/// A sample that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its path, with the offset in a shard.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// One combination of settings, measured several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IngestCell {
    /// Threads that make samples; with `auto`, the number that was chosen.
    pub threads: u64,
    /// Whether the number was found by the tuner.
    #[serde(default)]
    pub threads_auto: bool,
    /// What the tuner tried in the last repeat, in its order.
    #[serde(default)]
    pub tried: Vec<TriedThreads>,
    /// Threads that only read; 0 when each thread does both.
    #[serde(default)]
    pub readers: u64,
    /// Samples a batch.
    pub batch: u64,
    /// Batches made ahead.
    #[serde(default)]
    pub prefetch: u64,
    /// Whether samples were read only, not decoded.
    pub read_only: bool,
    /// What an image became, as "224x224 f32 nhwc"; `None` when samples were read only.
    #[serde(default)]
    pub output: Option<String>,
    /// The storage that was read.
    #[serde(default)]
    pub medium: Medium,
    /// Median of images a second.
    pub images_per_s: f64,
    /// Median of megabytes (10^6 bytes) moved a second.
    pub mb_per_s: f64,
    /// Half the range of images a second over the median.
    #[serde(default)]
    pub spread: Option<f64>,
    /// Median of processor seconds per 1000 images.
    pub cpu_s_per_1000: f64,
    /// Samples that failed in one pass: the most of any repeat.
    pub failed_samples: u64,
    /// Which and why, up to a limit.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Seconds by activity of the repeat nearest to the median.
    pub worker_time: BTreeMap<String, f64>,
    /// Its consumer's wait.
    pub wait_s: f64,
    /// Its wall clock.
    pub wall_s: f64,
    /// Images a second of the same pipeline on null storage without work: the harness itself.
    #[serde(default)]
    pub floor_images_per_s: Option<f64>,
    /// The most the storage can give, where that is known, in megabytes a second.
    #[serde(default)]
    pub ceiling_mb_per_s: Option<f64>,
    /// What that is the ceiling of: "the random-read ceiling of nvme0 (uring, depth 32)".
    #[serde(default)]
    pub ceiling_of: Option<String>,
    /// The raw repeats, warm-ups left out.
    pub samples: Vec<IngestRepeat>,
    /// Repeats that delivered no image, as where all files had gone. They are no measurements, and not among the samples.
    #[serde(default)]
    pub empty_repeats: u64,
}

/// A quantity of every repeat, and the cell's own value of it.
fn of(cell: &IngestCell, value: f64, repeat: fn(&IngestRepeat) -> f64) -> Option<Measurement> {
    Some(Measurement { value, repeats: cell.samples.iter().map(repeat).collect() })
}

impl Cell for IngestCell {
    const STEP: Step = Step::Ingest;
    const METRICS: &'static [Metric<Self>] = &[
        Metric::higher("images_per_s", "images/s", Unit::Rate("images"), |cell: &Self| {
            of(cell, cell.images_per_s, IngestRepeat::images_per_s)
        })
        .headline()
        .compared(),
        Metric::higher("mb_per_s", "MB/s", Unit::Rate("MB"), |cell: &Self| {
            of(cell, cell.mb_per_s, IngestRepeat::mb_per_s)
        })
        .headline(),
        Metric::lower(
            "cpu_s_per_1000",
            "CPU s per 1,000 images",
            Unit::Named("CPU s per 1,000 images"),
            |cell: &Self| Some(Measurement::single(cell.cpu_s_per_1000)),
        ),
        Metric::higher("efficiency", "of ceiling", Unit::Share, |cell: &Self| {
            let ceiling = cell.ceiling_mb_per_s?;
            let repeats = cell.samples.iter().map(|repeat| repeat.mb_per_s() / ceiling).collect();
            Some(Measurement { value: cell.mb_per_s / ceiling, repeats })
        }),
        Metric::lower("wait_s", "wait", Unit::Seconds, |cell: &Self| of(cell, cell.wait_s, |repeat| repeat.wait_s))
            .for_programs(),
        Metric::lower("wall_s", "wall clock", Unit::Seconds, |cell: &Self| {
            of(cell, cell.wall_s, |repeat| repeat.wall_s)
        })
        .for_programs(),
        Metric::lower("failed_samples", "failed samples", Unit::Count("samples"), |cell: &Self| {
            (cell.failed_samples > 0).then(|| Measurement::single(cell.failed_samples as f64))
        }),
    ];
    const ALWAYS: &'static [&'static str] = &["threads"];

    fn levels(&self) -> Levels {
        LevelsOf::default()
            .integer("threads", self.threads)
            .flag("read_only", self.read_only)
            .integer("batch", self.batch)
            .integer("prefetch", self.prefetch)
            .flag("threads_auto", self.threads_auto.then_some(true))
            .integer("readers", (self.readers > 0).then_some(self.readers))
            .medium(&self.medium)
            .done()
    }

    fn media(&self) -> Vec<&Medium> {
        vec![&self.medium]
    }

    fn n_repeats(&self) -> usize {
        self.samples.len()
    }

    fn spread(&self) -> Option<f64> {
        self.spread
    }

    fn check(&self) -> Checked {
        crate::check::ingest::check(self)
    }
}
