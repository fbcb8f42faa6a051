//! From run to run: which change comes next, whether it helped, and when to stop.
//!
//! The walk knows nothing of training: it sees run times and levers, so a test can walk over a table of times.

use std::time::Duration;

use forebay_record::{Change, Level, Lever, Tuning, TuningEnd, TuningOutcome};
use forebay_units::{Summary, format_seconds};

/// Differences of run times below this fraction are noise, however close the repeats are.
const LEAST_NOISE: f64 = 0.02;
/// What runs are taken to vary by while other programs use the machine.
const DISTURBED_NOISE: f64 = 0.10;
/// Values beyond these are not tried without a prediction.
const MOST_THREADS: i64 = 64;
const MOST_PREFETCH: i64 = 16;

/// Where the walk takes its runs from.
pub(super) trait Bench {
    /// What a run is recorded as.
    type Cell;

    /// Measures with these changes; `None` where that is not possible or failed, which the bench reports with what the advice says.
    fn measure(&mut self, changes: &[Change], advice: &str) -> Option<(Self::Cell, Facts)>;

    fn is_stopped(&self) -> bool;

    /// Since tuning began.
    fn elapsed(&self) -> Duration;

    fn say(&self, text: String);
}

/// What the walk has to know of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    /// Of every repeat, in seconds; not empty.
    pub(super) walls_s: Vec<f64>,
    pub(super) lever: Lever,
    /// Name of the limit; empty where there is none.
    pub(super) limit: String,
    pub(super) threads: i64,
    pub(super) prefetch: i64,
    pub(super) is_disturbed: bool,
}

impl Facts {
    pub(super) fn wall_s(&self) -> f64 {
        Summary::of(&self.walls_s).map_or(f64::INFINITY, |walls| walls.median)
    }

    /// The range of the repeats over their median.
    fn range(&self) -> f64 {
        Summary::of(&self.walls_s).map_or(0.0, |walls| (walls.max - walls.min) / walls.median)
    }
}

pub(super) struct Step<C> {
    pub(super) cell: C,
    pub(super) facts: Facts,
    pub(super) tuning: Tuning,
}

pub(super) struct Walk<'b, B: Bench> {
    bench: &'b mut B,
    budget: Duration,
    steps: Vec<Step<B::Cell>>,
    /// The fastest run.
    best: usize,
    tried: Vec<Vec<Change>>,
    longest: Duration,
}

/// A change that may help.
struct Proposal {
    change: Change,
    advice: String,
    /// Wall clock in seconds.
    predicted_s: Option<f64>,
    error_s: Option<f64>,
    /// Least run time, where only that is known.
    at_best_s: Option<f64>,
}

impl<'b, B: Bench> Walk<'b, B> {
    /// From the run without changes.
    pub(super) fn new(bench: &'b mut B, budget: Duration, (cell, facts): (B::Cell, Facts)) -> Self {
        let longest = bench.elapsed();
        let (n, ahead) = (facts.threads, facts.prefetch);
        bench.say(format!("start: {}, --threads {n} --prefetch {ahead}", format_seconds(facts.wall_s())));
        let steps = vec![Step { cell, facts, tuning: start() }];
        Self { bench, budget, steps, best: 0, tried: vec![Vec::new()], longest }
    }

    /// All runs in order, the last with the reason for the end.
    pub(super) fn run(mut self) -> Vec<Step<B::Cell>> {
        let end = self.go();
        self.end(end)
    }

    pub(super) fn end(mut self, end: TuningEnd) -> Vec<Step<B::Cell>> {
        if let Some(last) = self.steps.last_mut() {
            last.tuning.end = Some(end);
        }
        self.steps
    }

    fn go(&mut self) -> TuningEnd {
        loop {
            if self.bench.is_stopped() {
                return TuningEnd::Stopped;
            }
            if self.steps[self.best].facts.limit == "accelerator" {
                return TuningEnd::Accelerator;
            }
            let Some((proposal, changes)) = self.next() else { return TuningEnd::Exhausted };
            let start = self.bench.elapsed();
            if start + self.longest > self.budget {
                return TuningEnd::Budget;
            }
            self.tried.push(changes.clone());
            let measured = self.bench.measure(&changes, &proposal.advice());
            // A run that was cut short says nothing.
            if self.bench.is_stopped() {
                return TuningEnd::Stopped;
            }
            self.longest = self.longest.max(self.bench.elapsed() - start);
            if let Some(ran) = measured {
                self.judge(proposal, changes, ran);
            }
        }
    }

    /// The first change of the fastest run's advice that was not tried from there.
    fn next(&self) -> Option<(Proposal, Vec<Change>)> {
        let best = &self.steps[self.best];
        let all = proposals(&best.facts).into_iter().map(|proposal| {
            let changes = with(&best.tuning.changes, &proposal.change);
            (proposal, changes)
        });
        all.into_iter().find(|(_, changes)| !self.tried.contains(changes))
    }

