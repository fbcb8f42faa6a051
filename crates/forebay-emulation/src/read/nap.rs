//! Emulates the preparation of samples by sleeping.
//!
//! A sleep ends late, by the timer's slack and the exit from the CPU's idle state. The excess is subtracted from the
//! next sleeps, so the sum is what the workload says. Longer waits for a core are not compensated: a real reader would
//! have been late too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_units::{Clock, SystemClock};

/// Limit of the compensation. Timers are late by some 60 µs; a wait for a core takes another thread's time slice, which
/// is milliseconds.
const MOST_OWED_NS: u64 = 1_000_000;

/// Longer sleeps check twice per this time whether to end.
const LOOK_NS: u64 = 100_000_000;

pub(crate) struct Nap {
    clock: Arc<dyn Clock>,
    /// Excess that is not compensated yet.
    owed_ns: u64,
}

impl Default for Nap {
    fn default() -> Self {
        Self::on(Arc::new(SystemClock::default()))
    }
}

impl Nap {
    fn on(clock: Arc<dyn Clock>) -> Self {
        Self { clock, owed_ns: 0 }
    }

    /// `is_ended` cuts the sleep short.
    pub(crate) fn sleep(&mut self, seconds: f64, is_ended: &AtomicBool) {
        let wanted_ns = (seconds * 1e9) as u64;
        let left_ns = wanted_ns.saturating_sub(self.owed_ns);
        self.owed_ns -= wanted_ns - left_ns;
        if left_ns > 0 {
            let until_ns = self.clock.now_ns().saturating_add(left_ns);
            while until_ns > self.clock.now_ns().saturating_add(LOOK_NS) && !is_ended.load(Ordering::Relaxed) {
                self.clock.sleep_until_ns(self.clock.now_ns() + LOOK_NS / 2);
            }
            if is_ended.load(Ordering::Relaxed) {
                return;
            }
            self.clock.sleep_until_ns(until_ns);
            self.owed_ns = self.clock.now_ns().saturating_sub(until_ns).min(MOST_OWED_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A machine on which every sleep ends late by a fixed time.
    #[derive(Default)]
    struct Late {
        now_ns: AtomicU64,
        by_ns: u64,
    }

    impl Clock for Late {
        fn now_ns(&self) -> u64 {
            self.now_ns.load(Ordering::Relaxed)
        }

        fn sleep_until_ns(&self, deadline_ns: u64) {
            self.now_ns.store(deadline_ns + self.by_ns, Ordering::Relaxed);
        }
    }

    /// The total excess of a thousand sleeps, in nanoseconds.
    fn excess(by_ns: u64, each_ns: u64) -> u64 {
        let clock = Arc::new(Late { by_ns, ..Late::default() });
        let mut nap = Nap::on(clock.clone());
        (0..1_000).for_each(|_| nap.sleep(each_ns as f64 / 1e9, &AtomicBool::new(false)));
        clock.now_ns() - 1_000 * each_ns
    }

    #[test]
    fn what_a_timer_is_late_by_is_made_up_for_whether_sleeps_are_longer_or_shorter_than_it() {
        assert_eq!(excess(0, 3_500_000), 0);
        assert_eq!(excess(60_000, 3_500_000), 60_000, "only that of the last sleep");
        assert!(excess(60_000, 10_000) <= 60_000);
    }

    #[test]
    fn a_long_sleep_ends_when_nobody_wants_it_any_more() {
        let clock = Arc::new(Late::default());
        Nap::on(clock.clone()).sleep(1_000.0, &AtomicBool::new(true));
        assert_eq!(clock.now_ns(), 0);
        Nap::on(clock.clone()).sleep(1_000.0, &AtomicBool::new(false));
        assert_eq!(clock.now_ns(), 1_000_000_000_000);
    }

    #[test]
    fn a_wait_for_a_core_is_not_hidden() {
        assert_eq!(excess(5_000_000, 20_000_000), 1_000 * 4_000_000 + MOST_OWED_NS);
    }
}
