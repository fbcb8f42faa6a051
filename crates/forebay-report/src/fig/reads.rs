//! Megabytes read a second over time: a panel a level of the axis, an area a level of the series, time alike in all.
//!
//! The last series, which has most batches made ahead, is filled; the others are outlines on top of it. A long run is
//! drawn by the mean of neighbouring ticks, which keeps the bytes that an area stands for.

use forebay_record::{Reads, StudyCell};

use crate::number::seconds;

use super::bins::{self, MAX_TICKS};
use super::{
    Canvas, Columns, Context, Data, Drawn, Grid, Key, Panel, Plot, Scale, Tip, X, Y, both, level, palette, quantity,
    tick,
};

const PANEL: f64 = 104.0;

/// What a cell read when.
struct Curve<'a> {
    cell: &'a StudyCell,
    reads: &'a Reads,
    /// The place of its series.
    series: usize,
}

/// The curves of a level of the axis.
struct Level<'a> {
    name: String,
    curves: Vec<Curve<'a>>,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let grid = Grid::for_lines(context.run, context.spec);
    let panels = panels(&grid);
    if panels.is_empty() {
        return Drawn::nothing("No cell of this figure kept what it read when.");
    }
    let n_ticks = curves(&panels).map(|curve| curve.reads.mb.len()).max().unwrap_or(0);
    let mut remarks = grid.remarks.clone();
    remarks.extend(bins::means(n_ticks));
    Drawn {
        data: data(&panels),
        caption: caption(&panels),
        reading:
            "Bytes are counted where they are moved, in the run nearest to the median; all panels have the same time \
                  axis."
                .to_owned()
                + if own_scales(&panels) { " Each panel has a scale of its own." } else { "" },
        remarks,
        legend_title: grid.legend_title(),
        legend: legend(&grid),
        pictures: both(&context.spec.title, |canvas| plot(canvas, &panels, grid.series.len())),
        ..Drawn::default()
    }
}

fn panels<'a>(grid: &Grid<'a>) -> Vec<Level<'a>> {
    let sound = |reads: &&Reads| {
        let finite = reads.mb.iter().all(|mb| mb.is_finite() && *mb >= 0.0);
        finite && reads.every_s > 0.0 && !reads.mb.is_empty()
    };
    let panel = |x: usize| {
        let curve = |series: usize| {
            let cell = grid.cell(series, x).filter(|cell| cell.error.is_none())?;
            let of_train = cell.train.as_ref().and_then(|train| train.reads.as_ref());
            let reads = of_train.or_else(|| cell.workload.as_ref()?.reads.as_ref()).filter(sound)?;
            Some(Curve { cell, reads, series })
        };
        let name = grid.x_factor.zip(grid.cells.iter().find_map(|cell| {
            let factor = grid.x_factor?;
            cell.level(factor).filter(|level| level::bare(factor, level) == grid.xs[x].name)
        }));
        let name = name.map_or(String::new(), |(factor, level)| level::named(factor, level));
        Level { name, curves: (0..grid.series.len()).filter_map(curve).collect() }
    };
    (0..grid.xs.len()).map(panel).filter(|panel| !panel.curves.is_empty()).collect()
}

fn curves<'a>(panels: &'a [Level<'a>]) -> impl Iterator<Item = &'a Curve<'a>> {
    panels.iter().flat_map(|panel| &panel.curves)
}

impl Curve<'_> {
    fn end_s(&self) -> f64 {
        self.reads.every_s * self.reads.mb.len() as f64
    }

    /// The mean rate in every span of so many seconds.
    fn rates(&self, span_s: f64) -> Vec<f64> {
        bins::rates(&self.reads.mb, self.reads.every_s, span_s)
    }
}

