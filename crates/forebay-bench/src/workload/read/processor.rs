//! A core that all readers of an accelerator share: work that takes a second alone takes as many seconds as there is other work.
//!
//! Its own time goes on at one over the number of those at work. Work is done when that time has gone on by as much as it takes
//! alone; whoever comes or goes changes how long the others have to wait on the clock.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The core.
pub(super) struct Processor {
    state: Mutex<State>,
    left: Condvar,
}

struct State {
    /// Seconds of work that each of those at work has had.
    done_s: f64,
    n_at_work: u32,
    seen: Instant,
}

impl State {
    fn go_on(&mut self) {
        let now = Instant::now();
        self.done_s += (now - self.seen).as_secs_f64() / f64::from(self.n_at_work.max(1));
        self.seen = now;
    }
}

impl Processor {
    pub(super) fn new() -> Self {
        let state = State { done_s: 0.0, n_at_work: 0, seen: Instant::now() };
        Self { state: Mutex::new(state), left: Condvar::new() }
    }

    /// Works for so many seconds of the core's.
    pub(super) fn work(&self, seconds: f64) {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        state.go_on();
        let until_s = state.done_s + seconds;
        state.n_at_work += 1;
        while state.done_s < until_s {
            // A nanosecond more, so that a rounded wait is no loop without one.
            let wait = (until_s - state.done_s) * f64::from(state.n_at_work) + 1e-9;
            state = self.left.wait_timeout(state, Duration::from_secs_f64(wait)).expect("as above").0;
            state.go_on();
        }
        state.n_at_work -= 1;
        self.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_as_many_times_longer_as_there_is_work() {
        let core = Processor::new();
        let began = Instant::now();
        let ended: Vec<f64> = std::thread::scope(|scope| {
            let work = |seconds: f64| {
                let core = &core;
                scope.spawn(move || {
                    core.work(seconds);
                    began.elapsed().as_secs_f64()
                })
            };
            [work(0.02), work(0.02), work(0.02), work(0.06)].map(|thread| thread.join().expect("no panic")).into()
        });
        // No core does more than one second of work a second, and the longest work is done last.
        assert!(ended[3] >= 0.12 - 0.001 && ended[..3].iter().all(|end| *end >= 0.02 && *end <= ended[3]), "{ended:?}");
        let last_of_three = ended[..3].iter().copied().fold(0.0, f64::max);
        assert!(last_of_three >= 0.06, "{ended:?}");
        core.work(0.0);
    }
}
