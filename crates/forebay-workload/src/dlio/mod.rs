//! DLIO's own results: `summary.json`, `<rank>_output.json`, `<rank>_per_epoch_stats.json`, `.hydra/`.
//!
//! They are another program's files and differ between versions: needed values are taken, oddities are noted
//! ([`Run::odd`]), and a folder is refused only if it contains nothing usable. The files are not always JSON: for a missing
//! figure Python writes `NaN`, which [`parse`] reads as null.

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

/// The needed parts of `summary.json`, which rank 0 writes at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Start of the run in local time, without a time zone.
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

/// DLIO's figures of training. Its "MB" are MiB.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Printed {
    /// Accelerator utilisation by epoch, in percent.
    pub au: Vec<Option<f64>>,
    pub au_mean: Option<f64>,
    pub samples_per_s_mean: Option<f64>,
    /// Mean MiB per second, computed from the configured record length.
    pub mib_per_s_mean: Option<f64>,
}
