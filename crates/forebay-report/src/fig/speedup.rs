//! How a rate grows with threads, beside the ideal and beside what others published.

use forebay_record::{SPEED_UP, StudyCell};
use forebay_units::{RatioInterval, ratio_interval};

use crate::number::{given, times};

use super::{
    Columns, Context, Data, Drawn, Grid, Key, Line, Panel, Pen, Plot, Point, Scale, Tip, X, Y, both, level, metric,
    tick,
};

struct Gain<'a> {
    cell: &'a StudyCell,
    series: usize,
    /// The number along the axis, or the place where the levels are names.
    x: f64,
    ratio: f64,
    interval: Option<RatioInterval>,
    published: Option<(f64, &'a str)>,
}

struct Gains<'a> {
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
            None => remarks
                .push(format!("{} has no value at the first level, so it has no speed-up.", grid.series[series].name)),
        }
    }
    if grid.xs.len() < 2 || gains.is_empty() {
        return Drawn::nothing("A speed-up needs values at the first level and at least one other.");
    }
    let plot = Gains { grid, gains, numeric };
    let names = plot.grid.series_names();
    let mut legend = Key::series(&names);
    let has_published = plot.gains.iter().any(|gain| gain.published.is_some());
    legend.extend(has_published.then(|| Key::marker("pub", 0, "published")));
    legend.extend(numeric.then(|| Key::line("ideal", "ideal")));
    Drawn {
        data: plot.data(quantity),
        caption: plot.best(),
        reading: plot.reading(quantity),
        remarks,
        legend_title: plot.grid.legend_title(),
        legend,
        pictures: both(&context.spec.title, |_| plot.plot()),
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
                .published_for(cell, SPEED_UP.name)
                .map(|row| (row.reference.value, row.reference.source.as_str())),
        })
    };
    Some(grid.line(series).filter_map(gain).filter(|gain| gain.ratio > 0.0).collect())
}

impl Gains<'_> {
    fn plot(&self) -> Plot<'_> {
        let (low, high) = self.range();
        let y = Y::at(Scale::log_between(low, high), ticks(low, high), |value| format!("{}×", tick(value)));
        let over = self.grid.x_factor.map(level::words).unwrap_or_default();
        let title = format!("Speed-up over {} {over}", self.grid.xs[0].name)
            .replace(" 1 threads", " 1 thread")
            .replace(" 1 readers", " 1 reader");
        Plot::new(title, self.x(), vec![Panel { lines: self.lines(), ..Panel::new(y, |pen| self.draw(pen)) }])
    }

    fn x(&self) -> X {
        let (first, last) = self.ends();
        let scale = if self.numeric { Scale::log_between(first, last) } else { Scale::between(first, last) };
        let levels = self.grid.xs.iter().enumerate().map(|(i, place)| {
            let at = if self.numeric { place.number.unwrap_or(1.0) } else { i as f64 + 1.0 };
            (at, place.name.clone())
        });
        X::levels(scale, levels.collect(), self.grid.x_title())
    }

    /// The first and the last place along the axis.
    fn ends(&self) -> (f64, f64) {
        let xs = || self.gains.iter().map(|gain| gain.x);
        (xs().fold(f64::MAX, f64::min), xs().fold(0.0, f64::max))
    }

    fn draw(&self, pen: &mut Pen<'_>) {
        let (first, last) = self.ends();
        if self.numeric {
            let end = (self.range().1 * first).min(last);
            pen.straight("ideal", (first, 1.0), (end, end / first));
        }
    }

    fn lines(&self) -> Vec<Line> {
        let line = |(series, place): (usize, &crate::grid::Place)| {
            let gains = self.gains.iter().filter(|gain| gain.series == series);
            Line { aside: self.beside(series), ..Line::new(&place.name, gains.map(|gain| self.point(gain))) }
        };
        self.grid.series.iter().enumerate().map(line).collect()
    }

    fn point(&self, gain: &Gain<'_>) -> Point {
        let mut text = format!("{}: {}", level::all(&gain.cell.factors), times(gain.ratio));
        if let Some(interval) = gain.interval {
            text.push_str(&format!(" (95 % interval {} to {})", times(interval.low), times(interval.high)));
        }
        if let Some((value, source)) = gain.published {
            text.push_str(&format!("; published {}× ({source})", given(value)));
        }
        let tip = Tip::of(gain.cell, text)
            .with("metric", SPEED_UP.name)
            .with("value", gain.ratio)
            .with("series", &self.grid.series[gain.series].name)
            .with("x", gain.x);
        let range = gain.interval.map(|interval| (interval.low, interval.high));
        let published = gain.published.map(|(value, source)| {
            let tip = Tip::of(gain.cell, format!("published: {}× ({source})", given(value)));
            (value, tip.with("published", value), format!("published {}×", given(value)))
        });
        Point { x: gain.x, y: gain.ratio, range, tip: Some(tip), published }
    }

    /// How far a series' points stand beside their level, so that intervals of several series do not hide each other.
    fn beside(&self, series: usize) -> f64 {
        let with_interval = self.gains.iter().any(|gain| gain.interval.is_some());
        let middle = (self.grid.series.len() as f64 - 1.0) / 2.0;
        if with_interval { (series as f64 - middle) * 3.5 } else { 0.0 }
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
            Some(interval) => {
                format!("No clear gain; the largest speed-up is {}, {at}.", with_interval(gain.ratio, interval))
            }
            None => format!("Largest speed-up: {}, {at}.", times(gain.ratio)),
        }
    }

    fn reading(&self, quantity: &str) -> String {
        let mut text = format!("Each line is {} over its own value at the first level; ", metric::unit(quantity));
        if self.gains.iter().any(|gain| gain.interval.is_some()) {
            text.push_str("whiskers are 95 % confidence intervals of that ratio");
            let (low, high) = self.range();
            let scale = Scale::log_between(low, high);
            let is_cut = |gain: &Gain<'_>| gain.interval.is_some_and(|i| scale.cuts(i.low) || scale.cuts(i.high));
            text.push_str(if self.gains.iter().any(is_cut) {
                ", with an arrow head if they extend beyond the axis; "
            } else {
                "; "
            });
        }
        text.push_str(if self.numeric {
            "both axes are logarithmic, so the ideal is a straight line."
        } else {
            "levels are in the order of the study, and the y-axis is logarithmic."
        });
        text
    }

    fn data(&self, quantity: &str) -> Data {
        let value = |gain: &&Gain<'_>| gain.cell.metric(quantity).map(|metric| metric.value);
        let of_published = |value| format!("{}×", given(value));
        Columns::<&Gain<'_>>::new()
            .text("at", "cell", |gain| level::all(&gain.cell.factors))
            .number(quantity, &metric::unit(quantity), metric::show(quantity), value)
            .number(SPEED_UP.name, "speed-up", times, |gain| gain.ratio)
            .number("low", "95 % from", times, |gain| gain.interval.map(|interval| interval.low))
            .number("high", "to", times, |gain| gain.interval.map(|interval| interval.high))
            .number("published", "published", of_published, |gain| gain.published.map(|(value, _)| value))
            .text("source", "source", |gain| gain.published.map_or("", |(_, source)| source))
            .of(&self.gains)
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
