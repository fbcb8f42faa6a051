//! Finds the device of a folder: a real one, a shaped tier, or a kernel tier.

use std::path::Path;

use anyhow::{Result, bail};
use forebay_measure::Place;
use forebay_storage::tier::Kind;
use forebay_storage::{Profile, is_url};
use forebay_study::Placement;
use forebay_units::PathText;

use super::registry;
use super::up::describe;

/// A folder for checkpoints with its tier, or the one given by a flag, and notes for the record.
pub(crate) fn place(dir: &Path, named: Option<&Profile>) -> Result<(Place, Vec<String>)> {
    if is_url(dir) {
        return match named {
            Some(_) => bail!("{}: a device is emulated for local folders, not for an object store", dir.escaped()),
            None => Ok((Place::new(dir), Vec::new())),
        };
    }
    let placement = placement(dir)?;
    let notes = placement.notes_with(named);
    let shaped = named.cloned().or(placement.shaped);
    Ok((Place { shaped, kernel: placement.kernel, ..Place::new(dir) }, notes))
}

/// The tier of a file or folder; an error if it is not up, since the disk below would be measured.
pub(crate) fn placement(data: &Path) -> Result<Placement> {
    // Without a home folder there are no tiers.
    let Ok(registry) = registry() else { return Ok(Placement::default()) };
    let Some(tier) = registry.ground(data)? else { return Ok(Placement::default()) };
    let mut notes = vec![format!("the data is on tier {}: {}", tier.name, describe(&tier))];
    if tier.status()?.reaches_caller == Some(false) {
        notes.push(format!(
            "the limits of tier {} do not apply to this process's control group; run `forebay tier up` in this group",
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
