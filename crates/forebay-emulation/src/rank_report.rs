//! The report of a rank to the first rank at the end of the run.

use forebay_record::{CacheEvidence, Disturbed, Reads, WorkloadRank};
use serde::{Deserialize, Serialize};

use super::host::Host;
use super::times::{Epoch, Saved};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct RankReport {
    pub(super) process: WorkloadRank,
    /// Cores it may use, and those of the machine.
    pub(super) cores: Vec<u32>,
    pub(super) n_online: u64,
    /// Of its host.
    pub(super) memory_bytes: Option<u64>,
    /// For DLIO's files.
    pub(super) host: Host,
    pub(super) epochs: Vec<Epoch>,
    pub(super) saves: Vec<Saved>,
    pub(super) is_stopped: bool,
    /// Of the training data.
    pub(super) evidence: CacheEvidence,
    /// Of restored checkpoints.
    pub(super) restored: Option<CacheEvidence>,
    pub(super) cpu_s: f64,
    /// From the start of the process to the start of the run's clock.
    pub(super) age_s: Option<f64>,
    /// `None` also if disturbance is not observed.
    pub(super) disturbed: Option<Disturbed>,
    pub(super) reads: Option<Reads>,
    /// Differences between existing data and the workload.
    pub(super) otherwise: Vec<String>,
    pub(super) notes: Vec<String>,
}
