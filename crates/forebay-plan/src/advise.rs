//! The limit of a run and the change that would help most.
//!
//! Both follow from the model, not from what the workers were seen doing: a change is simulated, and its gain is the difference. A change
//! counts only if its gain exceeds the error of the prediction. Of two changes the one that costs the user less comes first: flags, then
//! hardware.

mod evidence;
mod levers;

use forebay_record::{Change as NewValue, Disturbed, Lever, Limit};

use crate::case::{Case, Flags, Server};
use crate::curve::Curve;

/// A model that misses the run it was made from by more than this fraction does not explain it.
const EXPLAINED: f64 = 0.30;
/// Starts and ends of threads and of the clock, in seconds: below this the model need not agree.
const EXPLAINED_S: f64 = 0.015;
/// A change that saves less than this fraction of the run is none.
const WORTH: f64 = 0.04;
/// Threads and batches that gain less than this are not worth their memory.
const KNEE: f64 = 0.02;
/// The model's own error, of the time that the consumer does not compute.
const MODEL_ERROR: f64 = 0.04;
/// A change of flags that leaves less than this fraction of the avoidable time makes the flag the limit, not the hardware.
const MOSTLY: f64 = 0.5;
const MOST_PREFETCH: usize = 16;
/// A storage that gains less than this fraction from more requests in flight has enough of them.
const MORE_IN_FLIGHT: f64 = 0.05;
/// Beyond this many times the cores more threads serve only requests.
const DECODERS_PER_CORE: usize = 2;

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub flags: Flags,
    /// Without validation, in seconds.
    pub wall_s: f64,
    /// Half the range of repeats over their median; `None` for a single run.
    pub spread: Option<f64>,
    /// Seconds that the consumer waited.
    pub wait_s: f64,
    /// Seconds of them before the first batch, which nothing can hide.
    pub first_wait_s: f64,
    /// Seconds that the consumer waited for a sample ahead in order.
    pub order_s: f64,
    /// Fraction of the time on a core that is decoding and resizing.
    pub decode_share: f64,
    /// What other programs took of the machine meanwhile, where that was too much.
    pub disturbed: Option<Disturbed>,
}

/// How the command spells its flags.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    pub threads: fn(usize) -> String,
    pub prefetch: fn(usize) -> String,
}

/// What a change costs the user, the cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    Flag,
    /// A flag that also changes the order of the samples, and so what is learnt.
    Order,
    /// The data is written anew in another format.
    Reformat,
    Hardware,
}

/// A change other than of threads and prefetch, with what samples cost after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    pub name: &'static str,
    pub advice: String,
    pub effort: Effort,
    pub setting: NewValue,
    /// `None` when samples then come from memory.
    pub storage: Option<Curve>,
    pub served_by: Server,
    /// Seconds on a core per sample.
    pub cpu_s: f64,
    /// Seconds that each step then takes longer.
    pub delays_step_s: f64,
    /// Whether the costs are lower bounds rather than measured.
    pub is_bound: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    pub limit: Limit,
    pub lever: Lever,
}

struct Model<'a> {
    case: &'a Case,
    run: &'a Run,
    alternatives: &'a [Alternative],
    spelling: Spelling,
    ideal_s: f64,
    /// What the simulation makes of the run itself.
    fitted_s: f64,
}

/// A change with its predicted run time.
struct Change {
    name: &'static str,
    advice: String,
    effort: Effort,
    /// What does it, where a setting does.
    setting: Option<NewValue>,
    wall_s: f64,
    is_bound: bool,
}

/// Names limit and lever of a run. Besides threads and prefetch, the `alternatives` may be changed.
pub fn advise(case: &Case, run: &Run, alternatives: &[Alternative], spelling: Spelling) -> Advice {
    let model = Model {
        case,
        run,
        alternatives,
        spelling,
        ideal_s: case.ideal_s().min(run.wall_s),
        fitted_s: case.predict(run.flags).wall_s,
    };
    model.advice()
}

/// The flags with the least predicted time, as few threads and batches as that takes.
pub fn best_flags(case: &Case, now: Flags) -> Flags {
    let threads = threads(case, now.threads);
    let prefetch = [0, 1, 2, 4, 8, MOST_PREFETCH, now.prefetch];
    let all = threads.iter().flat_map(|n| prefetch.map(|prefetch| Flags { threads: *n, prefetch }));
    let timed: Vec<(Flags, f64)> = all.map(|flags| (flags, case.predict(flags).wall_s)).collect();
    let least = timed.iter().map(|(_, wall_s)| *wall_s).fold(f64::INFINITY, f64::min);
    let enough = timed.into_iter().filter(|(_, wall_s)| *wall_s <= least * (1.0 + KNEE));
    enough.map(|(flags, _)| flags).min_by_key(|flags| (flags.threads, flags.prefetch)).unwrap_or(now)
}

