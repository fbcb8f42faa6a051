//! Run time over the interval between checkpoints where failures strike: measured points on the curve of Young and Daly.

use crate::interval::{self, Place, Saved};
use crate::number::{brief_seconds, times};
use crate::palette;

use super::{Columns, Context, Data, Drawn, Key, Line, Panel, Pen, Plot, Point, Scale, Tip, X, Y, both, tick};

/// Points of a drawn curve.
const N_POINTS: usize = 64;

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let places = interval::of(context.run, context.spec);
    if places.is_empty() {
        return Drawn::nothing("No cell of this figure has checkpoints, injected failures and a restore.");
    }
    let names: Vec<String> = places.iter().map(|place| place.name.clone()).collect();
    let mut legend: Vec<Key> = names.iter().enumerate().map(Key::of_series).collect();
    legend.push(Key::line("ideal", "expected"));
    legend.push(Key::marker("pub", 3, "best interval"));
    Drawn {
        data: data(&places),
        judged: interval::said(&places),
        reading: "A point is the run time over the time to compute the steps once, median of the repeats; its stroke reaches \
                  from the lowest to the highest. The dotted curves are what the model expects from the medians of stall and \
                  restore. Both axes are logarithmic."
            .to_owned(),
        legend,
        pictures: both(&context.spec.title, |_| plot(&places)),
        is_open: true,
        ..Drawn::default()
    }
}

fn plot<'a>(places: &'a [Place<'_>]) -> Plot<'a> {
    let saved = || places.iter().flat_map(|place| &place.saved);
    let intervals = || saved().map(|saved| saved.interval_s).chain(places.iter().map(|place| place.costs.best()));
    let (first, last) = (intervals().fold(f64::MAX, f64::min), intervals().fold(0.0, f64::max));
    let overheads = || {
        let measured = saved().flat_map(|saved| [saved.overhead, saved.range.map_or(saved.overhead, |range| range.1)]);
        measured.chain(places.iter().map(|place| place.costs.overhead(place.costs.best())))
    };
    let scale = Scale::log_between(1.0, (overheads().fold(1.0, f64::max) * 1.15).max(1.5));
    let marks = move |pen: &mut Pen<'_>| {
        for (i, place) in places.iter().enumerate() {
            let at = |n: usize| first * (last / first).powf(n as f64 / (N_POINTS - 1) as f64);
            let curve = (0..N_POINTS).map(|n| (at(n), place.costs.overhead(at(n))));
            pen.line(&format!("ln ideal {}l", palette::hue(i)), curve);
            let best = place.costs.best();
            let text = format!("{}: best every {}", place.name, brief_seconds(best));
            let tip = Tip::new(text.clone()).with("value", best);
            let label = ("v pub-name".to_owned(), brief_seconds(best));
            let at = (pen.x.at(best), pen.y.at(place.costs.overhead(best)));
            pen.published("pub", 3, at, &tip, label);
        }
    };
    let line = |place: &Place<'_>| {
        let point = |saved: &Saved<'_>| {
            let (every, ratio) = (brief_seconds(saved.interval_s), times(saved.overhead));
            let text = format!("{}, every {every}: {ratio} the computing time", place.name);
            let tip = Tip::of(saved.cell, text).with("x", saved.interval_s).with("value", saved.overhead);
            Point { x: saved.interval_s, y: saved.overhead, range: saved.range, tip: Some(tip), ..Point::default() }
        };
        Line::new(&place.name, place.saved.iter().map(point))
    };
    let y = Y::at(scale, ticks(scale.high()), |value| format!("{}×", tick(value)));
    let panel = Panel { lines: places.iter().map(line).collect(), ..Panel::new(y, marks) };
    let x = X::along(Scale::log(first, last), 6, "Computing between two checkpoints in seconds", tick);
    Plot::new("Run time over computing time", x, vec![panel])
}

fn ticks(high: f64) -> Vec<f64> {
    let all = [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0];
    all.into_iter().filter(|value| *value <= high).collect()
}

fn data(places: &[Place<'_>]) -> Data {
    let all = places.iter().flat_map(|place| place.saved.iter().map(move |saved| (place, saved)));
    let s = |seconds: f64| brief_seconds(seconds);
    Columns::<(&Place<'_>, &Saved<'_>)>::new()
        .text("place", "checkpoints to", |(place, _)| place.name.clone())
        .number("interval_s", "computing between two", s, |(_, saved)| saved.interval_s)
        .number("overhead", "run time over computing", times, |(_, saved)| saved.overhead)
        .number("expected", "expected", times, |(place, saved)| place.costs.overhead(saved.interval_s))
        .number("lowest", "lowest repeat", times, |(_, saved)| saved.range.map(|range| range.0))
        .number("highest", "highest repeat", times, |(_, saved)| saved.range.map(|range| range.1))
        .count("failures", "failures", |(_, saved)| saved.n_failures as u64)
        .number("save_s", "stall per save", s, |(place, _)| place.costs.save_s)
        .number("per_restore_s", "restore", s, |(place, _)| place.costs.restore_s)
        .number("drain_s", "drain", s, |(place, _)| place.costs.drain_s)
        .number("best_s", "best interval", s, |(place, _)| place.costs.best())
        .number("young_s", "Young's", s, |(place, _)| place.costs.young())
        .of(all)
}
