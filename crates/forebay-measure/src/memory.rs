//! Memory that a run can still allocate.

use std::fs;

use crate::usage::status_bytes;

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub total: u64,
    /// Memory that can be allocated without swapping and within `ulimit -v`.
    pub available: u64,
}

impl Memory {
    /// `None` if the kernel does not report it.
    pub fn now() -> Option<Self> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let of = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
        };
        let available = of("MemAvailable:")?;
        Some(Self {
            total: of("MemTotal:")?,
            available: address_space_left().map_or(available, |left| left.min(available)),
        })
    }
}

/// What `ulimit -v` still allows; `None` without a limit.
fn address_space_left() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid structure that the call fills.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    let limit = (code == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)?;
    Some(limit.saturating_sub(status_bytes("VmSize:")?))
}
