//! The picture of a trace: a strip of cells on top, panels below it, and invisible columns that say the values.

use forebay_record::{Level, Levels, Series};

use crate::number::{quantity, seconds};
use crate::svg::{SMALL, fitted, text_width};

use super::super::{Anchor, Area, Canvas, Panel, Pen, Plot, Scale, Tip, X, Y, around, level, palette, tick};
use super::{Curves, MAX_POINTS, Point, points};

/// Names of cells that still have room beside each other.
const MAX_MARKS: usize = 400;
const PANEL: f64 = 96.0;

pub(super) fn plot<'a>(canvas: Canvas, series: &'a Series, all: &'a [Curves<'_>]) -> Plot<'a> {
    let points = points(series, all, if canvas.narrow { MAX_POINTS.1 } else { MAX_POINTS.0 });
    let first = series.time_s.first().copied().unwrap_or(0.0);
    let first = first.min(series.marks.first().map_or(f64::MAX, |mark| mark.time_s)).max(0.0);
    let last = series.time_s.last().copied().unwrap_or(1.0);
    let mut panels = Vec::new();
    if !series.marks.is_empty() {
        let row = Y::Rows(vec![(String::new(), String::new())]);
        panels.push(Panel { head: -8.0, ..Panel::new(row, |pen| strip(pen, series)) });
    }
    let hits = points.iter().map(|point| (point.time_s, tip(series, all, point))).collect();
    // The first panel of curves says the values of all.
    let mut columns = (all.len(), around(hits));
    let mut index = 0;
    for curves in all {
        panels.push(Panel { columns: std::mem::take(&mut columns), ..panel(curves, points.clone(), index) });
        index += curves.curves.len();
    }
    Plot::new("", time_axis(canvas, first, last), panels)
}

fn time_axis(canvas: Canvas, first: f64, last: f64) -> X {
    let (unit, title) = if last > 900.0 { (60.0, "Minutes since the start") } else { (1.0, "Seconds since the start") };
    let ticks = Scale::between(first / unit, last / unit).ticks(if canvas.narrow { 5 } else { 10 });
    X::at(Scale::between(first, last), ticks.into_iter().map(|at| (at * unit, tick(at))).collect(), title)
}

fn panel<'a>(of: &'a Curves<'_>, points: Vec<Point>, index: usize) -> Panel<'a> {
    let ranges = points.iter().flat_map(|point| &point.ranges[index..index + of.curves.len()]).flatten();
    let scale = Scale::from_zero(ranges.map(|(_, high)| *high).fold(0.0, f64::max));
    let class = |i: usize| format!("tr {}l{}", palette::hue(i), if of.curves[i].dashed { " dash" } else { "" });
    let marks = move |pen: &mut Pen<'_>| {
        for point in points.iter().filter(|point| point.late) {
            pen.svg.text("v late", Anchor::Middle, (pen.x.at(point.time_s), pen.area.bottom - 1.0), "▲");
        }
        for i in 0..of.curves.len() {
            pieces(&points, index + i).into_iter().for_each(|piece| pen.line(&class(i), piece));
        }
    };
    let keys = of.curves.iter().enumerate().map(|(i, curve)| (class(i), curve.name.clone())).collect();
    let title = of.title.to_owned();
    Panel { title, keys, height: Some(PANEL), ..Panel::new(Y::new(scale, 3, tick), marks) }
}

const INTERRUPTED: &str = "interrupted";
/// Points further apart than this many steps are not joined.
const PAUSE: f64 = 3.0;

fn typical_step(points: &[Point]) -> f64 {
    let steps: Vec<f64> = points.windows(2).map(|pair| pair[1].time_s - pair[0].time_s).collect();
    forebay_units::median(&steps).unwrap_or(1.0)
}

/// The parts of a curve between unknown values and pauses.
fn pieces(points: &[Point], curve: usize) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut whole = false;
    let mut before = f64::MAX;
    let pause = PAUSE * typical_step(points);
    for point in points {
        // Nobody looked between an interruption and going on.
        whole &= point.time_s - before <= pause;
        before = point.time_s;
        let Some((low, high)) = point.ranges[curve] else {
            whole = false;
            continue;
        };
        if !whole {
            pieces.push(Vec::new());
            whole = true;
        }
        let piece = pieces.last_mut().expect("one was just begun");
        piece.push((point.time_s, low));
        if high > low {
            piece.push((point.time_s, high));
        }
    }
    pieces
}

/// Until when something that began at a time was seen: the next thing, or the last row before a pause of the run.
fn last_seen(series: &Series, from: f64, next: f64) -> f64 {
    let pause = PAUSE * series.interval_s.max(0.001);
    let mut until = from;
    for time in series.time_s.iter().copied().filter(|time| *time >= from) {
        // What went on after the hole begins with a mark of its own, before its first row.
        if time.min(next) - until > pause {
            return until;
        }
        if time >= next {
            return next;
        }
        until = time;
    }
    until
}

