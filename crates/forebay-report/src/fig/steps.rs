//! Training step by step: how long the accelerator waited, copied and computed in each, and the loss.
//!
//! A long run is drawn by the mean of neighbouring steps, and says so. The first step waits for the first batch, often
//! much longer than all others: it may reach beyond the picture, with its value beside it.

use std::borrow::Cow;

use forebay_record::{StudyCell, TrainCell, TrainStep, WorkloadCell};
use forebay_units::group_digits;

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::level;
use crate::markup::Markup;
use crate::number::{quantity, tick};
use crate::svg::{Anchor, Area, Canvas, FONT, SMALL, Svg, Tip};
use crate::table::Align::{Left, Right};

use super::{Context, Drawn, Key, axes, both};

/// Points of the data, and along the axis of a desk's and of a phone's picture.
const MAX_POINTS: (usize, usize, usize) = (600, 200, 90);
/// Cells that are drawn.
const MAX_CELLS: usize = 3;
/// A first point this many times as high as all others is cut off.
const FAR_ABOVE: f64 = 1.5;
const PANEL: f64 = 130.0;
const TITLE: f64 = 34.0;

/// A part of a step: its key, its word, its line's class and the dashes it has where colours are not seen.
const PARTS: [(&str, &str, &str); 3] =
    [("compute_s", "compute", "tr c2l"), ("wait_s", "wait for data", "tr c1l"), ("copy_s", "copy", "tr c4l dash")];

/// The third part of a workload's steps, in the place of the copy.
const BARRIER: (&str, &str, &str) = ("barrier_s", "barrier", "tr c4l dash");

/// What is drawn as a stroke at its step, not as a line.
const SAVE: (&str, &str, &str) = ("checkpoint_s", "checkpoint", "spike");

/// The steps of a cell.
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
    /// Standing still for checkpoints.
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
    let Some((_, first)) = trained.first() else {
        return Drawn::nothing("No cell of this figure kept its steps.");
    };
    let mut remarks = Vec::new();
    if trained.len() > MAX_CELLS {
        remarks.push(format!("Of {} cells, {MAX_CELLS} are drawn; the data below has all.", trained.len()));
    }
    let most = trained.iter().map(|(_, cell)| cell.steps.len()).max().unwrap_or(0);
    if most > MAX_POINTS.1 {
        let kept =
            if most > MAX_POINTS.0 { format!(" The data below has {} at most.", MAX_POINTS.0) } else { String::new() };
        remarks.push(format!(
            "{} steps are more than the picture has room for: each point is the mean of neighbours.{kept}",
            group_digits(most as u64)
        ));
    }
    let shown = &trained[..trained.len().min(MAX_CELLS)];
    let has_copy = shown.iter().any(|(_, cell)| cell.steps.iter().any(|step| step.copy_s > 0.0));
    Drawn {
        data: data(&trained),
        caption: if trained.len() == 1 { caption(first) } else { String::new() },
        reading: reading(shown),
        remarks,
        legend: legend(shown, has_copy),
        pictures: both(|canvas| draw(canvas, shown, has_copy, &context.spec.title)),
        ..Drawn::default()
    }
}

