//! How a rate grows with threads, beside the ideal and beside what others published.

use forebay_record::StudyCell;
use forebay_units::{RatioInterval, ratio_interval};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::grid::Grid;
use crate::level;
use crate::markup::Markup;
use crate::metric;
use crate::number::{given, times};
use crate::palette;
use crate::svg::{Anchor, Area, Canvas, FONT, Svg, Tip, text_width};
use crate::table::Align::{Left, Right};

use super::lines::{self, Line, Point};
use super::{Context, Drawn, Key, both};

/// A measured speed-up.
struct Gain<'a> {
    cell: &'a StudyCell,
    series: usize,
    /// The number along the axis, or the place where the levels are names.
    x: f64,
    ratio: f64,
    interval: Option<RatioInterval>,
    published: Option<(f64, &'a str)>,
}

/// Everything the picture is drawn from.
struct Plot<'a> {
    grid: Grid<'a>,
    gains: Vec<Gain<'a>>,
    /// Whether the levels along the axis are positive numbers, for which there is an ideal.
    numeric: bool,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let grid = Grid::for_lines(context.run, context.spec);
    if grid.cells.is_empty() {
        return Drawn::nothing("No cell of this figure has been measured yet.");
    }
    let numeric = is_numeric(&grid);
    let quantity = context.metric();
    let mut remarks = grid.remarks.clone();
    let mut gains = Vec::new();
    for series in 0..grid.series.len() {
        match of_series(context, &grid, series, quantity, numeric) {
            Some(found) => gains.extend(found),
            None => {
                remarks.push(format!("{} has no value at the first level to compare with.", grid.series[series].name))
            }
        }
    }
    if grid.xs.len() < 2 || gains.is_empty() {
        return Drawn::nothing("A speed-up needs at least two levels that were measured, the first among them.");
    }
    let plot = Plot { grid, gains, numeric };
    let mut legend = if plot.grid.series.len() > 1 { lines::legend(&plot.lines(None)) } else { Vec::new() };
    if plot.gains.iter().any(|gain| gain.published.is_some()) {
        let sample = super::sample(|svg| palette::marker(svg, "pub", 0, (9.0, 7.0), 5.5));
        legend.push(Key { sample, name: "published".to_owned() });
    }
    if numeric {
        legend.push(Key {
            sample: super::sample(|svg| svg.line("ideal", (0.0, 7.0), (18.0, 7.0))),
            name: "ideal".to_owned(),
        });
    }
    Drawn {
        data: plot.data(quantity),
        caption: plot.best(),
        reading: plot.reading(quantity),
        remarks,
        legend_title: super::bars::level_title(&plot.grid),
        legend,
        pictures: both(|canvas| plot.draw(canvas, &context.spec.title)),
        ..Drawn::default()
    }
}

/// Whether the levels along the axis are positive numbers in their order.
fn is_numeric(grid: &Grid<'_>) -> bool {
    let numbers: Option<Vec<f64>> = grid.xs.iter().map(|place| place.number.filter(|number| *number > 0.0)).collect();
    numbers.is_some_and(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1]))
}

fn of_series<'a>(
    context: &'a Context<'_>,
    grid: &Grid<'a>,
    series: usize,
    quantity: &str,
    numeric: bool,
) -> Option<Vec<Gain<'a>>> {
    let (_, base) = grid.line(series).next().filter(|(x, _)| *x == 0)?;
    let base = base.metric(quantity).filter(|metric| metric.value > 0.0)?;
    let gain = |(x, cell): (usize, &'a StudyCell)| {
        let found = cell.metric(quantity)?;
        // Half the time is twice the speed.
        let is_cost = metric::is_cost(quantity);
        let (from, to) = if is_cost { (&found.repeats, &base.repeats) } else { (&base.repeats, &found.repeats) };
        Some(Gain {
            cell,
            series,
            x: if numeric { grid.xs[x].number? } else { x as f64 + 1.0 },
            ratio: if is_cost { base.value / found.value } else { found.value / base.value },
            interval: if x == 0 { None } else { ratio_interval(from, to, 0.95) },
            published: context
                .published_for(cell, "speed_up")
                .map(|row| (row.reference.value, row.reference.source.as_str())),
        })
    };
    Some(grid.line(series).filter_map(gain).filter(|gain| gain.ratio > 0.0).collect())
}

