//! The cells of `forebay checkpoint bench`, and what a training run says of its checkpoints.
//!
//! All times of a save count from its request: how long training stood still, until it would survive a power cut on the first tier, and
//! until it would on the last. With a single tier these are the same.

use serde::{Deserialize, Serialize};

use crate::check::Checked;
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, Disturbed, Levels, Medium, Remarks, Step};

/// One save and its restore. Times count from the request.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointSample {
    /// Time until the caller could continue, in seconds.
    pub stall_s: f64,
    /// Seconds until the checkpoint was durable on the first tier it is written to; `None` when it was skipped.
    #[serde(default)]
    pub durable_fast_s: Option<f64>,
    /// Seconds until it was durable on the last tier and read back there; `None` when it was dropped on the way.
    #[serde(default)]
    pub durable_slow_s: Option<f64>,
    /// Seconds to read it, verified, from the nearest tier that has it into allocated memory; `None` when not measured.
    #[serde(default)]
    pub restore_s: Option<f64>,
}

/// One mode and format, saved and restored several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointCell {
    /// `direct`, `burst` or `async`.
    pub mode: String,
    /// File format: `safetensors` or `tensorflow`.
    pub format: String,
    /// Description of the saved state: "600 MB in 64 tensors", "alexnet with adam".
    #[serde(default)]
    pub state: String,
    /// Device that holds the state; `None` for main memory.
    #[serde(default)]
    pub device: Option<String>,
    /// Number of tensors in the state.
    #[serde(default)]
    pub n_tensors: u64,
    /// Bytes of tensor values.
    pub bytes: u64,
    /// Tier that holds the checkpoint in the end.
    #[serde(default)]
    pub medium: Medium,
    /// First tier; `None` where there is only one.
    #[serde(default)]
    pub burst: Option<Medium>,
    /// Median stall over all saves, in seconds.
    pub stall_s: f64,
    /// Median over the saves that became durable on the first tier, in seconds; `None` when none did.
    pub durable_fast_s: Option<f64>,
    /// Median over the saves that became durable on the last tier, in seconds; `None` when none did.
    pub durable_slow_s: Option<f64>,
    /// Median over the restores, in seconds; `None` when none was measured.
    pub restore_s: Option<f64>,
    /// Write ceiling of the tier that is written first: plain O_DIRECT writes and a sync, in MB (10^6 bytes) per second;
    /// `None` when not measured.
    pub ceiling_mb_per_s: Option<f64>,
    /// Rated write bandwidth of that tier, in MB per second; `None` unless it is emulated.
    #[serde(default)]
    pub rated_mb_per_s: Option<f64>,
    /// Read ceiling of the tier that is restored from, in MB per second; `None` when not measured.
    #[serde(default)]
    pub read_ceiling_mb_per_s: Option<f64>,
    /// Median time of a plain copy of the state within touched memory, or from the device into pinned memory, in seconds; `None`
    /// when not measured.
    #[serde(default)]
    pub copy_s: Option<f64>,
    /// Peak memory of a save beyond the state itself, in bytes; `None` where the kernel does not report it.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Half the range of `durable_fast_s` over its median; `None` for a single save.
    #[serde(default)]
    pub spread: Option<f64>,
    /// Every save, in order.
    #[serde(default)]
    pub samples: Vec<CheckpointSample>,
    /// Kept repeats that other processes disturbed; missing when none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
}

impl CheckpointCell {
    /// `None` without a first tier, or if it is not emulated.
    pub fn burst_tier(&self) -> Option<&str> {
        self.burst.as_ref()?.tier.as_deref()
    }

    /// MB (10^6 bytes) per second until durable on the first tier.
    pub fn save_mb_per_s(&self) -> Option<f64> {
        self.rate(self.durable_fast_s, |_| None).map(|rate| rate.value)
    }

    /// MB (10^6 bytes) per second of a restore.
    pub fn restore_mb_per_s(&self) -> Option<f64> {
        self.rate(self.restore_s, |_| None).map(|rate| rate.value)
    }

