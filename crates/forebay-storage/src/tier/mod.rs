//! Tiers: emulated storage devices on one disk that stay up between runs.
//!
//! There are two kinds:
//! - a *kernel* tier is an image file with its own file system, mounted through a loop device and limited by the kernel's
//!   block throttle. It slows down other programs too: under cgroup v2, all programs outside the root group; under v1,
//!   the programs in the root group and in the caller's group, because v1 limits are not inherited;
//! - a *shaped* tier is a folder with a [`Profile`]: forebay slows down its own reads and writes there ([`Shaped`]). It
//!   needs no privileges.
//!
//! Each tier has a file `tier.json`, written durably *before* each step of bringing it up. After a kill or a power cut at
//! any point, [`Registry::down`] therefore knows where to look: it finds the mount in the mount table, the loop device by
//! its backing file, and the limits by the lines that undo them.
//!
//! A kernel tier limits bandwidth and, optionally, requests per second. It has no seek time: only a shaped tier shows the
//! difference between a disk and a flash drive under many small reads.
//!
//! # Limits
//! cgroup v1 was measured on a real machine; cgroup v2 was tested on a made-up group tree only.
//!
//! ```
//! use forebay_storage::tier::{Kind, Plan, Registry};
//! use std::ops::ControlFlow;
//!
//! # let folder = tempfile::tempdir()?;
//! let registry = Registry::new(folder.path().join("tiers"));
//! let raised = registry.up(&Plan::new("ssd", Kind::Shaped), &mut |_| ControlFlow::Continue(()))?;
//! let tier = registry.find(&raised.tier.data())?.expect("it was brought up just now");
//! assert_eq!(tier.profile.read_bytes_per_s, 280_000_000);
//! registry.down("ssd", &mut |_| ControlFlow::Continue(()))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Profile`]: crate::Profile
//! [`Shaped`]: crate::Shaped

mod error;
mod image;
mod loop_device;
mod lower;
mod mounts;
mod plan;
mod raise;
mod registry;
mod removal;
mod state;
mod status;
mod support;
#[cfg(test)]
mod tests;
mod throttle;

use std::ops::ControlFlow;

pub use error::{Error, Result};
pub use lower::Removed;
pub use plan::{FileSystem, Kind, Plan, Rates};
pub use raise::{Change, Raised};
pub use registry::Registry;
pub use state::{Device, Stage, Tier};
pub use status::{Condition, Status};
pub use support::{Obstacle, has_loop_devices, kernel_support, limit_support};

/// Free bytes of the file system at this folder.
#[cfg(feature = "object")]
pub(crate) fn free(path: &std::path::Path) -> crate::Result<u64> {
    let failed = |error| crate::Error::Unsupported {
        operation: crate::Operation::Size,
        path: path.to_owned(),
        what: forebay_units::chain(&error),
    };
    mounts::space(path).map(|space| space.free).map_err(failed)
}

/// Progress of bringing a tier up or taking it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The state file names this step as next; nothing of it is done.
    Before(Stage),
    /// The step is done, but the state file does not show it yet.
    After(Stage),
    Undone(Stage),
}

/// Called at every moment. A break stops at once without cleaning up, like a kill: tests interrupt every step.
pub type Watch<'a> = &'a mut dyn FnMut(Moment) -> ControlFlow<()>;

fn tell(watch: Watch<'_>, moment: Moment) -> Result<()> {
    match watch(moment) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped { moment }),
    }
}
