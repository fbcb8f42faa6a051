//! A rate in bars: a group a level of one factor, a bar a level of another, the spread of the repeats as whiskers.

use forebay_record::{Measurement, StudyCell};

use crate::data::{Data, Value};
use crate::grid::Grid;
use crate::level;
use crate::metric;
use crate::palette;
use crate::svg::Tip;
use crate::table::Align::{Left, Right};

use super::groups::{Bar, Groups, Slot};
use super::{Context, Drawn, Key, both, swatch};

/// A second quantity gets its scale on the right when it is the first times one factor, within this.
const PROPORTIONAL: f64 = 0.03;

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let (quantity, grid) = (context.metric(), Grid::of(context.run, context.spec));
    if grid.cells.is_empty() {
        return Drawn::nothing("No cell of this figure has been measured yet.");
    }
    let mut remarks = grid.remarks.clone();
    let second = context.spec.metrics.get(1).map(String::as_str);
    let factor = second.and_then(|second| proportion(&grid.cells, quantity, second));
    if let (Some(second), None) = (second, factor) {
        remarks.push(format!(
            "{} rises and falls otherwise than the bars, so that it is given in the data below alone.",
            metric::axis(second)
        ));
    }
    let (classes, second_axis) = (classes(&grid), second.map(metric::axis));
    let groups = Groups {
        names: grid.xs.iter().map(|place| place.name.clone()).collect(),
        x_title: grid.x_factor.map(level::title).unwrap_or_default(),
        y_title: metric::axis(quantity),
        show: metric::axis_tick(quantity),
        right: second_axis.as_deref().zip(factor),
        limit: None,
        classes: classes.clone(),
        slots: slots(context, &grid, quantity),
    };
    if bars(&groups).next().is_none() {
        return Drawn { data: data(&grid.cells, &context.spec.metrics), ..Drawn::nothing(why_none(&grid, quantity)) };
    }
    let is_log = is_logarithmic(&groups);
    let mut reading = reading(&grid.cells, quantity);
    if is_log {
        reading.push_str(" The scale is logarithmic: equal steps are equal ratios.");
    }
    Drawn {
        data: data(&grid.cells, &context.spec.metrics),
        caption: highest(&grid.cells, quantity),
        reading,
        remarks,
        legend_title: level_title(&grid),
        legend: legend(&grid, &classes, groups_have_published(&groups)),
        pictures: both(|canvas| groups.draw(canvas, &context.spec.title)),
        ..Drawn::default()
    }
}

pub(super) fn level_title(grid: &Grid<'_>) -> String {
    if grid.series.len() > 1 { level::title(&grid.series_title) } else { String::new() }
}

/// A class of colour a series: shades where the series are ordered, hues where not.
pub(super) fn classes(grid: &Grid<'_>) -> Vec<String> {
    let n = grid.series.len();
    (0..n).map(|i| if grid.is_ordered() || n == 1 { palette::shade(i, n) } else { palette::hue(i) }).collect()
}

pub(super) fn legend(grid: &Grid<'_>, classes: &[String], published: bool) -> Vec<Key> {
    let mut keys = Vec::new();
    if grid.series.len() > 1 {
        for (place, class) in grid.series.iter().zip(classes) {
            keys.push(Key { sample: swatch(&format!("bar {class}")), name: place.name.clone() });
        }
    }
    if published {
        let sample = super::sample(|svg| palette::marker(svg, "pub", 3, (9.0, 7.0), 4.5));
        keys.push(Key { sample, name: "published".to_owned() });
    }
    keys
}

pub(super) fn slots(context: &Context<'_>, grid: &Grid<'_>, quantity: &str) -> Vec<Vec<Slot>> {
    let slot = |x: usize, s: usize| match grid.cell(s, x) {
        None => Slot::Nothing,
        Some(cell) => slot(context, cell, quantity, &grid.series[s].name, &grid.xs[x].name),
    };
    (0..grid.xs.len()).map(|x| (0..grid.series.len()).map(|s| slot(x, s)).collect()).collect()
}

fn slot(context: &Context<'_>, cell: &StudyCell, quantity: &str, series: &str, x: &str) -> Slot {
    let place = level::all(&cell.factors);
    if let Some(error) = &cell.error {
        return Slot::Failed(Tip::new(format!("{place}: failed: {error}")).with("failed", "yes"));
    }
    let Some(found) = cell.metric(quantity) else { return Slot::Nothing };
    let tip = Tip::new(describe(cell, quantity, &found))
        .with("cell", &cell.id)
        .with("metric", quantity)
        .with("value", found.value)
        .with("series", series)
        .with("x", x);
    let published = context.published_for(cell, quantity).map(|row| {
        let (value, source) = (row.reference.value, &row.reference.source);
        let text = format!("published: {} {} ({source})", metric::published(quantity, value), metric::unit(quantity));
        (value, Tip::new(text).with("published", value).with("cell", &cell.id))
    });
    Slot::Bar(Bar {
        value: found.value,
        range: range(&found),
        label: (metric::show(quantity))(found.value),
        tip,
        published,
        more: None,
    })
}

/// A cell's value in words, with its repeats.
pub(super) fn describe(cell: &StudyCell, quantity: &str, found: &Measurement) -> String {
    let mut text = format!("{}: {}", level::all(&cell.factors), metric::with_unit(quantity, found.value));
    if let Some((low, high)) = range(found) {
        let show = metric::show(quantity);
        text.push_str(&format!(" ({} to {} in {} repeats)", show(low), show(high), found.repeats.len()));
    }
    for other in ["images_per_s", "mb_per_s"] {
        if let Some(value) = cell.metric(other).filter(|_| other != quantity && quantity != "efficiency") {
            text.push_str(&format!(", {}", metric::with_unit(other, value.value)));
        }
    }
    text
}

