//! Every cell in a line: its quantities as its experiment declares them, how sure they are, where its bytes came from.

use forebay_record::{AnyCell, Better, CacheState, Measured, ProbeCell, StudyCell};

use crate::basis;
use crate::data::{Data, Value};
use crate::level;
use crate::metric;
use crate::number::{distinct, percent, seconds};
use crate::order::Order;
use crate::run::Run;
use crate::table::Align::{Left, Right};

/// Remarks that advise.
const ADVICE: [&str; 3] = ["lever", "limit", "verdict"];

/// The table of an experiment's cells, or of all.
pub(crate) fn table(run: &Run<'_>, experiment: Option<&str>) -> Data {
    let mut cells: Vec<&StudyCell> =
        run.study.cells.iter().filter(|cell| experiment.is_none_or(|name| cell.experiment == name)).collect();
    let order = Order::of(run);
    cells.sort_by(|a, b| order.compare(a, b));
    let mut data = columns(&cells);
    for cell in cells {
        let any = of_any(run, cell);
        let measured: Vec<&dyn AnyCell> = cell.result().into_iter().flat_map(Measured::cells).collect();
        if measured.is_empty() {
            data.row_of([any, vec![why_not(cell)]].concat());
            continue;
        }
        for (i, one) in measured.into_iter().enumerate() {
            let mut row = [any.clone(), of_measured(cell, one)].concat();
            // The time is of all measurements of the cell together.
            row.retain(|(key, _)| i == 0 || *key != "elapsed_s");
            data.row_of(row);
        }
    }
    data.hide_if_same("experiment");
    if run.is_study() && data.len() > 1 {
        // What describes a cell rather than judges it: as many columns as paper has room for.
        constants(run).for_each(|key| data.hide_if_same(key));
    }
    data
}

/// The experiments that have cells, in the order of the study.
pub(crate) fn experiments<'a>(run: &'a Run<'_>) -> Vec<&'a str> {
    let mut experiments = distinct(run.study.cells.iter().map(|cell| cell.experiment.as_str()));
    let named = |name: &&str| run.spec().experiments.iter().position(|experiment| experiment.name == **name);
    experiments.sort_by_key(|name| named(name).unwrap_or(usize::MAX));
    experiments
}

/// Columns that describe a cell and do not judge it.
fn constants<'a>(run: &'a Run<'_>) -> impl Iterator<Item = &'static str> + use<'a> {
    let measured = run.study.cells.iter().filter_map(|cell| cell.result()).flat_map(Measured::cells);
    let of_cell = |cell: &dyn AnyCell| {
        let facts = cell.measurements().into_iter().filter(|(info, _)| info.better == Better::Neither);
        facts.map(|(info, _)| info.name).chain(cell.remarks().into_iter().map(|(key, ..)| key)).collect::<Vec<_>>()
    };
    measured.flat_map(of_cell).chain(["resident_before"])
}

/// The columns that some of the cells have, and those of all.
fn columns(cells: &[&StudyCell]) -> Data {
    let measured = || cells.iter().filter_map(|cell| cell.result()).flat_map(Measured::cells);
    let metrics = distinct(measured().flat_map(|cell| cell.measurements()).map(|(info, _)| info));
    let remarks = distinct(measured().flat_map(|cell| cell.remarks()).map(|(key, head, _)| (key, head)));
    let mut data = Data::new(&[("experiment", "experiment", Left), ("at", "cell", Left)]);
    for info in &metrics {
        let head = metric::table_heading(info);
        data.column(info.name, &head, Right);
        if !info.in_table {
            data.hide(info.name);
        }
    }
    for (key, head, align) in [
        ("spread", "±", Right),
        ("repeats", "repeats", Right),
        ("cache", "cache", Left),
        ("from_memory", "from memory", Right),
        ("resident_before", "cached before", Right),
    ] {
        data.column(key, head, align);
    }
    remarks.iter().for_each(|(key, head)| data.column(key, head, Left));
    // The widest columns are last, so that they push no number out of sight.
    for (key, head, align) in [
        ("elapsed_s", "took", Right),
        ("disturbed", "disturbed", Left),
        ("error", "failed", Left),
        ("left_out", "left out", Left),
    ] {
        data.column(key, head, align);
    }
    data
}

/// What a finished cell came to, in a line: "115 images/s, 14.2 MB/s".
pub fn in_brief(cell: &StudyCell) -> String {
    let headlines = cell.result().into_iter().flat_map(Measured::headlines);
    let brief = headlines.map(|(info, of)| metric::named(info, of.value)).collect::<Vec<_>>().join(", ");
    match cell.disturbed() {
        Some(disturbed) => format!("{brief}{} (disturbed: {})", basis::MARK, disturbed.cause()),
        None => brief,
    }
}

fn of_any(run: &Run<'_>, cell: &StudyCell) -> Vec<(&'static str, Value)> {
    let took = if cell.elapsed_s > 0.0 { Value::number(cell.elapsed_s, seconds) } else { Value::Unknown };
    vec![
        ("experiment", Value::text(cell.experiment.clone())),
        ("at", Value::text(run.name_of(cell))),
        ("elapsed_s", took),
    ]
}

fn why_not(cell: &StudyCell) -> (&'static str, Value) {
    match (&cell.error, &cell.left_out) {
        (Some(error), _) => ("error", Value::text(error.clone())),
        (None, Some(reason)) => ("left_out", Value::text(reason.clone())),
        (None, None) => ("error", Value::text("nothing was measured")),
    }
}

fn of_measured(cell: &StudyCell, measured: &dyn AnyCell) -> Vec<(&'static str, Value)> {
    let mut row = Vec::new();
    // A probe measures several things at one place.
    if cell.measured_as::<ProbeCell>().nth(1).is_some() {
        let mut levels = measured.levels();
        levels.extend(cell.factors.clone());
        row.push(("at", Value::text(level::all(&levels))));
    }
    let known = measured.measurements();
    row.extend(known.iter().map(|(info, of)| {
        (info.name, Value::number(of.value, metric::show_in_table(info)).marked(measured.disturbed()))
    }));
    row.push(("spread", Value::maybe(measured.spread(), |share| format!("{:.1} %", share * 100.0))));
    row.push(("repeats", Value::count(measured.n_repeats() as u64)));
    row.push(("disturbed", Value::text(basis::said(measured).unwrap_or_default())));
    if let Some(medium) = measured.media().first() {
        row.push(("cache", Value::text(medium.cache.map(CacheState::name).unwrap_or_default())));
        row.push(("from_memory", Value::maybe(medium.from_memory(), percent)));
        row.push(("resident_before", Value::maybe(medium.resident_before(), percent)));
    }
    // No advice rests on a disturbed value.
    let remarks =
        measured.remarks().into_iter().filter(|(key, ..)| measured.disturbed().is_none() || !ADVICE.contains(key));
    row.extend(remarks.map(|(key, _, text)| (key, Value::text(text))));
    row
}