    /// Rate of a save over its ceiling; `None` also if it was too short to tell.
    pub fn save_efficiency(&self) -> Option<f64> {
        self.share(self.durable_fast_s, |_| None, self.ceiling_mb_per_s).map(|share| share.value)
    }

    /// Rate of a restore over its ceiling; `None` also if it was too short to tell.
    pub fn restore_efficiency(&self) -> Option<f64> {
        self.share(self.restore_s, |_| None, self.read_ceiling_mb_per_s).map(|share| share.value)
    }

    /// Stall over a plain copy of the state, the lower bound of an async save; `None` for other modes.
    pub fn stall_over_copy(&self) -> Option<f64> {
        let copy_s = self.copy_s.filter(|copy_s| *copy_s > 0.0)?;
        (self.mode == "async").then(|| self.stall_s / copy_s)
    }

    fn time(&self, value: Option<f64>, of: fn(&CheckpointSample) -> Option<f64>) -> Option<Measurement> {
        Some(Measurement { value: value?, repeats: self.samples.iter().filter_map(of).collect() })
    }

    /// In MB (10^6 bytes) per second.
    fn rate(&self, value: Option<f64>, of: fn(&CheckpointSample) -> Option<f64>) -> Option<Measurement> {
        let rate = |seconds: f64| self.bytes as f64 / 1e6 / seconds;
        let time = self.time(value, of)?;
        Some(Measurement { value: rate(time.value), repeats: time.repeats.into_iter().map(rate).collect() })
    }

    /// Of a ceiling; `None` if it was too short to tell.
    fn share(
        &self,
        value: Option<f64>,
        of: fn(&CheckpointSample) -> Option<f64>,
        ceiling_mb_per_s: Option<f64>,
    ) -> Option<Measurement> {
        let ceiling = ceiling_mb_per_s.filter(|ceiling| *ceiling > 0.0)?;
        let share = |seconds: f64| (seconds >= SHORTEST_S).then(|| self.bytes as f64 / 1e6 / seconds / ceiling);
        let time = self.time(value, of)?;
        Some(Measurement { value: share(time.value)?, repeats: time.repeats.into_iter().filter_map(share).collect() })
    }
}

/// Shorter saves and restores mostly measure their start and end.
const SHORTEST_S: f64 = 0.010;

/// Metrics that code refers to; their labels describe them.
impl CheckpointCell {
    #[allow(missing_docs)]
    pub const STALL_S: Metric<Self> = Metric::lower("stall_s", "stall per checkpoint", Unit::Seconds, |cell: &Self| {
        cell.time(Some(cell.stall_s), |save| Some(save.stall_s))
    })
    .headline()
    .compared();
    #[allow(missing_docs)]
    pub const DURABLE_FAST_S: Metric<Self> =
        Metric::lower("durable_fast_s", "durable on the first tier", Unit::Seconds, |cell: &Self| {
            cell.time(cell.durable_fast_s, |save| save.durable_fast_s)
        })
        .compared();
    #[allow(missing_docs)]
    pub const DURABLE_SLOW_S: Metric<Self> =
        Metric::lower("durable_slow_s", "durable on the last tier", Unit::Seconds, |cell: &Self| {
            cell.time(cell.durable_slow_s, |save| save.durable_slow_s)
        });
    #[allow(missing_docs)]
    pub const SAVE_MB_PER_S: Metric<Self> =
        Metric::higher("save_mb_per_s", "durable save", Unit::Rate("MB"), |cell: &Self| {
            cell.rate(cell.durable_fast_s, |save| save.durable_fast_s)
        })
        .headline();
    #[allow(missing_docs)]
    pub const EFFICIENCY: Metric<Self> = Metric::higher("efficiency", "of ceiling", Unit::Share, |cell: &Self| {
        cell.share(cell.durable_fast_s, |save| save.durable_fast_s, cell.ceiling_mb_per_s)
    });
    #[allow(missing_docs)]
    pub const RESTORE_MB_PER_S: Metric<Self> =
        Metric::higher("restore_mb_per_s", "restore", Unit::Rate("MB"), |cell: &Self| {
            cell.rate(cell.restore_s, |save| save.restore_s)
        });
}

