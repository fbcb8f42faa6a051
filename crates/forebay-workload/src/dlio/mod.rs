//! DLIO's own result files: `summary.json`, `<rank>_output.json`, `<rank>_per_epoch_stats.json`, written and read.
//!
//! Keys are DLIO's, so that tools that read its files read ours. Its files are not always JSON: where a figure is missing
//! it writes `NaN`. [`parse`] takes that for nothing, and [`to_json`] writes nothing as `null`, which JSON has.

mod folder;
mod lenient;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use folder::{BlockRun, EpochRun, RankRun, ReadError, Run, SaveRun, Span, Version, read_run};
pub use lenient::{parse, to_json};

/// `summary.json`, of the first rank alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// When the run began: local time, without a zone.
    pub start: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// Accelerators over all hosts.
    pub num_accelerators: Option<u64>,
    /// Hosts.
    pub num_hosts: Option<u64>,
    /// The first rank's host.
    pub hostname: Option<String>,
    /// The figures.
    pub metric: Metric,
    /// Files to train on.
    pub num_files_train: Option<u64>,
    /// Files to evaluate on.
    pub num_files_eval: Option<u64>,
    /// Samples in each.
    pub num_samples_per_file: Option<u64>,
    /// Processors, by host.
    pub host_cpu_count: Vec<u64>,
    /// What they are.
    pub host_processor_name: Option<String>,
    /// By host, 1 where its share of the data fits in its memory.
    pub potential_caching: Vec<u64>,
    /// `/proc/cpuinfo`, the last processor's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub host_cpuinfo: BTreeMap<String, String>,
    /// `/proc/meminfo`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub host_meminfo: BTreeMap<String, String>,
    /// Memory in GiB, by host.
    #[serde(rename = "host_memory_GB")]
    pub host_memory_gib: Vec<f64>,
    /// The data that a host reads, in GiB.
    #[serde(rename = "data_size_per_host_GB")]
    pub data_size_per_host_gib: Option<f64>,
    /// Epochs that were trained.
    pub epochs: Option<u64>,
    /// What else is in it.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// The figures of a summary. "MB" are MiB and "GB" are GiB in DLIO's names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Metric {
    #[serde(flatten)]
    pub train: Option<TrainMetric>,
    #[serde(flatten)]
    pub eval: Option<EvalMetric>,
    #[serde(flatten)]
    pub save: SaveMetric,
    #[serde(flatten)]
    pub load: LoadMetric,
    #[serde(rename = "checkpoint_size_GB", skip_serializing_if = "Option::is_none")]
    pub checkpoint_size_gib: Option<f64>,
}

/// Those of training.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TrainMetric {
    #[serde(rename = "train_au_percentage")]
    pub au: Vec<Option<f64>>,
    #[serde(rename = "train_au_mean_percentage")]
    pub au_mean: Option<f64>,
    #[serde(rename = "train_au_meet_expectation")]
    pub au_meet_expectation: Option<String>,
    #[serde(rename = "train_au_stdev_percentage")]
    pub au_stdev: Option<f64>,
    #[serde(rename = "train_throughput_samples_per_second")]
    pub samples_per_s: Vec<Option<f64>>,
    #[serde(rename = "train_throughput_mean_samples_per_second")]
    pub samples_per_s_mean: Option<f64>,
    #[serde(rename = "train_throughput_stdev_samples_per_second")]
    pub samples_per_s_stdev: Option<f64>,
    #[serde(rename = "train_io_mean_MB_per_second")]
    pub mib_per_s_mean: Option<f64>,
    #[serde(rename = "train_io_stdev_MB_per_second")]
    pub mib_per_s_stdev: Option<f64>,
}

/// Those of evaluations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct EvalMetric {
    #[serde(rename = "eval_au_percentage")]
    pub au: Vec<Option<f64>>,
    #[serde(rename = "eval_au_mean_percentage")]
    pub au_mean: Option<f64>,
    #[serde(rename = "eval_au_meet_expectation")]
    pub au_meet_expectation: Option<String>,
    #[serde(rename = "eval_au_stdev_percentage")]
    pub au_stdev: Option<f64>,
    #[serde(rename = "eval_throughput_samples_per_second")]
    pub samples_per_s: Vec<Option<f64>>,
    #[serde(rename = "eval_throughput_mean_samples_per_second")]
    pub samples_per_s_mean: Option<f64>,
    #[serde(rename = "eval_throughput_stdev_samples_per_second")]
    pub samples_per_s_stdev: Option<f64>,
    #[serde(rename = "eval_io_mean_MB_per_second")]
    pub mib_per_s_mean: Option<f64>,
    #[serde(rename = "eval_io_stdev_MB_per_second")]
    pub mib_per_s_stdev: Option<f64>,
}

