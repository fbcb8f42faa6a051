//! An accelerator that is not there: it takes the time of one.
//!
//! A step lasts as long as its law says, on the clock it is given. What is reported is what the clock showed, never what was
//! asked for: a machine that wakes late makes longer steps, and the record must say so.

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

/// What the thread does while the accelerator "computes".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It sleeps, as a host that waits for a device: other threads have its core.
    Sleeping,
    /// It keeps its core busy, as a host that computes itself.
    Busy,
}

/// What is emulated: how long a step takes, and what the host does meanwhile.
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
    /// The step's time by the law.
    pub drawn: Duration,
    /// The step's time by the clock: longer than `drawn` by what waking up takes.
    pub taken: Duration,
}

pub struct EmulatedAccelerator {
    emulation: Emulation,
    rng: Random,
    clock: Arc<dyn Clock>,
}

impl EmulatedAccelerator {
    /// Draws its steps from `seed` and spends them on `clock`.
    pub fn new(emulation: Emulation, seed: u64, clock: Arc<dyn Clock>) -> Self {
        // A stream of its own, away from those that weights are drawn from.
        Self { emulation, rng: random(seed, u64::MAX), clock }
    }

    /// Goes on as if so many steps had been made, in no time.
    pub fn skip(&mut self, n_steps: u64) {
        for _ in 0..n_steps {
            self.emulation.law.draw(&mut self.rng);
        }
    }

    /// Blocks for the time that the law draws, asleep or busy as the [`Manner`] says.
    pub fn step(&mut self) -> EmulatedStep {
        let drawn = self.emulation.law.draw(&mut self.rng);
        let begin = self.clock.now_ns();
        self.pass_until(begin + drawn.as_nanos() as u64);
        EmulatedStep { drawn, taken: Duration::from_nanos(self.clock.now_ns() - begin) }
    }

    /// The same, unless `stop` is set before or meanwhile: then there was no step.
    pub fn step_unless(&mut self, stop: &AtomicBool) -> Option<EmulatedStep> {
        let drawn = self.emulation.law.draw(&mut self.rng);
        let begin = self.clock.now_ns();
        let deadline = begin + drawn.as_nanos() as u64;
        while self.clock.now_ns() < deadline {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            // Nobody wakes a sleeper when the flag is set.
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
