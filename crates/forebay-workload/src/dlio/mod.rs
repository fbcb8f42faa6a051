//! DLIO's own results: `summary.json`, `<rank>_output.json`, `<rank>_per_epoch_stats.json`, `.hydra/`.
//!
//! They are another program's files, and differ from version to version: what is needed is taken, what is odd is noted
//! ([`Run::odd`]), and a folder is refused only where nothing can be said. Its files are not always JSON: where a figure is
//! missing Python writes `NaN`, which [`parse`] takes for nothing.

mod batch;
mod config;
mod found;
mod lenient;
mod read;
mod run;

pub use config::{config_yaml, overrides_yaml};
pub use lenient::parse;
pub use read::{ReadError, read_run};
pub use run::{BlockRun, EpochRun, RankRun, Run, SaveRun, Span, Version};

/// What is needed of `summary.json`, which the first rank alone writes at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// When the run began: local time, without a zone.
    pub start: Option<String>,
    pub num_accelerators: Option<u64>,
    pub hostname: Option<String>,
    pub num_files_train: Option<u64>,
    pub num_samples_per_file: Option<u64>,
    pub host_cpu_count: Option<u64>,
    /// Memory of the first host, in GiB.
    pub host_memory_gib: Option<f64>,
    /// Whether a host's share of the data fits in its memory.
    pub may_be_cached: bool,
    pub train: Printed,
    /// Size of a checkpoint over all ranks, in GiB.
    pub checkpoint_size_gib: Option<f64>,
}

/// What DLIO printed of training. Its "MB" are MiB.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Printed {
    /// Accelerator utilisation by epoch, in percent.
    pub au: Vec<Option<f64>>,
    pub au_mean: Option<f64>,
    pub samples_per_s_mean: Option<f64>,
    /// The mean of MiB per second, of the configured length.
    pub mib_per_s_mean: Option<f64>,
}