/// The smallest and the largest of several repeats.
pub(super) fn range(metric: &Measurement) -> Option<(f64, f64)> {
    let low = metric.repeats.iter().copied().fold(f64::MAX, f64::min);
    let high = metric.repeats.iter().copied().fold(f64::MIN, f64::max);
    (metric.repeats.len() > 1).then_some((low, high))
}

/// How many of `second` come with one of `first`, if that is the same in every cell.
fn proportion(cells: &[&StudyCell], first: &str, second: &str) -> Option<f64> {
    let ratio = |cell: &&StudyCell| {
        let (a, b) = (cell.metric(first)?.value, cell.metric(second)?.value);
        (a > 0.0).then(|| b / a)
    };
    let ratios: Vec<f64> = cells.iter().filter(|cell| cell.error.is_none()).filter_map(ratio).collect();
    let middle = forebay_units::median(&ratios)?;
    ratios.iter().all(|ratio| (ratio / middle - 1.0).abs() <= PROPORTIONAL).then_some(middle)
}

/// The factors of the cells, in order.
pub(super) fn factors<'a>(cells: &[&'a StudyCell]) -> Vec<&'a str> {
    let mut factors: Vec<&str> = cells.iter().flat_map(|cell| cell.factors.keys().map(String::as_str)).collect();
    factors.sort_unstable();
    factors.dedup();
    factors
}

/// Every cell of the figure with its values.
pub(super) fn data(cells: &[&StudyCell], metrics: &[String]) -> Data {
    let factors = factors(cells);
    let mut data = Data::default();
    for factor in &factors {
        data.column(factor, &level::words(factor), Left);
    }
    for name in metrics {
        data.column(name, &metric::name(name), Right);
        for (end, word) in [("min", "lowest"), ("max", "highest")] {
            data.column(&format!("{name}_{end}"), word, Right);
        }
    }
    data.column("repeats", "repeats", Right);
    data.column("error", "failed", Left);
    for cell in cells {
        let mut row: Vec<Value> = factors
            .iter()
            .map(|factor| cell.level(factor).map_or(Value::Unknown, |level| level_value(factor, level)))
            .collect();
        let mut repeats = 0;
        for name in metrics {
            let found = cell.metric(name).filter(|_| cell.error.is_none());
            let ends = found.as_ref().and_then(range);
            repeats = repeats.max(found.as_ref().map_or(0, |metric| metric.repeats.len()));
            row.push(Value::maybe(found.map(|metric| metric.value), metric::show(name)));
            row.push(Value::maybe(ends.map(|(low, _)| low), metric::show(name)));
            row.push(Value::maybe(ends.map(|(_, high)| high), metric::show(name)));
        }
        row.push(if repeats > 0 { Value::count(repeats as u64) } else { Value::Unknown });
        row.push(Value::text(cell.error.clone().unwrap_or_default()));
        data.row(row);
    }
    data
}

/// A level as a value: numbers stay numbers.
pub(crate) fn level_value(factor: &str, of: &forebay_record::Level) -> Value {
    match level::number(of) {
        Some(number) => Value::number(number, |_| level::bare(factor, of)),
        None => Value::text(level::bare(factor, of)),
    }
}

fn why_none(grid: &Grid<'_>, quantity: &str) -> String {
    if grid.cells.iter().all(|cell| cell.error.is_some()) {
        return format!(
            "Every cell of this figure failed; the first: {}.",
            grid.cells[0].error.as_deref().unwrap_or_default()
        );
    }
    format!("No cell of this figure has the quantity “{quantity}”.")
}

fn bars<'a>(groups: &'a Groups<'_>) -> impl Iterator<Item = &'a Bar> {
    groups.slots.iter().flatten().filter_map(|slot| if let Slot::Bar(bar) = slot { Some(bar) } else { None })
}

fn groups_have_published(groups: &Groups<'_>) -> bool {
    bars(groups).any(|bar| bar.published.is_some())
}

fn is_logarithmic(groups: &Groups<'_>) -> bool {
    groups.limit.is_none() && crate::axis::Scale::for_bars(bars(groups).map(|bar| bar.value)).is_log()
}

/// The best cell in a sentence: of times the lowest.
pub(super) fn highest(cells: &[&StudyCell], quantity: &str) -> String {
    let values = cells.iter().filter(|cell| cell.error.is_none());
    let values = values.filter_map(|cell| Some((cell, cell.metric(quantity)?.value)));
    let is_cost = metric::is_cost(quantity);
    let best = values.max_by(|a, b| if is_cost { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
    let word = if is_cost { "Lowest" } else { "Highest" };
    best.map_or(String::new(), |(cell, value)| {
        format!("{word}: {}, {}.", metric::with_unit(quantity, value), level::all(&cell.factors))
    })
}

/// How the bars are to be read.
pub(super) fn reading(cells: &[&StudyCell], quantity: &str) -> String {
    let repeats = cells.iter().filter_map(|cell| cell.metric(quantity)).map(|metric| metric.repeats.len());
    let (least, most) = repeats.fold((usize::MAX, 0), |(least, most), n| (least.min(n), most.max(n)));
    match (least, most) {
        (_, 0 | 1) => "Each value was measured once.".to_owned(),
        (least, most) if least == most => {
            format!("Median of {most} repeats; whiskers reach from the lowest to the highest.")
        }
        (least, most) => format!("Median of {least} to {most} repeats; whiskers reach from the lowest to the highest."),
    }
}
