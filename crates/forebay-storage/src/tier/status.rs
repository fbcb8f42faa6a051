//! The actual state of a tier, as the kernel reports it.

use std::fmt;

use super::state::boot;
use super::throttle::{self, Controller};
use super::{Device, Kind, Result, Stage, Tier, loop_device, mounts};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Up,
    /// Mounted, but its limits are not in force.
    Unlimited,
    /// Unmounted, or its folder removed, by hand.
    Unmounted,
    /// Its image exists, but the machine was rebooted since.
    EarlierBoot,
    /// Bringing it up or taking it down was interrupted.
    Half(Stage),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Unlimited => "mounted without its limits",
            Self::Unmounted => "down (unmounted by hand)",
            Self::EarlierBoot => "down (left by an earlier boot)",
            Self::Half(Stage::Removal) => "partly removed",
            Self::Half(_) => "partly up",
        })
    }
}

impl Condition {
    /// How to fix a tier that is not up.
    pub fn remedy(self, name: &str) -> Option<String> {
        match self {
            Self::Up => None,
            Self::Half(Stage::Removal) => Some(format!("run `forebay tier down {name}` to finish the removal")),
            _ => {
                Some(format!("run `forebay tier up {name}` to bring it up, or `forebay tier down {name}` to remove it"))
            }
        }
    }
}

/// What the kernel reports about a tier now, in contrast to its state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub condition: Condition,
    /// The loop device that serves it now.
    pub device: Option<Device>,
    /// Bytes its file system holds; `None` when it is not mounted, or shaped.
    pub size_bytes: Option<u64>,
    pub used_bytes: Option<u64>,
    /// Free bytes; `None` when it is not up.
    pub free_bytes: Option<u64>,
    /// Whether the limits hold for this process; `None` when there are none.
    pub reaches_caller: Option<bool>,
}

impl Tier {
    /// Inspects the tier.
    ///
    /// # Errors
    /// When the mount table or the list of block devices cannot be read.
    pub fn status(&self) -> Result<Status> {
        match self.kind {
            Kind::Shaped => Ok(self.shaped_status()),
            Kind::Kernel => self.kernel_status(),
        }
    }

    fn shaped_status(&self) -> Status {
        let condition = match self.stage {
            Stage::Up if self.data().is_dir() => Condition::Up,
            Stage::Up => Condition::Unmounted,
            stage => Condition::Half(stage),
        };
        let free_bytes = mounts::space(&self.data()).ok().map(|space| space.free);
        Status {
            condition,
            device: None,
            size_bytes: None,
            used_bytes: None,
            free_bytes: free_bytes.filter(|_| condition == Condition::Up),
            reaches_caller: None,
        }
    }

    fn kernel_status(&self) -> Result<Status> {
        let table = mounts::table()?;
        let device = loop_device::attached(&self.image())?.into_iter().next();
        let is_mounted = device.as_ref().is_some_and(|device| mounts::is_mounted(&table, device, &self.data()));
        let condition = match self.stage {
            Stage::Removal => Condition::Half(Stage::Removal),
            _ if self.boot != boot() && !is_mounted => Condition::EarlierBoot,
            Stage::Up if !is_mounted => Condition::Unmounted,
            Stage::Up if !throttle::in_force(&self.lines) => Condition::Unlimited,
            Stage::Up => Condition::Up,
            stage => Condition::Half(stage),
        };
        let space = is_mounted.then(|| mounts::space(&self.data()).ok()).flatten();
        let reaches = || Some(Controller::of_this_machine().ok()?.is_reached_by(&self.lines));
        Ok(Status {
            condition,
            device,
            size_bytes: space.map(|space| space.total),
            used_bytes: space.map(|space| space.used),
            free_bytes: space.map(|space| space.free).filter(|_| condition == Condition::Up),
            reaches_caller: if condition == Condition::Up { reaches() } else { None },
        })
    }
}