impl Cell for CheckpointCell {
    const STEP: Step = Step::Checkpoint;
    const METRICS: &'static [Metric<Self>] = &[
        Metric::fact("bytes", "state", Unit::Bytes, |cell: &Self| Some(Measurement::single(cell.bytes as f64))),
        Self::STALL_S,
        Self::DURABLE_FAST_S,
        Self::DURABLE_SLOW_S,
        Metric::lower("restore_s", "restore", Unit::Seconds, |cell: &Self| {
            cell.time(cell.restore_s, |save| save.restore_s)
        })
        .headline()
        .compared()
        .for_programs(),
        Self::SAVE_MB_PER_S,
        Self::EFFICIENCY,
        Metric::fact("ceiling_mb_per_s", "ceiling", Unit::Rate("MB"), |cell: &Self| {
            cell.ceiling_mb_per_s.map(Measurement::single)
        }),
        Self::RESTORE_MB_PER_S,
        Metric::higher("restore_efficiency", "restore, of ceiling", Unit::Share, |cell: &Self| {
            cell.share(cell.restore_s, |save| save.restore_s, cell.read_ceiling_mb_per_s)
        }),
        Metric::fact("read_ceiling_mb_per_s", "restore ceiling", Unit::Rate("MB"), |cell: &Self| {
            cell.read_ceiling_mb_per_s.map(Measurement::single)
        }),
        Metric::fact("copy_s", "copy of the state", Unit::Seconds, |cell: &Self| {
            cell.copy_s.filter(|_| cell.mode == "async").map(Measurement::single)
        }),
        Metric::lower("stall_over_copy", "stall over copy", Unit::Times, |cell: &Self| {
            cell.stall_over_copy().map(Measurement::single)
        }),
        Metric::lower("memory_bytes", "memory beyond the state", Unit::Bytes, |cell: &Self| {
            cell.memory_bytes.map(|bytes| Measurement::single(bytes as f64))
        }),
    ];
    const ALWAYS: &'static [&'static str] = &["mode", "format"];

    fn levels(&self) -> Levels {
        let burst = self.burst.as_ref();
        LevelsOf::default()
            .text("mode", self.mode.as_str())
            .text("format", self.format.as_str())
            .text("state", self.state.as_str())
            .medium(&self.medium)
            .text("burst_storage", burst.map(|burst| burst.storage.as_str()))
            .text("burst_tier", self.burst_tier())
            .done()
    }

    fn media(&self) -> Vec<&Medium> {
        std::iter::once(&self.medium).chain(&self.burst).collect()
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
        vec![("device", "state on", self.device.clone().unwrap_or_default())]
    }

    fn check(&self) -> Checked {
        crate::check::checkpoint::check(self)
    }
}

/// Outcome of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SaveFate {
    /// Durable on the last tier.
    Saved,
    /// Durable on the first tier, not yet drained when the run ended; opening the folder again drains it.
    OnFast,
    /// Not made, because earlier saves were unfinished.
    Skipped,
    /// Replaced by a newer checkpoint before it reached the last tier.
    Superseded,
    /// Failed; the notes of the record say why.
    Failed,
}

/// One checkpoint of a training run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainCheckpoint {
    /// Step after which it was saved.
    pub step: u64,
    /// When the save was requested, in seconds since the start of the run.
    pub at_s: f64,
    /// Time that training stood still, in seconds.
    pub stall_s: f64,
    /// Seconds until it was durable on the first tier it is written to; `None` when it never was.
    #[serde(default)]
    pub durable_fast_s: Option<f64>,
    /// Seconds until it was durable on the last tier; `None` when it never was.
    #[serde(default)]
    pub durable_slow_s: Option<f64>,
    /// Outcome of the save.
    pub fate: SaveFate,
}