/// The span that a picture's tick stands for.
fn span_s(panels: &[Level<'_>], most: usize) -> f64 {
    bins::span_s(curves(panels).map(|curve| (curve.reads.every_s, curve.end_s())), most)
}

fn highest(panels: &[Level<'_>], span_s: f64) -> Vec<f64> {
    let of = |panel: &Level<'_>| panel.curves.iter().flat_map(|curve| curve.rates(span_s)).fold(0.0, f64::max);
    panels.iter().map(of).collect()
}

fn own_scales(panels: &[Level<'_>]) -> bool {
    bins::own_scales(&highest(panels, span_s(panels, MAX_TICKS.0)))
}

fn plot<'a>(canvas: Canvas, levels: &'a [Level<'_>], n_series: usize) -> Plot<'a> {
    let span_s = span_s(levels, if canvas.narrow { MAX_TICKS.1 } else { MAX_TICKS.0 });
    let end = curves(levels).map(Curve::end_s).fold(0.0, f64::max);
    let highs = highest(levels, span_s);
    let all = highs.iter().copied().fold(0.0, f64::max);
    let own = own_scales(levels);
    let panel = |(level, high): (&'a Level<'_>, f64)| {
        let y = Y::new(Scale::from_zero(if own { high } else { all }), 3, tick);
        let marks = move |pen: &mut super::Pen<'_>| {
            for curve in level.curves.iter().rev() {
                pen.steps(&class(curve.series, n_series), &curve.rates(span_s), span_s, curve.end_s());
            }
        };
        // A single panel needs no name.
        let name = if levels.len() > 1 { level.name.as_str() } else { "" };
        Panel::new(y, marks).titled(name).high(PANEL).columns(1, hits(level, span_s))
    };
    let x = X::over_time(canvas, Scale::between(0.0, end), "Seconds since the start");
    Plot::new("MB read per second", x, levels.iter().zip(highs).map(panel).collect())
}

/// The class of a series' area: the last is filled.
fn class(series: usize, n_series: usize) -> String {
    if series + 1 == n_series { "ahead".to_owned() } else { format!("outline {}l", palette::hue(series)) }
}

/// The values of every tick.
fn hits(panel: &Level<'_>, span_s: f64) -> Vec<(f64, f64, Tip)> {
    let rates: Vec<(&Curve<'_>, Vec<f64>)> = panel.curves.iter().map(|curve| (curve, curve.rates(span_s))).collect();
    let n = rates.iter().map(|(_, rates)| rates.len()).max().unwrap_or(0);
    let hit = |i: usize| {
        let from = i as f64 * span_s;
        let mut text = format!("{} to {}", seconds(from), seconds(from + span_s));
        let mut values = Vec::new();
        for (curve, rates) in &rates {
            let shown = rates.get(i).map_or("–".to_owned(), |rate| format!("{} MB/s", quantity(*rate)));
            text.push_str(&format!("\n{}: {shown}", level::all(&curve.cell.factors)));
            values.push(rates.get(i).map_or("–".to_owned(), |rate| format!("{}", (rate * 1000.0).round() / 1000.0)));
        }
        let tip = Tip::new(text).with("panel", &panel.name).with("time", from).with("values", values.join(" "));
        (from, from + span_s, tip)
    };
    (0..n).map(hit).collect()
}

fn legend(grid: &Grid<'_>) -> Vec<Key> {
    let n = grid.series.len();
    let key = |(i, place): (usize, &crate::grid::Place)| Key::swatch(&class(i, n), place.name.clone());
    grid.series.iter().enumerate().filter(|_| n > 1).map(key).collect()
}

/// The highest rate.
fn caption(panels: &[Level<'_>]) -> String {
    let peak = |curve: &Curve<'_>| curve.reads.mb.iter().copied().fold(0.0, f64::max) / curve.reads.every_s;
    let highest = curves(panels).max_by(|a, b| peak(a).total_cmp(&peak(b)));
    highest.map_or(String::new(), |curve| {
        format!("The highest rate is {} MB/s, {}.", quantity(peak(curve)), level::all(&curve.cell.factors))
    })
}

fn data(panels: &[Level<'_>]) -> Data {
    let ticks = curves(panels).flat_map(|curve| curve.reads.mb.iter().enumerate().map(move |(i, mb)| (curve, i, *mb)));
    Columns::<(&Curve<'_>, usize, f64)>::new()
        .text("at", "cell", |(curve, ..)| level::all(&curve.cell.factors))
        .number("time_s", "from, s", bins::time, |(curve, i, _)| *i as f64 * curve.reads.every_s)
        .number("mb_per_s", "MB/s", quantity, |(curve, _, mb)| mb / curve.reads.every_s)
        .of(ticks)
}
