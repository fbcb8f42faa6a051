//! A workload with everything settled: data, checkpoints, devices, results.

use std::path::PathBuf;

use forebay_measure::Place;
use forebay_storage::Profile;
use forebay_workload::Workload;

use super::settings::WorkloadSettings;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Without a threshold the workload's own applies; DLIO's figure is shown beside it and decides nothing.
    pub settings: WorkloadSettings,
    /// With overrides and [settings](WorkloadSettings::apply) applied.
    pub workload: Workload,
    /// The folder that holds `train` and `valid`.
    pub data: PathBuf,
    /// One folder per rank (`rank-0000`), which keeps the two newest checkpoints, or those that are read back.
    pub checkpoints: Place,
    /// Otherwise checkpoints go to a scratch folder inside `checkpoints`, which the first rank creates and which is removed at the end.
    pub keeps_checkpoints: bool,
    /// Each rank writes `access-<rank>.csv` here, covering training and evaluations.
    pub access_log: Option<PathBuf>,
    /// Emulated in process, for the data only; checkpoints have one of their own, or none.
    pub tier: Option<Profile>,
    /// For DLIO's result files.
    pub out: Option<PathBuf>,
}
