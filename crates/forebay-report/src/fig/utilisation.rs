//! Two ways to count the same runs, as lines over the number of processes: whole epochs, and DLIO's arithmetic. What others
//! published stands beside each as a hollow mark.
//!
//! Utilisation is drawn as it is. Rates are drawn as multiples of their own value at the first level, so that a machine, or a
//! scale, of another speed shows the same shape; the data has them as they are. A level of the series has a panel of its own.
//! Along `epoch`, a run's epochs are the points.

use forebay_record::{Measurement, StudyCell, WorkloadCell};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::grid::Grid;
use crate::level;
use crate::markup::Markup;
use crate::metric;
use crate::number::{percent, tick, times};
use crate::palette;
use crate::svg::{Anchor, Area, Canvas, Svg, Tip};
use crate::table::Align::{Left, Right};
use crate::verdict;

use super::lines::{self, Line, Point};
use super::{Context, Drawn, Key, axes, bars, both};

/// What is drawn when the figure names nothing.
const METRICS: [&str; 2] = ["au_epoch", "au_dlio"];
const PANEL: f64 = 190.0;
const TITLE: f64 = 34.0;
const BELOW: f64 = 44.0;

/// A value of one way to count.
struct At<'a> {
    cell: &'a StudyCell,
    /// The place along the axis, and its name.
    x: usize,
    value: f64,
    /// What is drawn: a share, or a multiple of the first.
    drawn: f64,
    /// What is drawn of the lowest and the highest of several repeats.
    range: Option<(f64, f64)>,
    /// Published: the value, what is drawn of it, and its source.
    published: Option<(f64, f64, &'a str)>,
}

/// A way to count.
struct Counted<'a> {
    metric: &'a str,
    points: Vec<At<'a>>,
}

struct Panel<'a> {
    name: String,
    counted: Vec<Counted<'a>>,
}

struct Plot<'a> {
    xs: Vec<String>,
    x_title: String,
    y_title: &'static str,
    is_share: bool,
    panels: Vec<Panel<'a>>,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let metrics: Vec<&str> = match context.spec.metrics.as_slice() {
        [] => METRICS.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let is_share = metrics.iter().all(|name| metric::is_share(name));
    let grid = Grid::for_lines(context.run, context.spec);
    let is_by_epoch = context.spec.x.as_deref() == Some("epoch");
    let plot = if is_by_epoch { by_epoch(context, &metrics) } else { by_level(context, &grid, &metrics, is_share) };
    if plot.panels.is_empty() {
        return Drawn::nothing("No cell of this figure was run as a workload.");
    }
    let mut remarks = if is_by_epoch { Vec::new() } else { grid.remarks.clone() };
    remarks.extend(left_out(context, &grid));
    Drawn {
        data: plot.data(context),
        caption: if is_share && !is_by_epoch { verdict::of_processes(context.run, &grid.cells) } else { String::new() },
        reading: reading(is_share, is_by_epoch) + plot.of_ranges(),
        remarks,
        legend: plot.legend(),
        pictures: both(|canvas| plot.draw(canvas, &context.spec.title)),
        ..Drawn::default()
    }
}

fn reading(is_share: bool, is_by_epoch: bool) -> String {
    let what = match (is_share, is_by_epoch) {
        (true, false) => {
            "Computing over the time of whole epochs, and as DLIO counts it, without each epoch's first step."
        }
        (true, true) => {
            "The mean over accelerators, of each whole epoch and as DLIO counts it, without its first step."
        }
        (false, _) => {
            "Each line is a multiple of its own value at the first level: bytes that were moved over all the time, and what \
             DLIO prints, the configured size of the samples of all steps but two over the time without the first: of two steps an \
             epoch that is nothing. A published value is a multiple of the first one published."
        }
    };
    what.to_owned()
}

