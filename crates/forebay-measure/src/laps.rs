//! Divides wall-clock time into parts: every moment belongs to exactly one, and the parts sum to the whole.

use std::sync::Arc;

use forebay_units::Clock;

/// The use of a moment, from the accelerator's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Idle: no batch is ready.
    Wait,
    /// Idle: its batch is in transfer.
    Copy,
    Compute,
    /// Step done; waiting for the other accelerators.
    Barrier,
    /// Stopped for a checkpoint.
    Checkpoint,
    /// Evaluating held-out data.
    Validate,
    /// Bookkeeping between the other parts.
    Other,
}

const N: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts([u64; N]);

impl Parts {
    pub fn ns(&self, part: Part) -> u64 {
        self.0[part as usize]
    }

    pub fn seconds(&self, part: Part) -> f64 {
        self.ns(part) as f64 / 1e9
    }

    pub fn total_ns(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A stopwatch without gaps: each lap begins where the previous one ended.
pub struct Laps {
    clock: Arc<dyn Clock>,
    started_ns: u64,
    last_ns: u64,
    step: Parts,
    total: Parts,
}

impl Laps {
    pub fn start(clock: Arc<dyn Clock>) -> Self {
        let now = clock.now_ns();
        Self { clock, started_ns: now, last_ns: now, step: Parts::default(), total: Parts::default() }
    }

    /// Charges the time since the last lap to `part` and returns it in nanoseconds.
    pub fn lap(&mut self, part: Part) -> u64 {
        self.lap_until(part, u64::MAX)
    }

    /// Like [`lap`](Self::lap), but only up to `until_ns` on the clock; the rest belongs to the next lap.
    pub fn lap_until(&mut self, part: Part, until_ns: u64) -> u64 {
        let now = self.clock.now_ns().min(until_ns).max(self.last_ns);
        let gone = now - self.last_ns;
        self.last_ns = now;
        self.step.0[part as usize] += gone;
        self.total.0[part as usize] += gone;
        gone
    }

    pub fn end_step(&mut self) -> Parts {
        std::mem::take(&mut self.step)
    }

    /// Moves the time charged to `part` since the end of the last step into that step.
    pub fn count_to(&mut self, last: &mut Parts, part: Part) {
        last.0[part as usize] += std::mem::take(&mut self.step.0[part as usize]);
    }

    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Returns to the end of the last step, discarding an interrupted one.
    pub fn forget_step(&mut self) {
        let step = std::mem::take(&mut self.step);
        self.last_ns -= step.total_ns();
        self.total.0.iter_mut().zip(step.0).for_each(|(total, part)| *total -= part);
    }

    pub fn total(&self) -> Parts {
        debug_assert_eq!(self.total.total_ns(), self.wall_ns(), "the parts sum to the whole");
        self.total
    }

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
            "an interrupted step leaves no trace"
        );
    }
}