/// Those of saving.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct SaveMetric {
    #[serde(rename = "save_checkpoint_io_mean_GB_per_second", skip_serializing_if = "Option::is_none")]
    pub gib_per_s_mean: Option<f64>,
    #[serde(rename = "save_checkpoint_io_stdev_GB_per_second", skip_serializing_if = "Option::is_none")]
    pub gib_per_s_stdev: Option<f64>,
    #[serde(rename = "save_checkpoint_duration_mean_seconds", skip_serializing_if = "Option::is_none")]
    pub duration_s_mean: Option<f64>,
    #[serde(rename = "save_checkpoint_duration_stdev_seconds", skip_serializing_if = "Option::is_none")]
    pub duration_s_stdev: Option<f64>,
}

/// Those of restoring.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct LoadMetric {
    #[serde(rename = "load_checkpoint_io_mean_GB_per_second", skip_serializing_if = "Option::is_none")]
    pub gib_per_s_mean: Option<f64>,
    #[serde(rename = "load_checkpoint_io_stdev_GB_per_second", skip_serializing_if = "Option::is_none")]
    pub gib_per_s_stdev: Option<f64>,
    #[serde(rename = "load_checkpoint_duration_mean_seconds", skip_serializing_if = "Option::is_none")]
    pub duration_s_mean: Option<f64>,
    #[serde(rename = "load_checkpoint_duration_stdev_seconds", skip_serializing_if = "Option::is_none")]
    pub duration_s_stdev: Option<f64>,
}

/// `<rank>_output.json`: per epoch, per block, the times of the steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Output {
    /// The host's name.
    #[serde(default)]
    pub hostname: Option<String>,
    /// By epoch, "1" first; other keys of the file are in it too.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// One epoch of it. The times of blocks are under `block1`, `block2`, …, those of an evaluation under `eval`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputEpoch {
    /// From asking for a batch to having it.
    pub load: BTreeMap<String, Vec<f64>>,
    /// From asking for a batch to the end of its step.
    pub proc: BTreeMap<String, Vec<f64>>,
    /// Samples a second.
    pub throughput: BTreeMap<String, Option<f64>>,
    /// Utilisation, in percent.
    pub au: BTreeMap<String, Option<f64>>,
    /// What each step computed.
    pub compute: BTreeMap<String, Vec<f64>>,
    /// `/proc/meminfo` at its start.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub host_meminfo: BTreeMap<String, String>,
}

impl Output {
    /// Puts an epoch in.
    ///
    /// # Errors
    /// None that a caller could cause: numbers, texts and lists of them are JSON.
    pub fn put(&mut self, epoch: u64, times: &OutputEpoch) -> Result<(), serde_json::Error> {
        self.rest.insert(epoch.to_string(), serde_json::to_value(times)?);
        Ok(())
    }

    /// The epochs, by number.
    ///
    /// # Errors
    /// When an epoch is not what DLIO writes.
    pub fn epochs(&self) -> Result<BTreeMap<u64, OutputEpoch>, serde_json::Error> {
        let numbered = self.rest.iter().filter_map(|(key, value)| Some((key.parse().ok()?, value)));
        numbered.map(|(epoch, value)| Ok((epoch, OutputEpoch::deserialize(value)?))).collect()
    }
}

/// `<rank>_per_epoch_stats.json`: when epochs, blocks, evaluations and checkpoints began and ended.
pub type PerEpochStats = BTreeMap<u64, EpochStats>;

/// One epoch of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EpochStats {
    /// When it began: local time with microseconds, without a zone.
    #[serde(default)]
    pub start: Option<String>,
    /// When it ended.
    #[serde(default)]
    pub end: Option<String>,
    /// Seconds between, with two digits, as a text.
    #[serde(default)]
    pub duration: Option<String>,
    /// What was in it: `block1`, `eval`, `save_ckpt1`, `load_ckpt1`.
    #[serde(flatten)]
    pub spans: BTreeMap<String, SpanStats>,
}

/// A time of an epoch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpanStats {
    /// When it began.
    pub start: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// Seconds between, with two digits, as a text.
    pub duration: Option<String>,
    /// Of a checkpoint: GiB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
}
