//! What a run of a workload is going to do.

use std::path::PathBuf;

use forebay_measure::Place;
use forebay_storage::Profile;
use forebay_workload::Workload;

use super::settings::WorkloadSettings;

/// One run of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How it is run. A threshold that is not given is the one the workload states; DLIO's figure is shown beside it and decides
    /// nothing.
    pub settings: WorkloadSettings,
    /// The workload, with overrides and [settings](WorkloadSettings::apply) applied.
    pub workload: Workload,
    /// The folder that holds `train` and `valid`.
    pub data: PathBuf,
    /// Where checkpoints go, one folder a rank (`rank-0000`), in which the two newest stay, or those that are read back.
    pub checkpoints: Place,
    /// Whether checkpoints stay. Those that do not go to a scratch folder that the first rank makes in the folder above and that
    /// is gone at the end.
    pub keeps_checkpoints: bool,
    /// The folder where each rank writes which sample it read when, in training and in evaluations, as `access-<rank>.csv`; `None`:
    /// nowhere.
    pub access_log: Option<PathBuf>,
    /// A device that is emulated in process for the data; checkpoints have one of their own, or none.
    pub tier: Option<Profile>,
    /// Where DLIO's result files go; `None`: nowhere.
    pub out: Option<PathBuf>,
}
