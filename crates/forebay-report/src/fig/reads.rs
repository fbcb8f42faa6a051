//! Megabytes read a second over time: a panel a level of the axis, an area a level of the series, time alike in all.
//!
//! The last series, which has most batches made ahead, is filled; the others are outlines on top of it. A long run is
//! drawn by the mean of neighbouring ticks, which keeps the bytes that an area stands for.

use forebay_record::{Reads, StudyCell, TrainCell, WorkloadCell};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::grid::Grid;
use crate::level;
use crate::markup::Markup;
use crate::number::{quantity, seconds, tick};
use crate::palette;
use crate::svg::{Anchor, Area, Canvas, FONT, Px, Svg, Tip};
use crate::table::Align::{Left, Right};

use super::bars::level_title;
use super::{Context, Drawn, Key, axes, bins, both};

/// Ticks along the axis of a desk's and of a phone's picture.
const MAX_TICKS: (usize, usize) = (200, 90);
/// Panels whose highest rates differ by more than this have scales of their own.
const FAR_APART: f64 = 5.0;
const PANEL: f64 = 104.0;
const TITLE: f64 = 36.0;

/// What a cell read when.
struct Curve<'a> {
    cell: &'a StudyCell,
    reads: &'a Reads,
    /// The place of its series.
    series: usize,
}

/// The curves of a level of the axis.
struct Panel<'a> {
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
    if n_ticks > MAX_TICKS.0 {
        remarks.push(format!(
            "{} ticks are more than the picture has room for; it shows means of neighbours, the data below has all.",
            forebay_units::group_digits(n_ticks as u64)
        ));
    }
    Drawn {
        data: data(&panels),
        caption: caption(&panels),
        reading:
            "Bytes are counted where they are moved, in the run nearest to the median; all panels have the same time \
                  axis."
                .to_owned()
                + if own_scales(&panels) { " Each panel has a scale of its own." } else { "" },
        remarks,
        legend_title: level_title(&grid),
        legend: legend(&grid),
        pictures: both(|canvas| draw(canvas, &panels, grid.series.len(), &context.spec.title)),
        ..Drawn::default()
    }
}

fn panels<'a>(grid: &Grid<'a>) -> Vec<Panel<'a>> {
    let sound = |reads: &&Reads| {
        let finite = reads.mb.iter().all(|mb| mb.is_finite() && *mb >= 0.0);
        finite && reads.every_s > 0.0 && !reads.mb.is_empty()
    };
    let panel = |x: usize| {
        let curve = |series: usize| {
            let cell = grid.cell(series, x).filter(|cell| cell.error.is_none())?;
            let of_train = cell.measured_one::<TrainCell>().and_then(|train| train.reads.as_ref());
            let reads = of_train.or_else(|| cell.measured_one::<WorkloadCell>()?.reads.as_ref()).filter(sound)?;
            Some(Curve { cell, reads, series })
        };
        let name = grid.x_factor.zip(grid.cells.iter().find_map(|cell| {
            let factor = grid.x_factor?;
            cell.level(factor).filter(|level| level::bare(factor, level) == grid.xs[x].name)
        }));
        let name = name.map_or(String::new(), |(factor, level)| level::named(factor, level));
        Panel { name, curves: (0..grid.series.len()).filter_map(curve).collect() }
    };
    (0..grid.xs.len()).map(panel).filter(|panel| !panel.curves.is_empty()).collect()
}

