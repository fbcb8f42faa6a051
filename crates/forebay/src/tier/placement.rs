//! What data stands on: nothing of ours, a shaped tier, or one that the kernel limits.

use std::path::Path;

use anyhow::Result;
use forebay_storage::Profile;
use forebay_storage::tier::Kind;

use super::registry;
use super::up::describe;

/// The tier below a dataset.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// The device that this process has to emulate.
    pub(crate) shaped: Option<Profile>,
    /// The device that the kernel emulates.
    pub(crate) kernel: Option<Profile>,
    /// What the record should say of it.
    pub(crate) notes: Vec<String>,
}

impl Placement {
    /// What the record should say of it when `tier` is asked for on the command line.
    pub(crate) fn notes_beside(&self, tier: Option<&Profile>) -> Vec<String> {
        let mut notes = self.notes.clone();
        match (tier, &self.kernel) {
            (Some(tier), None) if self.shaped.is_some() => {
                if let Some(first) = notes.first_mut() {
                    first.push_str(&format!("; but --tier {} is used instead", tier.name));
                }
            }
            (Some(tier), Some(kernel)) => notes.push(format!(
                "both limits act: --tier {} is shaped in this process, on top of what the kernel allows the tier {}",
                tier.name, kernel.name
            )),
            _ => {}
        }
        notes
    }
}

/// The tier that this file or folder lies on; an error where that is not up, for the bare disk would be measured.
pub(crate) fn placement(data: &Path) -> Result<Placement> {
    // Without a home there are no tiers.
    let Ok(registry) = registry() else { return Ok(Placement::default()) };
    let Some(tier) = registry.ground(data)? else { return Ok(Placement::default()) };
    let mut notes = vec![format!("the data lies on the tier {}: {}", tier.name, describe(&tier))];
    if tier.status()?.reaches_caller == Some(false) {
        notes.push(format!(
            "the limits of the tier {} do not reach this process, whose control group they were not set for: forebay tier up \
             from this group sets them",
            tier.name
        ));
        return Ok(Placement { notes, ..Placement::default() });
    }
    let profile = Some(tier.profile);
    Ok(match tier.kind {
        Kind::Shaped => Placement { shaped: profile, kernel: None, notes },
        Kind::Kernel => Placement { shaped: None, kernel: profile, notes },
    })
}
