//! The cells of `forebay ingest`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Cell, TierKind};

/// Where the bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// At most 5 % of the bytes came from memory, by the block layer's count.
    Cold,
    /// At most 5 % of the bytes came from the device.
    Warm,
    /// Neither, or not to be told.
    Mixed,
}

/// What a cache state was concluded from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CacheEvidence {
    /// The share of the files that was in memory before the run, by `cachestat` or `mincore`.
    pub resident_before: Option<f64>,
    /// Bytes the block layer fetched for this process during the run.
    pub block_bytes: Option<u64>,
    /// Bytes the pipeline read.
    pub bytes_read: u64,
}

impl CacheEvidence {
    /// The share of the bytes that came from memory; `None` when the kernel does not tell or nothing was read.
    pub fn from_memory(&self) -> Option<f64> {
        let block = self.block_bytes?;
        (self.bytes_read > 0).then(|| 1.0 - block as f64 / self.bytes_read as f64)
    }

    /// What it shows.
    pub fn state(&self) -> CacheState {
        match self.from_memory() {
            Some(share) if share <= 0.05 => CacheState::Cold,
            Some(share) if share >= 0.95 => CacheState::Warm,
            _ => CacheState::Mixed,
        }
    }
}

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
    /// Cold or warm, and why.
    pub cache: CacheState,
    /// The evidence.
    pub evidence: CacheEvidence,
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
    /// The storage that was read through: mode, and tier if one was emulated.
    #[serde(default)]
    pub storage: String,
    /// The tier's name, if one was emulated.
    #[serde(default)]
    pub tier: Option<String>,
    /// How the tier is served.
    #[serde(default)]
    pub tier_kind: Option<TierKind>,
    /// Cold, warm or mixed, over all repeats: one that differs from the others makes it mixed.
    pub cache: CacheState,
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

impl Cell for IngestCell {
    const COMMAND: &'static str = "ingest";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(block_bytes: Option<u64>, bytes_read: u64) -> CacheEvidence {
        CacheEvidence { resident_before: None, block_bytes, bytes_read }
    }

    #[test]
    fn five_percent_from_the_other_side_is_the_limit() {
        assert_eq!(evidence(Some(100), 100).state(), CacheState::Cold);
        assert_eq!(evidence(Some(130), 100).state(), CacheState::Cold, "readahead fetches more than is read");
        assert_eq!(evidence(Some(96), 100).state(), CacheState::Cold);
        assert_eq!(evidence(Some(94), 100).state(), CacheState::Mixed);
        assert_eq!(evidence(Some(4), 100).state(), CacheState::Warm);
        assert_eq!(evidence(None, 100).state(), CacheState::Mixed, "what is not known is not claimed");
        assert_eq!(evidence(Some(0), 0).state(), CacheState::Mixed);
    }
}
