//! A tier's state file, which is written ahead of every step.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::throttle::Line;
use super::{Error, FileSystem, Kind, Result};
use crate::error::Context;
use crate::{Local, Operation, Profile, Storage};

pub(super) const STATE: &str = "tier.json";
pub(super) const IMAGE: &str = "disk.img";
/// The name of the mount point or of the shaped folder.
pub(super) const DATA: &str = "data";

/// The next step, or the one that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Folders,
    Image,
    Format,
    Loop,
    Mount,
    Throttle,
    Up,
    Removal,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    #[serde(with = "forebay_units::serde_path")]
    pub path: PathBuf,
    /// Its number as the kernel writes it: `7:0`.
    pub number: String,
}

/// A tier as its state file describes it. The actual state is in [`Status`](super::Status).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    pub name: String,
    pub kind: Kind,
    /// The tier's folder.
    #[serde(with = "forebay_units::serde_path")]
    pub place: PathBuf,
    pub profile: Profile,
    /// Limit on requests per second, for reads and for writes each; `None` for no limit.
    pub iops: Option<u64>,
    /// Bytes of the image; `None` for a shaped tier.
    pub size: Option<u64>,
    /// Its file system; `None` for a shaped tier.
    pub fs: Option<FileSystem>,
    pub stage: Stage,
    /// The loop device it was last attached to.
    pub device: Option<Device>,
    /// When the limits were last set, in nanoseconds since 1970, by the clock used for file timestamps.
    #[serde(default)]
    pub limited_at_ns: Option<u64>,
    /// The boot in which the state was written.
    pub(super) boot: String,
    /// The limits that were set or are about to be, each with the line that undoes it.
    pub(super) lines: Vec<Line>,
}

impl Tier {
    /// The data folder: the mount point or the shaped folder.
    pub fn data(&self) -> PathBuf {
        self.place.join(DATA)
    }

    /// The depth of its folder: a tier on another tier is deeper.
    pub fn depth(&self) -> usize {
        self.place.components().count()
    }

    pub(super) fn image(&self) -> PathBuf {
        self.place.join(IMAGE)
    }

    /// Reads the state file of the tier in this folder; `None` when there is none.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(STATE);
        let text = match fs::read_to_string(&path) {
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => return Ok(None),
            read => read.context(Operation::Read, &path)?,
        };
        serde_json::from_str(&text).map(Some).map_err(|source| Error::State { path, source })
    }

    /// Replaces the file atomically and durably: a reader sees the old state or the new one.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(STATE);
        let text = serde_json::to_string_pretty(self).map_err(|source| Error::State { path: path.clone(), source })?;
        let mut writer = Local::default().create(&path)?;
        writer.write(text.as_bytes())?;
        writer.write(b"\n")?;
        Ok(writer.commit()?)
    }
}

/// The id of this boot: limits, mounts and loop devices do not outlive it.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
