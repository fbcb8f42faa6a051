//! What a rank sends to the first one when the run is over.

use forebay_record::{CacheEvidence, Disturbed, Reads, WorkloadRank};
use serde::{Deserialize, Serialize};

use super::host::Host;
use super::times::{Epoch, Saved};

/// One process's part of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct RankReport {
    pub(super) process: WorkloadRank,
    /// The cores it may use, and those that the machine has.
    pub(super) cores: Vec<u32>,
    pub(super) n_online: u64,
    /// The memory of its host.
    pub(super) memory_bytes: Option<u64>,
    /// What DLIO's files say of its host.
    pub(super) host: Host,
    pub(super) epochs: Vec<Epoch>,
    pub(super) saves: Vec<Saved>,
    pub(super) is_stopped: bool,
    /// Where the training data came from.
    pub(super) evidence: CacheEvidence,
    /// Where the checkpoints came from that were read back.
    pub(super) restored: Option<CacheEvidence>,
    pub(super) cpu_s: f64,
    /// From the start of the process to that of the run's clock.
    pub(super) age_s: Option<f64>,
    /// What other processes did meanwhile; `None` also where that is not watched.
    pub(super) disturbed: Option<Disturbed>,
    pub(super) reads: Option<Reads>,
    /// In what the data was made otherwise than the workload says.
    pub(super) otherwise: Vec<String>,
    pub(super) notes: Vec<String>,
}