/// Thread counts that the model can speak of.
fn threads(case: &Case, now: usize) -> Vec<usize> {
    // Beyond what was measured the storage is taken to deliver no more; more threads may still decode.
    let measured = case.storage.as_ref().map_or(0, |curve| curve.known_to() as usize);
    let most = measured.max(case.cores as usize * DECODERS_PER_CORE).max(now);
    let mut all: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n <= most).collect();
    all.extend([now, (case.cores as usize).clamp(1, most)]);
    all.sort_unstable();
    all.dedup();
    all
}

impl Model<'_> {
    fn advice(&self) -> Advice {
        let later_s = self.run.wait_s - self.run.first_wait_s;
        if later_s < WORTH * self.run.wall_s {
            return Advice { limit: self.accelerator(), lever: self.none() };
        }
        if !self.explains() {
            return self.unexplained();
        }
        let chain =
            |runner_up: Option<Lever>, change| Some(Lever { runner_up: runner_up.map(Box::new), ..self.lever(change) });
        let lever = self.levers().into_iter().rev().fold(None, chain);
        Advice { limit: self.limit(), lever: lever.unwrap_or_else(|| self.lost()) }
    }

    /// Whether the model gives the time that was measured.
    fn explains(&self) -> bool {
        let off = (self.fitted_s - self.run.wall_s).abs();
        off <= EXPLAINED * self.run.wall_s || off <= EXPLAINED_S
    }

    /// The part beyond the consumer's own time is scaled by what the model missed of it in the run.
    fn corrected(&self, predicted_s: f64) -> f64 {
        let (measured, fitted) = (self.run.wall_s - self.ideal_s, self.fitted_s - self.ideal_s);
        // A remainder of milliseconds says little about other settings, whatever its ratio.
        let scale = if fitted > 0.0 && measured > 0.0 { (measured / fitted).clamp(0.5, 2.0) } else { 1.0 };
        self.ideal_s + (predicted_s - self.ideal_s).max(0.0) * scale
    }

    fn predict(&self, case: &Case, flags: Flags) -> f64 {
        self.corrected(case.predict(flags).wall_s)
    }

    /// Half the width of a prediction's interval.
    fn error_s(&self, wall_s: f64) -> f64 {
        let fit = (self.fitted_s / self.run.wall_s - 1.0).abs() / 2.0;
        let curve = self.case.storage.as_ref().map_or(0.0, |curve| 2.0 * curve.error());
        let spread = self.run.spread.unwrap_or(0.0);
        let relative = [MODEL_ERROR, fit, curve, spread].iter().map(|part| part * part).sum::<f64>().sqrt();
        // The consumer's own time is known; what a change cannot move is not in doubt.
        relative * (wall_s - self.ideal_s).max(self.run.wall_s - wall_s).max(0.0)
    }

    fn is_proven(&self, change: &Change) -> bool {
        let gain = self.run.wall_s - change.wall_s;
        gain > WORTH * self.run.wall_s && gain > self.error_s(change.wall_s)
    }

    /// Whether a sample waits for the storage longer than it runs.
    fn waits_for_storage(&self) -> bool {
        let n = self.run.flags.threads as f64;
        self.case.storage.as_ref().is_some_and(|curve| n / curve.rate(n) > self.case.cpu_s)
    }

    /// Whether a sample waits for the storage longer than it runs, and the storage delivers more with more requests in flight.
    fn lacks_requests(&self) -> bool {
        let gives_more = |curve: &Curve| {
            curve.rate(curve.known_to()) > curve.rate(self.run.flags.threads as f64) * (1.0 + MORE_IN_FLIGHT)
        };
        self.waits_for_storage() && self.case.storage.as_ref().is_some_and(gives_more)
    }

    /// Whether threads waited for cores that others use for as long that it may matter.
    fn waits_for_cores(&self) -> bool {
        self.case.delay_s > WORTH * self.case.cpu_s
    }

    fn lever(&self, change: Change) -> Lever {
        let wall_s = change.wall_s.min(self.run.wall_s);
        Lever {
            name: change.name.to_owned(),
            advice: change.advice,
            saves_s: self.run.wall_s - wall_s,
            wall_s,
            error_s: (!change.is_bound).then(|| self.error_s(wall_s)),
            is_bound: change.is_bound,
            runner_up: None,
            setting: change.setting,
        }
    }

    fn plain(&self, name: &str, advice: &str) -> Lever {
        Lever { name: name.to_owned(), advice: advice.to_owned(), wall_s: self.run.wall_s, ..Lever::default() }
    }

    fn none(&self) -> Lever {
        self.plain("none", "the accelerator is the limit")
    }

    fn lost(&self) -> Lever {
        self.plain("none", "every predicted gain is within the error of its prediction")
    }
}

#[cfg(test)]
mod tests;