fn has_saves(shown: &[(&StudyCell, Steps<'_>)]) -> bool {
    shown.iter().any(|(_, cell)| cell.steps.iter().any(|step| step.checkpoint_s > 0.0))
}

fn reading(shown: &[(&StudyCell, Steps<'_>)]) -> String {
    let first = match shown.iter().any(|(_, of)| of.is_workload) {
        true => "Of the first accelerator, epoch after epoch. The first step of each waits for its first batch.",
        false => {
            "Of the run nearest to the median. The first step also waits for the pipeline to make its first batch."
        }
    };
    let saves = " A stroke is a checkpoint after its step; one with an arrow is longer than the scale.";
    format!("{first}{}", if has_saves(shown) { saves } else { "" })
}

fn legend(shown: &[(&StudyCell, Steps<'_>)], has_copy: bool) -> Vec<Key> {
    let parts = shown.first().map_or(PARTS, |(_, of)| of.parts());
    let mut keys: Vec<Key> = parts[..if has_copy { 3 } else { 2 }].iter().map(key).collect();
    if has_saves(shown) {
        keys.push(key(&SAVE));
    }
    keys
}

fn key((_, word, class): &(&str, &str, &str)) -> Key {
    Key { sample: super::sample(|svg| svg.line(class, (0.0, 7.0), (18.0, 7.0))), name: (*word).to_owned() }
}

/// At most so many points.
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
        text.push_str(&format!("; the longest wait after it was {wait} s, at step {at}"));
    }
    let losses: Vec<f32> = cell.steps.iter().filter_map(|step| step.loss).collect();
    if let [first, .., last] = losses.as_slice() {
        text.push_str(&format!(". The loss went from {first:.3} to {last:.3}"));
    }
    text + "."
}

fn draw(canvas: Canvas, cells: &[(&StudyCell, Steps<'_>)], has_copy: bool, label: &str) -> Markup {
    let most = if canvas.narrow { MAX_POINTS.2 } else { MAX_POINTS.1 };
    let third = cells.first().map_or(PARTS[2].1, |(_, of)| of.parts()[2].1);
    let all: Vec<(&StudyCell, Vec<Point>)> = cells.iter().map(|(cell, of)| (*cell, points(&of.steps, most))).collect();
    let n_panels = all.iter().map(|(_, points)| 1 + usize::from(has_loss(points))).sum::<usize>();
    let last = cells.iter().map(|(_, train)| train.steps.len()).max().unwrap_or(1) as f64;
    let (left, right) = (56.0, canvas.width - 10.0);
    let x = Scale::between(1.0, last).over(left + 3.0, right);
    let bottom = n_panels as f64 * (PANEL + TITLE);
    let mut svg = Svg::new(canvas, bottom + 42.0);
    let mut top = 0.0;
    let mut plot = || {
        top += PANEL + TITLE;
        Area { left, top: top - PANEL, right, bottom: top }
    };
    for (cell, points) in &all {
        let name = if all.len() > 1 { format!(": {}", level::all(&cell.factors)) } else { String::new() };
        let area = plot();
        seconds(&mut svg, points, &x, area, has_copy, &format!("Seconds a step{name}"));
        if has_loss(points) {
            loss(&mut svg, points, &x, plot(), &format!("Loss{name}"));
        }
    }
    axes::bottom(
        &mut svg,
        Area { left, top: 0.0, right, bottom },
        &x,
        if canvas.narrow { 5 } else { 10 },
        "Step",
        whole,
    );
    let mut top = 0.0;
    for (cell, points) in &all {
        let height = (PANEL + TITLE) * if has_loss(points) { 2.0 } else { 1.0 };
        hits(&mut svg, (cell, third), points, &x, Area { left, top: top + TITLE, right, bottom: top + height });
        top += height;
    }
    svg.finish(label)
}

fn whole(step: f64) -> String {
    if step.fract() == 0.0 { tick(step) } else { String::new() }
}

fn has_loss(points: &[Point]) -> bool {
    points.iter().any(|point| point.loss.is_some_and(f64::is_finite))
}

fn grid(svg: &mut Svg, y: &Scale, plot: Area, title: &str) {
    for value in y.ticks(4) {
        svg.line("gr", (plot.left, y.at(value)), (plot.right, y.at(value)));
        svg.text("tk", Anchor::End, (plot.left - 7.0, y.at(value) + FONT * 0.35), tick(value));
    }
    svg.line("ax", (plot.left, plot.bottom), (plot.right, plot.bottom));
    svg.text("tt", Anchor::Start, (2.0, plot.top - 12.0), title);
}

fn seconds(svg: &mut Svg, points: &[Point], x: &Scale, plot: Area, has_copy: bool, title: &str) {
    let highest = |points: &[Point]| points.iter().flat_map(|point| point.seconds).fold(0.0, f64::max);
    let (first, rest) = (highest(&points[..1]), highest(&points[1..]));
    let is_cut = rest > 0.0 && first > rest * FAR_ABOVE;
    let y = Scale::from_zero(if is_cut { rest * 1.05 } else { first.max(rest) }).over(plot.bottom, plot.top);
    grid(svg, &y, plot, title);
    spikes(svg, points, x, &y, plot);
    for (part, (_, _, class)) in PARTS.iter().enumerate().take(if has_copy { 3 } else { 2 }) {
        let line: Vec<(f64, f64)> =
            points.iter().map(|point| (x.at(point.step as f64), y.at(point.seconds[part]))).collect();
        polyline(svg, class, &line);
    }
    if is_cut && y.cuts(first) {
        let part = if points[0].seconds[1] > points[0].seconds[0] { 1 } else { 0 };
        let (_, word, class) = PARTS[part];
        let at = x.at(points[0].step as f64);
        svg.arrow(class, (at, plot.top), (0.0, -1.0));
        let text = format!("{word} {} s", quantity(points[0].seconds[part]));
        svg.text("v", Anchor::Start, (at + 8.0, plot.top + SMALL * 0.5), text);
    }
}

/// A stroke a checkpoint; one that is higher than the plot ends in an arrow, the longest of those with its value.
fn spikes(svg: &mut Svg, points: &[Point], x: &Scale, y: &Scale, plot: Area) {
    let saved = || points.iter().filter(|point| point.checkpoint_s > 0.0);
    for point in saved() {
        let at = x.at(point.step as f64);
        svg.line(SAVE.2, (at, plot.bottom), (at, y.at(point.checkpoint_s)));
        if y.cuts(point.checkpoint_s) {
            svg.arrow(SAVE.2, (at, plot.top), (0.0, -1.0));
        }
    }
    let longest = saved().max_by(|a, b| a.checkpoint_s.total_cmp(&b.checkpoint_s));
    if let Some(point) = longest.filter(|point| y.cuts(point.checkpoint_s)) {
        let text = format!("checkpoint {} s", quantity(point.checkpoint_s));
        let at = x.at(point.step as f64);
        let is_right = at > (plot.left + plot.right) / 2.0;
        let (anchor, gap) = if is_right { (Anchor::End, -8.0) } else { (Anchor::Start, 8.0) };
        svg.text("v", anchor, (at + gap, plot.top - SMALL * 0.1), text);
    }
}

fn loss(svg: &mut Svg, points: &[Point], x: &Scale, plot: Area, title: &str) {
    let known = || points.iter().filter_map(|point| Some((point.step, point.loss.filter(|loss| loss.is_finite())?)));
    let y = Scale::from_zero(known().map(|(_, loss)| loss).fold(0.0, f64::max)).over(plot.bottom, plot.top);
    grid(svg, &y, plot, title);
    let line: Vec<(f64, f64)> = known().map(|(step, loss)| (x.at(step as f64), y.at(loss))).collect();
    polyline(svg, "tr c3l", &line);
}

/// A line, also of a single point.
fn polyline(svg: &mut Svg, class: &str, places: &[(f64, f64)]) {
    match places {
        [(x, y)] => svg.polyline(class, &[(*x, *y), (x + 2.0, *y)]),
        _ => svg.polyline(class, places),
    }
}

/// Invisible columns that say the values of a point.
fn hits(svg: &mut Svg, (cell, third): (&StudyCell, &str), points: &[Point], x: &Scale, plot: Area) {
    for (i, point) in points.iter().enumerate() {
        let at = x.at(point.step as f64);
        let before = if i > 0 { x.at(points[i - 1].step as f64) } else { at };
        let after = points.get(i + 1).map_or(at, |next| x.at(next.step as f64));
        let left = (before + at) / 2.0;
        let steps = match point.n_steps {
            1 => format!("step {}", group_digits(point.step as u64)),
            n => format!(
                "steps {} to {}, mean",
                group_digits(point.step as u64),
                group_digits((point.step + n - 1) as u64)
            ),
        };
        let [compute, wait, other] = point.seconds.map(quantity);
        let mut text = format!("{steps}\ncompute {compute} s\nwait {wait} s\n{third} {other} s");
        if point.checkpoint_s > 0.0 {
            text.push_str(&format!("\ncheckpoint {} s", quantity(point.checkpoint_s)));
        }
        if let Some(loss) = point.loss {
            text.push_str(&format!("\nloss {loss:.4}"));
        }
        let mut tip = Tip::new(text).with("cell", &cell.id).with("step", point.step).with("wait", point.seconds[1]);
        tip = tip.with("compute", point.seconds[0]);
        svg.mark(&tip, |svg| svg.rect("hit", Area { left, right: ((at + after) / 2.0).max(left + 1.0), ..plot }));
    }
}

fn data(cells: &[(&StudyCell, Steps<'_>)]) -> Data {
    let mut data = Data::new(&[("at", "cell", Left), ("step", "step", Right), ("n_steps", "steps", Right)]);
    for (key, word, _) in cells.first().map_or(PARTS, |(_, of)| of.parts()) {
        data.column(key, &format!("{word}, s"), Right);
    }
    data.column(SAVE.0, "checkpoint, s", Right);
    data.column("loss", "loss", Right);
    for (cell, train) in cells {
        for point in points(&train.steps, MAX_POINTS.0) {
            let mut row = vec![
                Value::text(level::all(&cell.factors)),
                Value::count(point.step as u64),
                Value::count(point.n_steps as u64),
            ];
            row.extend(point.seconds.map(|seconds| Value::number(seconds, quantity)));
            row.push(if point.checkpoint_s > 0.0 {
                Value::number(point.checkpoint_s, quantity)
            } else {
                Value::Unknown
            });
            row.push(Value::maybe(point.loss, |loss| format!("{loss:.4}")));
            data.row(row);
        }
    }
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
