//! I/O delay: the time that threads waited for block I/O, if the kernel counts it and the count is plausible.
//!
//! The kernel counts it per thread if `kernel.task_delayacct` is 1, and does not pass it on when a thread ends, so the
//! sum uses the last count seen of each thread. On Linux 6.18 some threads had counts longer than their lifetime, one
//! as long as the machine had been up. Such a count is not corrected: from then on the delay of the tree is unknown.

use std::collections::HashMap;

use crate::ledger::Units;
use crate::source::process::Stat;

/// How to make the kernel count I/O delay.
pub const DELAY_HINT: &str =
    "the kernel does not count it; as root, run `sysctl kernel.task_delayacct=1` before the command";
const IMPOSSIBLE: &str = "the kernel's count is wrong: it exceeds a thread's lifetime";

/// Whether the I/O delay of a process tree can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DelayCount {
    /// The kernel does not say whether it counts, as before Linux 5.14.
    #[default]
    Unsaid,
    Off,
    On,
    Wrong,
}

impl DelayCount {
    /// Updates the state from the kernel's switch, if there is one. A wrong count stays wrong.
    pub(crate) fn by_switch(self, switch: Option<&str>) -> Self {
        match (self, switch.map(str::trim)) {
            (Self::Wrong, _) => Self::Wrong,
            (_, None) => Self::Unsaid,
            (_, Some("0")) => Self::Off,
            (_, Some(_)) => Self::On,
        }
    }

    /// The sum of ticks, or why it is unknown.
    pub(crate) fn check(self, ticks: u64) -> Result<u64, &'static str> {
        match self {
            Self::On => Ok(ticks),
            Self::Unsaid if ticks > 0 => Ok(ticks),
            Self::Unsaid | Self::Off => Err(DELAY_HINT),
            Self::Wrong => Err(IMPOSSIBLE),
        }
    }
}

/// The delay of the threads of one process, in clock ticks.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    by_thread: HashMap<u32, u64>,
    /// The sum over threads that have ended of their last delay, because the kernel does not pass it on.
    ended: u64,
}

impl Delays {
    pub(crate) fn total(&self) -> u64 {
        self.ended + self.by_thread.values().sum::<u64>()
    }

    /// Takes the delays of the current threads. If the delay of a thread number decreases, the number belongs to a new
    /// thread.
    pub(crate) fn take(&mut self, now: HashMap<u32, u64>) {
        let ended = self.by_thread.iter().filter(|(thread, ticks)| now.get(thread).is_none_or(|now| now < ticks));
        self.ended += ended.map(|(_, ticks)| ticks).sum::<u64>();
        self.by_thread = now;
    }
}

/// Whether the delay is possible: a thread cannot have waited for longer than it has lived, except for rounding.
pub(crate) fn is_possible(thread: &Stat, now_ticks: u64) -> bool {
    let lived = now_ticks.saturating_sub(thread.started);
    thread.delay_ticks.unwrap_or(0) <= lived + lived / 50 + 2
}

/// Time since boot, in clock ticks.
pub(crate) fn now_ticks(units: Units) -> u64 {
    // SAFETY: a zeroed time is valid and the call writes it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time);
        time
    };
    ((time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9) * units.ticks_per_s) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_of_threads_that_ended_stays() {
        let mut delays = Delays::default();
        delays.take(HashMap::from([(1, 5), (2, 7)]));
        delays.take(HashMap::from([(1, 6), (3, 1)]));
        assert_eq!(delays.total(), 6 + 7 + 1);
        delays.take(HashMap::from([(1, 2), (3, 1)]));
        assert_eq!(delays.total(), 6 + 7 + 1 + 2, "the first thread ended, and a new one has its number");
    }

    #[test]
    fn a_thread_has_not_waited_for_longer_than_it_lived() {
        let thread = |delay| Stat { started: 1_000, delay_ticks: Some(delay), ..Stat::default() };
        assert!(is_possible(&thread(500), 1_500));
        assert!(is_possible(&thread(512), 1_500), "rounded");
        assert!(!is_possible(&thread(600), 1_500));
        assert!(!is_possible(&thread(1_500), 1_500), "since boot");
    }

    #[test]
    fn what_is_not_counted_or_wrong_is_unknown_with_a_reason() {
        assert_eq!(DelayCount::Unsaid.by_switch(Some("1\n")).check(0), Ok(0));
        assert_eq!(DelayCount::On.by_switch(Some("0\n")).check(0), Err(DELAY_HINT));
        assert_eq!(DelayCount::On.by_switch(None).check(0), Err(DELAY_HINT), "an older kernel does not report it");
        assert_eq!(DelayCount::On.by_switch(None).check(7), Ok(7), "a count above zero shows it");
        assert_eq!(DelayCount::Wrong.by_switch(Some("1\n")).check(7), Err(IMPOSSIBLE));
    }
}
