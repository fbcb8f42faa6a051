//! The time that an emulated accelerator computes: drawn from the workload's law, and spent on the clock.
//!
//! A sleep ends late: by the timer's slack, the way out of the processor's idle state and the wait for a core. How late is learnt from
//! sleep to sleep, and so much is taken off the next one; what is then left of it, microseconds, is spent on the core.
//! What is accounted is what the clock showed in any case.

use std::sync::Arc;

use forebay_units::Clock;
use forebay_workload::Time;

use super::draw;
use super::read::mix;

/// The most that is spent on the core at the end of a step: on a machine that wakes later than this, steps take longer, and the
/// record says so.
const MOST_SPUN_NS: u64 = 100_000;

/// Steps longer than this look twice in it whether the run shall end.
const LOOK_NS: u64 = 100_000_000;

/// Takes the time of steps.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// Where the next step's time is drawn from.
    seed: u64,
    /// What a sleep is expected to be late by.
    late_ns: u64,
    /// The sum of what was drawn.
    drawn_ns: u64,
}

impl Pace {
    /// The steps of an accelerator: of the seed and its number alone.
    pub(super) fn new(clock: Arc<dyn Clock>, seed: u64, accelerator: u64) -> Self {
        wake_on_time();
        Self { clock, seed: mix(mix(seed) ^ accelerator), late_ns: 0, drawn_ns: 0 }
    }

    /// Computes for as long as the law says, or until `is_ending`, which a long step asks now and then.
    pub(super) fn compute(&mut self, time: &Time, is_ending: &dyn Fn() -> bool) {
        self.seed = mix(self.seed);
        let drawn_ns = (draw::seconds(time, self.seed) * 1e9) as u64;
        self.drawn_ns += drawn_ns;
        if drawn_ns > 0 {
            self.pass(self.clock.now_ns() + drawn_ns, is_ending);
        }
    }

    /// What was drawn since this was last asked.
    pub(super) fn take_drawn_ns(&mut self) -> u64 {
        std::mem::take(&mut self.drawn_ns)
    }

    fn pass(&mut self, deadline_ns: u64, is_ending: &dyn Fn() -> bool) {
        let wanted = deadline_ns.saturating_sub(self.late_ns);
        while wanted > self.clock.now_ns() + LOOK_NS {
            self.clock.sleep_until_ns(self.clock.now_ns() + LOOK_NS / 2);
            if is_ending() {
                return;
            }
        }
        if wanted > self.clock.now_ns() {
            self.clock.sleep_until_ns(wanted);
            self.learn(self.clock.now_ns().saturating_sub(wanted));
        }
        self.clock.spin_until_ns(deadline_ns);
    }

    /// Goes up quickly and down slowly, so that most sleeps end in time.
    fn learn(&mut self, late_ns: u64) {
        let (known, late) = (self.late_ns, late_ns.min(MOST_SPUN_NS));
        self.late_ns = if late > known { known + (late - known).div_ceil(8) } else { known - (known - late) / 32 };
    }
}

/// Lets the kernel wake this thread when it asked for it, not up to 50 µs later together with others.
fn wake_on_time() {
    // SAFETY: the call takes nothing but numbers. Where it is refused, sleeps end as late as they did.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A machine on which every sleep ends so much late.
    struct Late {
        now_ns: Mutex<u64>,
        by_ns: u64,
    }

    impl Clock for Late {
        fn now_ns(&self) -> u64 {
            *self.now_ns.lock().unwrap()
        }

        fn sleep_until_ns(&self, deadline_ns: u64) {
            *self.now_ns.lock().unwrap() = deadline_ns + self.by_ns;
        }

        fn spin_until_ns(&self, deadline_ns: u64) {
            let mut now = self.now_ns.lock().unwrap();
            *now = deadline_ns.max(*now);
        }
    }

    /// What 200 steps of 3.5 ms take beyond what was drawn, of it.
    fn excess(by_ns: u64) -> f64 {
        let clock = Arc::new(Late { now_ns: Mutex::new(0), by_ns });
        let mut pace = Pace::new(clock.clone(), 1, 0);
        (0..200).for_each(|_| pace.compute(&Time::Normal { mean: 0.0035, stdev: 0.0 }, &|| false));
        clock.now_ns() as f64 / pace.take_drawn_ns() as f64 - 1.0
    }

    #[test]
    fn a_machine_that_wakes_late_is_allowed_for_up_to_a_limit() {
        assert_eq!(excess(0), 0.0);
        assert!(excess(60_000) < 0.002, "{}", excess(60_000));
        let beyond = excess(500_000);
        assert!((0.1..0.2).contains(&beyond), "{beyond}: what cannot be allowed for is not hidden");
    }

    #[test]
    fn a_long_step_ends_soon_after_the_run_shall_end() {
        let clock = Arc::new(Late { now_ns: Mutex::new(0), by_ns: 0 });
        let mut pace = Pace::new(clock.clone(), 1, 0);
        let law = Time::Normal { mean: 30.0, stdev: 0.0 };
        pace.compute(&law, &|| clock.now_ns() >= 2_000_000_000);
        assert!((2_000_000_000..2_100_000_000).contains(&clock.now_ns()), "{}", clock.now_ns());
        pace.compute(&law, &|| false);
        assert!(clock.now_ns() >= 32_000_000_000);
    }

    #[test]
    fn the_same_seed_draws_the_same_steps_and_accelerators_differ() {
        let law = Time::Exponential { scale: 0.001 };
        let drawn = |accelerator| {
            let mut pace = Pace::new(Arc::new(forebay_units::ManualClock::default()), 5, accelerator);
            (0..10).for_each(|_| pace.compute(&law, &|| false));
            pace.take_drawn_ns()
        };
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }
}
