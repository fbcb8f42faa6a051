//! The schemas of the JSON that commands write.
//!
//! A command writes a record, a report, or its own findings. The schema of findings is named after the command:
//! `forebay-data-inspect/1`. The number changes when a field is removed or changes its meaning.

/// The findings of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    CheckpointConvert,
    CheckpointDrain,
    CheckpointLs,
    CheckpointPrune,
    CheckpointRestore,
    CheckpointVerify,
    DataInspect,
    DataVerify,
    Doctor,
    TierList,
    WorkloadCheck,
    WorkloadList,
    WorkloadShow,
    WorkloadSize,
}

impl Schema {
    pub(crate) const ALL: [Self; 14] = [
        Self::CheckpointConvert,
        Self::CheckpointDrain,
        Self::CheckpointLs,
        Self::CheckpointPrune,
        Self::CheckpointRestore,
        Self::CheckpointVerify,
        Self::DataInspect,
        Self::DataVerify,
        Self::Doctor,
        Self::TierList,
        Self::WorkloadCheck,
        Self::WorkloadList,
        Self::WorkloadShow,
        Self::WorkloadSize,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CheckpointConvert => "forebay-checkpoint-convert/1",
            Self::CheckpointDrain => "forebay-checkpoint-drain/1",
            Self::CheckpointLs => "forebay-checkpoint-ls/1",
            Self::CheckpointPrune => "forebay-checkpoint-prune/1",
            Self::CheckpointRestore => "forebay-checkpoint-restore/1",
            Self::CheckpointVerify => "forebay-checkpoint-verify/1",
            Self::DataInspect => "forebay-data-inspect/1",
            Self::DataVerify => "forebay-data-verify/1",
            Self::Doctor => "forebay-doctor/1",
            Self::TierList => "forebay-tier-list/1",
            Self::WorkloadCheck => "forebay-workload-check/1",
            Self::WorkloadList => "forebay-workload-list/1",
            Self::WorkloadShow => "forebay-workload-show/1",
            Self::WorkloadSize => "forebay-workload-size/1",
        }
    }

    /// Whether the schema is of JSON that a command writes. Manifests and markers of datasets are data and do not count.
    pub(super) fn is_ours(name: &str) -> bool {
        // Earlier versions used one schema for all findings.
        let shared = ["forebay-record/", "forebay-report/", "forebay-findings/"];
        let own = Self::ALL.iter().map(|schema| schema.name().trim_end_matches(char::is_numeric));
        shared.into_iter().chain(own).any(|ours| name.starts_with(ours))
    }
}