impl Plot<'_> {
    fn draw(&self, canvas: Canvas, label: &str) -> Markup {
        let names = self.lines(None);
        let height = if canvas.narrow { 320.0 } else { 380.0 };
        let right = canvas.width - lines::name_room(canvas, &names);
        let (low, high) = self.range();
        let mark = |value: f64| format!("{}×", crate::number::tick(value));
        let left = ticks(low, high).into_iter().map(|value| text_width(&mark(value), FONT)).fold(0.0, f64::max) + 12.0;
        let area = Area { left, top: 30.0, right, bottom: height - 44.0 };
        let y = Scale::log_between(low, high).over(area.bottom, area.top);
        let last = self.gains.iter().map(|gain| gain.x).fold(0.0, f64::max);
        let first = self.gains.iter().map(|gain| gain.x).fold(f64::MAX, f64::min);
        let x = if self.numeric { Scale::log_between(first, last) } else { Scale::between(first, last) };
        let x = x.over(area.left + 14.0, area.right - 14.0);

        let mut svg = Svg::new(canvas, height);
        for value in ticks(low, high) {
            svg.line("gr", (area.left, y.at(value)), (area.right, y.at(value)));
            svg.text("tk", Anchor::End, (area.left - 7.0, y.at(value) + 4.0), mark(value));
        }
        let over = self.grid.x_factor.map(level::words).unwrap_or_default();
        svg.text(
            "tt",
            Anchor::Start,
            (2.0, 12.0),
            format!("Speed-up over {} {over}", self.grid.xs[0].name)
                .replace(" 1 threads", " 1 thread")
                .replace(" 1 readers", " 1 reader"),
        );
        self.x_axis(&mut svg, area, &x);
        if self.numeric {
            let end = (high * first).min(last);
            let ends = ((x.at(first), y.at(1.0)), (x.at(end), y.at(end / first)));
            svg.line("ideal", ends.0, ends.1);
            svg.take_line(ends.0, ends.1);
        }
        self.published(&mut svg, &x, &y);
        lines::draw(&mut svg, canvas, area, &self.lines(Some((&x, &y))));
        self.published_labels(&mut svg, area, &x, &y);
        svg.finish(label)
    }

    fn x_axis(&self, svg: &mut Svg, area: Area, x: &Scale) {
        let mut free_from = f64::MIN;
        for (i, place) in self.grid.xs.iter().enumerate() {
            let at = x.at(if self.numeric { place.number.unwrap_or(1.0) } else { i as f64 + 1.0 });
            svg.line("ax", (at, area.bottom), (at, area.bottom + 4.0));
            let half = text_width(&place.name, FONT) / 2.0;
            if at - half > free_from {
                svg.text("tk strong", Anchor::Middle, (at, area.bottom + 17.0), &place.name);
                free_from = at + half + 4.0;
            }
        }
        svg.line("ax", (area.left, area.bottom), (area.right, area.bottom));
        let title = self.grid.x_factor.map(level::title).unwrap_or_default();
        svg.text("tt", Anchor::Middle, ((area.left + area.right) / 2.0, area.bottom + 36.0), title);
    }

    /// Lines in places, or without points for their names alone.
    fn lines(&self, scales: Option<(&Scale, &Scale)>) -> Vec<Line> {
        let of = |series: usize| {
            let gains = self.gains.iter().filter(move |gain| gain.series == series);
            let points = gains.filter_map(|gain| scales.map(|(x, y)| self.point(gain, x, y)));
            Line { name: self.grid.series[series].name.clone(), points: points.collect() }
        };
        (0..self.grid.series.len()).map(of).collect()
    }

    fn point(&self, gain: &Gain<'_>, x: &Scale, y: &Scale) -> Point {
        let mut text = format!("{}: {}", level::all(&gain.cell.factors), times(gain.ratio));
        if let Some(interval) = gain.interval {
            text.push_str(&format!(" (95 % interval {} to {})", times(interval.low), times(interval.high)));
        }
        if let Some((value, source)) = gain.published {
            text.push_str(&format!("; published {}× ({source})", given(value)));
        }
        let tip = Tip::new(text)
            .with("cell", &gain.cell.id)
            .with("metric", "speed_up")
            .with("value", gain.ratio)
            .with("series", &self.grid.series[gain.series].name)
            .with("x", gain.x);
        let range = gain.interval.map(|interval| (y.at(interval.low), y.at(interval.high)));
        let cut = gain.interval.map_or((false, false), |interval| (y.cuts(interval.low), y.cuts(interval.high)));
        Point { x: x.at(gain.x) + self.beside(gain), y: y.at(gain.ratio), range, cut, tip: Some(tip) }
    }

    /// How far a series' points stand beside their level, so that intervals of several series do not hide each other.
    fn beside(&self, gain: &Gain<'_>) -> f64 {
        let with_interval = self.gains.iter().any(|gain| gain.interval.is_some());
        let middle = (self.grid.series.len() as f64 - 1.0) / 2.0;
        if with_interval { (gain.series as f64 - middle) * 3.5 } else { 0.0 }
    }

    fn published(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        for gain in &self.gains {
            let Some((value, source)) = gain.published else { continue };
            let tip = Tip::new(format!("published: {}× ({source})", given(value)))
                .with("published", value)
                .with("cell", &gain.cell.id);
            let place = (x.at(gain.x) + self.beside(gain), y.at(value));
            let class = format!("pub {}l", palette::hue(gain.series));
            svg.mark(&tip, |svg| palette::marker(svg, &class, gain.series, place, 7.5));
            svg.take(Area { left: place.0 - 8.0, top: place.1 - 8.0, right: place.0 + 8.0, bottom: place.1 + 8.0 });
        }
    }

    fn published_labels(&self, svg: &mut Svg, area: Area, x: &Scale, y: &Scale) {
        for gain in &self.gains {
            let Some((value, _)) = gain.published else { continue };
            let within = Area { top: area.top - 14.0, ..area };
            let class = format!("v {}t", palette::hue(gain.series));
            svg.label(
                &class,
                (x.at(gain.x) + self.beside(gain), y.at(value)),
                11.0,
                within,
                &format!("published {}×", given(value)),
            );
        }
    }

    fn range(&self) -> (f64, f64) {
        let intervals =
            self.gains.iter().filter_map(|gain| gain.interval).flat_map(|interval| [interval.low, interval.high]);
        // An interval of two repeats can be very wide; it may reach beyond the picture.
        let ratios: Vec<f64> = self.gains.iter().map(|gain| gain.ratio).collect();
        let (least, most) = ratios.iter().fold((1.0_f64, 1.0_f64), |(least, most), r| (least.min(*r), most.max(*r)));
        let near = intervals.filter(|value| *value >= least / 1.3 && *value <= most * 1.3);
        let published =
            self.gains.iter().filter_map(|gain| gain.published.map(|(value, _)| value)).filter(|value| *value > 0.0);
        let values = ratios.iter().copied().chain(near).chain(published);
        let (low, high) = values.fold((1.0_f64, 1.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        (low / 1.08, (high * 1.1).max(1.5))
    }

    fn best(&self) -> String {
        let Some(gain) = self.gains.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)) else { return String::new() };
        let at = level::all(&gain.cell.factors);
        match gain.interval.filter(|interval| interval.includes_one()) {
            Some(interval) => format!("No clear gain; largest: {}, {at}.", with_interval(gain.ratio, interval)),
            None => format!("Largest: {}, {at}.", times(gain.ratio)),
        }
    }

    fn reading(&self, quantity: &str) -> String {
        let mut text = format!("Each line is {} over its own value at the first level; ", metric::unit(quantity));
        if self.gains.iter().any(|gain| gain.interval.is_some()) {
            text.push_str("whiskers are 95 % confidence intervals of that ratio");
            let (low, high) = self.range();
            let scale = Scale::log_between(low, high);
            let is_cut = |gain: &Gain<'_>| gain.interval.is_some_and(|i| scale.cuts(i.low) || scale.cuts(i.high));
            text.push_str(if self.gains.iter().any(is_cut) { ", with an arrow head where they go on; " } else { "; " });
        }
        text.push_str(if self.numeric {
            "both scales are logarithmic, so that the ideal is a straight line."
        } else {
            "the levels stand side by side in the order of the study, and the upright scale is logarithmic."
        });
        text
    }

    fn data(&self, quantity: &str) -> Data {
        let mut data = Data::new(&[
            ("at", "cell", Left),
            (quantity, &metric::unit(quantity), Right),
            ("speed_up", "speed-up", Right),
            ("low", "95 % from", Right),
            ("high", "to", Right),
            ("published", "published", Right),
            ("source", "source", Left),
        ]);
        for gain in &self.gains {
            data.row(vec![
                Value::text(level::all(&gain.cell.factors)),
                Value::maybe(gain.cell.metric(quantity).map(|metric| metric.value), metric::show(quantity)),
                Value::number(gain.ratio, times),
                Value::maybe(gain.interval.map(|interval| interval.low), times),
                Value::maybe(gain.interval.map(|interval| interval.high), times),
                Value::maybe(gain.published.map(|(value, _)| value), |value| format!("{}×", given(value))),
                Value::text(gain.published.map_or("", |(_, source)| source)),
            ]);
        }
        data
    }
}

/// A ratio with its interval: "1.20× (0.80× to 1.80×)".
fn with_interval(ratio: f64, interval: RatioInterval) -> String {
    format!("{} ({} to {})", times(ratio), times(interval.low), times(interval.high))
}

/// Doublings where there are several, halves of one where there is hardly one.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let candidates: Vec<f64> = if high / low > 3.2 {
        (-6..12).map(|power| 2f64.powi(power)).collect()
    } else {
        let step = if high / low > 1.6 { 0.5 } else { 0.1 };
        (1..60).map(|i| f64::from(i) * step).collect()
    };
    candidates.into_iter().filter(|value| *value >= low && *value <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_double_over_a_wide_range() {
        assert_eq!(ticks(0.9, 8.4), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(ticks(0.95, 2.6), [1.0, 1.5, 2.0, 2.5]);
    }
}
