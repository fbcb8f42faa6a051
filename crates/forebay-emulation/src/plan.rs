//! A complete description of a run: workload, data, checkpoints, devices, results.

use std::path::PathBuf;

use forebay_measure::Place;
use forebay_storage::Profile;
use forebay_workload::Workload;

use super::settings::WorkloadSettings;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Without a threshold the workload's own applies; DLIO's figure is shown beside it but not compared with it.
    pub settings: WorkloadSettings,
    /// With overrides and [settings](WorkloadSettings::apply) applied.
    pub workload: Workload,
    /// The folder that holds `train` and `valid`.
    pub data: PathBuf,
    /// One folder per rank (`rank-0000`), which keeps the two newest checkpoints, or those that are read back.
    pub checkpoints: Place,
    /// If false, checkpoints go to a scratch folder in `checkpoints`, which the first rank creates and removes at the
    /// end.
    pub keeps_checkpoints: bool,
    /// Each rank writes `access-<rank>.csv` here, covering training and evaluations.
    pub access_log: Option<PathBuf>,
    /// Emulated in process, for the data only; checkpoints may have a tier of their own.
    pub tier: Option<Profile>,
    /// For DLIO's result files.
    pub out: Option<PathBuf>,
}
