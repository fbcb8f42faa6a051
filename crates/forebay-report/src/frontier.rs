//! Where prefetching stops hiding the input: the shortest step that does not wait for batches, by device and threads.
//!
//! Two ways lead there. The sweep brackets it: the longest step that waited, and the shortest longer one that did not. And
//! where the accelerator waits most, batches come as fast as the input delivers them: a step as long as that is the frontier.

use forebay_record::{FigureSpec, Level, StepPoint, StudyCell, TrainCell};

use crate::grid::wanted;
use crate::level;
use crate::number::{brief_seconds, distinct, listed};
use crate::order::Order;
use crate::run::Run;

/// The input counts as hidden if the accelerator waits for at most this share of the time after the first batch.
pub(crate) const HIDDEN: f64 = 0.02;
/// From this share of waiting on, the time of a batch is that of the input.
const STARVED: f64 = 0.25;

/// A step time that was tried.
#[derive(Debug)]
pub(crate) struct Tried<'a> {
    pub(crate) cell: &'a StudyCell,
    pub(crate) step_s: f64,
    pub(crate) wait_share: f64,
    /// Time per batch after the first step.
    batch_s: Option<f64>,
}

impl Tried<'_> {
    pub(crate) fn is_hidden(&self) -> bool {
        self.wait_share <= HIDDEN
    }
}

/// The step times of one device and number of threads, shortest first.
#[derive(Debug)]
pub(crate) struct Frontier<'a> {
    pub(crate) series: usize,
    pub(crate) x: usize,
    pub(crate) tried: Vec<Tried<'a>>,
}

impl<'a> Frontier<'a> {
    /// The longest step that waited; `None` if none did.
    pub(crate) fn waits(&self) -> Option<&Tried<'a>> {
        self.tried.iter().rev().find(|tried| !tried.is_hidden())
    }

    /// The shortest step from which on none waited; `None` if even the longest did.
    pub(crate) fn hides(&self) -> Option<&Tried<'a>> {
        let n = self.tried.iter().rev().take_while(|tried| tried.is_hidden()).count();
        self.tried.get(self.tried.len() - n).filter(|_| n > 0)
    }

    /// Seconds in which the input delivers a batch, from the step that waited most; `None` if none waited enough.
    pub(crate) fn batch_s(&self) -> Option<f64> {
        let starved = self.tried.iter().filter(|tried| tried.wait_share >= STARVED);
        starved.max_by(|a, b| a.wait_share.total_cmp(&b.wait_share))?.batch_s
    }

    /// Whether a step of this time is hidden; `None` between the ends of the bracket if no batch time is known.
    pub(crate) fn is_hidden(&self, step_s: f64) -> Option<bool> {
        let (waits, hides) = (self.waits(), self.hides());
        if hides.is_some_and(|hides| step_s >= hides.step_s) {
            return Some(true);
        }
        if waits.is_some_and(|waits| step_s <= waits.step_s) {
            return Some(false);
        }
        self.batch_s().map(|batch_s| step_s >= batch_s)
    }
}

#[derive(Debug)]
pub(crate) struct Frontiers<'a> {
    pub(crate) x_factor: &'a str,
    pub(crate) xs: Vec<&'a Level>,
    pub(crate) series: Vec<String>,
    pub(crate) all: Vec<Frontier<'a>>,
    pub(crate) points: &'a [StepPoint],
}

/// `None` if the figure has no cells, or its axis and series are not named.
pub(crate) fn of<'a>(run: &'a Run<'a>, spec: &'a FigureSpec) -> Option<Frontiers<'a>> {
    let (x, series) = (spec.x.as_deref()?, spec.series.as_deref()?);
    let mut cells = wanted(run, spec);
    let order = Order::of(run);
    cells.sort_by(|a, b| order.compare(a, b));
    let measured = |cell: &&'a StudyCell| cell.error.is_none().then(|| cell.measured_one::<TrainCell>()).flatten();
    let cells: Vec<(&StudyCell, &TrainCell)> = cells.iter().filter_map(|cell| Some((*cell, measured(cell)?))).collect();
    let levels = |factor: &str| distinct(cells.iter().filter_map(|(cell, _)| cell.level(factor)));
    let (xs, mut all) = (levels(x), Vec::new());
    let series_levels = levels(series);
    for (i, level_of_series) in series_levels.iter().enumerate() {
        for (j, level_of_x) in xs.iter().enumerate() {
            let is_of =
                |cell: &StudyCell| cell.level(series) == Some(*level_of_series) && cell.level(x) == Some(*level_of_x);
            let of = cells.iter().filter(|(cell, _)| is_of(cell));
            let mut tried: Vec<Tried<'_>> = of.filter_map(|(cell, train)| tried(cell, train)).collect();
            tried.sort_by(|a, b| a.step_s.total_cmp(&b.step_s));
            if !tried.is_empty() {
                all.push(Frontier { series: i, x: j, tried });
            }
        }
    }
    let series = series_levels.iter().map(|found| level::named(series, found)).collect();
    (!all.is_empty()).then_some(Frontiers { x_factor: x, xs, series, all, points: &spec.points })
}

