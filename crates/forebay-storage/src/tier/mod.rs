//! Emulated devices for people with one disk: tiers that are brought up, found again, and taken down.
//!
//! There are two kinds, under one name and in one place:
//! - a *kernel* tier is an image file on a loop device with a file system of its own, mounted, and limited by the kernel's
//!   block throttle, so that programs that read or write there are slowed down: all of them under cgroup v2 where the limit
//!   is set high enough, and under v1 those in the root group and in the caller's, because v1 limits are not inherited;
//! - a *shaped* tier is a folder with a [`Profile`]: forebay slows down itself when it reads there ([`Shaped`]). It needs
//!   no rights.
//!
//! Each tier has a file `tier.json`, written durably *before* each step of bringing it up. So whatever a kill or a power
//! cut leaves half-way, [`Registry::down`] knows where to look: it finds the mount in the mount table, the loop device
//! by its backing file, and the limits by the lines that undo them.
//!
//! A kernel tier limits bandwidth and, where asked for, requests per second. It has no seek time: what tells a disk from
//! a flash drive under many small reads is in the shaped kind alone.
//!
//! # Limits
//! cgroup v1 was measured; the cgroup v2 part is checked against a made-up group tree only, and has not been run on a
//! machine whose `io` controller is under v2.
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

/// Where bringing a tier up or taking it down has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The state file says that this step is next; nothing of it was done.
    Before(Stage),
    /// The step is done; the state file does not know yet.
    After(Stage),
    Undone(Stage),
}

/// Called at every moment. A break stops at once, without cleaning up, as a kill would: tests interrupt every step.
pub type Watch<'a> = &'a mut dyn FnMut(Moment) -> ControlFlow<()>;

fn tell(watch: Watch<'_>, moment: Moment) -> Result<()> {
    match watch(moment) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped { moment }),
    }
}
