//! How many steps a run has where the user does not say, and how many threads where they are chosen by measurement.

use std::time::Duration;

use forebay_measure::{Observer, ThreadCount};
use forebay_record::Record;

use crate::train::{Error, Plan, preview, run};

/// Steps of the run that finds out how long a step takes.
const FIRST_STEPS: u64 = 6;
const FEWEST_STEPS: u64 = 12;
const MOST_STEPS: u64 = 100_000;
/// Checkpoints that a run with checkpoints has at least.
const SAVES: u64 = 3;
/// Runs that the budget is for.
const RUNS: f64 = 24.0;
/// A run takes at least and at most so many seconds, if the budget allows.
const SHORTEST_S: f64 = 1.0;
const LONGEST_S: f64 = 15.0;

/// The plan with a number of steps that suits the budget.
pub(super) fn sized(plan: &Plan, budget: Duration, observer: Observer<'_>) -> Result<Plan, Error> {
    if plan.settings.steps.is_some() || plan.settings.epochs.is_some() {
        return Ok(plan.clone());
    }
    let per_epoch = preview(plan)?.steps_per_epoch;
    let with = |n: u64| {
        let mut plan = plan.clone();
        plan.settings.steps = Some(n);
        plan
    };
    // A single run would save to the user's folder itself.
    let short = Plan { saves: None, warmups: 0, repeats: 1, ..with(FIRST_STEPS.min(per_epoch)) };
    let ended = run(&short, Record::new(Vec::new(), Default::default()), observer)?;
    let Some(cell) = ended.record.cells.first() else { return Ok(with(FEWEST_STEPS.min(per_epoch))) };
    let per_step = cell.totals.wall_s / cell.totals.n_steps.max(1) as f64;
    let every = plan.settings.checkpoint_every.filter(|_| plan.saves.is_some()).unwrap_or(0);
    let n = steps(per_step, budget, plan.repeats).max(SAVES * every);
    // A second pass would find the files in memory.
    let mut plan = with(if plan.settings.cold { n.min(per_epoch) } else { n });
    // Chosen once: runs with different numbers of threads would not be comparable.
    plan.settings.threads = ThreadCount::Fixed(cell.threads as usize);
    Ok(plan)
}

fn steps(per_step_s: f64, budget: Duration, repeats: usize) -> u64 {
    let run_s = (budget.as_secs_f64() / RUNS / repeats.max(1) as f64).clamp(SHORTEST_S, LONGEST_S);
    ((run_s / per_step_s).ceil() as u64).clamp(FEWEST_STEPS, MOST_STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_its_share_of_the_budget() {
        assert_eq!(steps(0.1, Duration::from_secs(240), 2), 50);
        assert_eq!(steps(0.1, Duration::from_secs(24 * 3_600), 1), 150, "no longer than 15 s");
        assert_eq!(steps(60.0, Duration::from_secs(300), 2), 12, "few steps say nothing");
        assert_eq!(steps(1e-9, Duration::from_secs(300), 2), MOST_STEPS);
    }
}
