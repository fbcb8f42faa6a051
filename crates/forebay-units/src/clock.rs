//! Time as a parameter: waits and rates are exact numbers in tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A source of monotonic time in nanoseconds since an arbitrary origin.
///
/// Laws: `now_ns` never goes back on one thread; `sleep_until_ns(t)` returns at or after `t` on this clock.
pub trait Clock: Send + Sync {
    fn now_ns(&self) -> u64;

    /// Blocks the calling thread until the clock shows `deadline_ns`.
    fn sleep_until_ns(&self, deadline_ns: u64);

    /// Like `sleep_until_ns`, but also returns when the thread is unparked, or spuriously.
    fn park_until_ns(&self, deadline_ns: u64) {
        self.sleep_until_ns(deadline_ns);
    }

    /// Like `sleep_until_ns`, but busy-waits.
    fn spin_until_ns(&self, deadline_ns: u64) {
        while self.now_ns() < deadline_ns {
            std::hint::spin_loop();
        }
    }
}

#[derive(Debug, Clone)]
pub struct SystemClock {
    origin: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        let now = self.now_ns();
        if deadline_ns > now {
            std::thread::sleep(Duration::from_nanos(deadline_ns - now));
        }
    }

    fn park_until_ns(&self, deadline_ns: u64) {
        let now = self.now_ns();
        if deadline_ns > now {
            std::thread::park_timeout(Duration::from_nanos(deadline_ns - now));
        }
    }
}

/// A clock for tests. Time passes only through [`advance`](Self::advance) or when a thread sleeps on it.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    pub fn advance(&self, by: Duration) {
        self.now_ns.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.now_ns.fetch_max(deadline_ns, Ordering::SeqCst);
    }

    fn spin_until_ns(&self, deadline_ns: u64) {
        self.sleep_until_ns(deadline_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_moves_a_manual_clock_to_the_deadline() {
        let clock = ManualClock::default();
        clock.advance(Duration::from_nanos(40));
        clock.sleep_until_ns(100);
        assert_eq!(clock.now_ns(), 100);
        clock.sleep_until_ns(50);
        assert_eq!(clock.now_ns(), 100);
    }

    #[test]
    fn the_system_clock_does_not_wake_early() {
        let clock = SystemClock::default();
        let deadline = clock.now_ns() + 2_000_000;
        clock.sleep_until_ns(deadline);
        assert!(clock.now_ns() >= deadline);
    }

    #[test]
    fn a_thread_that_is_parked_on_the_system_clock_can_be_woken() {
        let clock = SystemClock::default();
        let start = clock.now_ns();
        std::thread::current().unpark();
        clock.park_until_ns(start + 600_000_000_000);
        assert!(clock.now_ns() < start + 600_000_000_000);
    }
}
