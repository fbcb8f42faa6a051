//! An emulated accelerator: computes nothing, but takes as long as a real one would.
//!
//! A step lasts as long as its distribution says, on the given clock. The reported time is the clock's, never the
//! requested one: a machine that wakes up late makes longer steps, and the record shows it.

mod law;
mod parse;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_units::Clock;
use forebay_units::random::Random;

pub use law::Law;

use crate::rng::random;

/// How often a step that can be stopped checks its flag.
const LOOK_FOR_STOP: Duration = Duration::from_millis(50);

/// What the host thread does during a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Sleeps, like a host that waits for a device: other threads can use its core.
    Sleeping,
    /// Keeps its core busy, like a host that computes by itself.
    Busy,
}

/// What to emulate: the time of a step, and what the host does meanwhile.
///
/// Written `emulated:LAW` or `emulated:LAW,busy`, where LAW is a duration or one of `uniform(FROM,TO)`, `normal(MEAN,DEVIATION)`,
/// `exponential(MEAN)`, `gamma(SHAPE,SCALE)`, `poisson(MEAN)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Emulation {
    pub law: Law,
    pub manner: Manner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmulatedStep {
    /// The step time drawn from the distribution.
    pub drawn: Duration,
    /// The step time measured by the clock: longer than `drawn` by the wake-up delay.
    pub taken: Duration,
}

pub struct EmulatedAccelerator {
    emulation: Emulation,
    rng: Random,
    clock: Arc<dyn Clock>,
}

impl EmulatedAccelerator {
    /// Draws step times from `seed` and spends them on `clock`.
    pub fn new(emulation: Emulation, seed: u64, clock: Arc<dyn Clock>) -> Self {
        // A separate stream from those that weights are drawn from.
        Self { emulation, rng: random(seed, u64::MAX), clock }
    }

    /// Skips this many steps without spending time.
    pub fn skip(&mut self, n_steps: u64) {
        for _ in 0..n_steps {
            self.emulation.law.draw(&mut self.rng);
        }
    }

    /// Blocks for the drawn time, asleep or busy according to [`Manner`].
    pub fn step(&mut self) -> EmulatedStep {
        let drawn = self.emulation.law.draw(&mut self.rng);
        let begin = self.clock.now_ns();
        self.pass_until(begin + drawn.as_nanos() as u64);
        EmulatedStep { drawn, taken: Duration::from_nanos(self.clock.now_ns() - begin) }
    }

    /// The same, unless `stop` is set before or during the step; then no step was made.
    pub fn step_unless(&mut self, stop: &AtomicBool) -> Option<EmulatedStep> {
        let drawn = self.emulation.law.draw(&mut self.rng);
        let begin = self.clock.now_ns();
        let deadline = begin + drawn.as_nanos() as u64;
        while self.clock.now_ns() < deadline {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            // Setting the flag wakes no sleeper, so poll it.
            self.pass_until(deadline.min(self.clock.now_ns() + LOOK_FOR_STOP.as_nanos() as u64));
        }
        Some(EmulatedStep { drawn, taken: Duration::from_nanos(self.clock.now_ns() - begin) })
    }

    fn pass_until(&self, deadline_ns: u64) {
        match self.emulation.manner {
            Manner::Sleeping => self.clock.sleep_until_ns(deadline_ns),
            Manner::Busy => self.clock.spin_until_ns(deadline_ns),
        }
    }
}
