//! Two ways to count the same runs, as lines over the number of processes: whole epochs, and DLIO's arithmetic. What others
//! published stands beside each as a hollow mark.
//!
//! Utilisation is drawn as it is. Rates are drawn as multiples of their own value at the first level, so that a machine, or a
//! scale, of another speed shows the same shape; the data has them as they are. A level of the series has a panel of its own.
//! Along `epoch`, a run's epochs are the points.

use forebay_record::{Measurement, StudyCell, WorkloadCell};

use crate::number::{percent, times};
use crate::verdict;

use super::{
    Columns, Context, Data, Drawn, Grid, Key, Line, Panel, Pen, Plot, Point, Right, Scale, Tip, Value, X, Y, bars,
    both, metric, palette, tick,
};

const METRICS: [&str; 2] = [AU_EPOCH, AU_DLIO];
const AU_EPOCH: &str = WorkloadCell::AU_EPOCH.info.name;
const AU_DLIO: &str = WorkloadCell::AU_DLIO.info.name;
const PANEL: f64 = 190.0;

struct At<'a> {
    cell: &'a StudyCell,
    x: usize,
    value: f64,
    /// What is drawn: a share, or a multiple of the first.
    drawn: f64,
    /// What is drawn of the lowest and the highest of several repeats.
    range: Option<(f64, f64)>,
    /// Published: the value, what is drawn of it, and its source.
    published: Option<(f64, f64, &'a str)>,
}

struct Counted<'a> {
    metric: &'a str,
    points: Vec<At<'a>>,
}

struct Part<'a> {
    name: String,
    counted: Vec<Counted<'a>>,
}

struct Parts<'a> {
    xs: Vec<String>,
    x_title: String,
    y_title: &'static str,
    is_share: bool,
    all: Vec<Part<'a>>,
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
    if plot.all.is_empty() {
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
        pictures: both(&context.spec.title, |_| plot.plot()),
        ..Drawn::default()
    }
}

fn reading(is_share: bool, is_by_epoch: bool) -> String {
    let what = match (is_share, is_by_epoch) {
        (true, false) => "AU over whole epochs, and as DLIO counts it, without the first step of each epoch.",
        (true, true) => {
            "Mean over accelerators: AU of each whole epoch, and as DLIO counts it, without the first step."
        }
        (false, _) => {
            "Each line is relative to its own value at the first level: bytes moved over the whole time, and what DLIO prints, \
             the configured size of the samples of all steps but two over the time without the first step. An epoch of two steps \
             gives DLIO nothing. Published values are relative to the first one published."
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

fn by_level<'a>(context: &'a Context<'_>, grid: &Grid<'a>, metrics: &[&'a str], is_share: bool) -> Parts<'a> {
    let panel = |series: usize| {
        let counted = metrics.iter().map(|name| counted(context, grid, series, name, is_share));
        let counted: Vec<Counted<'_>> = counted.filter(|counted| !counted.points.is_empty()).collect();
        let name = if grid.series.len() > 1 { grid.series[series].name.clone() } else { String::new() };
        (!counted.is_empty()).then_some(Part { name, counted })
    };
    Parts {
        xs: grid.x_names(),
        x_title: grid.x_title(),
        y_title: y_title(is_share),
        is_share,
        all: (0..grid.series.len()).filter_map(panel).collect(),
    }
}

fn y_title(is_share: bool) -> &'static str {
    if is_share { "Accelerator utilisation in %" } else { "Throughput relative to the first level" }
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
fn by_epoch<'a>(context: &'a Context<'_>, metrics: &[&'a str]) -> Parts<'a> {
    let mut runs = context.measured::<WorkloadCell>();
    runs.truncate(palette::N_HUES);
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
        (!counted.is_empty()).then_some(Part { name, counted })
    };
    Parts {
        xs: (1..=most).map(|epoch| epoch.to_string()).collect(),
        x_title: "Epoch".to_owned(),
        y_title: y_title(true),
        is_share: true,
        all: runs.iter().filter_map(panel).collect(),
    }
}