    fn judge(&mut self, proposal: Proposal, changes: Vec<Change>, (cell, facts): (B::Cell, Facts)) {
        let before = &self.steps[self.best].facts;
        let (before_s, noise) = (before.wall_s(), noise(before, &facts));
        let is_kept = facts.wall_s() < before_s * (1.0 - noise);
        let outcome = if is_kept { TuningOutcome::Kept } else { TuningOutcome::Dropped };
        self.bench.say(proposal.said(facts.wall_s(), outcome));
        let Proposal { change, advice, predicted_s, error_s, .. } = proposal;
        let tuning = Tuning {
            change: Some(change),
            advice,
            predicted_s,
            error_s,
            before_s: Some(before_s),
            noise: Some(noise),
            outcome,
            changes,
            ..start()
        };
        if is_kept {
            self.best = self.steps.len();
        }
        self.steps.push(Step { cell, facts, tuning });
    }
}

fn start() -> Tuning {
    Tuning {
        change: None,
        advice: String::new(),
        predicted_s: None,
        error_s: None,
        before_s: None,
        noise: None,
        outcome: TuningOutcome::Start,
        changes: Vec::new(),
        settings: Default::default(),
        data_flags: Default::default(),
        pack: None,
        end: None,
    }
}

/// A difference of two runs below this fraction of the first is noise.
fn noise(a: &Facts, b: &Facts) -> f64 {
    let measured = (a.range().powi(2) + b.range().powi(2)).sqrt();
    let least = if a.is_disturbed || b.is_disturbed { DISTURBED_NOISE } else { LEAST_NOISE };
    measured.max(least)
}

/// With a further change; one of the same setting takes the place of an earlier one. In the order of their names.
fn with(changes: &[Change], change: &Change) -> Vec<Change> {
    let mut all: Vec<Change> = changes.iter().filter(|of| of.setting != change.setting).cloned().collect();
    all.push(change.clone());
    all.sort_by(|a, b| a.setting.cmp(&b.setting));
    all
}

/// Changes that the advice names, the best first. Where the model does not explain the run, more of what costs nothing.
fn proposals(facts: &Facts) -> Vec<Proposal> {
    let chain = std::iter::successors(Some(&facts.lever), |lever| lever.runner_up.as_deref());
    let named: Vec<Proposal> = chain.filter_map(predicted).collect();
    let is_open = ["unknown", "order", "none"].contains(&facts.lever.name.as_str());
    if named.is_empty() && is_open { guesses(facts) } else { named }
}

fn predicted(lever: &Lever) -> Option<Proposal> {
    let change = lever.setting.clone()?;
    let (predicted_s, at_best_s) = match lever.is_bound {
        true => (None, Some(lever.wall_s)),
        false => (Some(lever.wall_s), None),
    };
    Some(Proposal { change, advice: lever.advice.clone(), predicted_s, error_s: lever.error_s, at_best_s })
}

fn guesses(facts: &Facts) -> Vec<Proposal> {
    let guess = |setting: &str, n: i64| Proposal {
        change: Change { setting: setting.to_owned(), value: Level::Integer(n) },
        advice: format!("--{setting} {n}: without a prediction, since the model does not explain the run"),
        predicted_s: None,
        error_s: None,
        at_best_s: None,
    };
    let threads = Some(2 * facts.threads).filter(|n| (1..=MOST_THREADS).contains(n));
    let prefetch = Some((2 * facts.prefetch).max(1)).filter(|n| *n <= MOST_PREFETCH);
    threads.map(|n| guess("threads", n)).into_iter().chain(prefetch.map(|n| guess("prefetch", n))).collect()
}

impl Proposal {
    fn predicted(&self) -> String {
        let error = self.error_s.map(|error| format!(" ± {}", format_seconds(error))).unwrap_or_default();
        match (self.predicted_s, self.at_best_s) {
            (Some(seconds), _) => format!("predicted {}{error}", format_seconds(seconds)),
            (None, Some(seconds)) => format!("at best {}", format_seconds(seconds)),
            (None, None) => "no prediction".to_owned(),
        }
    }

    fn advice(&self) -> String {
        format!("{} ({})", self.advice, self.predicted())
    }

    fn said(&self, measured_s: f64, outcome: TuningOutcome) -> String {
        let Change { setting, value } = &self.change;
        let what = match setting.as_str() {
            Change::DATASET => format!("data packed as {value}"),
            _ => format!("--{} {value}", setting.replace('_', "-")),
        };
        let outcome = if outcome == TuningOutcome::Kept { "kept" } else { "dropped" };
        format!("{what}: {}, measured {}: {outcome}", self.predicted(), format_seconds(measured_s))
    }
}

#[cfg(test)]
mod tests;
