//! What the machine did meanwhile, tick by tick: disks, this process, the processor, and which cell ran when.
//!
//! A long series is thinned out by keeping the lowest and the highest value of neighbouring ticks, so that no peak is lost.

use forebay_record::{Level, Levels, Series};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::level;
use crate::markup::Markup;
use crate::number::{quantity, seconds, tick};
use crate::palette;
use crate::svg::{Anchor, Area, Canvas, FONT, SMALL, Svg, Tip, fitted, text_width};
use crate::table::Align::{Left, Right};

use super::{Context, Drawn, axes, both};

/// Points along the axis of a desk's and of a phone's picture.
const MAX_POINTS: (usize, usize) = (240, 100);
/// Disks that are shown.
const MAX_DISKS: usize = 2;
/// Names of cells that still have room beside each other.
const MAX_MARKS: usize = 400;

/// A quantity over time.
struct Curve<'a> {
    key: &'a str,
    name: String,
    values: Vec<Option<f64>>,
    dashed: bool,
}

/// Curves of one unit over each other.
struct Panel<'a> {
    title: &'static str,
    unit: &'static str,
    curves: Vec<Curve<'a>>,
}

/// Neighbouring ticks as one point.
struct Point {
    time_s: f64,
    late: bool,
    /// The lowest and the highest of each curve.
    ranges: Vec<Option<(f64, f64)>>,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let Some(series) = context.run.series() else {
        return Drawn::nothing("The run kept no per-second series.");
    };
    let panels = panels(series, &context.spec.metrics);
    if panels.is_empty() {
        return Drawn::nothing("The series has neither disks, nor the process, nor the processor.");
    }
    let late = (0..series.time_s.len()).filter(|row| series.is_late(*row)).count();
    let mut remarks = Vec::new();
    if late > 0 {
        remarks.push(format!(
            "{late} of {} ticks came late, marked ▲: a rate is then the mean over a longer time.",
            series.time_s.len()
        ));
    }
    if series.time_s.len() > MAX_POINTS.0 {
        remarks.push(format!(
            "Of {} ticks, neighbours are drawn together as the range they span.",
            forebay_units::group_digits(series.time_s.len() as u64)
        ));
    }
    Drawn {
        data: data(series, &panels),
        caption: caption(series, &panels),
        reading: format!(
            "One point a tick of {} s; the strip on top says which cell was being measured.",
            tick((series.interval_s * 1e3).round() / 1e3)
        ),
        remarks,
        legend_title: String::new(),
        legend: Vec::new(),
        pictures: both(|canvas| draw(canvas, series, &panels, &context.spec.title)),
        is_table: false,
    }
}

fn panels<'a>(series: &'a Series, wanted: &[String]) -> Vec<Panel<'a>> {
    let curve = |key: &'a str, name: String, factor: f64, dashed: bool| {
        let sound = |value: &Option<f64>| value.filter(|value| value.is_finite()).map(|value| value * factor);
        let values = series.values(key)?.iter().map(sound).collect();
        (wanted.is_empty() || wanted.iter().any(|name| name == key)).then_some(Curve { key, name, values, dashed })
    };
    let column = |name: &str| series.columns.iter().map(|column| column.name.as_str()).find(|column| *column == name);
    let mut disks = Vec::new();
    for disk in busiest_disks(series) {
        for (what, dashed) in [("read", false), ("write", true)] {
            let key = column(&format!("disk.{disk}.{what}_bytes_per_s"));
            disks.extend(key.and_then(|key| curve(key, format!("{disk} {what}"), 1e-6, dashed)));
        }
    }
    let mut process = Vec::new();
    for (what, name, dashed) in
        [("rchar", "asked for", false), ("read", "from the device", true), ("write", "to the device", true)]
    {
        let key = column(&format!("process.{what}_bytes_per_s"));
        process.extend(key.and_then(|key| curve(key, name.to_owned(), 1e-6, dashed)));
    }
    let mut cpu = Vec::new();
    for (what, dashed) in [("user", false), ("system", false), ("iowait", true)] {
        let key = column(&format!("cpu.{what}_percent"));
        cpu.extend(key.and_then(|key| curve(key, what.to_owned(), 1.0, dashed)));
    }
    let all = [
        ("Disks, MB per second", "MB/s", disks),
        ("This process, MB per second", "MB/s", process),
        ("Processor, %", "%", cpu),
    ];
    let panels = all.into_iter().map(|(title, unit, curves)| Panel { title, unit, curves });
    panels.filter(|panel| !panel.curves.is_empty()).collect()
}

