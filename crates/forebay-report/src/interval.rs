//! How often to save: run time over useful computing, by the interval between checkpoints, measured and by the model of Young
//! (1974) and Daly (2006).
//!
//! A segment of `τ` seconds of computing and a save of `δ` seconds is repeated until no failure strikes in it. With failures
//! at random times, `M` seconds apart on average, and `R` seconds to restore, that takes `(M + R) (exp((τ + δ) / M) - 1)`.
//! The best `τ` does not depend on `R`; Young's `√(2 δ M)` is its limit for short saves.

use forebay_record::{FigureSpec, StudyCell, TrainCell};
use forebay_units::median;

use crate::grid::wanted;
use crate::level;
use crate::number::{brief_seconds, distinct, listed, times};
use crate::order::Order;
use crate::run::Run;

/// What a place costs, each the median over all its cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Costs {
    /// Stall per checkpoint, in seconds.
    pub(crate) save_s: f64,
    pub(crate) restore_s: f64,
    /// Mean time between failures, in seconds.
    pub(crate) every_s: f64,
    /// From durable on the burst buffer to durable on the last tier; `None` without a burst buffer.
    pub(crate) drain_s: Option<f64>,
}

impl Costs {
    /// Expected run time over computing, with so many seconds of computing between two saves.
    pub(crate) fn overhead(&self, interval_s: f64) -> f64 {
        let Self { save_s, restore_s, every_s, .. } = *self;
        (every_s + restore_s) * ((interval_s + save_s) / every_s).exp_m1() / interval_s
    }

    pub(crate) fn young(&self) -> f64 {
        (2.0 * self.save_s * self.every_s).sqrt()
    }

    /// The interval with the least expected run time.
    pub(crate) fn best(&self) -> f64 {
        // The overhead has one minimum, between a thousandth of Young's interval and the time between failures.
        let (mut low, mut high) = (self.young() / 1e3, self.every_s.max(self.young()));
        for _ in 0..200 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if self.overhead(a) < self.overhead(b) { high = b } else { low = a }
        }
        f64::midpoint(low, high)
    }
}

/// A measured interval.
#[derive(Debug)]
pub(crate) struct Saved<'a> {
    pub(crate) cell: &'a StudyCell,
    /// Computing between two saves, in seconds.
    pub(crate) interval_s: f64,
    pub(crate) overhead: f64,
    /// Lowest and highest of several repeats.
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) n_failures: usize,
}

/// The intervals of one place, shortest first.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) name: String,
    pub(crate) costs: Costs,
    pub(crate) saved: Vec<Saved<'a>>,
}

/// The places of a figure's series; empty if no cell has failures.
pub(crate) fn of<'a>(run: &'a Run<'a>, spec: &FigureSpec) -> Vec<Place<'a>> {
    let mut cells = wanted(run, spec);
    let order = Order::of(run);
    cells.sort_by(|a, b| order.compare(a, b));
    let measured = |cell: &&'a StudyCell| cell.error.is_none().then(|| cell.measured_one::<TrainCell>()).flatten();
    let cells: Vec<(&StudyCell, &TrainCell)> = cells.iter().filter_map(|cell| Some((*cell, measured(cell)?))).collect();
    let level = |cell: &StudyCell| spec.series.as_deref().and_then(|factor| cell.level(factor).cloned());
    let levels = distinct(cells.iter().map(|(cell, _)| level(cell)));
    let place = |wanted: &Option<forebay_record::Level>| {
        let of: Vec<_> = cells.iter().filter(|(cell, _)| level(cell) == *wanted).copied().collect();
        let costs = costs(&of)?;
        let mut saved: Vec<Saved<'_>> = of.iter().filter_map(|(cell, train)| saved(cell, train)).collect();
        saved.sort_by(|a, b| a.interval_s.total_cmp(&b.interval_s));
        let name = wanted.as_ref().zip(spec.series.as_deref());
        let name = name.map_or("all".to_owned(), |(level, factor)| level::bare(factor, level));
        (!saved.is_empty()).then_some(Place { name, costs, saved })
    };
    levels.iter().filter_map(place).collect()
}

fn costs(cells: &[(&StudyCell, &TrainCell)]) -> Option<Costs> {
    let checkpoints = || cells.iter().filter_map(|(_, train)| train.checkpoints.as_ref());
    let injected = || checkpoints().filter_map(|saved| saved.injected.as_ref());
    let stalls: Vec<f64> = checkpoints().flat_map(|saved| saved.stalls()).collect();
    // A run that fails before its first checkpoint restores nothing.
    let restores = injected().flat_map(|injected| &injected.failures).filter(|failure| failure.resumed_from > 0);
    let restores: Vec<f64> = restores.map(|failure| failure.restore_s).collect();
    let drains = checkpoints().filter(|saved| saved.burst.is_some()).flat_map(|saved| &saved.saves);
    let drains: Vec<f64> = drains.filter_map(|save| Some(save.durable_slow_s? - save.durable_fast_s?)).collect();
    Some(Costs {
        save_s: median(&stalls)?,
        restore_s: median(&restores)?,
        every_s: injected().next()?.every_s,
        drain_s: median(&drains),
    })
}