fn tried<'a>(cell: &'a StudyCell, train: &'a TrainCell) -> Option<Tried<'a>> {
    let rate = cell.value(&TrainCell::STEADY_IMAGES_PER_S).filter(|rate| *rate > 0.0);
    Some(Tried {
        cell,
        step_s: cell.value(&TrainCell::STEP_S)?,
        wait_share: cell.value(&TrainCell::WAIT_SHARE)?,
        batch_s: rate.map(|rate| train.batch as f64 / rate),
    })
}

/// "15.0 ms", "250 ms to 500 ms".
pub(crate) fn time_of(point: &StepPoint) -> String {
    let to = point.to_s.map(|to| format!(" to {}", brief_seconds(to))).unwrap_or_default();
    brief_seconds(point.step_s) + &to
}

impl Frontiers<'_> {
    /// The frontiers at the last level of the axis, and which accelerators lie beyond them.
    pub(crate) fn said(&self) -> String {
        let last = self.xs.len() - 1;
        let of_last: Vec<&Frontier<'_>> = self.all.iter().filter(|of| of.x == last).collect();
        let each: Vec<String> = of_last.iter().map(|of| format!("{} {}", self.series[of.series], of.said())).collect();
        let at = level::named(self.x_factor, self.xs[last]);
        let mut text = format!("With {at}, prefetching hides the input: {}.", listed(&each));
        for point in self.points {
            text.push_str(&self.beside(point, &of_last));
        }
        text
    }

    /// Where an accelerator's input is hidden. A range of step times is hidden if its shortest is.
    fn beside(&self, point: &StepPoint, of_last: &[&Frontier<'_>]) -> String {
        let on = |wanted: Option<bool>| -> Vec<&str> {
            let is = |of: &&&Frontier<'_>| of.is_hidden(point.step_s) == wanted;
            of_last.iter().filter(is).map(|of| self.series[of.series].as_str()).collect()
        };
        let (hidden, exposed, unknown) = (on(Some(true)), on(Some(false)), on(None));
        let part = |names: &[&str], what: &str| (!names.is_empty()).then(|| format!("{what} on {}", listed(names)));
        let parts = [part(&hidden, "hidden"), part(&exposed, "not hidden"), part(&unknown, "unknown")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!(" {} ({}): {}.", point.name, time_of(point), parts.join(", "))
    }
}

impl Frontier<'_> {
    fn said(&self) -> String {
        let (waits, hides) = (self.waits(), self.hides());
        match (self.batch_s(), waits, hides) {
            (_, None, Some(hides)) => format!("at every step tried, from {} on", brief_seconds(hides.step_s)),
            (_, Some(waits), None) => format!("at no step tried, up to {}", brief_seconds(waits.step_s)),
            (Some(batch_s), Some(waits), Some(hides)) => format!(
                "from steps of {} on (between {} and {} in the sweep)",
                brief_seconds(batch_s),
                brief_seconds(waits.step_s),
                brief_seconds(hides.step_s)
            ),
            (None, Some(waits), Some(hides)) => {
                format!("from between {} and {} on", brief_seconds(waits.step_s), brief_seconds(hides.step_s))
            }
            (_, None, None) => "unknown".to_owned(),
        }
    }

    /// What the two ways do not agree on.
    pub(crate) fn doubt(&self, name: &str) -> Option<String> {
        let (batch_s, waits, hides) = (self.batch_s()?, self.waits()?, self.hides()?);
        let is_within = batch_s >= waits.step_s * (1.0 - HIDDEN) && batch_s <= hides.step_s * (1.0 + HIDDEN);
        (!is_within).then(|| {
            format!(
                "{name}: a batch takes {} where the accelerator waits most, but the sweep puts the frontier between {} and {}: \
                 batches are not equally fast there.",
                brief_seconds(batch_s),
                brief_seconds(waits.step_s),
                brief_seconds(hides.step_s)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frontier(cell: &StudyCell, of: &[(f64, f64, f64)]) -> (Option<f64>, Option<f64>, Option<f64>, Option<bool>) {
        let tried = |&(step_s, wait_share, batch_s): &(f64, f64, f64)| Tried {
            cell,
            step_s,
            wait_share,
            batch_s: Some(batch_s),
        };
        let of = Frontier { series: 0, x: 0, tried: of.iter().map(tried).collect() };
        (of.waits().map(|of| of.step_s), of.hides().map(|of| of.step_s), of.batch_s(), of.is_hidden(0.05))
    }

    #[test]
    fn the_sweep_brackets_it_and_the_starved_step_gives_the_time_of_a_batch() {
        let cell: StudyCell = serde_json::from_value(serde_json::json!({
            "id": "c", "experiment": "e", "step": "train", "factors": {}, "started_at": "", "elapsed_s": 0.0
        }))
        .unwrap();
        let all = [(0.01, 0.83, 0.06), (0.04, 0.33, 0.061), (0.16, 0.001, 0.16)];
        assert_eq!(frontier(&cell, &all), (Some(0.04), Some(0.16), Some(0.06), Some(false)));
        assert_eq!(frontier(&cell, &all[..2]), (Some(0.04), None, Some(0.06), Some(false)));
        assert_eq!(frontier(&cell, &all[2..]), (None, Some(0.16), None, None));
        // A step that waits although a shorter one does not: the frontier is above it.
        let odd = [(0.01, 0.0, 0.01), (0.04, 0.1, 0.04), (0.16, 0.0, 0.16)];
        assert_eq!(frontier(&cell, &odd), (Some(0.04), Some(0.16), None, None));
    }
}
