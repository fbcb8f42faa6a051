//! The picture of a trace: a strip of cells on top, panels below it, and invisible columns that say the values.

use forebay_record::{Level, Levels, Series};

use crate::axis::Scale;
use crate::level;
use crate::markup::Markup;
use crate::number::{quantity, seconds, tick};
use crate::palette;
use crate::svg::{Anchor, Area, Canvas, FONT, SMALL, Svg, Tip, fitted, text_width};

use super::super::axes;
use super::{MAX_POINTS, Panel, Point, points};

/// Names of cells that still have room beside each other.
const MAX_MARKS: usize = 400;
/// Where a panel stands.
const PANEL: f64 = 96.0;
const STRIP: f64 = 18.0;
/// Room for a panel's head; on a phone its curves may have a line of their own.
const TITLE: (f64, f64) = (38.0, 48.0);

pub(super) fn draw(canvas: Canvas, series: &Series, panels: &[Panel<'_>], label: &str) -> Markup {
    let points = points(series, panels, if canvas.narrow { MAX_POINTS.1 } else { MAX_POINTS.0 });
    let (left, right) = (50.0, canvas.width - 10.0);
    let top = if series.marks.is_empty() { 0.0 } else { STRIP + 6.0 };
    let title = if canvas.narrow { TITLE.1 } else { TITLE.0 };
    let height = top + panels.len() as f64 * (PANEL + title) + 46.0;
    let first = series
        .time_s
        .first()
        .copied()
        .unwrap_or(0.0)
        .min(series.marks.first().map_or(f64::MAX, |mark| mark.time_s))
        .max(0.0);
    let last = series.time_s.last().copied().unwrap_or(1.0);
    let in_minutes = last > 900.0;
    let x = Scale::between(first, last).over(left, right);
    let mut svg = Svg::new(canvas, height);
    let bottom = height - 46.0;
    strip(&mut svg, series, &x, Area { left, top: 0.0, right, bottom });
    let mut y0 = top;
    let mut index = 0;
    for panel in panels {
        let plot = Area { left, top: y0 + title, right, bottom: y0 + title + PANEL };
        draw_panel(&mut svg, panel, &points, index, plot, &x);
        index += panel.curves.len();
        y0 += PANEL + title;
    }
    let plot = Area { left, top, right, bottom };
    let time = if in_minutes { Scale::between(first / 60.0, last / 60.0) } else { Scale::between(first, last) };
    let name = if in_minutes { "Minutes since the start" } else { "Seconds since the start" };
    axes::bottom(&mut svg, plot, &time.over(left, right), if canvas.narrow { 5 } else { 10 }, name, tick);
    hits(&mut svg, series, panels, &points, &x, plot);
    svg.finish(label)
}

fn draw_panel(svg: &mut Svg, panel: &Panel<'_>, points: &[Point], index: usize, plot: Area, x: &Scale) {
    let n = panel.curves.len();
    let highest = points
        .iter()
        .flat_map(|point| &point.ranges[index..index + n])
        .flatten()
        .map(|(_, high)| *high)
        .fold(0.0, f64::max);
    let y = Scale::from_zero(highest).over(plot.bottom, plot.top);
    for value in y.ticks(3) {
        svg.line("gr", (plot.left, y.at(value)), (plot.right, y.at(value)));
        svg.text("tk", Anchor::End, (plot.left - 7.0, y.at(value) + FONT * 0.35), tick(value));
    }
    head(svg, panel, plot);
    for point in points.iter().filter(|point| point.late) {
        svg.text("v late", Anchor::Middle, (x.at(point.time_s), plot.bottom - 1.0), "▲");
    }
    for (i, curve) in panel.curves.iter().enumerate() {
        let class = format!("tr {}l{}", palette::hue(i), if curve.dashed { " dash" } else { "" });
        for piece in pieces(points, index + i, x, &y) {
            svg.polyline(&class, &piece);
        }
    }
}

/// What the strip says of a hole.
const INTERRUPTED: &str = "interrupted";
/// Points further apart than this many steps are not joined.
const PAUSE: f64 = 3.0;

fn typical_step(points: &[Point]) -> f64 {
    let steps: Vec<f64> = points.windows(2).map(|pair| pair[1].time_s - pair[0].time_s).collect();
    forebay_units::median(&steps).unwrap_or(1.0)
}

/// The parts of a curve between unknown values and pauses.
fn pieces(points: &[Point], curve: usize, x: &Scale, y: &Scale) -> Vec<Vec<(f64, f64)>> {
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
        let at = x.at(point.time_s);
        let piece = pieces.last_mut().expect("one was just begun");
        piece.push((at, y.at(low)));
        if high > low {
            piece.push((at, y.at(high)));
        }
    }
    for piece in pieces.iter_mut().filter(|piece| piece.len() == 1) {
        let (x, y) = piece[0];
        piece.push((x + 1.0, y));
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

/// The strip that says which cell ran when.
fn strip(svg: &mut Svg, series: &Series, x: &Scale, area: Area) {
    if series.marks.len() > MAX_MARKS {
        return;
    }
    for (i, mark) in series.marks.iter().enumerate() {
        let from = x.at(mark.time_s);
        let next = series.marks.get(i + 1).map_or(f64::MAX, |next| next.time_s);
        let to = x.at(last_seen(series, mark.time_s, next));
        let class = if i % 2 == 0 { "strip" } else { "strip odd" };
        svg.mark(&Tip::new(format!("from {}: {}", seconds(mark.time_s), mark.what)).with("mark", &mark.what), |svg| {
            svg.rect(class, Area { left: from, top: 0.0, right: to, bottom: STRIP });
        });
        let name = short(&mark.what);
        if to - from >= text_width(&name, SMALL).min(60.0) + 6.0 {
            svg.text("v in-strip", Anchor::Start, (from + 3.0, STRIP - 5.0), fitted(&name, SMALL, to - from - 6.0));
        }
        svg.line("cut", (from, 0.0), (from, area.bottom));
        // Nothing was measured between an interruption and going on.
        let hole = if next < f64::MAX { x.at(next) - to } else { 0.0 };
        if hole > text_width(INTERRUPTED, SMALL) + 6.0 {
            svg.text("v in-strip", Anchor::Start, (to + 3.0, STRIP - 5.0), INTERRUPTED);
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

/// Invisible columns that say the values of a point.
fn hits(svg: &mut Svg, series: &Series, panels: &[Panel<'_>], points: &[Point], x: &Scale, plot: Area) {
    for (i, point) in points.iter().enumerate() {
        let at = x.at(point.time_s);
        let before = if i > 0 { x.at(points[i - 1].time_s) } else { at };
        let after = points.get(i + 1).map_or(at, |next| x.at(next.time_s));
        let area =
            Area { left: (before + at) / 2.0, right: ((at + after) / 2.0).max((before + at) / 2.0 + 1.0), ..plot };
        let mut text = seconds(point.time_s);
        let mut values = Vec::new();
        let curves = panels.iter().flat_map(|panel| panel.curves.iter().map(|curve| (curve, panel.unit)));
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
        let tip = Tip::new(text).with("time", point.time_s).with("values", values.join(" "));
        svg.mark(&tip, |svg| svg.rect("hit", area));
    }
}

/// The panel's name, and its curves' samples and names beside it.
fn head(svg: &mut Svg, panel: &Panel<'_>, plot: Area) {
    let y = plot.top - 10.0;
    let title_width = text_width(panel.title, FONT * 1.05) + 12.0;
    let wide: f64 = panel.curves.iter().map(|curve| text_width(&curve.name, SMALL) + 38.0).sum();
    let one_line = title_width + wide <= plot.right;
    svg.text("tt", Anchor::Start, (2.0, if one_line { y } else { y - 14.0 }), panel.title);
    let mut x = if one_line { plot.right - wide } else { 2.0 };
    for (i, curve) in panel.curves.iter().enumerate() {
        let class = format!("tr {}l{}", palette::hue(i), if curve.dashed { " dash" } else { "" });
        svg.line(&class, (x, y - 4.0), (x + 18.0, y - 4.0));
        svg.text(&format!("v name {}t", palette::hue(i)), Anchor::Start, (x + 22.0, y), &curve.name);
        x += text_width(&curve.name, SMALL) + 38.0;
    }
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
        let scale = Scale::between(0.0, 700.0);
        pieces(&points, 0, &scale, &scale).len()
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
        let text = draw(crate::svg::WIDE, &series, &panels(&series, &[]), "trace").into_string();
        assert!(text.contains(">interrupted<"), "{text}");
    }

    #[test]
    fn cells_are_named_as_people_say_them() {
        assert_eq!(short("ingest/read_only=false/threads=4/tier=hdd"), "hdd, decode, 4 threads");
        assert_eq!(short("warm-up"), "warm-up");
    }
}
