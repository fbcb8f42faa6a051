//! The wall clock cut into parts: every moment belongs to exactly one, so that the parts sum to the whole.

use std::sync::Arc;

use forebay_units::Clock;

/// What a moment was spent on, as the accelerator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It was idle and there was no batch.
    Wait,
    /// It was idle and its batch was on the way.
    Copy,
    /// It computed.
    Compute,
    /// It had ended its step and waited for the other accelerators.
    Barrier,
    /// It stood still for a checkpoint.
    Checkpoint,
    /// It was asked what it has learnt.
    Validate,
    /// Bookkeeping.
    Other,
}

const N: usize = 7;

/// Nanoseconds by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts([u64; N]);

impl Parts {
    /// Spent on `part`, in nanoseconds.
    pub fn ns(&self, part: Part) -> u64 {
        self.0[part as usize]
    }

    /// Spent on `part`, in seconds.
    pub fn seconds(&self, part: Part) -> f64 {
        self.ns(part) as f64 / 1e9
    }

    /// The sum of all parts.
    pub fn total_ns(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A stopwatch that never stands still between two laps.
pub struct Laps {
    clock: Arc<dyn Clock>,
    started_ns: u64,
    last_ns: u64,
    step: Parts,
    total: Parts,
}

impl Laps {
    /// Starts now, by `clock`.
    pub fn start(clock: Arc<dyn Clock>) -> Self {
        let now = clock.now_ns();
        Self { clock, started_ns: now, last_ns: now, step: Parts::default(), total: Parts::default() }
    }

    /// What went by since the last lap was spent on `part`: how much that is, in nanoseconds.
    pub fn lap(&mut self, part: Part) -> u64 {
        self.lap_until(part, u64::MAX)
    }

    /// The same, but not beyond that moment of the clock: what is after it is left to the next lap.
    pub fn lap_until(&mut self, part: Part, until_ns: u64) -> u64 {
        let now = self.clock.now_ns().min(until_ns).max(self.last_ns);
        let gone = now - self.last_ns;
        self.last_ns = now;
        self.step.0[part as usize] += gone;
        self.total.0[part as usize] += gone;
        gone
    }

    /// The parts since the last step ended.
    pub fn end_step(&mut self) -> Parts {
        std::mem::take(&mut self.step)
    }

    /// Counts what went by on `part` since the last step ended to that step instead of the next one.
    pub fn count_to(&mut self, last: &mut Parts, part: Part) {
        last.0[part as usize] += std::mem::take(&mut self.step.0[part as usize]);
    }

    /// When it was started, on its clock.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Goes back to the end of the last step: what came after it was broken off.
    pub fn forget_step(&mut self) {
        let step = std::mem::take(&mut self.step);
        self.last_ns -= step.total_ns();
        self.total.0.iter_mut().zip(step.0).for_each(|(total, part)| *total -= part);
    }

    /// The parts of everything so far.
    pub fn total(&self) -> Parts {
        debug_assert_eq!(self.total.total_ns(), self.wall_ns(), "the parts sum to the whole");
        self.total
    }

    /// From the start to the last lap.
    pub fn wall_ns(&self) -> u64 {
        self.last_ns - self.started_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_units::ManualClock;
    use std::time::Duration;

    #[test]
    fn a_part_that_was_over_before_it_was_noticed_ends_when_it_did() {
        let clock = Arc::new(ManualClock::default());
        let mut laps = Laps::start(clock.clone());
        clock.advance(Duration::from_nanos(50));
        assert_eq!((laps.lap_until(Part::Compute, 40), laps.lap(Part::Other)), (40, 10));
        clock.advance(Duration::from_nanos(5));
        assert_eq!((laps.lap_until(Part::Compute, 99), laps.lap(Part::Other)), (5, 0));
        assert_eq!(laps.total().total_ns(), laps.wall_ns());
    }

    #[test]
    fn the_parts_of_steps_sum_to_the_wall_clock() {
        let clock = Arc::new(ManualClock::default());
        clock.advance(Duration::from_nanos(99));
        let mut laps = Laps::start(clock.clone());
        let mut steps = Vec::new();
        for step in 1..4 {
            for (part, ns) in [(Part::Wait, 5), (Part::Copy, 1), (Part::Compute, 70), (Part::Other, 2)] {
                clock.advance(Duration::from_nanos(ns * step));
                assert_eq!(laps.lap(part), ns * step);
            }
            steps.push(laps.end_step());
        }
        assert_eq!(steps[2].ns(Part::Compute), 210);
        assert_eq!(laps.wall_ns(), 78 * 6);
        assert_eq!(laps.total().total_ns(), laps.wall_ns());
        assert_eq!(steps.iter().map(Parts::total_ns).sum::<u64>(), laps.wall_ns());
        assert_eq!(laps.total().ns(Part::Validate), 0);
        clock.advance(Duration::from_nanos(30));
        assert_eq!(laps.lap(Part::Checkpoint), 30);
        laps.count_to(&mut steps[2], Part::Checkpoint);
        assert_eq!(steps[2].ns(Part::Checkpoint), 30, "a checkpoint belongs to the step it follows");
        assert_eq!(steps.iter().map(Parts::total_ns).sum::<u64>(), laps.wall_ns());
        clock.advance(Duration::from_nanos(1_000));
        laps.lap(Part::Compute);
        laps.forget_step();
        assert_eq!(
            (laps.wall_ns(), laps.total().total_ns()),
            (78 * 6 + 30, 78 * 6 + 30),
            "a step that was broken off leaves no trace"
        );
    }
}