/// Cells of the figure that were planned and not run.
fn left_out(context: &Context<'_>, grid: &Grid<'_>) -> Vec<String> {
    let of = |cell: &&StudyCell| {
        let reason = cell.left_out.as_ref()?;
        Some(format!("Left out: {}: {reason}.", context.run.name_of(cell)))
    };
    grid.cells.iter().filter_map(of).collect()
}

fn by_level<'a>(context: &'a Context<'_>, grid: &Grid<'a>, metrics: &[&'a str], is_share: bool) -> Plot<'a> {
    let panel = |series: usize| {
        let counted = metrics.iter().map(|name| counted(context, grid, series, name, is_share));
        let counted: Vec<Counted<'_>> = counted.filter(|counted| !counted.points.is_empty()).collect();
        let name = if grid.series.len() > 1 { grid.series[series].name.clone() } else { String::new() };
        (!counted.is_empty()).then_some(Panel { name, counted })
    };
    Plot {
        xs: grid.xs.iter().map(|place| place.name.clone()).collect(),
        x_title: grid.x_factor.map(level::title).unwrap_or_default(),
        y_title: y_title(is_share),
        is_share,
        panels: (0..grid.series.len()).filter_map(panel).collect(),
    }
}

fn y_title(is_share: bool) -> &'static str {
    if is_share { "Accelerator utilisation in %" } else { "Throughput, times that at the first level" }
}

fn counted<'a>(context: &'a Context<'_>, grid: &Grid<'a>, series: usize, name: &'a str, is_share: bool) -> Counted<'a> {
    let theirs = |cell: &StudyCell| {
        context.published_for(cell, name).map(|row| (row.reference.value, row.reference.source.as_str()))
    };
    let known = || grid.line(series).filter_map(|(x, cell)| Some((x, cell, cell.metric(name)?)));
    let base = known().map(|(_, _, found)| found.value).find(|value| *value > 0.0);
    let their_base = grid.line(series).find_map(|(_, cell)| theirs(cell)).map(|(value, _)| value);
    let over = |value: f64, base: Option<f64>| if is_share { Some(value) } else { base.map(|base| value / base) };
    let at = |(x, cell, found): (usize, &'a StudyCell, Measurement)| {
        let range = bars::range(&found).and_then(|(low, high)| Some((over(low, base)?, over(high, base)?)));
        let value = found.value;
        let published = theirs(cell).and_then(|(value, source)| Some((value, over(value, their_base)?, source)));
        Some(At { cell, x, value, drawn: over(value, base)?, range, published })
    };
    Counted { metric: name, points: known().filter_map(at).collect() }
}

/// The epochs of every run, each run in a panel.
fn by_epoch<'a>(context: &'a Context<'_>, metrics: &[&'a str]) -> Plot<'a> {
    let cells = context.cells();
    let runs: Vec<(&StudyCell, &WorkloadCell)> = cells
        .into_iter()
        .filter_map(|cell| Some((cell, cell.measured_one::<WorkloadCell>()?)))
        .take(palette::N_HUES)
        .collect();
    let most = runs.iter().map(|(_, cell)| cell.epochs).max().unwrap_or(0);
    let panel = |(cell, workload): &(&'a StudyCell, &'a WorkloadCell)| {
        let counted = metrics.iter().map(|metric| {
            let at = |epoch: u64| {
                let value = of_epoch(workload, metric, epoch)?;
                Some(At { cell, x: epoch as usize - 1, value, drawn: value, range: None, published: None })
            };
            Counted { metric, points: (1..=most).filter_map(at).collect() }
        });
        let counted: Vec<Counted<'_>> = counted.filter(|counted| !counted.points.is_empty()).collect();
        let name = if runs.len() > 1 { context.run.name_of(cell) } else { String::new() };
        (!counted.is_empty()).then_some(Panel { name, counted })
    };
    Plot {
        xs: (1..=most).map(|epoch| epoch.to_string()).collect(),
        x_title: "Epoch".to_owned(),
        y_title: y_title(true),
        is_share: true,
        panels: runs.iter().filter_map(panel).collect(),
    }
}