fn strip(pen: &mut Pen<'_>, series: &Series) {
    if series.marks.len() > MAX_MARKS {
        return;
    }
    let (x, Area { top, bottom, .. }, end) = (pen.x, pen.area, pen.whole.bottom);
    for (i, mark) in series.marks.iter().enumerate() {
        let next = series.marks.get(i + 1).map_or(f64::MAX, |next| next.time_s);
        let (left, right) = (x.at(mark.time_s), x.at(last_seen(series, mark.time_s, next)));
        let class = if i % 2 == 0 { "strip" } else { "strip odd" };
        let tip = Tip::new(format!("from {}: {}", seconds(mark.time_s), mark.what)).with("mark", &mark.what);
        pen.svg.mark(&tip, |svg| svg.rect(class, Area { left, top, right, bottom }));
        let name = short(&mark.what);
        if right - left >= text_width(&name, SMALL).min(60.0) + 6.0 {
            let name = fitted(&name, SMALL, right - left - 6.0);
            pen.svg.text("v in-strip", Anchor::Start, (left + 3.0, bottom - 8.0), name);
        }
        pen.svg.line("cut", (left, top), (left, end));
        // Nothing was measured between an interruption and going on.
        let hole = if next < f64::MAX { x.at(next) - right } else { 0.0 };
        if hole > text_width(INTERRUPTED, SMALL) + 6.0 {
            pen.svg.text("v in-strip", Anchor::Start, (right + 3.0, bottom - 8.0), INTERRUPTED);
        }
    }
}

/// A cell's name as people say it: "hdd, decode, 4 threads" of "ingest/read_only=false/threads=4/tier=hdd".
fn short(what: &str) -> String {
    let level = |text: &str| match (text.parse(), text.parse()) {
        (Ok(flag), _) => Level::Flag(flag),
        (_, Ok(number)) => Level::Integer(number),
        _ => Level::Text(text.to_owned()),
    };
    let named = what.split('/').filter_map(|part| part.split_once('='));
    let levels: Levels = named.map(|(factor, text)| (factor.to_owned(), level(text))).collect();
    if levels.is_empty() { what.to_owned() } else { level::all(&levels) }
}

fn tip(series: &Series, all: &[Curves<'_>], point: &Point) -> Tip {
    let mut text = seconds(point.time_s);
    let mut values = Vec::new();
    let curves = all.iter().flat_map(|of| of.curves.iter().map(|curve| (curve, of.unit)));
    for ((curve, unit), range) in curves.zip(&point.ranges) {
        let shown = match range {
            None => "–".to_owned(),
            Some((low, high)) if low == high => format!("{} {unit}", quantity(*low)),
            Some((low, high)) => format!("{} to {} {unit}", quantity(*low), quantity(*high)),
        };
        text.push_str(&format!("\n{}: {shown}", curve.name));
        values.push(range.map_or("–".to_owned(), |(_, high)| format!("{}", (high * 1000.0).round() / 1000.0)));
    }
    if let Some(mark) = series.marks.iter().rev().find(|mark| mark.time_s <= point.time_s) {
        text.push_str(&format!("\n{}", short(&mark.what)));
    }
    Tip::new(text).with("time", point.time_s).with("values", values.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fig::trace::panels;
    use forebay_record::Column;

    fn series(n: usize) -> Series {
        Series {
            interval_s: 1.0,
            time_s: (0..n).map(|i| i as f64).collect(),
            late_s: vec![0.0; n],
            columns: vec![Column { name: "disk.vda.read_bytes_per_s".to_owned(), values: vec![Some(1e6); n] }],
            ..Series::default()
        }
    }

    fn n_pieces(series: &Series) -> usize {
        let points = points(series, &panels(series, &[]), 100);
        pieces(&points, 0).len()
    }

    #[test]
    fn unknown_values_leave_a_gap() {
        let mut series = series(4);
        series.columns[0].values[1] = None;
        assert_eq!(n_pieces(&series), 2);
    }

    #[test]
    fn a_pause_of_the_run_leaves_a_gap_in_curves_and_cells() {
        let mut series = series(20);
        series.time_s.iter_mut().skip(10).for_each(|time| *time += 600.0);
        assert_eq!(n_pieces(&series), 2);
        assert_eq!(last_seen(&series, 3.0, 6.0), 6.0);
        assert_eq!(last_seen(&series, 3.0, 615.0), 9.0, "what ran when the run stopped");
        assert_eq!(last_seen(&series, 3.0, 609.5), 9.0, "the next began before its first row");
        assert_eq!(last_seen(&series, 9.2, 609.5), 9.2, "what began just before the run stopped");
        assert_eq!(last_seen(&series, 612.0, f64::MAX), 619.0);
        let mark = |time_s, what: &str| forebay_record::Mark { time_s, what: what.to_owned() };
        series.marks = vec![mark(3.0, "a"), mark(609.5, "b")];
        let text = {
            let panels = panels(&series, &[]);
            let picture = plot(crate::svg::WIDE, &series, &panels).draw(crate::svg::WIDE, "trace");
            picture.into_string()
        };
        assert!(text.contains(">interrupted<"), "{text}");
    }

    #[test]
    fn cells_are_named_as_people_say_them() {
        assert_eq!(short("ingest/read_only=false/threads=4/tier=hdd"), "hdd, decode, 4 threads");
        assert_eq!(short("warm-up"), "warm-up");
    }
}