fn curves<'a>(panels: &'a [Panel<'a>]) -> impl Iterator<Item = &'a Curve<'a>> {
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
fn span_s(panels: &[Panel<'_>], most: usize) -> f64 {
    let every = curves(panels).map(|curve| curve.reads.every_s).fold(0.0, f64::max);
    let end = curves(panels).map(Curve::end_s).fold(0.0, f64::max);
    every * (end / every / most as f64).ceil().max(1.0)
}

fn highest(panel: &Panel<'_>, span_s: f64) -> f64 {
    panel.curves.iter().flat_map(|curve| curve.rates(span_s)).fold(0.0, f64::max)
}

fn own_scales(panels: &[Panel<'_>]) -> bool {
    let span_s = span_s(panels, MAX_TICKS.0);
    let highs = || panels.iter().map(|panel| highest(panel, span_s));
    highs().fold(0.0, f64::max) > FAR_APART * highs().fold(f64::MAX, f64::min)
}

fn draw(canvas: Canvas, panels: &[Panel<'_>], n_series: usize, label: &str) -> Markup {
    let span_s = span_s(panels, if canvas.narrow { MAX_TICKS.1 } else { MAX_TICKS.0 });
    let end = curves(panels).map(Curve::end_s).fold(0.0, f64::max);
    let all = panels.iter().map(|panel| highest(panel, span_s)).fold(0.0, f64::max);
    let own = own_scales(panels);
    // A single panel needs no name.
    let title = if panels.len() > 1 { TITLE } else { 8.0 };
    let height = 22.0 + panels.len() as f64 * (PANEL + title) + 42.0;
    let (left, right) = (50.0, canvas.width - 10.0);
    let x = Scale::between(0.0, end).over(left, right);
    let mut svg = Svg::new(canvas, height);
    svg.text("tt", Anchor::Start, (2.0, FONT), "MB read per second");
    let mut top = 22.0;
    for panel in panels {
        let plot = Area { left, top: top + title, right, bottom: top + title + PANEL };
        let y = Scale::from_zero(if own { highest(panel, span_s) } else { all }).over(plot.bottom, plot.top);
        for value in y.ticks(3) {
            svg.line("gr", (plot.left, y.at(value)), (plot.right, y.at(value)));
            svg.text("tk", Anchor::End, (plot.left - 7.0, y.at(value) + FONT * 0.35), tick(value));
        }
        if panels.len() > 1 {
            svg.text("tt ink", Anchor::Start, (2.0, plot.top - 14.0), &panel.name);
        }
        for curve in panel.curves.iter().rev() {
            area(&mut svg, curve, span_s, n_series, &x, &y);
        }
        hits(&mut svg, panel, span_s, &x, plot);
        top += title + PANEL;
    }
    let plot = Area { left, top: 0.0, right, bottom: top };
    axes::bottom(&mut svg, plot, &x, if canvas.narrow { 5 } else { 10 }, "Seconds since the start", tick);
    svg.finish(label)
}

/// The class of a series' area: the last is filled.
fn class(series: usize, n_series: usize) -> String {
    if series + 1 == n_series { "ahead".to_owned() } else { format!("outline {}l", palette::hue(series)) }
}

fn area(svg: &mut Svg, curve: &Curve<'_>, span_s: f64, n_series: usize, x: &Scale, y: &Scale) {
    let mut d = format!("M{} {}", Px(x.at(0.0)), Px(y.at(0.0)));
    let end = curve.end_s();
    for (i, rate) in curve.rates(span_s).into_iter().enumerate() {
        d.push_str(&format!("V{}H{}", Px(y.at(rate)), Px(x.at(((i + 1) as f64 * span_s).min(end)))));
    }
    d.push_str(&format!("V{}Z", Px(y.at(0.0))));
    svg.path(&class(curve.series, n_series), &d);
}

/// Invisible columns that say the values of a tick.
fn hits(svg: &mut Svg, panel: &Panel<'_>, span_s: f64, x: &Scale, plot: Area) {
    let rates: Vec<(&Curve<'_>, Vec<f64>)> = panel.curves.iter().map(|curve| (curve, curve.rates(span_s))).collect();
    let n = rates.iter().map(|(_, rates)| rates.len()).max().unwrap_or(0);
    for i in 0..n {
        let from = i as f64 * span_s;
        let mut text = format!("{} to {}", seconds(from), seconds(from + span_s));
        let mut values = Vec::new();
        for (curve, rates) in &rates {
            let shown = rates.get(i).map_or("–".to_owned(), |rate| format!("{} MB/s", quantity(*rate)));
            text.push_str(&format!("\n{}: {shown}", level::all(&curve.cell.factors)));
            values.push(rates.get(i).map_or("–".to_owned(), |rate| format!("{}", (rate * 1000.0).round() / 1000.0)));
        }
        let tip = Tip::new(text).with("panel", &panel.name).with("time", from).with("values", values.join(" "));
        let area = Area { left: x.at(from), right: x.at(from + span_s).max(x.at(from) + 1.0), ..plot };
        svg.mark(&tip, |svg| svg.rect("hit", area));
    }
}

fn legend(grid: &Grid<'_>) -> Vec<Key> {
    let n = grid.series.len();
    if n < 2 {
        return Vec::new();
    }
    let key = |(i, place): (usize, &crate::grid::Place)| {
        let area = Area { left: 1.0, top: 1.0, right: 17.0, bottom: 13.0 };
        Key { sample: super::sample(|svg| svg.rect(&class(i, n), area)), name: place.name.clone() }
    };
    grid.series.iter().enumerate().map(key).collect()
}

/// The highest rate.
fn caption(panels: &[Panel<'_>]) -> String {
    let peak = |curve: &Curve<'_>| curve.reads.mb.iter().copied().fold(0.0, f64::max) / curve.reads.every_s;
    let highest = curves(panels).max_by(|a, b| peak(a).total_cmp(&peak(b)));
    highest.map_or(String::new(), |curve| {
        format!("The highest rate is {} MB/s, {}.", quantity(peak(curve)), level::all(&curve.cell.factors))
    })
}

fn data(panels: &[Panel<'_>]) -> Data {
    let mut data = Data::new(&[("at", "cell", Left), ("time_s", "from, s", Right), ("mb_per_s", "MB/s", Right)]);
    for curve in curves(panels) {
        for (i, mb) in curve.reads.mb.iter().enumerate() {
            data.row(vec![
                Value::text(level::all(&curve.cell.factors)),
                Value::number(i as f64 * curve.reads.every_s, |s| tick((s * 1e3).round() / 1e3)),
                Value::number(mb / curve.reads.every_s, quantity),
            ]);
        }
    }
    data
}
