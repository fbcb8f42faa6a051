//! Taking a tier down, from any state: limits, mount, loop device, image, folders, state.
//!
//! Only the tier's place and its limits are taken from the state file. The limits go first, because writing back dirty
//! pages at the tier's own rate could take minutes. If the mount is then found to be in use, they are set again.

use std::path::PathBuf;

use forebay_units::PathText;

use super::mounts::{self, Mount};
use super::registry::{refuse_strangers, strangers};
use super::removal::{self, Content};
use super::state::{DATA, IMAGE, STATE, boot};
use super::{Device, Error, Kind, Moment, Registry, Result, Stage, Tier, Watch, loop_device, tell, throttle};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub name: String,
    pub place: PathBuf,
    /// Bytes of the image; `None` when there was none.
    pub image_bytes: Option<u64>,
    /// Bytes used on it, or of the files of a shaped tier; `None` when they could not be read.
    pub data_bytes: Option<u64>,
    /// Counted for a shaped tier only; the files of a kernel tier go with its image.
    pub n_files: Option<u64>,
    /// What could not be undone because it no longer belongs to the tier.
    pub notes: Vec<String>,
}

impl Registry {
    /// Removes a tier with all its data, even an incomplete one. `None` when no tier has that name.
    ///
    /// # Errors
    /// [`Error::Busy`] when a process uses it; the tier then stays up. [`Error::Foreign`] when its folders contain files
    /// that do not belong to the tier. See [`Error::hint`] for the fix.
    pub fn down(&self, name: &str, watch: Watch<'_>) -> Result<Option<Removed>> {
        super::plan::check_name(name)?;
        if !self.dir.join(name).exists() {
            return Ok(None);
        }
        let lock = self.lock()?;
        let home = lock.dir.join(name);
        match Tier::read(&home)? {
            Some(mut tier) => lower(&home, &mut tier, watch).map(Some),
            // Killed before the first state was written, or after the last was removed.
            None if home.is_dir() && strangers(&home, &[])?.is_empty() => {
                removal::remove_state(&home)?;
                Ok(None)
            }
            None => Ok(None),
        }
    }
}

pub(super) fn lower(home: &std::path::Path, tier: &mut Tier, watch: Watch<'_>) -> Result<Removed> {
    refuse_strangers(&tier.place, &[STATE, IMAGE, DATA])?;
    let mut removed = Removed {
        name: tier.name.clone(),
        place: tier.place.clone(),
        image_bytes: None,
        data_bytes: None,
        n_files: None,
        notes: Vec::new(),
    };
    let devices = match tier.kind {
        Kind::Kernel => loop_device::attached(&tier.image())?,
        Kind::Shaped => Vec::new(),
    };
    let table = mounts::table()?;
    refuse_other_mounts(&table, &devices, tier)?;
    if tier.kind == Kind::Kernel && !devices.iter().any(|device| mounts::is_mounted(&table, device, &tier.data())) {
        // The tier's own data is in the image: files here belong to somebody else.
        refuse_strangers(&tier.data(), &[])?;
    }
    let was = tier.stage;
    tier.stage = Stage::Removal;
    tier.write(home)?;
    if tier.kind == Kind::Kernel {
        removed.data_bytes = release(home, tier, &devices, was, &mut removed.notes, watch)?;
        // Files hidden by the mount do not belong to the tier either.
        refuse_strangers(&tier.data(), &[])?;
    }
    let Content { image_bytes, data } = removal::remove(home, tier, watch)?;
    removed.image_bytes = image_bytes;
    if tier.kind == Kind::Shaped {
        (removed.data_bytes, removed.n_files) = (Some(data.bytes), Some(data.n_files));
    }
    Ok(removed)
}

/// Releases mount and loop device; returns the number of bytes used.
fn release(
    home: &std::path::Path,
    tier: &mut Tier,
    devices: &[Device],
    was: Stage,
    notes: &mut Vec<String>,
    watch: Watch<'_>,
) -> Result<Option<u64>> {
    let limited = clear_limits(tier, devices, notes)?;
    tell(watch, Moment::Undone(Stage::Throttle))?;
    let data = tier.data();
    let mut used = None;
    while devices.iter().any(|device| mounts::table().is_ok_and(|table| mounts::is_mounted(&table, device, &data))) {
        used = mounts::space(&data).ok().map(|space| space.used);
        if let Err(error) = mounts::unmount(&data) {
            if limited && was != Stage::Removal {
                throttle::apply(&tier.lines)?;
                tier.stage = was;
                tier.write(home)?;
            }
            return Err(error);
        }
    }
    tell(watch, Moment::Undone(Stage::Mount))?;
    devices.iter().try_for_each(loop_device::detach)?;
    tell(watch, Moment::Undone(Stage::Loop))?;
    Ok(used)
}

/// Removes our limits, unless they are from an earlier boot or the device now serves another file.
fn clear_limits(tier: &Tier, devices: &[Device], notes: &mut Vec<String>) -> Result<bool> {
    let taken =
        tier.device.as_ref().filter(|device| loop_device::is_bound(&device.number) && !devices.contains(device));
    if let Some(device) = taken {
        let path = device.path.escaped();
        notes.push(format!("{path} now serves another file; its limits were not removed"));
    }
    if taken.is_some() || tier.boot != boot() {
        return Ok(false);
    }
    throttle::clear(&tier.lines)?;
    Ok(true)
}

/// Refuses to remove a tier whose device is also mounted elsewhere, or whose folder has other mounts.
fn refuse_other_mounts(table: &[Mount], devices: &[Device], tier: &Tier) -> Result<()> {
    let data = tier.data();
    for mount in table {
        let is_ours = devices.iter().any(|device| device.number == mount.number);
        let where_ = match () {
            () if mount.point == data && is_ours => continue,
            () if is_ours => format!("in addition to {}", data.escaped()),
            () if mount.point.starts_with(&tier.place) => format!("inside {}", tier.place.escaped()),
            () => continue,
        };
        return Err(Error::MountInTheWay { point: mount.point.clone(), where_ });
    }
    Ok(())
}
