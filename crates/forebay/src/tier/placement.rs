//! What data stands on: nothing of ours, a shaped tier, or one that the kernel limits.

use std::path::Path;

use anyhow::Result;
use forebay_measure::Place;
use forebay_storage::Profile;
use forebay_storage::tier::Kind;
use forebay_study::Placement;

use super::registry;
use super::up::describe;

/// A folder for checkpoints on its tier, or on the one that a flag names; and what the record should note.
pub(crate) fn place(dir: &Path, named: Option<&Profile>) -> Result<(Place, Vec<String>)> {
    let placement = placement(dir)?;
    let notes = placement.notes_beside(named);
    let shaped = named.cloned().or(placement.shaped);
    Ok((Place { dir: dir.to_owned(), shaped, kernel: placement.kernel }, notes))
}

/// The tier that this file or folder lies on; an error where that is not up, for the bare disk would be measured.
pub(crate) fn placement(data: &Path) -> Result<Placement> {
    // Without a home there are no tiers.
    let Ok(registry) = registry() else { return Ok(Placement::default()) };
    let Some(tier) = registry.ground(data)? else { return Ok(Placement::default()) };
    let mut notes = vec![format!("the data is on tier {}: {}", tier.name, describe(&tier))];
    if tier.status()?.reaches_caller == Some(false) {
        notes.push(format!(
            "the limits of the tier {} do not apply to this process's control group; `forebay tier up` from this group sets \
             them",
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