/// Bytes written to and read from a tier over time, including the time after the last step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierTraffic {
    /// Name of an emulated tier; otherwise `fast` or `slow`.
    pub tier: String,
    /// Seconds per entry of the lists.
    pub every_s: f64,
    /// Megabytes (10^6 bytes) written in each interval.
    pub written_mb: Vec<f64>,
    /// Megabytes read in each interval.
    pub read_mb: Vec<f64>,
}

/// The checkpoints of a training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainCheckpoints {
    /// Steps between two checkpoints.
    pub every: u64,
    /// `direct`, `burst` or `async`.
    pub mode: String,
    /// File format: `safetensors` or `tensorflow`.
    pub format: String,
    /// Bytes of one checkpoint.
    pub bytes: u64,
    /// Tier that holds the checkpoints in the end.
    #[serde(default)]
    pub medium: Medium,
    /// First tier; `None` where there is only one.
    #[serde(default)]
    pub burst: Option<Medium>,
    /// Rated write bandwidth of the tier that is written first, in MB (10^6 bytes) per second; `None` unless it is emulated.
    #[serde(default)]
    pub rated_mb_per_s: Option<f64>,
    /// Median stall, in seconds; `None` when nothing was saved.
    #[serde(default)]
    pub median_stall_s: Option<f64>,
    /// Seconds of draining after the last step, not part of the wall clock; `None` where a save is complete when it returns, or
    /// the drain was not awaited.
    #[serde(default)]
    pub drain_after_s: Option<f64>,
    /// All saves, in order.
    #[serde(default)]
    pub saves: Vec<TrainCheckpoint>,
    /// Traffic of each tier, nearest first.
    #[serde(default)]
    pub traffic: Vec<TierTraffic>,
    /// Failures that were injected; missing unless they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected: Option<InjectedFailures>,
}

/// Failures that were injected into a training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InjectedFailures {
    /// Mean time between them, in seconds, as asked.
    pub every_s: f64,
    /// All failures, in order.
    #[serde(default)]
    pub failures: Vec<TrainFailure>,
}

impl InjectedFailures {
    /// Steps that were computed again.
    pub fn n_lost_steps(&self) -> u64 {
        self.failures.iter().map(|failure| failure.step.saturating_sub(failure.resumed_from)).sum()
    }
}

/// A failure of the training process, and how it went on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainFailure {
    /// When it struck, in seconds since the start of the run.
    pub at_s: f64,
    /// Steps that had been made.
    pub step: u64,
    /// Step of the newest checkpoint, from which training resumed; 0 where there was none.
    pub resumed_from: u64,
    /// Seconds to restore the checkpoint, in which training stood still.
    pub restore_s: f64,
    /// Whether it tore a save.
    #[serde(default)]
    pub in_save: bool,
}

impl TrainCheckpoints {
    /// `None` without a first tier, or if it is not emulated.
    pub fn burst_tier(&self) -> Option<&str> {
        self.burst.as_ref()?.tier.as_deref()
    }

    /// Stall of each saved checkpoint, in order.
    pub fn stalls(&self) -> impl Iterator<Item = f64> + '_ {
        let made = self.saves.iter().filter(|save| !matches!(save.fate, SaveFate::Skipped | SaveFate::Failed));
        made.map(|save| save.stall_s)
    }

    /// Includes those that were dropped later.
    pub fn n_made(&self) -> u64 {
        self.stalls().count() as u64
    }

    /// Requested but not on the last tier, except those that only the end of the run cut off.
    pub fn n_not_saved(&self) -> u64 {
        self.n(SaveFate::Skipped) + self.n(SaveFate::Superseded) + self.n(SaveFate::Failed)
    }

    /// Checkpoints with this fate.
    pub fn n(&self, fate: SaveFate) -> u64 {
        self.saves.iter().filter(|save| save.fate == fate).count() as u64
    }
}
