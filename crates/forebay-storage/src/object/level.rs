//! How many requests to keep in flight.
//!
//! The right number is what the network's bandwidth times its delay holds, and neither is known. It is therefore found
//! by trial: the number doubles as long as that brings more bytes per second, and goes back one step when it does not.
//! A store that asks to slow down halves it. A reader that is slower than the network tells nothing, so only times
//! count during which all requests that are allowed were in flight.

use std::time::Instant;

const FIRST: usize = 16;
const LEAST: usize = 4;
const MOST: usize = 256;
/// A doubling must bring this much more.
const WORTHWHILE: f64 = 1.1;
/// Rounds after which more is tried again, because the network may have changed.
const SETTLED_ROUNDS: usize = 50;

pub(super) struct Level {
    limit: usize,
    is_fixed: bool,
    round: Round,
    /// Bytes per second with half of the limit.
    before: Option<f64>,
    /// Rounds since the number was found; 0 while it is sought.
    settled: usize,
    throttled: u64,
}

struct Round {
    start: Instant,
    n: usize,
    bytes: u64,
    was_full: bool,
}

impl Round {
    fn new(start: Instant) -> Self {
        Self { start, n: 0, bytes: 0, was_full: true }
    }
}

impl Level {
    pub(super) fn new(fixed: Option<usize>, now: Instant) -> Self {
        let round = Round::new(now);
        Self { limit: fixed.unwrap_or(FIRST), is_fixed: fixed.is_some(), round, before: None, settled: 0, throttled: 0 }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// A request was answered. `is_full` says whether as many as allowed are in flight, and `throttled` how often the
    /// store has asked to slow down so far.
    pub(super) fn answered(&mut self, now: Instant, bytes: u64, is_full: bool, throttled: u64) {
        if self.is_fixed {
            return;
        }
        if throttled > self.throttled {
            self.throttled = throttled;
            self.limit = (self.limit / 2).max(LEAST);
            (self.before, self.settled, self.round) = (None, 1, Round::new(now));
            return;
        }
        self.round.n += 1;
        self.round.bytes += bytes;
        self.round.was_full &= is_full;
        if self.round.n < 2 * self.limit {
            return;
        }
        let rate = self.round.bytes as f64 / now.duration_since(self.round.start).as_secs_f64().max(1e-9);
        let was_full = self.round.was_full;
        self.round = Round::new(now);
        if was_full {
            self.judge(rate);
        }
    }

    fn judge(&mut self, rate: f64) {
        if self.settled > 0 {
            self.settled += 1;
            if self.settled <= SETTLED_ROUNDS {
                return;
            }
        } else if self.before.is_some_and(|before| rate < before * WORTHWHILE) {
            self.limit = (self.limit / 2).max(LEAST);
            (self.before, self.settled) = (None, 1);
            return;
        }
        (self.before, self.settled) = (Some(rate), 0);
        if self.limit >= MOST {
            self.settled = 1;
        }
        self.limit = (self.limit * 2).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Answers at a rate that grows with the number in flight up to `best`, for a few rounds.
    fn found(best: usize, is_full: bool) -> usize {
        let mut now = Instant::now();
        let mut level = Level::new(None, now);
        for _ in 0..4_000 {
            now += Duration::from_secs_f64(1.0 / level.limit().min(best) as f64);
            level.answered(now, 1_000, is_full, 0);
        }
        level.limit()
    }

    #[test]
    fn the_number_grows_as_long_as_it_helps() {
        assert_eq!((found(16, true), found(64, true), found(10_000, true)), (16, 64, MOST));
    }

    #[test]
    fn a_slow_reader_changes_nothing() {
        assert_eq!(found(10_000, false), FIRST);
    }

    #[test]
    fn a_store_that_asks_to_slow_down_is_obeyed() {
        let now = Instant::now();
        let mut level = Level::new(None, now);
        level.answered(now, 1, true, 1);
        level.answered(now, 1, true, 1);
        assert_eq!(level.limit(), FIRST / 2);
        (2..10).for_each(|throttled| level.answered(now, 1, true, throttled));
        assert_eq!(level.limit(), LEAST);
    }

    #[test]
    fn a_given_number_stays() {
        let now = Instant::now();
        let mut level = Level::new(Some(3), now);
        (0..1_000).for_each(|n| level.answered(now + Duration::from_millis(n), 1, true, n));
        assert_eq!(level.limit(), 3);
    }
}