/// The mean over accelerators, as a share.
fn of_epoch(cell: &WorkloadCell, metric: &str, epoch: u64) -> Option<f64> {
    let of = |of: &forebay_record::WorkloadEpoch| match metric {
        AU_EPOCH => (of.wall_s > 0.0).then(|| of.compute_s / of.wall_s),
        AU_DLIO => of.au_dlio,
        _ => None,
    };
    let values: Vec<f64> = cell.epochs_of.iter().filter(|of| of.epoch == epoch).filter_map(of).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Parts<'_> {
    fn points(&self) -> impl Iterator<Item = (&Counted<'_>, &At<'_>)> {
        let counted = self.all.iter().flat_map(|part| &part.counted);
        counted.flat_map(|counted| counted.points.iter().map(move |at| (counted, at)))
    }

    /// How to read the strokes through points, where there are some.
    fn of_ranges(&self) -> &'static str {
        match self.points().any(|(_, at)| at.range.is_some()) {
            true => {
                " A point is the median of the repeats; the line through it reaches from the lowest to the highest."
            }
            false => "",
        }
    }

    fn plot(&self) -> Plot<'_> {
        let x = X::bands(self.xs.clone(), self.x_title.clone());
        Plot::new("", x, self.all.iter().map(|part| self.panel(part)).collect())
    }

    fn panel<'s>(&'s self, part: &'s Part<'_>) -> Panel<'s> {
        let show =
            |value: f64| if self.is_share { tick((value * 100.0).round()) } else { format!("{}×", tick(value)) };
        let (name, what) = (&part.name, self.y_title);
        let title = if name.is_empty() { what.to_owned() } else { format!("{name}: {what}") };
        let y = Y::new(self.scale(part), 5, show);
        let limit = self.limit(part);
        let name = limit.map_or(String::new(), |limit| format!("required: {}", percent(limit)));
        let marks = move |pen: &mut Pen<'_>| {
            if let Some(limit) = limit {
                pen.level("limit", limit);
                pen.name_level("v limit-name", limit, &name);
            }
        };
        Panel { title, height: Some(PANEL), lines: self.lines(part), ..Panel::new(y, marks) }
    }

    /// The utilisation that the workload requires, if it is the same in all cells of a panel.
    fn limit(&self, part: &Part<'_>) -> Option<f64> {
        let of = |at: &At<'_>| {
            let cell = at.cell.measured_one::<WorkloadCell>()?;
            cell.judged.iter().find(|judged| judged.is_decisive).map(|judged| judged.limit)
        };
        let mut all = part.counted.iter().flat_map(|counted| &counted.points).map(of);
        let first = all.next().flatten().filter(|_| self.is_share)?;
        all.all(|limit| limit == Some(first)).then_some(first)
    }

    /// What the lines of the first panel are called.
    fn names(&self) -> Vec<String> {
        self.all.iter().take(1).flat_map(|part| &part.counted).map(|of| name_of(of.metric).to_owned()).collect()
    }

    fn scale(&self, part: &Part<'_>) -> Scale {
        if self.is_share {
            return Scale::between(0.0, 1.0);
        }
        let all = part.counted.iter().flat_map(|counted| &counted.points);
        let highest = all
            .flat_map(|at| [at.drawn, at.range.map_or(0.0, |of| of.1), at.published.map_or(0.0, |of| of.1)])
            .fold(1.0, f64::max);
        Scale::from_zero(highest * 1.05)
    }

    fn lines(&self, part: &Part<'_>) -> Vec<Line> {
        let line = |counted: &Counted<'_>| {
            let quantity = counted.metric;
            let point = |at: &At<'_>| Point {
                x: at.x as f64,
                y: at.drawn,
                range: at.range,
                tip: Some(self.tip(quantity, at)),
                published: at.published.map(|(value, drawn, source)| {
                    let text = format!("published: {} ({source})", metric::published(quantity, value));
                    (drawn, Tip::of(at.cell, text).with("published", value), String::new())
                }),
            };
            Line::new(name_of(quantity), counted.points.iter().map(point))
        };
        part.counted.iter().map(line).collect()
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
            text.push_str(&format!(", {} the value at the first level", times(at.drawn)));
        }
        if let Some((low, high)) = at.range {
            let show: fn(f64) -> String = if self.is_share { percent } else { times };
            text.push_str(&format!("; repeats from {} to {}", show(low), show(high)));
        }
        if let Some((value, _, source)) = at.published {
            text.push_str(&format!("; published {} ({source})", metric::published(quantity, value)));
        }
        Tip::of(at.cell, text).with("metric", quantity).with("value", at.value).with("x", &self.xs[at.x])
    }

    fn legend(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.names().iter().enumerate().map(Key::of_series).collect();
        let has_published = self.points().any(|(_, at)| at.published.is_some());
        keys.extend(has_published.then(|| Key::marker("pub", 0, "published, in the line's colour")));
        keys
    }

    fn data(&self, context: &Context<'_>) -> Data {
        let show: fn(f64) -> String = if self.is_share { percent } else { times };
        let value =
            |name: &str, value: f64| Value::number(value, if self.is_share { percent } else { metric::show(name) });
        Columns::<(&Counted<'_>, &At<'_>)>::new()
            .text("at", "cell", |(_, at)| context.run.name_of(at.cell))
            .value("x", &self.x_title.to_lowercase(), Right, |(_, at)| Value::text(self.xs[at.x].clone()))
            .text("metric", "quantity", |(of, _)| metric::name(of.metric))
            .value("value", "value", Right, |(of, at)| value(of.metric, at.value))
            .number("times", "relative to first", times, |(_, at)| (!self.is_share).then_some(at.drawn))
            .number("lowest", "lowest repeat", show, |(_, at)| at.range.map(|of| of.0))
            .number("highest", "highest repeat", show, |(_, at)| at.range.map(|of| of.1))
            .value("published", "published", Right, |(of, at)| {
                Value::maybe(at.published.map(|of| of.0), |value| metric::published(of.metric, value))
            })
            .text("source", "source", |(_, at)| at.published.map_or("", |of| of.2))
            .of(self.points())
    }
}

/// A way to count in a word or two.
fn name_of(quantity: &str) -> &str {
    let label = forebay_record::metric_info(quantity).map_or(quantity, |info| info.label);
    label.strip_prefix("AU, ").unwrap_or(label)
}
