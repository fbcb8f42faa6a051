//! The rounds of an experiment.
//!
//! A round goes over all cells before the next begins, so that a machine that slows down slows all of them. The first rounds
//! warm up and are not kept. Before a repeat the files of its data are evicted where it is to be cold, and the page cache is
//! looked at in any case. A repeat that was stopped in the middle is dropped, unless the experiment says otherwise.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::cold::{self, Before};
use crate::{Event, Observer};

/// One cell of an experiment, made ready to be run.
pub trait Trial {
    /// What a repeat measures.
    type Repeat;
    /// Why a repeat fails, and the experiment with it.
    type Error: From<forebay_storage::Error>;

    /// What is measured, in words: "4 threads".
    fn name(&self) -> String;

    /// The files of the data, and whether they are evicted before a repeat.
    fn files(&self) -> (Cow<'_, [PathBuf]>, bool) {
        (Cow::Borrowed(&[]), false)
    }

    /// What a repeat needs and does not measure; comes before the page cache is looked at.
    ///
    /// # Errors
    /// When the repeat cannot begin.
    fn prepare(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Measures once. Rounds are counted from 0, warm-ups included.
    ///
    /// # Errors
    /// When there is nothing to keep, of this and of all other cells.
    fn repeat(
        &mut self,
        round: u64,
        before: &Before,
        observer: Observer<'_>,
    ) -> Result<Done<Self::Repeat>, Self::Error>;
}

/// How a repeat ended.
pub enum Done<R> {
    /// As planned, unless it was stopped meanwhile.
    Whole(R),
    /// Cut short, and with it the run; some is kept all the same.
    Cut(Option<R>),
}

/// How often cells are run.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Rounds that are run and not kept.
    pub warmups: usize,
    /// Rounds that are kept.
    pub repeats: usize,
    /// What is kept of a run that is stopped: "repeat".
    pub unit: &'static str,
}

/// The repeats that were kept.
pub struct Ran<R> {
    /// Of each cell.
    pub cells: Vec<Vec<R>>,
    /// Whether the last of them were not run.
    pub is_cut: bool,
}

impl Rounds {
    /// Runs all rounds, or as many as come before a stop.
    ///
    /// # Errors
    /// When a repeat fails.
    pub fn run<T: Trial>(&self, trials: &mut [T], observer: Observer<'_>) -> Result<Ran<T::Repeat>, T::Error> {
        let mut ran = Ran { cells: trials.iter().map(|_| Vec::new()).collect(), is_cut: false };
        for round in 0..self.warmups + self.repeats {
            for (trial, kept) in trials.iter_mut().zip(&mut ran.cells) {
                let (done, is_cut) = match self.once(trial, round, observer)? {
                    Done::Whole(repeat) => (Some(repeat).filter(|_| !observer.is_cancelled()), observer.is_cancelled()),
                    Done::Cut(repeat) => (repeat, true),
                };
                kept.extend(done.filter(|_| round >= self.warmups));
                if is_cut {
                    return Ok(Ran { is_cut, ..ran });
                }
            }
        }
        Ok(ran)
    }

    fn once<T: Trial>(&self, trial: &mut T, round: usize, observer: Observer<'_>) -> Result<Done<T::Repeat>, T::Error> {
        if observer.is_cancelled() {
            return Ok(Done::Cut(None));
        }
        trial.prepare()?;
        let (files, is_cold) = trial.files();
        let before = cold::prepare(&files, is_cold)?;
        observer.tell(Event::Repeat { what: self.describe(trial, round) });
        trial.repeat(round as u64, &before, observer)
    }

    fn describe(&self, trial: &impl Trial, round: usize) -> String {
        let (name, n) = (trial.name(), self.repeats);
        match round.checked_sub(self.warmups) {
            None => format!("{name}, warm-up"),
            Some(_) if n == 1 => name,
            Some(repeat) => format!("{name}, repeat {} of {n}", repeat + 1),
        }
    }

    /// What a record says of a run that was stopped.
    pub fn interrupted(&self, n_cells: usize) -> String {
        let unit = self.unit;
        match n_cells {
            0 => format!("interrupted before the first {unit} that would be kept"),
            _ => format!("interrupted: the {unit}s finished before that are kept"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Counts its repeats over all cells, and stops or cuts at one of them.
    struct Counting<'a> {
        name: &'static str,
        n: &'a Mutex<u64>,
        stop_at: u64,
        cut_at: u64,
    }

    impl Trial for Counting<'_> {
        type Repeat = u64;
        type Error = forebay_storage::Error;

        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn repeat(&mut self, _: u64, _: &Before, observer: Observer<'_>) -> Result<Done<u64>, Self::Error> {
            let mut n = self.n.lock().unwrap();
            *n += 1;
            observer.cancel.fetch_or(*n == self.stop_at, Ordering::Relaxed);
            Ok(if *n == self.cut_at { Done::Cut(Some(*n)) } else { Done::Whole(*n) })
        }
    }

    fn run(stop_at: u64, cut_at: u64) -> (Ran<u64>, Vec<String>) {
        let (n, heard, cancel) = (Mutex::new(0), Mutex::new(Vec::new()), AtomicBool::new(false));
        let hear = |event| match event {
            Event::Repeat { what } => heard.lock().unwrap().push(what),
            other => panic!("{other:?}"),
        };
        let mut trials = ["a", "b"].map(|name| Counting { name, n: &n, stop_at, cut_at });
        let rounds = Rounds { warmups: 1, repeats: 2, unit: "run" };
        let ran = rounds.run(&mut trials, Observer { hear: &hear, cancel: &cancel }).unwrap();
        (ran, heard.into_inner().unwrap())
    }

    #[test]
    fn rounds_go_over_all_cells_and_warm_ups_are_not_kept() {
        let (ran, heard) = run(0, 0);
        assert_eq!((ran.cells, ran.is_cut), (vec![vec![3, 5], vec![4, 6]], false));
        let all = ["warm-up", "repeat 1 of 2", "repeat 2 of 2"];
        let all = all.iter().flat_map(|round| ["a", "b"].map(|name| format!("{name}, {round}")));
        assert_eq!(heard, all.collect::<Vec<_>>());
    }

    #[test]
    fn a_stopped_repeat_is_dropped_and_one_that_says_so_is_kept() {
        let (ran, heard) = run(4, 0);
        assert_eq!((ran.cells, ran.is_cut, heard.len()), (vec![vec![3], vec![]], true, 4));
        assert_eq!(run(0, 4).0.cells, [[3], [4]]);
        assert_eq!(run(0, 2).0.cells, [[], []] as [[u64; 0]; 2], "a warm-up is not kept however it ends");
    }

    #[test]
    fn a_stopped_run_says_what_it_keeps() {
        let rounds = Rounds { warmups: 0, repeats: 1, unit: "save" };
        assert_eq!(rounds.interrupted(0), "interrupted before the first save that would be kept");
        assert_eq!(rounds.interrupted(2), "interrupted: the saves finished before that are kept");
    }
}
