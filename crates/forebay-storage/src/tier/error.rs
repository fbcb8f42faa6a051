//! What can go wrong with a tier, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText, shell_word};

use super::{Condition, FileSystem, Kind, Moment};

/// The result of an operation on tiers.
pub type Result<T> = std::result::Result<T, Error>;

/// Bringing up, inspecting or taking down a tier failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not usable as a folder name.
    #[error("\"{name}\" is not a valid tier name")]
    BadName { name: String },
    /// The name is not a profile, and no rates were given.
    #[error("\"{name}\" is neither an existing tier nor a profile, so its rates are unknown")]
    RatesMissing { name: String },
    /// A rate at which even unmounting would take hours.
    #[error("{what} limit of {value} is too low")]
    TooSlow { what: &'static str, value: String },
    #[error("{what} limit of {value} is too high")]
    TooFast { what: &'static str, value: String },
    /// The file system does not fit on the image.
    #[error("image size {} is too small for {fs}", Bytes(*size))]
    TooSmall {
        fs: FileSystem,
        size: u64,
        /// Depends on the file system: see `FileSystem::least_size`.
        least: u64,
    },
    /// The tier exists with other properties that cannot be changed.
    #[error("tier {name} already exists with {has}; requested {wanted}")]
    Differs { name: String, has: String, wanted: String },
    /// The tier exists and is emulated by the other mechanism.
    #[error("tier {name} already exists as a {has} tier; requested a {wanted} tier")]
    OtherKind { name: String, has: Kind, wanted: Kind },
    /// The tier is being removed, or its removal was interrupted.
    #[error("tier {name} is only partly removed")]
    HalfRemoved { name: String },
    /// A measurement there would show the underlying disk, not the tier.
    #[error("{} is in the folder of tier {name}, which is not up: {condition}", path.escaped())]
    NotUp { path: PathBuf, name: String, condition: Condition },
    /// The tier's folder contains files that are not ours.
    #[error("{} is not empty", path.escaped())]
    Occupied { path: PathBuf },
    /// The image is too big for the disk.
    #[error("{} has {} free; the image needs {}", path.escaped(), Bytes(*free), Bytes(*wanted))]
    NoSpace { path: PathBuf, wanted: u64, free: u64 },
    /// The image of a tier was removed by another program.
    #[error("image {} no longer exists; its data is lost", path.escaped())]
    ImageGone { path: PathBuf, name: String },
    /// The program that makes the file system was not found.
    #[error("{program} is not installed")]
    MkfsMissing { program: &'static str, package: &'static str },
    /// The program that makes the file system failed.
    #[error("{program} failed on {}: {said}", path.escaped())]
    Mkfs {
        program: &'static str,
        path: PathBuf,
        /// The program's standard error, on one line.
        said: String,
    },
    /// There are no loop devices here.
    #[error("opening {}: no loop device available", path.escaped())]
    NoLoop {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("mounting {} on {}", device.escaped(), path.escaped())]
    MountRefused {
        device: PathBuf,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is in use{}", path.escaped(), Holders(holders))]
    Busy {
        path: PathBuf,
        /// Processes with an open file or their working folder there.
        holders: Vec<String>,
    },
    /// Something else is mounted there, or the device is also mounted elsewhere.
    #[error("{} is mounted {where_}", point.escaped())]
    MountInTheWay { point: PathBuf, where_: String },
    /// The loop device was not released.
    #[error("{} is still in use after unmounting, probably by a mount in another namespace", device.escaped())]
    StillHeld { device: PathBuf },
    #[error("found neither the blkio controller (cgroup v1) nor the io controller (cgroup v2)")]
    NoController,
    /// The controller exists, but the kernel has no block throttle.
    #[error("{} does not exist: this kernel was built without block throttling", path.escaped())]
    NoThrottling { path: PathBuf },
    /// This process is in a group that cannot have limits.
    #[error("this process is in the root group of cgroup v2, which cannot have limits")]
    RootGroup { root: PathBuf },
    #[error("writing \"{line}\" to {}", path.escaped())]
    Limit {
        path: PathBuf,
        line: String,
        #[source]
        source: io::Error,
    },
    #[error("{} contains files that do not belong to the tier: {found}", path.escaped())]
    Foreign { path: PathBuf, found: String },
    /// The state file cannot be parsed.
    #[error("{} is not a tier's state file", path.escaped())]
    State {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("stopped at {moment:?}")]
    Stopped { moment: Moment },
    /// The state file could not be read or written.
    #[error(transparent)]
    Storage(#[from] crate::Error),
    #[error("{attempted} {}", path.escaped())]
    Io {
        attempted: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

struct Holders<'a>(&'a [String]);

impl fmt::Display for Holders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " by {}", self.0.join(", ")) }
    }
}

