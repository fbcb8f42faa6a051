//! The rounds of an experiment.
//!
//! A round covers all cells before the next begins, so a machine that slows down affects all of them. The first
//! rounds are warm-ups and are dropped. Before each repeat its files are evicted if it is to start cold; the page
//! cache is inspected in any case. Rounds go on until every rate is known ([`Until`]), if that is asked. An
//! interrupted repeat is dropped unless the experiment keeps it. A repeat that other processes disturbed is run
//! again if the observer allows it.

use std::borrow::Cow;
use std::path::PathBuf;

use std::time::Duration;

use forebay_record::Disturbed;
use forebay_units::relative_interval;

use crate::cold::{self, Before};
use crate::disturbance::Watch;
use crate::{Event, Observer};

/// One cell of an experiment, ready to run.
pub trait Trial {
    type Repeat;
    type Error: From<forebay_storage::Error>;

    /// What is measured, such as "4 threads".
    fn name(&self) -> String;

    /// The data's files, and whether to evict them before each repeat.
    fn files(&self) -> (Cow<'_, [PathBuf]>, bool) {
        (Cow::Borrowed(&[]), false)
    }

    /// Untimed work before a repeat; runs before the page cache is inspected.
    ///
    /// # Errors
    /// If the repeat cannot begin.
    fn prepare(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn may_run_again(&self) -> bool {
        true
    }

    /// Seconds that a repeat took, and the rate it found; `None` if it has no rate.
    fn rate(_: &Self::Repeat) -> Option<(f64, f64)> {
        None
    }

    /// Measures once. Rounds count from 0, including warm-ups.
    ///
    /// # Errors
    /// Any error ends the run of all cells.
    fn repeat(
        &mut self,
        round: u64,
        before: &Before,
        observer: Observer<'_>,
    ) -> Result<Done<Self::Repeat>, Self::Error>;
}

pub enum Done<R> {
    /// Completed, unless the observer stopped it meanwhile.
    Whole(R),
    /// Ended early, which also ends the run; a partial result may be kept.
    Cut(Option<R>),
}

#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Dropped rounds before the kept ones.
    pub warmups: usize,
    /// Kept rounds.
    pub repeats: usize,
    /// The name of a repeat in the note on an interrupted run.
    pub unit: &'static str,
    /// When more rounds follow; `None` for as many as asked and no more.
    pub until: Option<Until>,
}

/// When a rate is known. Applies to two repeats and more: one alone has no interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// The repeats of a cell together take at least this long.
    pub least: Duration,
    /// Half the 95 % confidence interval of the rate, relative to it.
    pub interval: f64,
}

/// The longest least time that can be asked.
pub const MAX_LEAST: Duration = Duration::from_secs(86_400);
const USUAL_LEAST: Duration = Duration::from_secs(1);
const USUAL_INTERVAL: f64 = 0.05;
/// More repeats than these do not follow, however short they are.
const MOST_MORE: usize = 40;
/// A cell that took this many times the least time is not repeated for its interval.
const PATIENCE: f64 = 5.0;

impl Until {
    /// As asked, with defaults for what is not. `None` if nothing is asked and `is_default` is false.
    pub fn of(least: Option<Duration>, interval: Option<f64>, is_default: bool) -> Option<Self> {
        if !is_default && least.is_none() && interval.is_none() {
            return None;
        }
        let usual = if is_default { USUAL_INTERVAL } else { f64::INFINITY };
        Some(Self { least: least.unwrap_or(USUAL_LEAST), interval: interval.unwrap_or(usual) })
    }

    /// Whether nothing is gained by another repeat, given the seconds and rates of those that were kept.
    fn is_met(&self, kept: &[(f64, f64)]) -> bool {
        let (total_s, least_s) = (kept.iter().map(|(s, _)| s).sum::<f64>(), self.least.as_secs_f64());
        let rates: Vec<f64> = kept.iter().map(|(_, rate)| *rate).collect();
        let is_known = || relative_interval(&rates, 0.95).is_none_or(|found| found <= self.interval);
        total_s >= least_s && (total_s >= PATIENCE * least_s || is_known())
    }
}

pub struct Ran<R> {
    /// Kept repeats, cell by cell.
    pub cells: Vec<Vec<R>>,
    /// Per cell.
    pub disturbed: Vec<Option<Disturbed>>,
    /// Whether some repeats are missing because the run was stopped.
    pub is_cut: bool,
}

struct Once<R> {
    repeat: Option<R>,
    disturbed: Option<Disturbed>,
    is_cut: bool,
}

struct Kept<R> {
    repeats: Vec<R>,
    disturbed: Vec<Disturbed>,
    n_extra: usize,
}

