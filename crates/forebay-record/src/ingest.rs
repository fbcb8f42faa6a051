//! The cells of `forebay ingest`.

use std::collections::BTreeMap;

use forebay_units::{count, format_seconds, group_digits};
use serde::{Deserialize, Serialize};

use crate::check::Checked;
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, Disturbed, Levels, Medium, Remarks, Step};

/// What a GPU did to decode images, and what it left to the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecodedOnGpu {
    /// Images that the GPU decoded.
    pub images: u64,
    /// Samples left to the CPU: other formats, progressive and damaged files.
    pub on_cpu: u64,
    /// Seconds of copies to the GPU, summed over the worker threads.
    pub upload_s: f64,
    /// Seconds of kernels, summed over the worker threads; kernels of several threads may run at the same time.
    pub kernels_s: f64,
    /// Seconds of copies back to the host, summed over the worker threads.
    pub download_s: f64,
}

impl DecodedOnGpu {
    /// Seconds of kernels per 1,000 images; `None` where the GPU decoded none.
    pub(crate) fn kernels_s_per_1000(&self) -> Option<f64> {
        (self.images > 0).then(|| self.kernels_s / self.images as f64 * 1000.0)
    }

    /// For display: "980 of 1,000 images on the GPU: 0.1 s of copies to it, 0.5 s of kernels, 0.1 s of copies back".
    pub(crate) fn describe(&self) -> String {
        format!(
            "{} of {} on the GPU: {} of copies to it, {} of kernels, {} of copies back, summed over threads",
            group_digits(self.images),
            count(self.images + self.on_cpu, "image"),
            format_seconds(self.upload_s),
            format_seconds(self.kernels_s),
            format_seconds(self.download_s),
        )
    }
}

/// One kept repeat: raw values, from which the cell's medians follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IngestRepeat {
    /// Images delivered to the consumer.
    pub images: u64,
    /// Samples that failed and were skipped.
    pub failed: u64,
    /// Bytes read from storage.
    pub bytes: u64,
    /// Requests to the storage; `None` in old records and where nothing was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Wall clock from the first request to the end of data, in seconds.
    pub wall_s: f64,
    /// CPU time of the whole process during the repeat, user and system, in seconds.
    pub cpu_s: f64,
    /// Time the consumer waited for batches, in seconds.
    pub wait_s: f64,
    /// Seconds from thread start to the first batch; `None` when there was none.
    pub first_batch_s: Option<f64>,
    /// Seconds per activity, summed over the worker threads.
    pub worker_time: BTreeMap<String, f64>,
    /// The same, restricted to the time the consumer waited.
    pub stall_time: BTreeMap<String, f64>,
    /// What a GPU decoded; missing where none was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded_on_gpu: Option<DecodedOnGpu>,
}

impl IngestRepeat {
    /// Over the wall clock of the repeat.
    pub fn images_per_s(&self) -> f64 {
        self.images as f64 / self.wall_s
    }

    /// MB (10^6 bytes) per second read from storage.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.wall_s
    }
}

/// A thread count tried by the tuner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriedThreads {
    /// Worker threads of this trial.
    pub threads: u64,
    /// Images per second measured with it.
    pub images_per_s: f64,
}

