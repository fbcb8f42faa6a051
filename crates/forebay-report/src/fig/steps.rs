//! Training step by step: how long the accelerator waited, copied and computed in each, and the loss.
//!
//! A long run is drawn by the mean of neighbouring steps, and says so. The first step waits for the first batch, often
//! much longer than all others: it may reach beyond the picture, with its value beside it.

use std::borrow::Cow;

use forebay_record::{StudyCell, TrainCell, TrainStep, WorkloadCell};
use forebay_units::group_digits;

use super::{
    Columns, Context, Data, Drawn, Key, Panel, Plot, Scale, Tip, X, Y, around, both, first, level, quantity, tick,
};

/// Points of the data, and along the axis of a desk's and of a phone's picture.
const MAX_POINTS: (usize, usize, usize) = (600, 200, 90);
const MAX_CELLS: usize = 3;
/// A first point this many times as high as all others is cut off.
const FAR_ABOVE: f64 = 1.5;
const PANEL: f64 = 130.0;

/// A part of a step: its key, its word, its line's class and the dashes it has where colours are not seen.
const PARTS: [(&str, &str, &str); 3] = [
    (TrainCell::COMPUTE_S.info.name, "compute", "tr c2l"),
    (TrainCell::WAIT_S.info.name, "wait for data", "tr c1l"),
    (TrainCell::COPY_S.info.name, "copy", "tr c4l dash"),
];

/// The third part of a workload's steps, in the place of the copy.
const BARRIER: (&str, &str, &str) = (WorkloadCell::BARRIER_S.info.name, "barrier", "tr c4l dash");

/// What is drawn as a stroke at its step, not as a line.
const SAVE: (&str, &str, &str) = (TrainCell::CHECKPOINT_S.info.name, "checkpoint", "spike");

struct Steps<'a> {
    steps: Cow<'a, [TrainStep]>,
    /// Of a workload's first accelerator: the third part is the barrier.
    is_workload: bool,
}

impl<'a> Steps<'a> {
    /// The steps that a cell kept; `None` when it kept none.
    fn of(cell: &'a StudyCell) -> Option<Self> {
        let of_train = cell
            .measured_one::<TrainCell>()
            .map(|train| Self { steps: Cow::Borrowed(&train.steps), is_workload: false });
        let of_workload = || Some(Self { steps: of_workload(cell.measured_one::<WorkloadCell>()?), is_workload: true });
        of_train.or_else(of_workload).filter(|of| !of.steps.is_empty())
    }

    fn parts(&self) -> [(&'static str, &'static str, &'static str); 3] {
        if self.is_workload { [PARTS[0], PARTS[1], BARRIER] } else { PARTS }
    }
}

/// The steps of the first accelerator, epoch after epoch, with the barrier where training has the copy.
fn of_workload(cell: &WorkloadCell) -> Cow<'_, [TrainStep]> {
    let first = cell.epochs_of.iter().map(|epoch| epoch.accelerator).min().unwrap_or(0);
    let of_epoch = |epoch: &forebay_record::WorkloadEpoch| {
        // What a step's own save took; of a record that does not say, the mean of the epoch's.
        let mean_s = epoch.checkpoint_s / epoch.saved_after.len().max(1) as f64;
        let save_s = |step: u64| {
            let own = cell.saves.iter().find(|save| !save.is_restore && (save.epoch, save.step) == (epoch.epoch, step));
            own.map_or(mean_s, |save| save.seconds)
        };
        let step = |i: usize| TrainStep {
            wait_s: epoch.load[i],
            compute_s: epoch.compute.get(i).copied().unwrap_or(0.0),
            copy_s: epoch.barrier.get(i).copied().unwrap_or(0.0),
            checkpoint_s: if epoch.saved_after.contains(&(i as u64 + 1)) { save_s(i as u64 + 1) } else { 0.0 },
            ..TrainStep::default()
        };
        (0..epoch.load.len()).map(step).collect::<Vec<_>>()
    };
    let mut epochs: Vec<_> = cell.epochs_of.iter().filter(|epoch| epoch.accelerator == first).collect();
    epochs.sort_by_key(|epoch| epoch.epoch);
    Cow::Owned(epochs.into_iter().flat_map(of_epoch).collect())
}

