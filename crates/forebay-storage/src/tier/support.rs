//! Whether this process can create a kernel tier.

use std::fmt;
use std::fs;

use super::throttle::Controller;
use super::{Result as TierResult, loop_device};

/// The number of the capability to mount, from `linux/capability.h`.
const CAP_SYS_ADMIN: u32 = 21;

/// Why a kernel tier is not possible here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    NotRoot,
    /// The process runs as root without the capability to mount, as in most containers.
    NoRights,
    /// The kernel has no loop devices, or they are hidden.
    NoLoopDevices,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRoot => "only root can mount a loop device",
            Self::NoRights => "this process may not mount (no CAP_SYS_ADMIN), as in most containers",
            Self::NoLoopDevices => "no loop devices (/dev/loop-control is missing); try `modprobe loop`",
        })
    }
}

/// Whether this process can create a kernel tier; changes nothing.
///
/// # Errors
/// What stands in the way.
pub fn kernel_support() -> Result<(), Obstacle> {
    // SAFETY: no arguments, no memory.
    if unsafe { libc::geteuid() } != 0 {
        return Err(Obstacle::NotRoot);
    }
    // It contains the program's name, which may be any bytes.
    let status = fs::read("/proc/self/status").unwrap_or_default();
    if !has_right(&String::from_utf8_lossy(&status), CAP_SYS_ADMIN) {
        return Err(Obstacle::NoRights);
    }
    if loop_device::control_exists() { Ok(()) } else { Err(Obstacle::NoLoopDevices) }
}

/// The cgroup version through which this process can limit a device; changes nothing.
///
/// # Errors
/// What stands in the way.
pub fn limit_support() -> TierResult<u8> {
    Controller::of_this_machine()?.check()
}

/// Whether the kernel has loop devices; [`kernel_support`] names only the first obstacle.
pub fn has_loop_devices() -> bool {
    loop_device::control_exists()
}

fn has_right(status: &str, number: u32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> number & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_to_mount_is_a_bit_of_the_effective_mask() {
        assert!(has_right("Name:\tx\nCapEff:\t000001ffffffffff\n", CAP_SYS_ADMIN));
        assert!(!has_right("CapEff:\t00000000a80425fb\n", CAP_SYS_ADMIN), "a container's default");
        assert!(!has_right("", CAP_SYS_ADMIN));
    }
}
