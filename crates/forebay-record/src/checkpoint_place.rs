//! Where the checkpoints of a workload go, which may be another device than the data's.

use serde::{Deserialize, Serialize};

use crate::Medium;

/// The folder that checkpoints go to, and what it lies on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CheckpointPlace {
    /// The folder; of checkpoints that do not stay, the one that their scratch folder is made in.
    pub path: String,
    /// Its file system (type and device, as "ext4 on /dev/vda"), and the tier that is emulated there.
    #[serde(default)]
    pub medium: Medium,
    /// Whether the data lies on the same file system; `None` where no data is read.
    #[serde(default)]
    pub is_with_data: Option<bool>,
    /// Whether the checkpoints are removed when the run is over.
    #[serde(default)]
    pub is_removed: bool,
}

impl CheckpointPlace {
    /// In words: "results/checkpoints (ext4 on /dev/vda)".
    pub fn describe(&self) -> String {
        let path = &self.path;
        let mut words: Vec<String> = self.device().into_iter().collect();
        words.extend(self.is_removed.then(|| "removed at the end".to_owned()));
        let within = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        if self.is_removed { format!("a scratch folder in {path}{within}") } else { format!("{path}{within}") }
    }

    /// What it lies on: "ext4 on /dev/vda", "hdd, emulated in this process, over ext4 on /dev/vda".
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
