//! Work that can be stopped and reports its progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs `work` while another thread calls `look` periodically, until `look` returns that it is done.
///
/// If no thread can be started, the work runs without the watcher: it then stops more slowly, with no other effect.
pub fn heeding<T>(every: Duration, mut look: impl FnMut() -> bool + Send, work: impl FnOnce() -> T) -> T {
    /// Ends the watcher even if the work panics.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = std::thread::Builder::new().name("forebay:heed".to_owned());
        let looking = watcher.spawn_scoped(scope, || {
            while !is_over.load(Ordering::Relaxed) && !look() {
                std::thread::park_timeout(every);
            }
        });
        let done = {
            let _over = Over(&is_over);
            work()
        };
        if let Ok(looking) = looking {
            looking.thread().unpark();
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_waits_for_the_look_gets_it() {
        let asked = AtomicBool::new(false);
        let look = || asked.swap(true, Ordering::Relaxed);
        let waits = || {
            while !asked.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            7
        };
        assert_eq!(heeding(Duration::from_secs(3600), look, waits), 7, "and its end does not wait for the next look");
    }
}
