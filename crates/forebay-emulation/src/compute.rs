//! The time that emulated accelerators compute: drawn from the workload's law, and spent on the clock.
//!
//! A sleep ends late: by the timer's slack, the way out of the processor's idle state and the wait for a core. How late is learnt from
//! sleep to sleep, and so much is taken off the next one; what is then left of it, microseconds, is spent on the core.
//! What is accounted is what the clock showed in any case.

use std::sync::Arc;

use forebay_units::Clock;
use forebay_units::random::hash;
use forebay_workload::Time;

use super::draw;

/// The most that is spent on the core at the end of a step: on a machine that wakes later than this, steps take longer, and the
/// record says so. One thread spends it for all accelerators, in a step of 3 ms a tenth of its time at most.
const MOST_SPUN_NS: u64 = 300_000;

/// A rest lasts no longer than this: somebody looks now and then whether the run shall end.
const LOOK_NS: u64 = 50_000_000;

/// The shortest turn on a core that the kernel grants.
const TURN_NS: u64 = 100_000;

/// The times of an accelerator's steps: of the seed and its number alone.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64, accelerator: u64) -> Self {
        Self(hash(hash(seed) ^ accelerator))
    }

    /// How long the next step computes, in nanoseconds.
    pub(super) fn next(&mut self, law: &Time) -> u64 {
        self.0 = hash(self.0);
        (draw::seconds(law, self.0) * 1e9) as u64
    }
}

/// Waits for the moments at which steps end.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// What a rest is expected to be late by.
    late_ns: u64,
}

impl Pace {
    /// Of the calling thread, which is woken on time from now on.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        wake_on_time();
        Self { clock, late_ns: 0 }
    }

    /// Rests until the deadline, if there is one, until the thread is unparked, or until it is time to look around.
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

    /// Goes up quickly and down slowly, so that most rests end in time.
    fn learn(&mut self, late_ns: u64) {
        let (known, late) = (self.late_ns, late_ns.min(MOST_SPUN_NS));
        self.late_ns = if late > known { known + (late - known).div_ceil(8) } else { known - (known - late) / 32 };
    }
}

/// Lets the kernel wake this thread when it asked for it, not up to 50 µs later together with others, and run it soon where readers
/// hold its core: it needs a core for microseconds a step, and behind readers, which take one for milliseconds, all accelerators
/// would stand still.
fn wake_on_time() {
    // SAFETY: the call takes nothing but numbers. Where it is refused, sleeps end as late as they did.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
    ask_for_short_turns();
}

/// Asks for turns shorter than those of other threads, which come sooner for it (Linux 6.12 and later; earlier ones take no notice).
/// Threads that it starts have turns as usual.
fn ask_for_short_turns() {
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: all of it are numbers, of which zero is one.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes, which are there.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    // Somebody who gave the process a policy of its own means it.
    if known != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = TURN_NS;
    attributes.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    // SAFETY: the kernel reads `size` bytes. Where it is refused, turns are as they were.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
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

    /// Rests until the step of so many seconds that begins now is over.
    fn step(pace: &mut Pace, seconds: f64) {
        let until = pace.clock.now_ns() + (seconds * 1e9) as u64;
        while pace.clock.now_ns() < until {
            pace.rest(Some(until));
        }
    }

    /// What 200 steps of 3.5 ms take beyond that, of it.
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
        assert!((0.1..0.2).contains(&beyond), "{beyond}: what cannot be allowed for is not hidden");
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
