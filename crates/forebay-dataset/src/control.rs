//! How a long operation is driven: threads, progress and cancellation.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Error, Result};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Finished items: files or shards, depending on the operation.
    pub done: u64,
    pub total: u64,
    /// Size of the finished items in bytes.
    pub bytes: u64,
}

#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Worker threads; 0 means one per core.
    pub threads: usize,
    /// Checked before every item; once true, the operation ends with [`Error::Cancelled`].
    pub cancel: &'a AtomicBool,
    /// Called after every item, from any worker, one call at a time.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

impl Default for Control<'_> {
    /// One thread per core, no progress callback, never cancelled.
    fn default() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self { threads: 0, cancel: &NEVER, progress: &|_| () }
    }
}

impl Control<'_> {
    /// Runs `work(state, item)` for every item in `0..total` on all threads, each with its own state from `start`.
    ///
    /// `work` returns the bytes it moved. The first error is returned; the other threads stop after their current item.
    pub(crate) fn for_each<S>(
        &self,
        name: &str,
        total: u64,
        start: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, u64) -> Result<u64> + Sync,
    ) -> Result<()> {
        let tally = Tally {
            next: AtomicU64::new(0),
            failed: Mutex::new(None),
            done: Mutex::new(Progress { total, ..Progress::default() }),
        };
        let worker = || {
            let mut state = start();
            while let Some(item) = tally.claim(total, self.cancel) {
                match work(&mut state, item) {
                    Ok(bytes) => tally.count(bytes, self.progress),
                    Err(error) => tally.fail(error),
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 0..self.workers(total) {
                let builder = std::thread::Builder::new().name(format!("forebay:{name}-{number}"));
                if builder.spawn_scoped(scope, worker).is_err() {
                    // No more threads can be started: those that run do the work, or else this one does.
                    if number == 0 {
                        worker();
                    }
                    break;
                }
            }
        });
        tally.outcome(self.cancel)
    }

    fn workers(&self, total: u64) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = if self.threads == 0 { cores() } else { self.threads };
        wanted.min(usize::try_from(total).unwrap_or(usize::MAX)).max(1)
    }
}

struct Tally {
    next: AtomicU64,
    failed: Mutex<Option<Error>>,
    done: Mutex<Progress>,
}

impl Tally {
    fn claim(&self, total: u64, cancel: &AtomicBool) -> Option<u64> {
        if cancel.load(Ordering::Relaxed) || self.failed.lock().expect("no panic while failing").is_some() {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|item| *item < total)
    }

    fn count(&self, bytes: u64, progress: &(dyn Fn(Progress) + Sync)) {
        let mut done = self.done.lock().expect("the progress callback does not panic");
        done.done += 1;
        done.bytes += bytes;
        progress(*done);
    }

    fn fail(&self, error: Error) {
        self.failed.lock().expect("no panic while failing").get_or_insert(error);
    }

    fn outcome(self, cancel: &AtomicBool) -> Result<()> {
        let done = self.done.into_inner().expect("the progress callback does not panic");
        match self.failed.into_inner().expect("no panic while failing") {
            Some(error) => Err(error),
            None if cancel.load(Ordering::Relaxed) && done.done < done.total => Err(Error::Cancelled),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_and_progress_reaches_the_total() {
        let seen = Mutex::new(vec![0; 100]);
        let last = Mutex::new(Progress::default());
        let control = Control { threads: 4, progress: &|at| *last.lock().unwrap() = at, ..Control::default() };
        let work = |_: &mut (), item: u64| {
            seen.lock().unwrap()[item as usize] += 1;
            Ok(item)
        };
        control.for_each("test", 100, || (), work).unwrap();
        assert!(seen.into_inner().unwrap().iter().all(|&n| n == 1));
        assert_eq!(last.into_inner().unwrap(), Progress { done: 100, total: 100, bytes: 4950 });
    }

    #[test]
    fn an_error_stops_the_rest() {
        let control = Control { threads: 2, ..Control::default() };
        let done = AtomicU64::new(0);
        let work = |_: &mut (), item: u64| {
            if item == 3 {
                return Err(Error::Busy { path: "x".into() });
            }
            done.fetch_add(1, Ordering::Relaxed);
            Ok(0)
        };
        let outcome = control.for_each("test", 1_000_000, || (), work);
        assert!(matches!(outcome, Err(Error::Busy { .. })));
        assert!(done.load(Ordering::Relaxed) < 1_000_000);
    }

    #[test]
    fn a_set_flag_cancels() {
        let cancel = AtomicBool::new(true);
        let control = Control { cancel: &cancel, ..Control::default() };
        assert!(matches!(control.for_each("test", 5, || (), |_, _| Ok(0)), Err(Error::Cancelled)));
    }
}
