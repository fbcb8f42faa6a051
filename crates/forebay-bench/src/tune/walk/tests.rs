//! Walks over a table of run times.

use std::cell::RefCell;

use super::*;

/// A machine whose run time is a function of threads and prefetch; every run takes a minute.
struct Table {
    time: fn(i64, i64) -> f64,
    /// What the advice of a run says.
    advise: fn(i64, i64) -> Lever,
    limit: fn(i64, i64) -> &'static str,
    half_range: f64,
    n_runs: u32,
    stop_at: u32,
    said: RefCell<Vec<String>>,
}

impl Table {
    fn new(time: fn(i64, i64) -> f64, advise: fn(i64, i64) -> Lever) -> Self {
        let said = RefCell::default();
        Self { time, advise, limit: |_, _| "latency", half_range: 0.0, n_runs: 0, stop_at: 99, said }
    }

    fn facts(&self, threads: i64, prefetch: i64) -> Facts {
        let wall_s = (self.time)(threads, prefetch);
        Facts {
            walls_s: vec![wall_s * (1.0 - self.half_range), wall_s * (1.0 + self.half_range)],
            lever: (self.advise)(threads, prefetch),
            limit: (self.limit)(threads, prefetch).to_owned(),
            threads,
            prefetch,
            is_disturbed: false,
        }
    }

    fn walk(mut self, budget: Duration) -> (Vec<(String, TuningOutcome)>, TuningEnd, Self) {
        let first = ((), self.facts(1, 1));
        self.n_runs = 1;
        let steps = Walk::new(&mut self, budget, first).run();
        let end = steps.last().unwrap().tuning.end.unwrap();
        let changes = |tuning: &Tuning| {
            let words = tuning.changes.iter().map(|change| format!("{}={}", change.setting, change.value));
            words.collect::<Vec<_>>().join(" ")
        };
        let path = steps.iter().map(|step| (changes(&step.tuning), step.tuning.outcome)).collect();
        (path, end, self)
    }
}

impl Bench for Table {
    type Cell = ();

    fn measure(&mut self, changes: &[Change], _: &str) -> Option<((), Facts)> {
        let level = |name: &str| changes.iter().find(|change| change.setting == name).map(|change| &change.value);
        let number = |name: &str| match level(name) {
            Some(Level::Integer(n)) => *n,
            _ => 1,
        };
        self.n_runs += 1;
        level("io").is_none().then(|| ((), self.facts(number("threads"), number("prefetch"))))
    }

    fn is_stopped(&self) -> bool {
        self.n_runs >= self.stop_at
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(60 * u64::from(self.n_runs))
    }

