//! The cells of `forebay checkpoint bench`, and what a training run says of its checkpoints.
//!
//! All times of a save count from the moment it was asked for: how long training stood still, until it would survive a
//! power cut on the first tier it is written to, until it would on the last. With a single tier these are the same one.

use serde::{Deserialize, Serialize};

use crate::{Cell, TierKind};

/// One save, and one restore of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CheckpointSample {
    /// Until the caller could go on, in seconds.
    pub stall_s: f64,
    /// Until it was durable on the first tier it is written to; `None` when it was left out.
    #[serde(default)]
    pub durable_fast_s: Option<f64>,
    /// Until it was durable on the last tier, and read back there; `None` when it was left out on the way.
    #[serde(default)]
    pub durable_slow_s: Option<f64>,
    /// Reading it from the nearest tier that has it, verified, into memory that was there; `None` when it was not tried.
    #[serde(default)]
    pub restore_s: Option<f64>,
}

/// One mode and format, saved and restored several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointCell {
    /// `direct`, `burst` or `async`.
    pub mode: String,
    /// `safetensors` or `tensorflow`.
    pub format: String,
    /// What was saved, in words: "600 MB in 64 tensors", "alexnet with adam".
    #[serde(default)]
    pub state: String,
    /// The device that the state lies on, in words; `None` for this machine's memory.
    #[serde(default)]
    pub device: Option<String>,
    /// How many tensors that is.
    #[serde(default)]
    pub n_tensors: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// The last tier: how it is reached, in words.
    #[serde(default)]
    pub storage: String,
    /// Its name, if it is emulated.
    #[serde(default)]
    pub tier: Option<String>,
    /// How it is emulated.
    #[serde(default)]
    pub tier_kind: Option<TierKind>,
    /// The first tier, where there are two.
    #[serde(default)]
    pub burst_storage: Option<String>,
    /// Its name, if it is emulated.
    #[serde(default)]
    pub burst_tier: Option<String>,
    /// How it is emulated.
    #[serde(default)]
    pub burst_tier_kind: Option<TierKind>,
    /// Median of the stalls.
    pub stall_s: f64,
    /// Median over the saves that came that far.
    pub durable_fast_s: Option<f64>,
    /// Median over the saves that came that far.
    pub durable_slow_s: Option<f64>,
    /// Median over the restores.
    pub restore_s: Option<f64>,
    /// What the tier that is written first takes without us: O_DIRECT, then a sync, in megabytes (10^6) a second.
    pub ceiling_mb_per_s: Option<f64>,
    /// What the tier that is written first promises to take, if it is emulated.
    #[serde(default)]
    pub rated_mb_per_s: Option<f64>,
    /// What the tier that is restored from gives without us.
    #[serde(default)]
    pub read_ceiling_mb_per_s: Option<f64>,
    /// A plain copy of the state in memory that was touched before, or from the device into memory that is locked for it;
    /// median, in seconds.
    #[serde(default)]
    pub copy_s: Option<f64>,
    /// The most memory that saving took beyond the state, in bytes; `None` where the kernel does not tell.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Half the range of the times until durable on the first tier, over their median; `None` of a single one.
    #[serde(default)]
    pub spread: Option<f64>,
    /// Every save.
    #[serde(default)]
    pub samples: Vec<CheckpointSample>,
}

impl CheckpointCell {
    /// Megabytes (10^6 bytes) a second until durable on the first tier.
    pub fn save_mb_per_s(&self) -> Option<f64> {
        self.durable_fast_s.map(|seconds| self.bytes as f64 / 1e6 / seconds)
    }

    /// Megabytes a second of a restore.
    pub fn restore_mb_per_s(&self) -> Option<f64> {
        self.restore_s.map(|seconds| self.bytes as f64 / 1e6 / seconds)
    }

    /// The share of its ceiling that a save came to; `None` also of one that was over too soon to tell.
    pub fn save_efficiency(&self) -> Option<f64> {
        share(self.bytes, self.durable_fast_s, self.ceiling_mb_per_s)
    }

    /// The same of a restore.
    pub fn restore_efficiency(&self) -> Option<f64> {
        share(self.bytes, self.restore_s, self.read_ceiling_mb_per_s)
    }
}