fn saved<'a>(cell: &'a StudyCell, train: &'a TrainCell) -> Option<Saved<'a>> {
    let saved = train.checkpoints.as_ref()?;
    let overhead = cell.metric(TrainCell::OVERHEAD.info.name)?;
    let (low, high) =
        overhead.repeats.iter().fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    Some(Saved {
        cell,
        interval_s: saved.every as f64 * cell.value(&TrainCell::STEP_S)?,
        overhead: overhead.value,
        range: (overhead.repeats.len() > 1).then_some((low, high)),
        n_failures: saved.injected.as_ref()?.failures.len(),
    })
}

impl Place<'_> {
    /// The best interval, what it rests on, and the best of those tried.
    fn said(&self) -> String {
        let (costs, best) = (self.costs, self.costs.best());
        let mut text = format!(
            "{}: with a failure every {} on average, saving every {} of computing is best (Young: {}) and takes {} the \
             computing time. A save stalls {}, a restore takes {}.",
            self.name,
            brief_seconds(costs.every_s),
            brief_seconds(best),
            brief_seconds(costs.young()),
            times(costs.overhead(best)),
            brief_seconds(costs.save_s),
            brief_seconds(costs.restore_s)
        );
        if let Some(least) = self.saved.iter().min_by(|a, b| a.overhead.total_cmp(&b.overhead)) {
            let (every, ratio) = (brief_seconds(least.interval_s), times(least.overhead));
            text.push_str(&format!(" Of the intervals tried, {every} was best, with {ratio}."));
        }
        if let Some(drain_s) = costs.drain_s.filter(|drain_s| *drain_s > best) {
            text.push_str(&format!(
                " A drain takes {}: with shorter intervals, checkpoints are replaced before they reach the last tier.",
                brief_seconds(drain_s)
            ));
        }
        text
    }

    /// Measured over expected, by interval.
    fn ratios(&self) -> impl Iterator<Item = f64> + '_ {
        self.saved.iter().map(|saved| saved.overhead / self.costs.overhead(saved.interval_s))
    }
}

/// The best interval of each place, what a faster place changes, and whether runs confirm it; empty without places.
pub(crate) fn said(places: &[Place<'_>]) -> String {
    let mut parts: Vec<String> = places.iter().map(Place::said).collect();
    let best = |place: &&Place<'_>| place.costs.overhead(place.costs.best());
    let least = places.iter().min_by(|a, b| best(a).total_cmp(&best(b)));
    let most = places.iter().max_by(|a, b| best(a).total_cmp(&best(b)));
    if let (Some(least), Some(most)) = (least, most)
        && least.name != most.name
    {
        let lost = |place: &Place<'_>| 100.0 * (place.costs.overhead(place.costs.best()) - 1.0);
        parts.push(format!(
            "{} instead of {} lowers the time lost from {:.0} % to {:.0} % of the computing time.",
            least.name,
            most.name,
            lost(most),
            lost(least)
        ));
    }
    let mut ratios: Vec<f64> = places.iter().flat_map(Place::ratios).collect();
    ratios.sort_by(f64::total_cmp);
    if let (Some(low), Some(high)) = (ratios.first(), ratios.last()) {
        let n: usize = places.iter().flat_map(|place| &place.saved).map(|saved| saved.n_failures).sum();
        let names = listed(&places.iter().map(|place| place.name.as_str()).collect::<Vec<_>>());
        parts.push(format!(
            "Runs with injected failures ({n} in the median runs, on {names}) took {} to {} the time that the model expects.",
            times(*low),
            times(*high)
        ));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(save_s: f64, restore_s: f64, every_s: f64) -> Costs {
        Costs { save_s, restore_s, every_s, drain_s: None }
    }

    #[test]
    fn the_best_interval_is_youngs_for_short_saves_and_dalys_for_longer_ones() {
        let short = costs(1e-4, 0.0, 100.0);
        assert!((short.best() / short.young() - 1.0).abs() < 2e-3, "{} {}", short.best(), short.young());
        let long = costs(2.0, 3.0, 60.0);
        let half = 2.0 / (2.0 * 60.0_f64);
        let daly = long.young() * (1.0 + half.sqrt() / 3.0 + half / 9.0) - 2.0;
        assert!((long.best() / daly - 1.0).abs() < 2e-3, "{} {daly}", long.best());
        assert!(long.overhead(long.best()) < long.overhead(long.young()));
        assert!((costs(2.0, 30.0, 60.0).best() / long.best() - 1.0).abs() < 1e-6, "restores change the cost alone");
    }

    #[test]
    fn without_failures_a_save_costs_its_own_time() {
        let rare = costs(1.0, 1.0, 1e9);
        assert!((rare.overhead(10.0) - 1.1).abs() < 1e-6);
        assert!((rare.best() / rare.young() - 1.0).abs() < 1e-3);
    }
}
