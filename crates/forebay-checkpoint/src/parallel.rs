//! A few threads that process a shared list of chunks, each with its own buffer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use forebay_units::{Clock, SystemClock};

use crate::region::Region;
use crate::{Error, Result};

/// Runs `work` for each item on `n_threads` threads with `scratch_bytes` of memory per thread. Stops at the first
/// error.
pub(crate) fn for_each<T: Send>(
    n_threads: usize,
    scratch_bytes: usize,
    items: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(T, &mut [u8]) -> Result<()> + Sync,
) -> Result<()> {
    let n_threads = n_threads.min(items.len());
    let (items, failed) = (Mutex::new(items), AtomicBool::new(false));
    let run = || {
        let mut scratch = Region::new(scratch_bytes)?;
        while !failed.load(Ordering::Relaxed) {
            let Some(item) = items.lock().expect("no holder of this lock panics").next() else { break };
            work(item, &mut scratch).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    if n_threads <= 1 {
        return run();
    }
    std::thread::scope(|scope| {
        let named = |k| std::thread::Builder::new().name(format!("forebay:chunk-{k}"));
        let others: Vec<_> = (1..n_threads).filter_map(|k| named(k).spawn_scoped(scope, run).ok()).collect();
        let mine = run();
        let theirs = others.into_iter().map(|thread| thread.join().expect("no chunk's work panics"));
        // Join all threads; report the first error.
        theirs.collect::<Vec<Result<()>>>().into_iter().chain([mine]).collect()
    })
}

/// The rate limit and stop flag of background work.
pub(crate) struct Pace<'a> {
    bytes_per_s: Option<u64>,
    stop: Option<&'a AtomicBool>,
    /// A thread is waiting for this work: ignore the rate limit.
    hurry: Option<&'a AtomicBool>,
    /// Called for every chunk moved.
    progress: Option<&'a Progress<'a>>,
    clock: SystemClock,
    moved: AtomicU64,
}

/// Called from any thread with the bytes just moved.
pub type Progress<'a> = dyn Fn(u64) + Sync + 'a;

/// A stop takes effect within this time at any rate. Data moved within it may run ahead of the rate.
const NAP: Duration = Duration::from_millis(20);

impl<'a> Pace<'a> {
    /// No rate limit and no stop flag.
    pub(crate) fn free() -> Self {
        let (clock, moved) = (SystemClock::default(), AtomicU64::new(0));
        Self { bytes_per_s: None, stop: None, hurry: None, progress: None, clock, moved }
    }

    /// The same, with a progress callback.
    pub(crate) fn telling(self, progress: Option<&'a Progress<'a>>) -> Self {
        Self { progress, ..self }
    }

    /// The same, until a flag is set.
    pub(crate) fn until(self, stop: &'a AtomicBool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// The longest sleep before the stop flag is checked again; `None` if there is no stop flag.
    pub(crate) fn nap(&self) -> Option<Duration> {
        self.stop.map(|_| NAP)
    }

    /// Reports bytes moved.
    pub(crate) fn after(&self, bytes: usize) {
        if let Some(progress) = self.progress {
            progress(bytes as u64);
        }
    }

    pub(crate) fn new(bytes_per_s: Option<u64>, stop: &'a AtomicBool, hurry: &'a AtomicBool) -> Self {
        Self { bytes_per_s, stop: Some(stop), hurry: Some(hurry), ..Self::free() }
    }

    /// Waits until this many more bytes may be moved.
    pub(crate) fn before(&self, bytes: usize) -> Result<()> {
        let moved = self.moved.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        let due_ns = self.bytes_per_s.map_or(0, |rate| {
            let needed_ns = u128::from(moved) * 1_000_000_000 / u128::from(rate.max(1));
            needed_ns.saturating_sub(NAP.as_nanos()) as u64
        });
        let is_set = |flag: Option<&AtomicBool>| flag.is_some_and(|flag| flag.load(Ordering::Relaxed));
        loop {
            if is_set(self.stop) {
                return Err(Error::Stopped);
            }
            let now = self.clock.now_ns();
            if now >= due_ns || is_set(self.hurry) {
                return Ok(());
            }
            self.clock.sleep_until_ns(due_ns.min(now + NAP.as_nanos() as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_and_an_error_ends_it() {
        let seen = Mutex::new(Vec::new());
        let work = |item: usize, scratch: &mut [u8]| {
            assert_eq!(scratch.len(), 4096);
            seen.lock().unwrap().push(item);
            if item == 70 { Err(Error::Stopped) } else { Ok(()) }
        };
        for_each(3, 100, 0..50, work).unwrap();
        let mut all = std::mem::take(&mut *seen.lock().unwrap());
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        assert!(matches!(for_each(1, 100, 60..80, work), Err(Error::Stopped)));
        assert_eq!(*seen.lock().unwrap(), (60..71).collect::<Vec<_>>());
    }

    #[test]
    fn a_rate_is_kept_and_a_stop_ends_the_wait() {
        let (stop, hurry) = (AtomicBool::new(false), AtomicBool::new(false));
        let pace = Pace::new(Some(100 << 20), &stop, &hurry);
        for _ in 0..6 {
            pace.before(1 << 20).unwrap();
        }
        assert!(pace.clock.now_ns() >= 40_000_000, "six megabytes at a hundred per second, the last two ahead");
        hurry.store(true, Ordering::Relaxed);
        pace.before(1 << 50).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(pace.before(1 << 50), Err(Error::Stopped)));
    }
}