/// What took less than this is begun and ended more than it is written or read.
const SHORTEST_S: f64 = 0.010;

/// The share of a ceiling that moving so many bytes in so many seconds comes to.
pub(crate) fn share(bytes: u64, seconds: Option<f64>, ceiling_mb_per_s: Option<f64>) -> Option<f64> {
    let (seconds, ceiling) = (seconds?, ceiling_mb_per_s?);
    (seconds >= SHORTEST_S && ceiling > 0.0).then(|| bytes as f64 / 1e6 / seconds / ceiling)
}

impl Cell for CheckpointCell {
    const COMMAND: &'static str = "checkpoint";
}

/// What became of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SaveFate {
    /// It is durable on the last tier.
    Saved,
    /// It is durable on the first tier and was not drained when the run ended: the next opening does.
    OnFast,
    /// It was not made, because those before it were not finished.
    Skipped,
    /// A newer one took its place on the way.
    Superseded,
    /// It went wrong; the record's notes say how.
    Failed,
}

/// One checkpoint of a training run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrainCheckpoint {
    /// After which step.
    pub step: u64,
    /// When it was asked for, in seconds since the start of the run.
    pub at_s: f64,
    /// How long training stood still for it.
    pub stall_s: f64,
    /// Until it was durable on the first tier it is written to.
    #[serde(default)]
    pub durable_fast_s: Option<f64>,
    /// Until it was durable on the last tier.
    #[serde(default)]
    pub durable_slow_s: Option<f64>,
    /// What became of it.
    pub fate: SaveFate,
}

/// What went to and from a tier's files over time, the time after the last step included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierTraffic {
    /// The tier: its name if it is emulated, `fast` or `slow` otherwise.
    pub tier: String,
    /// Seconds an entry stands for.
    pub every_s: f64,
    /// Megabytes (10^6 bytes) written in each.
    pub written_mb: Vec<f64>,
    /// Megabytes read in each.
    pub read_mb: Vec<f64>,
}

/// The checkpoints of a training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainCheckpoints {
    /// Steps between two.
    pub every: u64,
    /// `direct`, `burst` or `async`.
    pub mode: String,
    /// `safetensors` or `tensorflow`.
    pub format: String,
    /// Bytes of a state.
    pub bytes: u64,
    /// The last tier's name, if it is emulated.
    #[serde(default)]
    pub tier: Option<String>,
    /// How it is emulated.
    #[serde(default)]
    pub tier_kind: Option<TierKind>,
    /// The first tier's name, if there are two and it is emulated.
    #[serde(default)]
    pub burst_tier: Option<String>,
    /// How it is emulated.
    #[serde(default)]
    pub burst_tier_kind: Option<TierKind>,
    /// What the tier that is written first promises to take, in megabytes (10^6) a second, if it is emulated.
    #[serde(default)]
    pub rated_mb_per_s: Option<f64>,
    /// Median of the stalls; `None` when none was saved.
    #[serde(default)]
    pub median_stall_s: Option<f64>,
    /// How long draining went on after the last step, in seconds; it is no part of the run's wall clock. `None` where a
    /// save is over when it returns, and where it was not waited for to the end.
    #[serde(default)]
    pub drain_after_s: Option<f64>,
    /// The saves, in order.
    #[serde(default)]
    pub saves: Vec<TrainCheckpoint>,
    /// What went to and from the tiers, nearest first.
    #[serde(default)]
    pub traffic: Vec<TierTraffic>,
}

impl TrainCheckpoints {
    /// How long training stood still for each that was saved, in their order.
    pub fn stalls(&self) -> impl Iterator<Item = f64> + '_ {
        let made = self.saves.iter().filter(|save| !matches!(save.fate, SaveFate::Skipped | SaveFate::Failed));
        made.map(|save| save.stall_s)
    }

    /// How many were made, whatever became of them later.
    pub fn n_made(&self) -> u64 {
        self.stalls().count() as u64
    }

    /// How many had this fate.
    pub fn n(&self, fate: SaveFate) -> u64 {
        self.saves.iter().filter(|save| save.fate == fate).count() as u64
    }
}
