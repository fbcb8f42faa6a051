//! Where the checkpoints of a workload go, possibly another device than the data's.

use serde::{Deserialize, Serialize};

use crate::Medium;

/// Where the checkpoints of a workload are written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointPlace {
    /// Folder of the checkpoints; when they are removed at the end, the parent of their scratch folder.
    pub path: String,
    /// File system of the folder (type and device, such as "ext4 on /dev/vda"), and the tier if one is emulated.
    #[serde(default)]
    pub medium: Medium,
    /// Whether the dataset is on the same file system; `None` where no data is read.
    #[serde(default)]
    pub is_with_data: Option<bool>,
    /// Whether the checkpoints are removed at the end of the run.
    #[serde(default)]
    pub is_removed: bool,
}

impl CheckpointPlace {
    /// For display: "results/checkpoints (ext4 on /dev/vda)".
    pub fn describe(&self) -> String {
        let path = &self.path;
        let mut words: Vec<String> = self.device().into_iter().collect();
        words.extend(self.is_removed.then(|| "removed at the end".to_owned()));
        let within = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        if self.is_removed { format!("a scratch folder in {path}{within}") } else { format!("{path}{within}") }
    }

    /// For display: "ext4 on /dev/vda", "hdd, emulated in this process, over ext4 on /dev/vda".
    pub fn device(&self) -> Option<String> {
        let Medium { storage, tier, kind, .. } = &self.medium;
        let kind = kind.map(|kind| format!(", {}", kind.describe())).unwrap_or_default();
        match (tier, storage.as_str()) {
            (None, "") => None,
            (None, system) => Some(system.to_owned()),
            (Some(tier), "") => Some(format!("the tier {tier}{kind}")),
            (Some(tier), system) => Some(format!("the tier {tier}{kind}, on {system}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TierKind;

    #[test]
    fn a_place_is_named_with_its_device_and_whether_it_stays() {
        let mut place = CheckpointPlace { path: "out/checkpoints".to_owned(), ..CheckpointPlace::default() };
        assert_eq!(place.describe(), "out/checkpoints");
        place.medium.storage = "ext4 on /dev/vda".to_owned();
        assert_eq!(place.describe(), "out/checkpoints (ext4 on /dev/vda)");
        place.is_removed = true;
        assert_eq!(place.describe(), "a scratch folder in out/checkpoints (ext4 on /dev/vda, removed at the end)");
        (place.medium.tier, place.medium.kind) = (Some("hdd".to_owned()), Some(TierKind::Kernel));
        let device = format!("the tier hdd, {}, on ext4 on /dev/vda", TierKind::Kernel.describe());
        assert_eq!(place.device(), Some(device));
    }
}