    fn say(&self, text: String) {
        self.said.borrow_mut().push(text);
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

fn lever(setting: &str, n: i64, wall_s: f64) -> Lever {
    let change = Change { setting: setting.to_owned(), value: Level::Integer(n) };
    Lever { name: setting.to_owned(), setting: Some(change), wall_s, error_s: Some(0.5), ..Lever::default() }
}

fn named(name: &str) -> Lever {
    Lever { name: name.to_owned(), ..Lever::default() }
}

fn path(steps: &[(&str, TuningOutcome)]) -> Vec<(String, TuningOutcome)> {
    steps.iter().map(|(changes, outcome)| ((*changes).to_owned(), *outcome)).collect()
}

use TuningOutcome::{Dropped, Kept, Start};

#[test]
fn a_change_that_helps_is_kept_and_the_next_starts_from_there() {
    let table = Table::new(
        |threads, prefetch| 10.0 / threads as f64 + if prefetch > 1 { 0.0 } else { 1.0 },
        |threads, prefetch| match (threads, prefetch) {
            (1, _) => lever("threads", 8, 2.0),
            (8, 1) => lever("prefetch", 2, 1.3),
            _ => named("storage"),
        },
    );
    let (walked, end, table) = table.walk(HOUR);
    assert_eq!(walked, path(&[("", Start), ("threads=8", Kept), ("prefetch=2 threads=8", Kept)]));
    assert_eq!(end, TuningEnd::Exhausted);
    let said = table.said.into_inner();
    assert_eq!(said[0], "start: 11.00 s, --threads 1 --prefetch 1");
    assert_eq!(said[1], "--threads 8: predicted 2.00 s ± 500.0 ms, measured 2.25 s: kept");
}

#[test]
fn a_change_that_does_not_help_is_dropped_and_the_runner_up_is_tried() {
    let table = Table::new(
        |_, prefetch| if prefetch == 4 { 5.0 } else { 10.0 },
        |_, prefetch| match prefetch {
            4 => named("decode"),
            _ => Lever { runner_up: Some(Box::new(lever("prefetch", 4, 5.0))), ..lever("threads", 8, 2.0) },
        },
    );
    let (walked, end, _) = table.walk(HOUR);
    assert_eq!(walked, path(&[("", Start), ("threads=8", Dropped), ("prefetch=4", Kept)]));
    assert_eq!(end, TuningEnd::Exhausted);
}

#[test]
fn a_bound_is_no_prediction() {
    let bound = Lever { is_bound: true, error_s: None, ..lever("threads", 2, 6.0) };
    let mut table = Table::new(|threads, _| if threads == 2 { 8.0 } else { 10.0 }, |_, _| named("storage"));
    let first = Facts { lever: bound, ..table.facts(1, 1) };
    table.n_runs = 1;
    let steps = Walk::new(&mut table, HOUR, ((), first)).run();
    assert_eq!((steps[1].tuning.predicted_s, steps[1].tuning.outcome), (None, Kept));
    assert_eq!(table.said.borrow()[1], "--threads 2: at best 6.00 s, measured 8.00 s: kept");
}

#[test]
fn a_gain_within_the_noise_of_the_repeats_is_not_kept() {
    let gains = |half_range| {
        let advise = |threads, _| if threads == 1 { lever("threads", 2, 9.0) } else { named("storage") };
        let table = Table::new(|threads, _| if threads == 1 { 10.0 } else { 9.0 }, advise);
        Table { half_range, ..table }.walk(HOUR).0[1].1
    };
    assert_eq!((gains(0.01), gains(0.05)), (Kept, Dropped));
}

#[test]
fn nothing_is_tried_where_the_accelerator_is_the_limit() {
    let table = Table::new(|_, _| 10.0, |_, _| named("none"));
    let (walked, end, _) = Table { limit: |_, _| "accelerator", ..table }.walk(HOUR);
    assert_eq!((walked.len(), end), (1, TuningEnd::Accelerator));
}

#[test]
fn a_run_that_is_not_explained_is_tried_with_more_threads_and_batches() {
    let table = Table::new(|threads, _| if threads == 2 { 8.0 } else { 10.0 }, |_, _| named("unknown"));
    let (walked, end, table) = table.walk(HOUR);
    let tried = ["threads=2", "threads=4", "prefetch=2 threads=2"];
    assert_eq!(walked[1..].iter().map(|(changes, _)| changes.as_str()).collect::<Vec<_>>(), tried);
    assert_eq!(end, TuningEnd::Exhausted);
    assert!(table.said.borrow()[1].starts_with("--threads 2: no prediction, measured 8.00 s: kept"));
}

#[test]
fn hardware_that_is_the_limit_needs_no_guesses() {
    let (walked, end, _) = Table::new(|_, _| 10.0, |_, _| named("storage")).walk(HOUR);
    assert_eq!((walked.len(), end), (1, TuningEnd::Exhausted));
}

#[test]
fn the_budget_and_the_user_end_the_walk_with_what_was_found() {
    let table = || Table::new(|threads, _| 10.0 / threads as f64, |threads, _| lever("threads", 2 * threads, 1.0));
    let (walked, end, _) = table().walk(Duration::from_secs(200));
    assert_eq!((walked.len(), end), (3, TuningEnd::Budget), "a fourth run of a minute would end after 240 s");
    let (walked, end, _) = Table { stop_at: 3, ..table() }.walk(HOUR);
    assert_eq!((walked.len(), end), (2, TuningEnd::Stopped), "the run that was stopped is not kept");
}

#[test]
fn a_change_that_cannot_be_measured_does_not_end_the_walk() {
    let table = Table::new(
        |threads, _| 10.0 / threads as f64,
        |threads, _| match threads {
            1 => Lever { runner_up: Some(Box::new(lever("threads", 4, 2.5))), ..lever("io", 1, 1.0) },
            _ => named("storage"),
        },
    );
    let (walked, end, _) = table.walk(HOUR);
    assert_eq!(walked, path(&[("", Start), ("threads=4", Kept)]));
    assert_eq!(end, TuningEnd::Exhausted);
}
