//! The workers of an emulated loader, which share a core: each makes every n-th batch, and work that takes a second
//! alone takes `k` seconds with `k` active workers.
//!
//! The core's virtual time advances at one over the number of active workers. Work is done when that time has advanced
//! by as much as it takes alone, including reading; a worker that starts or ends changes how long the others wait on
//! the clock.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub(super) struct Processor {
    state: Mutex<State>,
    left: Condvar,
    bytes_per_s: f64,
}

struct State {
    /// Virtual time of the core, in seconds.
    done_s: f64,
    n_at_work: u32,
    seen: Instant,
    /// Per worker.
    n_made: Vec<u64>,
    /// All threads, and those of them that wait for a worker.
    n_threads: usize,
    n_waiting: usize,
}

impl State {
    fn go_on(&mut self) {
        let now = Instant::now();
        self.done_s += (now - self.seen).as_secs_f64() / f64::from(self.n_at_work.max(1));
        self.seen = now;
    }
}

impl Processor {
    pub(super) fn new(bytes_per_s: f64, n_workers: u64) -> Self {
        let n_made = vec![0; n_workers.max(1) as usize];
        let state = State { done_s: 0.0, n_at_work: 0, seen: Instant::now(), n_made, n_threads: 0, n_waiting: 0 };
        Self { state: Mutex::new(state), left: Condvar::new(), bytes_per_s }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// For threads that make batches.
    pub(super) fn enter(&self) {
        self.lock().n_threads += 1;
    }

    /// May leave batches unmade if all end early.
    pub(super) fn leave(&self) {
        self.lock().n_threads -= 1;
        self.left.notify_all();
    }

    /// Waits until the batch's worker has made its last one, or no thread is left that could.
    pub(super) fn begin(&self, batch: u32) -> Work<'_> {
        let mut state = self.lock();
        let n_workers = state.n_made.len() as u64;
        let (worker, nth) = ((u64::from(batch) % n_workers) as usize, u64::from(batch) / n_workers);
        state.n_waiting += 1;
        while state.n_made[worker] < nth && state.n_waiting < state.n_threads {
            state = self.left.wait(state).expect("no holder of this lock panics");
        }
        state.n_waiting -= 1;
        state.go_on();
        state.n_at_work += 1;
        Work { core: self, worker, from_s: state.done_s }
    }
}

/// A batch in progress; dropping it frees its worker.
pub(super) struct Work<'a> {
    core: &'a Processor,
    worker: usize,
    /// Virtual time at its start.
    from_s: f64,
}

impl Work<'_> {
    /// Waits until the core could have decoded this many bytes since the batch began.
    pub(super) fn decode(&self, bytes: u64) {
        let until_s = self.from_s + bytes as f64 / self.core.bytes_per_s;
        let mut state = self.core.lock();
        state.go_on();
        while state.done_s < until_s {
            // The extra nanosecond keeps a rounded wait from looping without one.
            let wait = (until_s - state.done_s) * f64::from(state.n_at_work) + 1e-9;
            let woken = self.core.left.wait_timeout(state, Duration::from_secs_f64(wait));
            state = woken.expect("no holder of this lock panics").0;
            state.go_on();
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        state.go_on();
        state.n_at_work -= 1;
        state.n_made[self.worker] += 1;
        drop(state);
        self.core.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of these batches was made, each by a thread, in seconds.
    fn make(core: &Processor, batches: &[(u32, u64)]) -> Vec<f64> {
        let began = Instant::now();
        batches.iter().for_each(|_| core.enter());
        std::thread::scope(|scope| {
            let make = |(batch, bytes): (u32, u64)| {
                scope.spawn(move || {
                    core.begin(batch).decode(bytes);
                    began.elapsed().as_secs_f64()
                })
            };
            let threads: Vec<_> = batches.iter().copied().map(make).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn work_takes_as_many_times_longer_as_there_is_work() {
        let ended = make(&Processor::new(1e6, 4), &[(0, 20_000), (1, 20_000), (2, 20_000), (3, 60_000)]);
        // The core does at most one second of work per second, whoever comes first.
        let last = |ended: &[f64]| ended.iter().copied().fold(0.0, f64::max);
        assert!(last(&ended) >= 0.12 - 0.001 && last(&ended[..3]) >= 0.06 - 0.001, "{ended:?}");
        assert!(ended[3] >= 0.06 && ended.iter().all(|end| *end >= 0.02), "{ended:?}");
    }

    #[test]
    fn a_batch_waits_for_its_worker_also_where_another_is_free() {
        // The third batch is the first worker's, whose first one takes longest.
        let ended = make(&Processor::new(1e6, 2), &[(0, 40_000), (1, 1_000), (2, 1_000)]);
        assert!(ended[2] > ended[0], "{ended:?}");
    }

    #[test]
    fn reading_is_part_of_the_time() {
        let core = Processor::new(1e6, 1);
        core.enter();
        let work = core.begin(0);
        // As if reading had taken ten seconds.
        core.lock().done_s += 10.0;
        work.decode(10_000_000);
        assert!(core.lock().done_s < 15.0, "ten seconds of decoding were over when ten of reading were");
    }

    #[test]
    fn nobody_waits_for_a_batch_that_nobody_is_left_to_make() {
        let core = Processor::new(1e6, 1);
        (0..2).for_each(|_| core.enter());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| core.begin(1).decode(1));
            core.leave();
            waits.join().expect("it ends");
        });
    }
}
