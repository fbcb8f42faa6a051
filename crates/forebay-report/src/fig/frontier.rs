//! The frontier of prefetching: the shortest step that hides the input, a line a device, and the steps of accelerators.

use crate::frontier::{self, Frontier, Frontiers, HIDDEN, Tried, time_of};
use crate::level;
use crate::number::{brief_seconds, percent};

use super::{Canvas, Columns, Context, Data, Drawn, Key, Line, Panel, Pen, Plot, Point, Scale, Tip, X, Y, both, tick};

/// The shape of published marks.
const SHAPE: usize = 3;

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let Some(found) = frontier::of(context.run, context.spec) else {
        return Drawn::nothing("No cell of this figure was trained, or the figure names no axis and series.");
    };
    let mut remarks: Vec<String> = found
        .all
        .iter()
        .filter_map(|of| of.doubt(&format!("{}, {}", found.series[of.series], found.x_name(of.x))))
        .collect();
    let undrawn: Vec<String> = found
        .all
        .iter()
        .filter(|of| place(of).is_none())
        .map(|of| format!("{}, {}", found.series[of.series], found.x_name(of.x)))
        .collect();
    if !undrawn.is_empty() {
        remarks.push(format!("Not drawn, since no step waited enough: {}.", undrawn.join("; ")));
    }
    let mut legend = Key::series(&found.series);
    legend.extend((!found.points.is_empty()).then(|| Key::marker("pub", SHAPE, "step of an accelerator")));
    Drawn {
        data: data(&found),
        judged: found.said(),
        reading: format!(
            "A point is the time in which the input delivers a batch, from the step that waited most; its stroke reaches from \
             the longest step that waited to the shortest that did not. Steps above a line are hidden: the accelerator waits \
             at most {} of the time after the first batch. The y-axis is logarithmic.",
            percent(HIDDEN)
        ),
        remarks,
        legend,
        pictures: both(&context.spec.title, |canvas| plot(canvas, &found)),
        is_open: true,
        ..Drawn::default()
    }
}

impl Frontiers<'_> {
    fn x_name(&self, x: usize) -> String {
        level::named(self.x_factor, self.xs[x])
    }
}

/// Where a frontier is drawn, and its bracket.
fn place(of: &Frontier<'_>) -> Option<(f64, Option<(f64, f64)>)> {
    let bracket = of.waits().zip(of.hides()).map(|(waits, hides)| (waits.step_s, hides.step_s));
    let between = bracket.map(|(low, high)| (low * high).sqrt());
    Some((of.batch_s().or(between)?, bracket))
}

fn plot<'a>(canvas: Canvas, found: &'a Frontiers<'_>) -> Plot<'a> {
    let all = || {
        let ours = found.all.iter().filter_map(place).flat_map(|(at, bracket)| {
            let (low, high) = bracket.unwrap_or((at, at));
            [at, low, high]
        });
        ours.chain(found.points.iter().flat_map(|point| [point.step_s, point.to_s.unwrap_or(point.step_s)]))
    };
    let ms = |seconds: f64| seconds * 1e3;
    let scale = Scale::log(ms(all().fold(f64::MAX, f64::min)), ms(all().fold(0.0, f64::max)));
    let line = |series: usize| {
        let points = found.all.iter().filter(|of| of.series == series).filter_map(|of| point(found, of));
        Line::new(&found.series[series], points)
    };
    let aside = found.xs.len() as f64;
    let marks = move |pen: &mut Pen<'_>| {
        for point in found.points {
            let tip = Tip::new(format!("{}: {} ({})", point.name, time_of(point), point.source));
            let tip = tip.with("published", point.step_s);
            let label = if canvas.narrow { point.name.clone() } else { format!("{}, {}", point.name, time_of(point)) };
            for end in [Some(point.step_s), point.to_s].into_iter().flatten() {
                pen.straight("ideal", (0.0, ms(end)), (aside, ms(end)));
            }
            let at = (pen.x.at(aside), pen.y.at(ms(point.step_s)));
            pen.published("pub", SHAPE, at, &tip, ("v pub-name".to_owned(), label));
        }
    };
    let lines = (0..found.series.len()).map(line).collect();
    let panel = Panel { lines, ..Panel::new(Y::new(scale, 6, tick), marks) };
    let mut names: Vec<String> = (0..found.xs.len()).map(|x| found.x_name(x)).collect();
    names.extend((!found.points.is_empty()).then(|| "accelerators".to_owned()));
    Plot::new("Step time in ms", X::bands(names, ""), vec![panel])
}

fn point(found: &Frontiers<'_>, of: &Frontier<'_>) -> Option<Point> {
    let (at, bracket) = place(of)?;
    let mut text = format!("{}, {}: {}", found.series[of.series], found.x_name(of.x), brief_seconds(at));
    if let Some((low, high)) = bracket {
        text.push_str(&format!("; waits at {}, not at {}", brief_seconds(low), brief_seconds(high)));
    }
    let tip = of.tried.first().map(|tried| Tip::of(tried.cell, text).with("value", at));
    let range = bracket.map(|(low, high)| (low * 1e3, high * 1e3));
    Some(Point { x: of.x as f64, y: at * 1e3, range, tip, ..Point::default() })
}

fn data(found: &Frontiers<'_>) -> Data {
    let all = found.all.iter().flat_map(|of| of.tried.iter().map(move |tried| (of, tried)));
    let step = |seconds: f64| brief_seconds(seconds);
    Columns::<(&Frontier<'_>, &Tried<'_>)>::new()
        .text("series", "device", |(of, _)| found.series[of.series].clone())
        .text("x", "at", |(of, _)| found.x_name(of.x))
        .number("at_step_s", "step", step, |(_, tried)| tried.step_s)
        .number("waiting_share", "wait after the first batch", percent, |(_, tried)| tried.wait_share)
        .text("hidden", "hidden", |(_, tried)| if tried.is_hidden() { "yes" } else { "no" })
        .number("batch_s", "input's time per batch", step, |(of, _)| of.batch_s())
        .of(all)
}