/// The disks that moved most bytes, those that moved none left out if another did.
fn busiest_disks(series: &Series) -> Vec<&str> {
    let mut disks: Vec<(&str, f64)> = Vec::new();
    for column in &series.columns {
        let Some(disk) = column.name.strip_prefix("disk.") else { continue };
        let moved = disk.strip_suffix(".read_bytes_per_s").or(disk.strip_suffix(".write_bytes_per_s"));
        let Some(disk) = moved else { continue };
        let sum: f64 = column.values.iter().flatten().filter(|value| value.is_finite()).sum();
        match disks.iter_mut().find(|(known, _)| *known == disk) {
            Some((_, total)) => *total += sum,
            None => disks.push((disk, sum)),
        }
    }
    disks.sort_by(|a, b| b.1.total_cmp(&a.1));
    let n = disks.iter().take(MAX_DISKS).filter(|(_, sum)| *sum > 0.0).count().max(1);
    disks.into_iter().take(n).map(|(disk, _)| disk).collect()
}

/// At most so many points.
fn points(series: &Series, panels: &[Panel<'_>], most: usize) -> Vec<Point> {
    let n = series.time_s.len();
    let every = n.div_ceil(most).max(1);
    let mut points = Vec::new();
    for from in (0..n).step_by(every) {
        let rows = from..(from + every).min(n);
        let range = |curve: &Curve<'_>| {
            let values = rows.clone().filter_map(|row| curve.values.get(row).copied().flatten());
            values.fold(None, |range: Option<(f64, f64)>, value| {
                Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            })
        };
        let ranges = panels.iter().flat_map(|panel| &panel.curves).map(range).collect();
        points.push(Point { time_s: series.time_s[from], late: rows.clone().any(|row| series.is_late(row)), ranges });
    }
    points
}

/// Where a panel stands.
const PANEL: f64 = 96.0;
const STRIP: f64 = 18.0;
/// Room for a panel's head; on a phone its curves may have a line of their own.
const TITLE: (f64, f64) = (38.0, 48.0);

