//! Where all accelerators of all processes meet, and where a failure of one becomes the failure of all.
//!
//! Accelerators of a process gather here; the last to come meets the other processes for all of them. Everybody passes as often as
//! everybody else, so that a reason given at any pass is heard by all at that pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use super::ranks::{Failed, Ranks, Verdict};

#[derive(Default)]
struct State {
    n_arrived: usize,
    n_passes: u64,
    /// The first reason that was given by an accelerator of this process.
    reason: Option<String>,
    outcome: Option<Result<Verdict, Failed>>,
}

/// The barrier of a run.
pub(super) struct Gate<'a> {
    n_accelerators: usize,
    ranks: &'a dyn Ranks,
    stop: &'a AtomicBool,
    is_broken: AtomicBool,
    state: Mutex<State>,
    opened: Condvar,
}

impl<'a> Gate<'a> {
    pub(super) fn new(n_accelerators: usize, ranks: &'a dyn Ranks, stop: &'a AtomicBool) -> Self {
        Self {
            n_accelerators,
            ranks,
            stop,
            is_broken: AtomicBool::new(false),
            state: Mutex::default(),
            opened: Condvar::new(),
        }
    }

    /// Set once an accelerator of this process has failed: whoever waits for data need not.
    pub(super) fn is_broken(&self) -> &AtomicBool {
        &self.is_broken
    }

    /// Set once this process was asked to stop.
    pub(super) fn stop(&self) -> &AtomicBool {
        self.stop
    }

    /// Whether all end at the next pass, as far as this process knows.
    pub(super) fn is_ending(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    /// A failure of this process.
    pub(super) fn failed(&self, reason: String) -> Failed {
        Failed { rank: self.ranks.rank(), host: self.ranks.host(), reason, is_lost: false }
    }

    /// Waits for all. The last of this process to come does `last` before anybody goes on.
    ///
    /// # Errors
    /// The reason of the first rank where one has failed.
    pub(super) fn pass(&self, mine: Result<(), String>, last: &dyn Fn()) -> Result<Verdict, Failed> {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        if let Err(reason) = mine {
            self.is_broken.store(true, Ordering::Relaxed);
            state.reason.get_or_insert(reason);
        }
        state.n_arrived += 1;
        let pass = state.n_passes;
        if state.n_arrived < self.n_accelerators {
            while state.n_passes == pass {
                state = self.opened.wait(state).expect("no holder of this lock panics");
            }
        } else {
            last();
            self.open(&mut state);
        }
        // Nobody can have come round again: the next pass needs this accelerator too.
        state.outcome.clone().expect("the last to come has left what came of it")
    }

    /// Comes once in the place of an accelerator that is not there, without waiting.
    pub(super) fn absent(&self, reason: String) {
        self.is_broken.store(true, Ordering::Relaxed);
        let mut state = self.state.lock().expect("no holder of this lock panics");
        state.reason.get_or_insert(reason);
        state.n_arrived += 1;
        if state.n_arrived == self.n_accelerators {
            self.open(&mut state);
        }
    }

    fn open(&self, state: &mut State) {
        state.outcome = Some(self.meet(state.reason.clone()));
        state.n_arrived = 0;
        state.n_passes += 1;
        self.opened.notify_all();
    }

    fn meet(&self, reason: Option<String>) -> Result<Verdict, Failed> {
        let verdict = if self.stop.load(Ordering::Relaxed) { Verdict::Stop } else { Verdict::Go };
        self.ranks.meet_or_stop(reason.map_or(Ok(verdict), Err))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::super::ranks::Solo;
    use super::*;

    /// Each of `n` passes until it may not: how often, and how it ended.
    fn passes(n: usize, stop: &AtomicBool, fails: Option<(usize, u64)>) -> Vec<(u64, Result<Verdict, Failed>)> {
        let gate = Gate::new(n, &Solo, stop);
        let lasts = AtomicU64::new(0);
        let one = &|who: usize| {
            for pass in 1.. {
                let mine = if fails == Some((who, pass)) { Err("no such file".to_owned()) } else { Ok(()) };
                let last = || {
                    lasts.fetch_add(1, Ordering::SeqCst);
                    stop.fetch_or(fails.is_none() && pass == 7, Ordering::SeqCst);
                };
                let outcome = gate.pass(mine, &last);
                assert_eq!(lasts.load(Ordering::SeqCst), pass, "the last to come acts before anybody goes on");
                if outcome != Ok(Verdict::Go) {
                    return (pass, outcome);
                }
            }
            unreachable!("passes are not counted to the end")
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n).map(|who| scope.spawn(move || one(who))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_failure_of_one_is_heard_by_all_at_the_same_pass() {
        for (pass, outcome) in passes(9, &AtomicBool::new(false), Some((4, 20))) {
            assert_eq!(pass, 20);
            assert_eq!(outcome.unwrap_err().reason, "no such file");
        }
    }

    #[test]
    fn a_stop_is_obeyed_by_all_at_the_same_pass() {
        let ended = passes(5, &AtomicBool::new(false), None);
        assert_eq!(ended, vec![(7, Ok(Verdict::Stop)); 5]);
    }
}