const SHAPE_INSTEAD: &str = "use --shaped, which emulates the device in process without privileges";

impl Error {
    /// How to fix it, in one sentence.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BadName { .. } => {
                "use at most 64 letters, digits, - and _, starting with a letter or digit".to_owned()
            }
            Self::RatesMissing { .. } => {
                format!("pass --read and --write, or use a profile: {}", crate::Profile::NAMES.join(", "))
            }
            Self::TooSlow { .. } => "use at least 64 KB/s and 1 request per second".to_owned(),
            Self::TooFast { .. } => "use at most 1 TB/s".to_owned(),
            Self::TooSmall { least, .. } => format!("use --size {} or more", Bytes(*least)),
            Self::Differs { name, .. } => format!("run `forebay tier down {name}` first; this deletes its data"),
            Self::OtherKind { name, has, .. } => {
                let keep = match has {
                    Kind::Shaped => "pass --shaped to keep it",
                    Kind::Kernel => "run as root without --shaped to keep it",
                };
                format!("{keep}, or run `forebay tier down {name}` first; this deletes its data")
            }
            Self::HalfRemoved { name } => format!("run `forebay tier down {name}` to finish the removal"),
            Self::NotUp { name, condition, .. } => return condition.remedy(name),
            Self::Occupied { .. } => "choose another --dir, or move the files".to_owned(),
            Self::NoSpace { .. } => "use a smaller --size, or a --dir on a larger disk".to_owned(),
            Self::ImageGone { name, .. } => format!("run `forebay tier down {name}`, then bring it up again"),
            Self::MkfsMissing { package, .. } => format!("install the package {package}, or {SHAPE_INSTEAD}"),
            Self::NoLoop { .. } => {
                format!("run `modprobe loop`; in a container, pass --privileged; or {SHAPE_INSTEAD}")
            }
            Self::MountRefused { .. } => {
                format!("in a container, mounting needs CAP_SYS_ADMIN (--privileged); or {SHAPE_INSTEAD}")
            }
            Self::Busy { holders, .. } if holders.is_empty() => {
                "no process found that uses it; try `fuser -vm` on the folder".to_owned()
            }
            Self::Busy { .. } => {
                "end these processes or leave the folder, then try again; nothing was changed".to_owned()
            }
            Self::MountInTheWay { point, .. } => format!("run `umount {}` first", shell_word(point)),
            Self::StillHeld { .. } => "stop the containers or services that see the mount, then try again".to_owned(),
            Self::NoController => format!("mount the blkio controller, boot with cgroup v2, or {SHAPE_INSTEAD}"),
            Self::NoThrottling { .. } => format!("boot a kernel with CONFIG_BLK_DEV_THROTTLING, or {SHAPE_INSTEAD}"),
            Self::RootGroup { root } => format!(
                "start in a separate group: `systemd-run --scope forebay …`, or `mkdir {0}/jobs && echo $$ > \
                 {0}/jobs/cgroup.procs`; or {SHAPE_INSTEAD}",
                root.escaped()
            ),
            Self::Limit { .. } => {
                format!(
                    "control groups are often read-only in a container: bring the tier up on the host, or {SHAPE_INSTEAD}"
                )
            }
            Self::Foreign { path, .. } => format!("move them out of {}, then try again", path.escaped()),
            Self::State { path, .. } => format!("inspect {}; a later version may have written it", path.escaped()),
            _ => return None,
        })
    }
}

/// Adds the attempted operation to a system error.
pub(super) trait Attempt<T> {
    fn attempt(self, attempted: &'static str, path: &Path) -> Result<T>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, attempted: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { attempted, path: path.to_owned(), source })
    }
}