impl TriedThreads {
    /// For display: "1 at 116/s, 2 at 215/s".
    pub(crate) fn describe(tried: &[Self]) -> String {
        let one = |of: &Self| format!("{} at {}/s", of.threads, group_digits(of.images_per_s.round() as u64));
        tried.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// A sample that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// Path of the sample, with the offset in a shard.
    pub name: String,
    /// Error text, without the sample's name.
    pub reason: String,
}

/// One combination of settings, measured several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IngestCell {
    /// Worker threads; with `auto`, the number that was chosen.
    pub threads: u64,
    /// Whether the tuner chose the number of threads.
    #[serde(default)]
    pub threads_auto: bool,
    /// Thread counts that the tuner tried in the last repeat, in order.
    #[serde(default)]
    pub tried: Vec<TriedThreads>,
    /// Threads that only read; 0 when each thread reads and decodes.
    #[serde(default)]
    pub readers: u64,
    /// Samples in each batch handed to the consumer.
    pub batch: u64,
    /// Batches prepared ahead; 0 means that work happened only while the consumer waited.
    #[serde(default)]
    pub prefetch: u64,
    /// Whether samples were only read, not decoded.
    pub read_only: bool,
    /// Order of the samples: `full`, `window:N`, `shards` or `none`; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<String>,
    /// Shards read at a time and samples of each in turn, such as `4:16`; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave: Option<String>,
    /// Where images were decoded: `cpu`, or the name of a GPU; missing unless a GPU was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode: Option<String>,
    /// Shape of a decoded image, such as "224x224 f32 nhwc"; `None` when samples were only read.
    #[serde(default)]
    pub output: Option<String>,
    /// Storage that was read.
    #[serde(default)]
    pub medium: Medium,
    /// Median images per second.
    pub images_per_s: f64,
    /// Median MB (10^6 bytes) per second read from storage.
    pub mb_per_s: f64,
    /// Half the range of `images_per_s` over its median; `None` for a single repeat.
    #[serde(default)]
    pub spread: Option<f64>,
    /// Median CPU seconds per 1,000 images.
    pub cpu_s_per_1000: f64,
    /// Samples that failed in one pass: the maximum over the repeats.
    pub failed_samples: u64,
    /// The first failed samples with reasons, up to a limit.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Seconds per activity, summed over the worker threads, of the repeat nearest the median.
    pub worker_time: BTreeMap<String, f64>,
    /// Seconds the consumer waited for batches in that repeat.
    pub wait_s: f64,
    /// Wall clock of that repeat, in seconds.
    pub wall_s: f64,
    /// Images per second of the same pipeline on null storage without decoding: the limit of the harness; `None` when not measured.
    #[serde(default)]
    pub floor_images_per_s: Option<f64>,
    /// Storage ceiling in MB per second; `None` where unknown.
    #[serde(default)]
    pub ceiling_mb_per_s: Option<f64>,
    /// What the ceiling was measured on: "the random-read ceiling of nvme0 (uring, depth 32)"; `None` where unknown.
    #[serde(default)]
    pub ceiling_of: Option<String>,
    /// The kept repeats, without warm-ups.
    pub samples: Vec<IngestRepeat>,
    /// Repeats that delivered no image; they are not among the samples.
    #[serde(default)]
    pub empty_repeats: u64,
    /// Kept repeats that other processes disturbed; missing when none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
}

impl IngestCell {
    /// Of the last repeat; empty where no GPU was used.
    fn decoded_on_gpu(&self) -> String {
        let last = self.samples.last().and_then(|repeat| repeat.decoded_on_gpu);
        last.map(|work| work.describe()).unwrap_or_default()
    }
}

fn of(cell: &IngestCell, value: f64, repeat: fn(&IngestRepeat) -> f64) -> Option<Measurement> {
    Some(Measurement { value, repeats: cell.samples.iter().map(repeat).collect() })
}

/// Mean number of threads that wait for the storage.
pub(crate) fn threads_reading(worker_time: &BTreeMap<String, f64>, wall_s: f64) -> Option<f64> {
    let reading: f64 = ["opening", "reading"].iter().filter_map(|name| worker_time.get(*name)).sum();
    Some(reading / wall_s).filter(|n| n.is_finite() && !worker_time.is_empty())
}

pub(crate) fn bytes_per_request(bytes: u64, requests: Option<u64>) -> Option<f64> {
    requests.filter(|n| *n > 0).map(|n| bytes as f64 / n as f64)
}