/// The mean of neighbouring steps.
struct Point {
    /// The first of them, counted from 1.
    step: usize,
    n_steps: usize,
    /// Computing, waiting, copying.
    seconds: [f64; 3],
    checkpoint_s: f64,
    loss: Option<f64>,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let cells = context.cells();
    let trained: Vec<(&StudyCell, Steps<'_>)> = cells
        .into_iter()
        .filter(|cell| cell.error.is_none())
        .filter_map(|cell| Some((cell, Steps::of(cell)?)))
        .collect();
    let Some((_, single)) = trained.first() else {
        return Drawn::nothing("No cell of this figure recorded its steps.");
    };
    let mut remarks = Vec::new();
    let shown = first(&trained, MAX_CELLS, "cells", &mut remarks);
    let most = trained.iter().map(|(_, cell)| cell.steps.len()).max().unwrap_or(0);
    if most > MAX_POINTS.1 {
        let kept =
            if most > MAX_POINTS.0 { format!(" The data below has at most {}.", MAX_POINTS.0) } else { String::new() };
        remarks.push(format!(
            "{} steps do not fit in the picture: each point is the mean of its neighbours.{kept}",
            group_digits(most as u64)
        ));
    }
    let has_copy = shown.iter().any(|(_, cell)| cell.steps.iter().any(|step| step.copy_s > 0.0));
    Drawn {
        data: data(&trained),
        caption: if trained.len() == 1 { caption(single) } else { String::new() },
        reading: reading(shown),
        remarks,
        legend: legend(shown, has_copy),
        pictures: both(&context.spec.title, |canvas| {
            plot(shown, has_copy, if canvas.narrow { (MAX_POINTS.2, 5) } else { (MAX_POINTS.1, 10) })
        }),
        ..Drawn::default()
    }
}

fn has_saves(shown: &[(&StudyCell, Steps<'_>)]) -> bool {
    shown.iter().any(|(_, cell)| cell.steps.iter().any(|step| step.checkpoint_s > 0.0))
}

fn reading(shown: &[(&StudyCell, Steps<'_>)]) -> String {
    let first = match shown.iter().any(|(_, of)| of.is_workload) {
        true => "The first accelerator, epoch by epoch. The first step of each epoch waits for its first batch.",
        false => "The run nearest to the median. The first step also waits for the pipeline to make its first batch.",
    };
    let saves = " A vertical line is a checkpoint after its step; one with an arrow extends beyond the axis.";
    format!("{first}{}", if has_saves(shown) { saves } else { "" })
}

fn legend(shown: &[(&StudyCell, Steps<'_>)], has_copy: bool) -> Vec<Key> {
    let parts = shown.first().map_or(PARTS, |(_, of)| of.parts());
    let parts = parts.iter().take(if has_copy { 3 } else { 2 }).chain(has_saves(shown).then_some(&SAVE));
    parts.map(|(_, word, class)| Key::line(class, *word)).collect()
}

fn points(steps: &[TrainStep], most: usize) -> Vec<Point> {
    let every = steps.len().div_ceil(most).max(1);
    let point = |(i, some): (usize, &[TrainStep])| {
        let mean = |part: fn(&TrainStep) -> f64| some.iter().map(part).sum::<f64>() / some.len() as f64;
        let losses: Vec<f64> = some.iter().filter_map(|step| step.loss).map(f64::from).collect();
        Point {
            step: i * every + 1,
            n_steps: some.len(),
            seconds: [mean(|step| step.compute_s), mean(|step| step.wait_s), mean(|step| step.copy_s)],
            checkpoint_s: mean(|step| step.checkpoint_s),
            loss: (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64),
        }
    };
    steps.chunks(every).enumerate().map(point).collect()
}

/// The longest wait after the first step, and how the loss went.
fn caption(cell: &Steps<'_>) -> String {
    let rest = cell.steps.iter().enumerate().skip(1);
    let longest = rest.max_by(|a, b| a.1.wait_s.total_cmp(&b.1.wait_s));
    let mut text = format!("The first batch came after {} s", quantity(cell.steps[0].wait_s));
    if let Some((i, step)) = longest {
        let (wait, at) = (quantity(step.wait_s), group_digits(i as u64 + 1));
        text.push_str(&format!("; the longest later wait was {wait} s, at step {at}"));
    }
    let losses: Vec<f32> = cell.steps.iter().filter_map(|step| step.loss).collect();
    if let [first, .., last] = losses.as_slice() {
        text.push_str(&format!(". The loss went from {first:.3} to {last:.3}"));
    }
    text + "."
}

fn plot<'a>(cells: &[(&StudyCell, Steps<'_>)], has_copy: bool, (most, n_ticks): (usize, usize)) -> Plot<'a> {
    let mut panels = Vec::new();
    for (cell, of) in cells {
        let points = points(&of.steps, most);
        let name = if cells.len() > 1 { format!(": {}", level::all(&cell.factors)) } else { String::new() };
        let third = of.parts()[2].1;
        let hits = points.iter().map(|point| (point.step as f64, tip(cell, third, point))).collect();
        let loss = loss(&points, format!("Loss{name}"));
        let n_panels = if loss.is_some() { 2 } else { 1 };
        let columns = (n_panels, around(hits));
        panels.push(Panel { columns, ..seconds(points, has_copy, format!("Seconds per step{name}")) });
        panels.extend(loss);
    }
    let last = cells.iter().map(|(_, of)| of.steps.len()).max().unwrap_or(1) as f64;
    let whole = |step: f64| if step.fract() == 0.0 { tick(step) } else { String::new() };
    let mut x = X::along(Scale::between(1.0, last), n_ticks, "Step", whole);
    x.inset = 3.0;
    Plot::new("", x, panels)
}

fn seconds<'a>(points: Vec<Point>, has_copy: bool, title: String) -> Panel<'a> {
    let highest = |points: &[Point]| points.iter().flat_map(|point| point.seconds).fold(0.0, f64::max);
    let (first, rest) = (highest(&points[..1]), highest(&points[1..]));
    let is_cut = rest > 0.0 && first > rest * FAR_ABOVE;
    let scale = Scale::from_zero(if is_cut { rest * 1.05 } else { first.max(rest) });
    let marks = move |pen: &mut super::Pen<'_>| {
        let saved = || points.iter().filter(|point| point.checkpoint_s > 0.0);
        saved().for_each(|point| pen.stroke(SAVE.2, point.step as f64, point.checkpoint_s));
        for (part, (_, _, class)) in PARTS.iter().enumerate().take(if has_copy { 3 } else { 2 }) {
            pen.line(class, points.iter().map(|point| (point.step as f64, point.seconds[part])));
        }
        if is_cut && scale.cuts(first) {
            let part = if points[0].seconds[1] > points[0].seconds[0] { 1 } else { 0 };
            let (_, word, class) = PARTS[part];
            pen.beyond(class, 1.0);
            pen.note("v", 1.0, 5.0, &format!("{word} {} s", quantity(points[0].seconds[part])));
        }
        let longest = saved().max_by(|a, b| a.checkpoint_s.total_cmp(&b.checkpoint_s));
        if let Some(point) = longest.filter(|point| scale.cuts(point.checkpoint_s)) {
            pen.note("v", point.step as f64, -4.0, &format!("checkpoint {} s", quantity(point.checkpoint_s)));
        }
    };
    Panel { title, height: Some(PANEL), ..Panel::new(Y::new(scale, 4, tick), marks) }
}

/// `None` when no loss is known.
fn loss<'a>(points: &[Point], title: String) -> Option<Panel<'a>> {
    let known = |point: &Point| Some((point.step as f64, point.loss.filter(|loss| loss.is_finite())?));
    let known: Vec<(f64, f64)> = points.iter().filter_map(known).collect();
    let scale = Scale::from_zero(known.iter().map(|(_, loss)| *loss).fold(0.0, f64::max));
    let has_any = !known.is_empty();
    let panel = Panel::new(Y::new(scale, 4, tick), move |pen| pen.line("tr c3l", known.iter().copied()));
    has_any.then_some(Panel { title, height: Some(PANEL), ..panel })
}

fn tip(cell: &StudyCell, third: &str, point: &Point) -> Tip {
    let step = |step: usize| group_digits(step as u64);
    let steps = match point.n_steps {
        1 => format!("step {}", step(point.step)),
        n => format!("steps {} to {}, mean", step(point.step), step(point.step + n - 1)),
    };
    let [compute, wait, other] = point.seconds.map(quantity);
    let mut text = format!("{steps}\ncompute {compute} s\nwait {wait} s\n{third} {other} s");
    if point.checkpoint_s > 0.0 {
        text.push_str(&format!("\ncheckpoint {} s", quantity(point.checkpoint_s)));
    }
    if let Some(loss) = point.loss {
        text.push_str(&format!("\nloss {loss:.4}"));
    }
    let [compute, wait, _] = point.seconds;
    Tip::of(cell, text).with("step", point.step).with("wait", wait).with("compute", compute)
}

fn data(cells: &[(&StudyCell, Steps<'_>)]) -> Data {
    let parts = cells.first().map_or(PARTS, |(_, of)| of.parts());
    let mut columns = Columns::<(String, Point)>::new()
        .text("at", "cell", |(name, _)| name.clone())
        .count("step", "step", |(_, point)| point.step as u64)
        .count("n_steps", "steps", |(_, point)| point.n_steps as u64);
    for (i, (key, word, _)) in parts.into_iter().enumerate() {
        columns = columns.number(key, &format!("{word}, s"), quantity, move |(_, point)| point.seconds[i]);
    }
    let points = |(cell, of): &(&StudyCell, Steps<'_>)| {
        let name = level::all(&cell.factors);
        points(&of.steps, MAX_POINTS.0).into_iter().map(move |point| (name.clone(), point))
    };
    let mut data = columns
        .number(SAVE.0, "checkpoint, s", quantity, |(_, point)| Some(point.checkpoint_s).filter(|s| *s > 0.0))
        .number("loss", "loss", |loss| format!("{loss:.4}"), |(_, point)| point.loss)
        .of(cells.iter().flat_map(points));
    data.hide_if_same("at");
    data.hide_if_same("n_steps");
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_means_of_neighbours_and_keep_the_sum() {
        let step = |i: u32| TrainStep { wait_s: f64::from(i), loss: (i > 2).then_some(1.0), ..TrainStep::default() };
        let steps: Vec<TrainStep> = (1..=7).map(step).collect();
        let points = points(&steps, 3);
        let found: Vec<(usize, usize, f64)> = points.iter().map(|p| (p.step, p.n_steps, p.seconds[1])).collect();
        assert_eq!(found, [(1, 3, 2.0), (4, 3, 5.0), (7, 1, 7.0)]);
        assert_eq!(points[0].loss, Some(1.0), "the mean of the losses that are known");
        assert_eq!(super::points(&steps, 600).len(), 7);
    }
}