/// The mean over accelerators, as a share.
fn of_epoch(cell: &WorkloadCell, metric: &str, epoch: u64) -> Option<f64> {
    let of = |of: &forebay_record::WorkloadEpoch| match metric {
        "au_epoch" => (of.wall_s > 0.0).then(|| of.compute_s / of.wall_s),
        "au_dlio" => of.au_dlio,
        _ => None,
    };
    let values: Vec<f64> = cell.epochs_of.iter().filter(|of| of.epoch == epoch).filter_map(of).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Plot<'_> {
    /// How to read the strokes through points, where there are some.
    fn of_ranges(&self) -> &'static str {
        let mut points = self.panels.iter().flat_map(|panel| &panel.counted).flat_map(|counted| &counted.points);
        match points.any(|at| at.range.is_some()) {
            true => {
                " A point is the median of the repeats; the stroke through it reaches from the lowest to the highest."
            }
            false => "",
        }
    }

    fn draw(&self, canvas: Canvas, label: &str) -> Markup {
        let names = self.panels.first().map(|panel| self.lines(panel, None)).unwrap_or_default();
        let right = canvas.width - lines::name_room(canvas, &names);
        let mut svg = Svg::new(canvas, self.panels.len() as f64 * (PANEL + TITLE) + BELOW);
        let show =
            |value: f64| if self.is_share { tick((value * 100.0).round()) } else { format!("{}×", tick(value)) };
        // All panels have one left edge, so that a number of processes is at the same place in each.
        let rooms = self.panels.iter().map(|panel| axes::tick_room(&self.scale(panel), 5, show));
        let left = rooms.fold(0.0, f64::max) + 8.0;
        for (i, panel) in self.panels.iter().enumerate() {
            let scale = self.scale(panel);
            let top = i as f64 * (PANEL + TITLE) + TITLE;
            let plot = Area { left, top, right, bottom: top + PANEL };
            let y = scale.over(plot.bottom, plot.top);
            axes::left(&mut svg, plot, &y, 5, "", show);
            let title = if panel.name.is_empty() {
                self.y_title.to_owned()
            } else {
                format!("{}: {}", panel.name, self.y_title)
            };
            svg.text("tt", Anchor::Start, (2.0, plot.top - 14.0), title);
            let is_last = i + 1 == self.panels.len();
            self.x_axis(&mut svg, plot, is_last);
            let at = |x: usize| plot.left + (x as f64 + 0.5) * plot.width() / self.xs.len().max(1) as f64;
            self.published(&mut svg, panel, &at, &y);
            lines::draw(&mut svg, canvas, plot, &self.lines(panel, Some((&at, &y))));
        }
        svg.finish(label)
    }

    /// Names under the last panel, strokes under the others.
    fn x_axis(&self, svg: &mut Svg, plot: Area, is_last: bool) {
        if is_last {
            axes::groups(svg, plot, &self.xs, &self.x_title);
        } else {
            svg.line("ax", (plot.left, plot.bottom), (plot.right, plot.bottom));
        }
    }

    fn scale(&self, panel: &Panel<'_>) -> Scale {
        if self.is_share {
            return Scale::between(0.0, 1.0);
        }
        let all = panel.counted.iter().flat_map(|counted| &counted.points);
        let highest = all
            .flat_map(|at| [at.drawn, at.range.map_or(0.0, |of| of.1), at.published.map_or(0.0, |of| of.1)])
            .fold(1.0, f64::max);
        Scale::from_zero(highest * 1.05)
    }

    /// Lines in places, or without points for their names alone.
    fn lines(&self, panel: &Panel<'_>, places: Option<(&dyn Fn(usize) -> f64, &Scale)>) -> Vec<Line> {
        let line = |counted: &Counted<'_>| {
            let points = counted.points.iter().filter_map(|at| {
                let (x, y) = places?;
                let tip = self.tip(counted.metric, at);
                let range = at.range.map(|(low, high)| (y.at(low), y.at(high)));
                Some(Point { x: x(at.x), y: y.at(at.drawn), range, cut: (false, false), tip: Some(tip) })
            });
            Line { name: name_of(counted.metric).to_owned(), points: points.collect() }
        };
        panel.counted.iter().map(line).collect()
    }

    fn tip(&self, quantity: &str, at: &At<'_>) -> Tip {
        let mut text = format!(
            "{} {}: {}, {}",
            self.xs[at.x],
            self.x_title.to_lowercase(),
            name_of(quantity),
            metric::with_unit(quantity, at.value)
        );
        if !self.is_share {
            text.push_str(&format!(", {} of the first", times(at.drawn)));
        }
        if let Some((low, high)) = at.range {
            let show: fn(f64) -> String = if self.is_share { percent } else { times };
            text.push_str(&format!("; repeats from {} to {}", show(low), show(high)));
        }
        if let Some((value, _, source)) = at.published {
            text.push_str(&format!("; published {} ({source})", metric::published(quantity, value)));
        }
        Tip::new(text)
            .with("cell", &at.cell.id)
            .with("metric", quantity)
            .with("value", at.value)
            .with("x", &self.xs[at.x])
    }

    fn published(&self, svg: &mut Svg, panel: &Panel<'_>, x: &dyn Fn(usize) -> f64, y: &Scale) {
        for (i, counted) in panel.counted.iter().enumerate() {
            for at in &counted.points {
                let Some((value, drawn, source)) = at.published else { continue };
                let text = format!("published: {} ({source})", metric::published(counted.metric, value));
                let tip = Tip::new(text).with("published", value).with("cell", &at.cell.id);
                let class = format!("pub {}l", palette::hue(i));
                svg.mark(&tip, |svg| palette::marker(svg, &class, i, (x(at.x), y.at(drawn)), 7.5));
            }
        }
    }

    fn legend(&self) -> Vec<Key> {
        let mut keys = self.panels.first().map(|panel| lines::legend(&self.lines(panel, None))).unwrap_or_default();
        let has = |panel: &Panel<'_>| panel.counted.iter().flat_map(|of| &of.points).any(|at| at.published.is_some());
        if self.panels.iter().any(has) {
            let sample = super::sample(|svg| palette::marker(svg, "pub", 0, (9.0, 7.0), 5.0));
            keys.push(Key { sample, name: "published, in the line's colour".to_owned() });
        }
        keys
    }

    fn data(&self, context: &Context<'_>) -> Data {
        let mut data = Data::new(&[
            ("at", "cell", Left),
            ("x", "", Right),
            ("metric", "quantity", Left),
            ("value", "value", Right),
            ("times", "of the first", Right),
            ("lowest", "lowest repeat", Right),
            ("highest", "highest repeat", Right),
            ("published", "published", Right),
            ("source", "source", Left),
        ]);
        for (counted, at) in
            self.panels.iter().flat_map(|panel| &panel.counted).flat_map(|of| of.points.iter().map(move |at| (of, at)))
        {
            let name = counted.metric;
            data.row(vec![
                Value::text(context.run.name_of(at.cell)),
                Value::text(self.xs[at.x].clone()),
                Value::text(metric::name(name)),
                Value::number(at.value, if self.is_share { percent } else { metric::show(name) }),
                if self.is_share { Value::Unknown } else { Value::number(at.drawn, times) },
                Value::maybe(at.range.map(|of| of.0), if self.is_share { percent } else { times }),
                Value::maybe(at.range.map(|of| of.1), if self.is_share { percent } else { times }),
                Value::maybe(at.published.map(|of| of.0), |value| metric::published(name, value)),
                Value::text(at.published.map_or("", |of| of.2)),
            ]);
        }
        data
    }
}

/// A way to count in a word or two.
fn name_of(quantity: &str) -> &str {
    let label = forebay_record::metric_info(quantity).map_or(quantity, |info| info.label);
    label.strip_prefix("AU, ").unwrap_or(label)
}
