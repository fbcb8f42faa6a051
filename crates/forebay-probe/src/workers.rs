//! Workers that start together, are timed together, and stop on request or if one of them fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use forebay_measure::usage::cpu_seconds;
use forebay_units::Histogram;

use super::error::Error;

/// Interval of progress events.
const TICK: Duration = Duration::from_millis(100);

pub(super) struct Shared<'a> {
    cancel: &'a AtomicBool,
    /// Measured from the start of the workers.
    limit: Option<Duration>,
    failed: AtomicBool,
    moved: AtomicU64,
    histogram: Histogram,
}

pub(super) struct Done {
    pub(super) bytes: u64,
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    /// Latency of every request, in nanoseconds.
    pub(super) latencies: Histogram,
}

/// The counts of one worker; dropping them adds them to the shared ones.
pub(super) struct Tally<'a> {
    shared: &'a Shared<'a>,
    deadline: Option<Instant>,
    histogram: Histogram,
    bytes: u64,
    stop: bool,
}

/// Ready to start: files are open, buffers allocated.
pub(super) type Worker<'a> = Box<dyn FnOnce(&mut Tally<'_>) -> Result<(), Error> + Send + 'a>;

impl<'a> Shared<'a> {
    pub(super) fn new(cancel: &'a AtomicBool, limit: Option<Duration>) -> Self {
        let (failed, moved) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { cancel, limit, failed, moved, histogram: Histogram::default() }
    }

    fn tally(&'a self, start: Instant) -> Tally<'a> {
        let deadline = self.limit.map(|limit| start + limit);
        Tally { shared: self, deadline, histogram: Histogram::default(), bytes: 0, stop: false }
    }
}

impl Tally<'_> {
    /// Counts a request that began at `start` and has just ended.
    pub(super) fn count(&mut self, start: Instant, bytes: u64) {
        let now = Instant::now();
        self.histogram.record((now - start).as_nanos() as u64);
        self.bytes += bytes;
        self.shared.moved.fetch_add(bytes, Ordering::Relaxed);
        self.stop = self.deadline.is_some_and(|deadline| now >= deadline);
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop || self.shared.cancel.load(Ordering::Relaxed) || self.shared.failed.load(Ordering::Relaxed)
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.shared.histogram.add(&self.histogram);
    }
}

/// Holds the workers until all are ready.
#[derive(Default)]
struct Gate {
    /// Number of waiting workers, and the start of the work; `Some(None)` dismisses them.
    state: Mutex<(usize, Option<Option<Instant>>)>,
    changed: Condvar,
}

impl Gate {
    fn wait(&self) -> Option<Instant> {
        let mut state = self.state.lock().expect("no holder panics");
        state.0 += 1;
        self.changed.notify_all();
        self.changed.wait_while(state, |state| state.1.is_none()).expect("no holder panics").1.flatten()
    }

    /// Opens when `n` workers wait; returns the start time.
    fn open_for(&self, n: usize) -> Instant {
        let state = self.state.lock().expect("no holder panics");
        let mut state = self.changed.wait_while(state, |state| state.0 < n).expect("no holder panics");
        let start = Instant::now();
        state.1 = Some(Some(start));
        self.changed.notify_all();
        start
    }

    fn send_home(&self) {
        self.state.lock().expect("no holder panics").1 = Some(None);
        self.changed.notify_all();
    }
}

/// Runs the workers, then `finish` (an fsync), all of it timed. `moved` receives the bytes moved since its last call.
pub(super) fn run(
    workers: Vec<Worker<'_>>,
    shared: Shared<'_>,
    finish: impl FnOnce() -> Result<(), Error>,
    moved: &mut dyn FnMut(u64),
) -> Result<Done, Error> {
    let (n, gate) = (workers.len(), Gate::default());
    let (shared_ref, gate_ref) = (&shared, &gate);
    let (wall_s, cpu_s) = thread::scope(|scope| {
        let (sender, ended) = mpsc::channel();
        for (number, worker) in workers.into_iter().enumerate() {
            let sender = sender.clone();
            let work = move || {
                let Some(start) = gate_ref.wait() else { return };
                let outcome = worker(&mut shared_ref.tally(start));
                shared_ref.failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                // The receiver outlives every worker.
                let _ = sender.send(outcome);
            };
            let named = thread::Builder::new().name(format!("forebay:probe-{number}"));
            if let Err(source) = named.spawn_scoped(scope, work) {
                gate.send_home();
                return Err(Error::Threads { n, source });
            }
        }
        let cpu = cpu_seconds();
        let start = gate.open_for(n);
        let outcome = collect(&ended, n, shared_ref, moved);
        // A cancelled run is dropped, and its fsync may take long.
        outcome.and_then(|()| if shared_ref.cancel.load(Ordering::Relaxed) { Ok(()) } else { finish() })?;
        Ok((start.elapsed().as_secs_f64(), cpu_seconds() - cpu))
    })?;
    Ok(Done { bytes: shared.moved.into_inner(), wall_s, cpu_s, latencies: shared.histogram })
}

/// Returns the first error of `n` workers.
fn collect(
    ended: &mpsc::Receiver<Result<(), Error>>,
    n: usize,
    shared: &Shared<'_>,
    moved: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let (mut left, mut told, mut outcome) = (n, 0, Ok(()));
    while left > 0 {
        match ended.recv_timeout(TICK) {
            Ok(of_worker) => {
                left -= 1;
                outcome = outcome.and(of_worker);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let now = shared.moved.load(Ordering::Relaxed);
                moved(now - told);
                told = now;
            }
            // A panicking worker sends nothing; leaving the scope propagates its panic.
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    moved(shared.moved.load(Ordering::Relaxed) - told);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(cancel: &AtomicBool) -> Shared<'_> {
        Shared::new(cancel, Some(Duration::from_secs(60)))
    }

    #[test]
    fn every_request_is_counted_with_its_bytes() {
        let cancel = AtomicBool::new(false);
        let workers = (0..4).map(|_| -> Worker<'_> {
            Box::new(|tally| {
                (0..100).for_each(|_| tally.count(Instant::now(), 10));
                Ok(())
            })
        });
        let mut told = 0;
        let done = run(workers.collect(), shared(&cancel), || Ok(()), &mut |bytes| told += bytes).unwrap();
        assert_eq!((done.bytes, done.latencies.count(), told), (4_000, 400, 4_000));
        assert!(done.wall_s > 0.0);
    }

    #[test]
    fn one_failure_stops_the_others_and_is_returned() {
        let cancel = AtomicBool::new(false);
        let endless: Worker<'_> = Box::new(|tally| {
            while !tally.is_over() {
                thread::yield_now();
            }
            Ok(())
        });
        let failing: Worker<'_> = Box::new(|_| Err(Error::senseless("broken")));
        let outcome = run(vec![endless, failing], shared(&cancel), || Ok(()), &mut |_| ());
        assert_eq!(outcome.err().unwrap().to_string(), "broken");
    }

    #[test]
    fn a_time_limit_and_a_cancelled_run_end() {
        let spin = |tally: &mut Tally<'_>| {
            while !tally.is_over() {
                tally.count(Instant::now(), 1);
            }
            Ok(())
        };
        let cancel = AtomicBool::new(false);
        let limited = Shared::new(&cancel, Some(Duration::from_millis(5)));
        let done = run(vec![Box::new(spin)], limited, || Ok(()), &mut |_| ()).unwrap();
        assert!(done.wall_s >= 0.005);
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(run(vec![Box::new(spin)], shared(&cancel), || Ok(()), &mut |_| ()).unwrap().bytes, 0);
    }
}
