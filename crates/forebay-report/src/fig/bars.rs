//! A rate in bars: a group a level of one factor, a bar a level of another, the spread of the repeats as whiskers.

use forebay_record::{IngestCell, Measurement, StudyCell};

use super::columns::factors;
use super::{Bar, Columns, Context, Data, Drawn, Grid, Groups, Key, Tip, level, metric};

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
        let name = metric::axis(second);
        remarks.push(match grid.cells.len() {
            1 => format!("{name} is in the data table."),
            _ => format!("{name} is not proportional to the bars; see the data table."),
        });
    }
    let second_axis = second.map(metric::axis);
    let groups = Groups {
        show: metric::axis_tick(quantity),
        right: second_axis.as_deref().zip(factor),
        ..groups(context, &grid, quantity, &metric::axis(quantity))
    };
    let data = data(&grid.cells, &context.spec.metrics);
    if groups.bars().next().is_none() {
        return Drawn { data, ..Drawn::nothing(why_none(&grid, quantity)) };
    }
    let scale = if groups.scale().is_log() {
        " The axis is logarithmic: marks show values, their height is no length."
    } else {
        ""
    };
    Drawn {
        data,
        caption: highest(&grid.cells, quantity),
        reading: reading(&grid.cells, quantity) + scale,
        remarks,
        legend_title: grid.legend_title(),
        legend: legend(&grid, groups.has_published()),
        pictures: groups.pictures(&context.spec.title),
        ..Drawn::default()
    }
}

pub(super) fn legend(grid: &Grid<'_>, published: bool) -> Vec<Key> {
    let mut keys = Key::bars(&grid.series_names(), &grid.classes());
    keys.extend(published.then(|| Key::marker("pub", 3, "published")));
    keys
}

pub(super) fn groups(context: &Context<'_>, grid: &Grid<'_>, quantity: &str, y_title: &str) -> Groups<'static> {
    Groups::of(grid, y_title, |cell, series, x| {
        let found = cell.metric(quantity)?;
        let tip = Tip::of(cell, describe(cell, quantity, &found))
            .with("metric", quantity)
            .with("value", found.value)
            .with("series", series)
            .with("x", x);
        let published = context.published_for(cell, quantity).map(|row| {
            let (value, source) = (row.reference.value, &row.reference.source);
            let (shown, unit) = (metric::published(quantity, value), metric::unit(quantity));
            (value, Tip::of(cell, format!("published: {shown} {unit} ({source})")).with("published", value))
        });
        let label = (metric::show(quantity))(found.value);
        Some(Bar { value: found.value, range: range(&found), label, tip, published, more: None })
    })
}

fn describe(cell: &StudyCell, quantity: &str, found: &Measurement) -> String {
    let mut text = format!("{}: {}", level::all(&cell.factors), metric::with_unit(quantity, found.value));
    if let Some((low, high)) = range(found) {
        let show = metric::show(quantity);
        text.push_str(&format!(" ({} to {} in {} repeats)", show(low), show(high), found.repeats.len()));
    }
    for other in [IngestCell::IMAGES_PER_S.info.name, IngestCell::MB_PER_S.info.name] {
        if let Some(value) =
            cell.metric(other).filter(|_| other != quantity && quantity != IngestCell::EFFICIENCY.info.name)
        {
            text.push_str(&format!(", {}", metric::with_unit(other, value.value)));
        }
    }
    text
}

pub(super) fn range(metric: &Measurement) -> Option<(f64, f64)> {
    let low = metric.repeats.iter().copied().fold(f64::MAX, f64::min);
    let high = metric.repeats.iter().copied().fold(f64::MIN, f64::max);
    (metric.repeats.len() > 1).then_some((low, high))
}

/// How many of `second` come with one of `first`, if that is the same in several cells; a single one shows no proportion.
fn proportion(cells: &[&StudyCell], first: &str, second: &str) -> Option<f64> {
    let ratio = |cell: &&StudyCell| {
        let (a, b) = (cell.metric(first)?.value, cell.metric(second)?.value);
        (a > 0.0).then(|| b / a)
    };
    let ratios: Vec<f64> = cells.iter().filter(|cell| cell.error.is_none()).filter_map(ratio).collect();
    let middle = forebay_units::median(&ratios).filter(|_| ratios.len() > 1)?;
    ratios.iter().all(|ratio| (ratio / middle - 1.0).abs() <= PROPORTIONAL).then_some(middle)
}

pub(super) fn data(cells: &[&StudyCell], metrics: &[String]) -> Data {
    let found = |cell: &StudyCell, name: &str| cell.metric(name).filter(|_| cell.error.is_none());
    let mut columns = Columns::<&StudyCell>::new().factors(factors(cells), |cell| cell);
    for name in metrics {
        let ends = move |cell: &StudyCell| found(cell, name).as_ref().and_then(range);
        columns = columns
            .number(name, &metric::name(name), metric::show(name), move |cell| found(cell, name).map(|of| of.value))
            .number(&format!("{name}_min"), "lowest", metric::show(name), move |cell| ends(cell).map(|of| of.0))
            .number(&format!("{name}_max"), "highest", metric::show(name), move |cell| ends(cell).map(|of| of.1));
    }
    let repeats =
        |cell: &&StudyCell| metrics.iter().filter_map(|name| Some(found(cell, name)?.repeats.len() as u64)).max();
    columns
        .count("repeats", "repeats", move |cell| repeats(cell).filter(|n| *n > 0))
        .text("error", "failed", |cell| cell.error.clone().unwrap_or_default())
        .of(cells.iter().copied())
}

fn why_none(grid: &Grid<'_>, quantity: &str) -> String {
    if grid.cells.iter().all(|cell| cell.error.is_some()) {
        let first = grid.cells[0].error.as_deref().unwrap_or_default();
        return format!("Every cell of this figure failed; the first: {first}.");
    }
    format!("No cell of this figure has the metric “{quantity}”.")
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

pub(super) fn reading(cells: &[&StudyCell], quantity: &str) -> String {
    let repeats = cells.iter().filter_map(|cell| cell.metric(quantity)).map(|metric| metric.repeats.len());
    let (least, most) = repeats.fold((usize::MAX, 0), |(least, most), n| (least.min(n), most.max(n)));
    let median = match (least, most) {
        (_, 0 | 1) => return "Each value was measured once.".to_owned(),
        (least, most) if least == most => format!("Median of {most} repeats"),
        (least, most) => format!("Median of {least} to {most} repeats"),
    };
    format!("{median}; whiskers reach from the lowest to the highest.")
}