fn draw(canvas: Canvas, series: &Series, panels: &[Panel<'_>], label: &str) -> Markup {
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

/// The parts of a curve between unknown values.
fn pieces(points: &[Point], curve: usize, x: &Scale, y: &Scale) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut whole = false;
    for point in points {
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

/// The strip that says which cell ran when.
fn strip(svg: &mut Svg, series: &Series, x: &Scale, area: Area) {
    if series.marks.len() > MAX_MARKS {
        return;
    }
    for (i, mark) in series.marks.iter().enumerate() {
        let from = x.at(mark.time_s);
        let to = series.marks.get(i + 1).map_or(area.right, |next| x.at(next.time_s));
        let class = if i % 2 == 0 { "strip" } else { "strip odd" };
        svg.mark(&Tip::new(format!("from {}: {}", seconds(mark.time_s), mark.what)).with("mark", &mark.what), |svg| {
            svg.rect(class, Area { left: from, top: 0.0, right: to, bottom: STRIP });
        });
        let name = short(&mark.what);
        if to - from >= text_width(&name, SMALL).min(60.0) + 6.0 {
            svg.text("v in-strip", Anchor::Start, (from + 3.0, STRIP - 5.0), fitted(&name, SMALL, to - from - 6.0));
        }
        svg.line("cut", (from, 0.0), (from, area.bottom));
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

fn caption(series: &Series, panels: &[Panel<'_>]) -> String {
    let busiest = panels.iter().filter(|panel| panel.unit == "MB/s").flat_map(|panel| &panel.curves);
    let peaks = busiest.filter_map(|curve| {
        let values = curve.values.iter().enumerate().filter_map(|(row, value)| Some((row, (*value)?)));
        let (row, high) = values.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((curve, series.time_s.get(row)?, high))
    });
    peaks.max_by(|a, b| a.2.total_cmp(&b.2)).map_or(String::new(), |(curve, time, high)| {
        let what = if curve.key.starts_with("process.") { "this process, " } else { "" };
        format!("The highest rate is {} MB/s ({what}{}) after {}.", quantity(high), curve.name, seconds(*time))
    })
}

fn data(series: &Series, panels: &[Panel<'_>]) -> Data {
    let mut data = Data::new(&[("time_s", "s", Right)]);
    let curves: Vec<(&Curve<'_>, &str)> =
        panels.iter().flat_map(|panel| panel.curves.iter().map(|curve| (curve, panel.unit))).collect();
    for (curve, unit) in &curves {
        let key = curve.key.replace("bytes_per_s", "mb_per_s");
        let subject = curve.key.split('.').next().filter(|subject| *subject != "disk").unwrap_or_default();
        data.column(&key, format!("{subject} {}, {unit}", curve.name).trim_start(), Right);
    }
    data.column("late_s", "late, s", Right);
    data.column("mark", "began", Left);
    for (row, time) in series.time_s.iter().enumerate() {
        let mut values = vec![Value::number(*time, quantity)];
        values.extend(curves.iter().map(|(curve, _)| Value::maybe(curve.values.get(row).copied().flatten(), quantity)));
        let late = series.late_s.get(row).copied().filter(|_| series.is_late(row));
        values.push(Value::maybe(late, quantity));
        let since = row.checked_sub(1).map_or(f64::MIN, |before| series.time_s[before]);
        let began = series.marks.iter().filter(|mark| mark.time_s > since && mark.time_s <= *time);
        values.push(Value::text(began.map(|mark| mark.what.as_str()).collect::<Vec<_>>().join("; ")));
        data.row(values);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_record::Column;

    fn series(n: usize) -> Series {
        let values = (0..n).map(|i| if i == n / 2 { Some(9e6) } else { Some(1e6) }).collect();
        Series {
            interval_s: 1.0,
            time_s: (0..n).map(|i| i as f64).collect(),
            late_s: vec![0.0; n],
            columns: vec![Column { name: "disk.vda.read_bytes_per_s".to_owned(), values }],
            ..Series::default()
        }
    }

    #[test]
    fn a_peak_of_one_tick_survives_the_thinning() {
        let series = series(100_000);
        let panels = panels(&series, &[]);
        let points = points(&series, &panels, 320);
        assert!(points.len() <= 320);
        let highest = points.iter().filter_map(|point| point.ranges[0]).map(|(_, high)| high).fold(0.0, f64::max);
        assert_eq!(highest, 9.0);
    }

    #[test]
    fn unknown_values_leave_a_gap() {
        let mut series = series(4);
        series.columns[0].values[1] = None;
        let panels = panels(&series, &[]);
        let points = points(&series, &panels, 10);
        let scale = Scale::between(0.0, 10.0);
        assert_eq!(pieces(&points, 0, &scale, &scale).len(), 2);
    }

    #[test]
    fn cells_are_named_as_people_say_them() {
        assert_eq!(short("ingest/read_only=false/threads=4/tier=hdd"), "hdd, decode, 4 threads");
        assert_eq!(short("warm-up"), "warm-up");
    }

    #[test]
    fn idle_disks_give_way_to_busy_ones() {
        let mut series = series(4);
        series.columns.push(Column { name: "disk.loop0.read_bytes_per_s".to_owned(), values: vec![Some(0.0); 4] });
        assert_eq!(busiest_disks(&series), ["vda"]);
    }
}