impl Rounds {
    /// Runs all rounds, or as many as possible before a stop. A disturbed repeat is run again if the observer allows
    /// it; the second result counts, disturbed or not.
    ///
    /// # Errors
    /// If a repeat fails.
    pub fn run<T: Trial>(&self, trials: &mut [T], observer: Observer<'_>) -> Result<Ran<T::Repeat>, T::Error> {
        let none = || Kept { repeats: Vec::new(), disturbed: Vec::new(), n_extra: 0 };
        let mut all: Vec<_> = trials.iter().map(|_| none()).collect();
        let mut is_cut = false;
        'rounds: for round in 0..self.warmups + self.repeats {
            for (trial, kept) in trials.iter_mut().zip(&mut all) {
                is_cut = self.keep(trial, round, kept, observer)?;
                if is_cut {
                    break 'rounds;
                }
            }
        }
        if !is_cut {
            is_cut = self.go_on(trials, &mut all, observer)?;
        }
        let disturbed = all.iter().map(|kept| Disturbed::together(kept.disturbed.iter().copied())).collect();
        Ok(Ran { cells: all.into_iter().map(|kept| kept.repeats).collect(), disturbed, is_cut })
    }

    /// Runs cells again whose rate is not known; returns whether the run was stopped meanwhile.
    fn go_on<T: Trial>(
        &self,
        trials: &mut [T],
        all: &mut [Kept<T::Repeat>],
        observer: Observer<'_>,
    ) -> Result<bool, T::Error> {
        let Some(until) = self.until.filter(|_| self.repeats > 1) else { return Ok(false) };
        for more in 0..MOST_MORE {
            let mut is_met = true;
            for (trial, kept) in trials.iter_mut().zip(&mut *all) {
                let rates: Option<Vec<(f64, f64)>> = kept.repeats.iter().map(T::rate).collect();
                if rates.is_none_or(|rates| rates.is_empty() || until.is_met(&rates)) {
                    continue;
                }
                is_met = false;
                if self.keep(trial, self.warmups + self.repeats + more, kept, observer)? {
                    return Ok(true);
                }
            }
            if is_met {
                break;
            }
        }
        Ok(false)
    }

    /// Runs a repeat and keeps it unless it is a warm-up; returns whether the run ends with it.
    fn keep<T: Trial>(
        &self,
        trial: &mut T,
        round: usize,
        kept: &mut Kept<T::Repeat>,
        observer: Observer<'_>,
    ) -> Result<bool, T::Error> {
        let mut once = self.once(trial, round, observer)?;
        // Without eviction, the page cache in the first repeat differs from that in later ones.
        let is_alike = round > 0 || trial.files().1;
        let may_again = is_alike && trial.may_run_again() && Some(kept.n_extra) < observer.extra_repeats;
        if round >= self.warmups && may_again && !once.is_cut && once.disturbed.is_some() {
            kept.n_extra += 1;
            once = match self.once(trial, round, observer)? {
                // The second was interrupted; the disturbed first one is better than nothing.
                Once { is_cut: true, .. } => Once { is_cut: true, ..once },
                again => again,
            };
        }
        if let Some(repeat) = once.repeat.filter(|_| round >= self.warmups) {
            kept.repeats.push(repeat);
            kept.disturbed.extend(once.disturbed);
        }
        Ok(once.is_cut)
    }

    fn once<T: Trial>(&self, trial: &mut T, round: usize, observer: Observer<'_>) -> Result<Once<T::Repeat>, T::Error> {
        if observer.is_cancelled() {
            return Ok(Once { repeat: None, disturbed: None, is_cut: true });
        }
        trial.prepare()?;
        let (files, is_cold) = trial.files();
        let before = cold::prepare(&files, is_cold)?;
        let watched = files.first().cloned();
        observer.tell(Event::Repeat { what: self.describe(trial, round) });
        let watch = observer.extra_repeats.map(|_| Watch::start(watched.as_deref()));
        let done = trial.repeat(round as u64, &before, observer)?;
        let disturbed = watch.and_then(|watch| watch.finish().judge());
        let (repeat, is_cut) = match done {
            Done::Whole(repeat) if !observer.is_cancelled() => (Some(repeat), false),
            Done::Whole(_) => (None, true),
            Done::Cut(repeat) => (repeat, true),
        };
        Ok(Once { repeat, disturbed, is_cut })
    }

    fn describe(&self, trial: &impl Trial, round: usize) -> String {
        let (name, n) = (trial.name(), self.repeats);
        match round.checked_sub(self.warmups) {
            None => format!("{name}, warm-up"),
            Some(_) if n == 1 => name,
            Some(repeat) if repeat >= n => format!("{name}, repeat {}: not yet known well", repeat + 1),
            Some(repeat) => format!("{name}, repeat {} of {n}", repeat + 1),
        }
    }

    /// The note for the record of an interrupted run.
    pub fn interrupted(&self, n_cells: usize) -> String {
        let unit = self.unit;
        match n_cells {
            0 => format!("interrupted before the first {unit} was complete"),
            _ => format!("interrupted: the completed {unit}s are kept"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::usage::cores;

    /// Counts its repeats over all cells, and stops the run or cuts a repeat short at one of them.
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
        let rounds = Rounds { warmups: 1, repeats: 2, unit: "run", until: None };
        let ran = rounds.run(&mut trials, Observer::new(&hear, &cancel)).unwrap();
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
        assert_eq!(run(0, 2).0.cells, [[], []] as [[u64; 0]; 2], "a warm-up is never kept");
    }

    /// Sleeps, while child processes keep every core busy.
    struct Beside(u64);

    impl Trial for Beside {
        type Repeat = u64;
        type Error = forebay_storage::Error;

        fn name(&self) -> String {
            "sleep".to_owned()
        }

        fn repeat(&mut self, _: u64, _: &Before, _: Observer<'_>) -> Result<Done<u64>, Self::Error> {
            std::thread::sleep(Duration::from_millis(300));
            self.0 += 1;
            Ok(Done::Whole(self.0))
        }
    }

    /// Ends with the test, however that ends.
    struct Load(Vec<Child>);

    impl Drop for Load {
        fn drop(&mut self) {
            self.0.iter_mut().for_each(|child| _ = child.kill().and_then(|()| child.wait()));
        }
    }

    #[test]
    fn a_real_load_marks_the_cell_and_its_repeats_are_run_again() {
        let spin = || Command::new("nice").args(["-n19", "sh", "-c", "while :; do :; done"]).spawn().unwrap();
        let _load = Load((0..cores()).map(|_| spin()).collect());
        let (cancel, mut trials) = (AtomicBool::new(false), [Beside(0)]);
        let rounds = Rounds { warmups: 1, repeats: 3, unit: "repeat", until: None };
        let observer = Observer { extra_repeats: Some(2), ..Observer::deaf(&cancel) };
        let ran = rounds.run(&mut trials, observer).unwrap();
        assert_eq!(ran.cells, [[3, 5, 6]], "the first two are run twice");
        let disturbed = ran.disturbed[0].unwrap();
        assert!(disturbed.repeats == 3 && disturbed.share > 0.1, "{disturbed:?}");
        assert!(disturbed.cause().starts_with("other processes used "), "{disturbed:?}");
        let ran = rounds.run(&mut trials, Observer::deaf(&cancel)).unwrap();
        assert_eq!((ran.cells, ran.disturbed), (vec![vec![8, 9, 10]], vec![None]));
    }

    /// Takes an eighth of a second by its own account and finds the next of its rates.
    struct Rated<'a>(std::slice::Iter<'a, f64>);

    impl Trial for Rated<'_> {
        type Repeat = f64;
        type Error = forebay_storage::Error;

        fn name(&self) -> String {
            "rated".to_owned()
        }

        fn rate(repeat: &f64) -> Option<(f64, f64)> {
            Some((0.125, *repeat))
        }

        fn repeat(&mut self, _: u64, _: &Before, _: Observer<'_>) -> Result<Done<f64>, Self::Error> {
            Ok(Done::Whole(self.0.next().copied().unwrap_or(100.0)))
        }
    }

    fn repeats_of(least_ms: u64, repeats: usize, rates: &[&[f64]]) -> Vec<usize> {
        let until = Until { least: Duration::from_millis(least_ms), interval: 0.05 };
        let rounds = Rounds { warmups: 0, repeats, unit: "repeat", until: Some(until) };
        let mut trials: Vec<Rated<'_>> = rates.iter().map(|rates| Rated(rates.iter())).collect();
        let ran = rounds.run(&mut trials, Observer::deaf(&AtomicBool::new(false))).unwrap();
        ran.cells.iter().map(Vec::len).collect()
    }

    #[test]
    fn cells_run_again_until_they_took_long_enough_and_their_rate_is_known() {
        assert_eq!(repeats_of(200, 2, &[&[100.0, 100.0], &[100.0, 130.0]]), [2, 8], "each cell by itself");
        assert_eq!(repeats_of(450, 2, &[&[]]), [4], "the least time");
        assert_eq!(repeats_of(0, 2, &[&[100.0, 130.0]]), [2], "no patience");
        assert_eq!(repeats_of(60_000, 2, &[&[]]), [42], "no more than a number");
        assert_eq!(repeats_of(60_000, 1, &[&[]]), [1], "one repeat has no interval");
    }

    #[test]
    fn a_stopped_run_says_what_it_keeps() {
        let rounds = Rounds { warmups: 0, repeats: 1, unit: "save", until: None };
        assert_eq!(rounds.interrupted(0), "interrupted before the first save was complete");
        assert_eq!(rounds.interrupted(2), "interrupted: the completed saves are kept");
    }
}