/// Metrics that code refers to; their labels describe them.
impl IngestCell {
    #[allow(missing_docs)]
    pub const IMAGES_PER_S: Metric<Self> =
        Metric::higher("images_per_s", "images/s", Unit::Rate("images"), |cell: &Self| {
            of(cell, cell.images_per_s, IngestRepeat::images_per_s)
        })
        .headline()
        .compared();
    #[allow(missing_docs)]
    pub const MB_PER_S: Metric<Self> = Metric::higher("mb_per_s", "MB/s", Unit::Rate("MB"), |cell: &Self| {
        of(cell, cell.mb_per_s, IngestRepeat::mb_per_s)
    })
    .headline();
    #[allow(missing_docs)]
    pub const CEILING_MB_PER_S: Metric<Self> =
        Metric::fact("ceiling_mb_per_s", "ceiling", Unit::Rate("MB"), |cell: &Self| {
            cell.ceiling_mb_per_s.map(Measurement::single)
        });
    #[allow(missing_docs)]
    pub const EFFICIENCY: Metric<Self> = Metric::higher("efficiency", "of ceiling", Unit::Share, |cell: &Self| {
        let ceiling = cell.ceiling_mb_per_s?;
        let repeats = cell.samples.iter().map(|repeat| repeat.mb_per_s() / ceiling).collect();
        Some(Measurement { value: cell.mb_per_s / ceiling, repeats })
    });
}

impl Cell for IngestCell {
    const STEP: Step = Step::Ingest;
    const METRICS: &'static [Metric<Self>] = &[
        Self::IMAGES_PER_S,
        Self::MB_PER_S,
        Metric::lower(
            "cpu_s_per_1000",
            "CPU s per 1,000 images",
            Unit::Named("CPU s per 1,000 images"),
            |cell: &Self| Some(Measurement::single(cell.cpu_s_per_1000)),
        ),
        Self::EFFICIENCY,
        Metric::lower("wait_s", "wait", Unit::Seconds, |cell: &Self| of(cell, cell.wait_s, |repeat| repeat.wait_s))
            .for_programs(),
        Metric::lower("wall_s", "wall clock", Unit::Seconds, |cell: &Self| {
            of(cell, cell.wall_s, |repeat| repeat.wall_s)
        })
        .for_programs(),
        Self::CEILING_MB_PER_S,
        Metric::fact("floor_images_per_s", "harness alone", Unit::Rate("images"), |cell: &Self| {
            cell.floor_images_per_s.map(Measurement::single)
        }),
        Metric::fact("bytes_per_request", "bytes per read", Unit::Bytes, |cell: &Self| {
            let each = cell.samples.iter().filter_map(|one| bytes_per_request(one.bytes, one.requests));
            Measurement::median(each.collect(), None)
        }),
        Metric::fact("threads_reading", "mean threads reading", Unit::Named("threads"), |cell: &Self| {
            let each = cell.samples.iter().filter_map(|one| threads_reading(&one.worker_time, one.wall_s));
            Measurement::median(each.collect(), None)
        }),
        Metric::lower(
            "gpu_s_per_1000",
            "GPU s per 1,000 images",
            Unit::Named("GPU s per 1,000 images"),
            |cell: &Self| {
                let each = cell.samples.iter().filter_map(|one| one.decoded_on_gpu?.kernels_s_per_1000());
                Measurement::median(each.collect(), None)
            },
        ),
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
            .text("shuffle", self.shuffle.as_deref())
            .text("interleave", self.interleave.as_deref())
            .text("decode", self.decode.as_deref())
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

    fn disturbed(&self) -> Option<Disturbed> {
        self.disturbed
    }

    fn remarks(&self) -> Remarks {
        vec![
            ("output", "output", self.output.clone().unwrap_or_default()),
            ("ceiling_of", "ceiling is", self.ceiling_of.clone().unwrap_or_default()),
            ("tried", "threads tried", TriedThreads::describe(&self.tried)),
            ("decoded_on_gpu", "decoded", self.decoded_on_gpu()),
        ]
    }

    fn check(&self) -> Checked {
        crate::check::ingest::check(self)
    }
}
