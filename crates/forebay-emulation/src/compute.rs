//! Emulated computation: times drawn from the workload's distribution and spent on the clock.
//!
//! A sleep ends late: by the timer's slack, the exit from the CPU's idle state and the wait for a core. The lateness is
//! learnt from sleep to sleep and subtracted from the next one; the remaining microseconds are spent spinning. The time
//! accounted is the one measured by the clock.

use std::sync::Arc;

use forebay_units::Clock;
use forebay_units::random::hash;
use forebay_workload::Time;

use super::draw;

/// Limit of spinning at the end of a step: on a machine that wakes later than this, steps take longer, and the record
/// says so. One thread spins for all accelerators, for at most a tenth of a step of 3 ms.
const MOST_SPUN_NS: u64 = 300_000;

/// Longest uninterrupted sleep, and so the longest delay of a stop request.
const LOOK_NS: u64 = 50_000_000;

/// The shortest time slice that the kernel grants.
const TURN_NS: u64 = 100_000;

/// Computation times of one accelerator, determined by the seed and the accelerator's number.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64, accelerator: u64) -> Self {
        Self(hash(hash(seed) ^ accelerator))
    }

    /// In nanoseconds.
    pub(super) fn next(&mut self, law: &Time) -> u64 {
        self.0 = hash(self.0);
        (draw::seconds(law, self.0) * 1e9) as u64
    }
}

/// Waits for the ends of steps.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// Expected lateness of a sleep.
    late_ns: u64,
}

impl Pace {
    /// Raises the wake-up precision of the calling thread.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        wake_on_time();
        Self { clock, late_ns: 0 }
    }

    /// Sleeps until the deadline, an unpark, or for `LOOK_NS`.
    pub(super) fn rest(&mut self, deadline_ns: Option<u64>) {
        let now = self.clock.now_ns();
        let wanted = deadline_ns.map(|deadline| deadline.saturating_sub(self.late_ns));
        let until = wanted.unwrap_or(u64::MAX).min(now + LOOK_NS);
        if until > now {
            self.clock.park_until_ns(until);
        }
        let woke = self.clock.now_ns();
        let Some((deadline, wanted)) = deadline_ns.zip(wanted).filter(|(_, wanted)| woke >= *wanted) else { return };
        if until > now {
            self.learn(woke - wanted);
        }
        self.clock.spin_until_ns(deadline);
    }

    /// Rises quickly and falls slowly, so most sleeps end in time.
    fn learn(&mut self, late_ns: u64) {
        let (known, late) = (self.late_ns, late_ns.min(MOST_SPUN_NS));
        self.late_ns = if late > known { known + (late - known).div_ceil(8) } else { known - (known - late) / 32 };
    }
}

/// Makes the kernel wake this thread at the requested time, instead of up to 50 µs later together with others, and run
/// it soon if readers hold its core. It needs a core for microseconds per step; queued behind readers, which take
/// milliseconds, it would stall all accelerators.
fn wake_on_time() {
    // SAFETY: the call takes only numbers. If it is refused, sleeps end as late as before.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
    ask_for_short_turns();
}

/// Requests shorter time slices than other threads have, which are granted sooner (Linux 6.12 and later; earlier
/// kernels ignore it). Threads that it starts keep the default.
fn ask_for_short_turns() {
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the structure holds only numbers, for which zero is valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes, which are allocated.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    // The user chose another policy for the process; keep it.
    if known != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = TURN_NS;
    attributes.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    // SAFETY: the kernel reads `size` bytes. If the call is refused, time slices stay as they were.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A machine on which every sleep ends late by a fixed time.
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

    /// Waits out a step of the given length that begins now.
    fn step(pace: &mut Pace, seconds: f64) {
        let until = pace.clock.now_ns() + (seconds * 1e9) as u64;
        while pace.clock.now_ns() < until {
            pace.rest(Some(until));
        }
    }

    /// The relative excess of 200 steps of 3.5 ms.
    fn excess(by_ns: u64) -> f64 {
        let mut pace = Pace::new(Arc::new(Late { now_ns: Mutex::new(0), by_ns }));
        (0..200).for_each(|_| step(&mut pace, 0.0035));
        pace.clock.now_ns() as f64 / (200.0 * 0.0035e9) - 1.0
    }

    #[test]
    fn a_machine_that_wakes_late_is_allowed_for_up_to_a_limit() {
        assert_eq!(excess(0), 0.0);
        assert!(excess(60_000) < 0.002, "{}", excess(60_000));
        let beyond = excess(800_000);
        assert!((0.1..0.2).contains(&beyond), "{beyond}: lateness beyond the limit is not hidden");
    }

    #[test]
    fn a_long_rest_is_broken_off_now_and_then_to_look_around() {
        let mut pace = Pace::new(Arc::new(Late { now_ns: Mutex::new(0), by_ns: 0 }));
        pace.rest(Some(30_000_000_000));
        assert_eq!(pace.clock.now_ns(), LOOK_NS);
        pace.rest(None);
        assert_eq!(pace.clock.now_ns(), 2 * LOOK_NS);
        step(&mut pace, 30.0);
        assert_eq!(pace.clock.now_ns(), 2 * LOOK_NS + 30_000_000_000);
    }

    #[test]
    fn the_same_seed_draws_the_same_steps_and_accelerators_differ() {
        let law = Time::Exponential { scale: 0.001 };
        let drawn = |accelerator| {
            let mut draws = Draws::new(5, accelerator);
            (0..10).map(|_| draws.next(&law)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }
}
