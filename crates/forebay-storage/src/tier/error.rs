//! What can go wrong with a tier, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText, shell_word};

use super::{Condition, FileSystem, Kind, Moment};

/// The result of an operation on tiers.
pub type Result<T> = std::result::Result<T, Error>;

/// A tier that could not be brought up, looked at or taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that cannot be a folder's and a table's.
    #[error("\"{name}\" cannot be the name of a tier")]
    BadName { name: String },
    /// The name is no profile, and the rates were not given.
    #[error("\"{name}\" is not a profile, and there is no tier of that name: its rates are not known")]
    RatesMissing { name: String },
    /// A rate at which even unmounting would take hours.
    #[error("a {what} limit of {value} is too low to work with")]
    TooSlow { what: &'static str, value: String },
    #[error("a {what} limit of {value} is beyond any storage")]
    TooFast { what: &'static str, value: String },
    /// An image that the file system cannot be made on.
    #[error("an image of {} is too small for {fs}", Bytes(*size))]
    TooSmall {
        fs: FileSystem,
        size: u64,
        /// Depends on the file system: see `FileSystem::least_size`.
        least: u64,
    },
    /// The tier is there with other properties that cannot be changed.
    #[error("the tier {name} is there with {has}, not with {wanted}")]
    Differs { name: String, has: String, wanted: String },
    /// The tier is there and is emulated in the other way.
    #[error("the tier {name} is there with the kind {has}, not with the kind {wanted}")]
    OtherKind { name: String, has: Kind, wanted: Kind },
    /// The tier is being removed, or was when something stopped it.
    #[error("the tier {name} was half removed")]
    HalfRemoved { name: String },
    /// What is measured there would be the disk below, and not the tier.
    #[error("{} lies in the folder of the tier {name}, which is not up: it is {condition}", path.escaped())]
    NotUp { path: PathBuf, name: String, condition: Condition },
    /// There are files where the tier would be, and they are not ours.
    #[error("{} is not empty", path.escaped())]
    Occupied { path: PathBuf },
    /// The image is too big for the disk.
    #[error("{} has {} free, less than the {} of the image", path.escaped(), Bytes(*free), Bytes(*wanted))]
    NoSpace { path: PathBuf, wanted: u64, free: u64 },
    /// The image of a tier was removed by another program.
    #[error("the image {} is gone, and the data with it", path.escaped())]
    ImageGone { path: PathBuf, name: String },
    /// The program that makes the file system is not there.
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
    #[error("opening {}: no loop device can be had", path.escaped())]
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
        /// Processes with something open or their working folder there.
        holders: Vec<String>,
    },
    /// Something else is mounted there, or the device in another place too.
    #[error("{} is in the way: it is mounted {where_}", point.escaped())]
    MountInTheWay { point: PathBuf, where_: String },
    /// The loop device was not let go.
    #[error("{} is still held after it was unmounted, probably by a mount in another namespace", device.escaped())]
    StillHeld { device: PathBuf },
    #[error("neither the blkio controller (cgroup v1) nor the io controller (cgroup v2) is to be found")]
    NoController,
    /// The controller is there without its throttle.
    #[error("{} is not there: this kernel was built without block throttling", path.escaped())]
    NoThrottling { path: PathBuf },
    /// This process is in a group that cannot be limited.
    #[error("this process is in the root group of cgroup v2, which has no limits")]
    RootGroup { root: PathBuf },
    #[error("writing \"{line}\" to {}", path.escaped())]
    Limit {
        path: PathBuf,
        line: String,
        #[source]
        source: io::Error,
    },
    #[error("{} holds something that is not the tier's: {found}", path.escaped())]
    Foreign { path: PathBuf, found: String },
    /// The state file is not one we can read.
    #[error("{} is not the state of a tier", path.escaped())]
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

const SHAPE_INSTEAD: &str = "--shaped emulates the device in process and needs none of this";

impl Error {
    /// What to do about it, in a sentence.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BadName { .. } => "use letters, digits, - and _, 64 at most, and a letter or digit first".to_owned(),
            Self::RatesMissing { .. } => {
                format!("give --read and --write, or one of {}", crate::Profile::NAMES.join(", "))
            }
            Self::TooSlow { .. } => "give at least 64 KB/s and 1 request a second".to_owned(),
            Self::TooFast { .. } => "give at most 1TB/s".to_owned(),
            Self::TooSmall { least, .. } => format!("give --size {} or more", Bytes(*least)),
            Self::Differs { name, .. } => format!("forebay tier down {name} first: that removes it and its data"),
            Self::OtherKind { name, has, .. } => {
                let keep = match has {
                    Kind::Shaped => "give --shaped to keep it as it is",
                    Kind::Kernel => "as root and without --shaped it is kept as it is",
                };
                format!("{keep}; or forebay tier down {name} first: that removes it and its data")
            }
            Self::HalfRemoved { name } => format!("forebay tier down {name} finishes that"),
            Self::NotUp { name, condition, .. } => return condition.remedy(name),
            Self::Occupied { .. } => "choose another --dir, or move the files away".to_owned(),
            Self::NoSpace { .. } => "give a smaller --size, or --dir on a disk with more room".to_owned(),
            Self::ImageGone { name, .. } => format!("forebay tier down {name} removes the rest; then bring it up anew"),
            Self::MkfsMissing { package, .. } => format!("install the package {package}; or {SHAPE_INSTEAD}"),
            Self::NoLoop { .. } => {
                format!("`modprobe loop`, or give the container its loop devices (--privileged); or {SHAPE_INSTEAD}")
            }
            Self::MountRefused { .. } => {
                format!("in a container, mounting needs CAP_SYS_ADMIN (--privileged); or {SHAPE_INSTEAD}")
            }
            Self::Busy { holders, .. } if holders.is_empty() => {
                "no process was found that holds it; `fuser -vm` on the folder may find one".to_owned()
            }
            Self::Busy { .. } => "end them or leave the folder, then try again; nothing was changed".to_owned(),
            Self::MountInTheWay { point, .. } => format!("`umount {}` first", shell_word(point)),
            Self::StillHeld { .. } => "end the containers or services that see the mount, then try again".to_owned(),
            Self::NoController => format!("mount the blkio controller, or boot with cgroup v2; or {SHAPE_INSTEAD}"),
            Self::NoThrottling { .. } => format!("a kernel with CONFIG_BLK_DEV_THROTTLING has it; or {SHAPE_INSTEAD}"),
            Self::RootGroup { root } => format!(
                "start in a group of its own: `systemd-run --scope forebay …`, or `mkdir {0}/jobs && echo $$ > \
                 {0}/jobs/cgroup.procs`; or {SHAPE_INSTEAD}",
                root.escaped()
            ),
            Self::Limit { .. } => {
                format!(
                    "in a container the control groups are often read-only: bring the tier up on the host; or {SHAPE_INSTEAD}"
                )
            }
            Self::Foreign { path, .. } => format!("move it out of {}, then try again", path.escaped()),
            Self::State { path, .. } => format!("look at {}; a later version may have written it", path.escaped()),
            _ => return None,
        })
    }
}

/// Adds what was attempted to a system error.
pub(super) trait Attempt<T> {
    fn attempt(self, attempted: &'static str, path: &Path) -> Result<T>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, attempted: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { attempted, path: path.to_owned(), source })
    }
}
