//! Every cell's busiest disk in its busiest ticks, in the columns of collectl.

use std::ops::Range;

use forebay_record::{Series, StudyCell, TierKind, TrainCell};
use forebay_units::{group_digits, parse_utc};

use crate::number::listed;

use super::{Context, Data, Drawn, Left, Right, Run, Value, kept, level, quantity, tick};

const ROWS: usize = 3;
const MAX_CELLS: usize = 6;
const MAX_NAMED: usize = 3;
/// The kernel's kilobyte, which is collectl's.
const KIB: f64 = 1024.0;
/// The kernel counts the time in which a disk is busy by its own ticks, and misses most of it where requests are shorter
/// than those. A queue so many times as long while busy as it is on the whole is a sign of that.
const FAR_ABOVE: f64 = 10.0;

/// A column of collectl: its key and name here, the series' column it is made of, and what that is divided by.
const COLUMNS: [(&str, &str, &str, f64); 7] = [
    ("read_kib_per_s", "KBytes", "read_bytes_per_s", KIB),
    ("read_merges_per_s", "Merged", "read_merges_per_s", 1.0),
    ("reads_per_s", "IOs", "reads_per_s", 1.0),
    ("read_size_kib", "Size", "read_size_bytes", KIB),
    ("await_ms", "Wait", "r_await_ms", 1.0),
    ("queue_busy", "QLen", "queue_busy", 1.0),
    ("svctm_ms", "SvcTim", "svctm_ms", 1.0),
];
/// Columns that rest on the time in which the disk was counted as busy.
const WHILE_BUSY: [&str; 2] = ["queue_busy", "svctm_ms"];

type Window = (String, Range<usize>);

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let Some(series) = context.run.series() else {
        return Drawn::nothing("The run kept no per-second series.");
    };
    let cells = context.cells();
    let (windows, remarks) = windows(context.run, series, &cells);
    if windows.is_empty() {
        return Drawn::nothing(nothing_read(context.run, &cells));
    }
    let mut data = Data::new(&[("time", "Time", Left), ("disk", "Name", Left)]);
    for (key, name, _, _) in COLUMNS {
        data.column(key, name, Right);
    }
    data.column("cell", "cell", Left);
    data.keep_all();
    let mut shown: Vec<(&str, usize)> = Vec::new();
    for (disk, row) in windows.iter().flat_map(|(disk, rows)| rows.clone().map(move |row| (disk.as_str(), row))) {
        // Cells that are shorter than a tick have it in common.
        if !shown.contains(&(disk, row)) {
            shown.push((disk, row));
            data.row(values(series, disk, row));
        }
    }
    Drawn { data, reading: reading(context.run, series), remarks, is_table: true, ..Drawn::default() }
}

fn reading(run: &Run<'_>, series: &Series) -> String {
    let every = tick((series.interval_s * 1e3).round() / 1e3);
    let of = if run.is_study() { "Of each cell" } else { "Of the run" };
    format!(
        "{of}, {ROWS} consecutive ticks of {every} s are shown: those in which its busiest disk read most, or fewer if it was \
         shorter. Columns are collectl's: KBytes, merges and requests per second, KBytes per request, milliseconds of wait per \
         read, requests in flight while the disk was busy, milliseconds of service time (a legacy value that assumes one request \
         at a time). The last two are – if the disk was busy for too little of the tick to give reliable values. Times are UTC, at \
         the end of a tick."
    )
}

fn values(series: &Series, disk: &str, row: usize) -> Vec<Value> {
    let value = |column: &str| {
        series.values(&format!("disk.{disk}.{column}")).and_then(|values| values.get(row).copied().flatten())
    };
    let is_off = match (value("queue_busy"), value("queue_mean")) {
        (Some(busy), Some(mean)) => busy > FAR_ABOVE * mean,
        _ => false,
    };
    let mut values = vec![Value::text(clock(series, row)), Value::text(disk)];
    values.extend(COLUMNS.map(|(_, _, column, by)| {
        let known = value(column).filter(|_| !(is_off && WHILE_BUSY.contains(&column)));
        Value::maybe(known.map(|value| value / by), whole)
    }));
    values.push(Value::text(ran(series, row)));
    values
}

/// The windows of the cells that are shown, and what is to be said of the others.
fn windows(run: &Run<'_>, series: &Series, cells: &[&StudyCell]) -> (Vec<Window>, Vec<String>) {
    if !run.is_study() {
        return (busiest(series, &vec![true; series.time_s.len()]).into_iter().collect(), Vec::new());
    }
    let (mut found, mut silent, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells.iter().filter(|cell| cell.error.is_none()) {
        match window(series, &cell.id) {
            _ if reads_nothing(cell) => silent.push(level::all(&cell.factors)),
            Some(window) => found.push(window),
            None => unseen.push(level::all(&cell.factors)),
        }
    }
    let mut remarks = Vec::new();
    if found.len() > MAX_CELLS {
        remarks.push(format!("Of {} cells, {MAX_CELLS} are shown.", found.len()));
        found = kept(found.len(), MAX_CELLS).into_iter().map(|i| found[i].clone()).collect();
    }
    if !silent.is_empty() {
        remarks.push(format!("Not shown, because they read nothing: {}.", listed(&silent)));
    }
    if !unseen.is_empty() {
        remarks.push(format!("No disk read was recorded in: {}.", listed(&unseen)));
    }
    (found, remarks)
}

/// The busiest ticks that a cell had for itself, or else of those it was in.
fn window(series: &Series, id: &str) -> Option<Window> {
    let rows = |wanted: &dyn Fn(&[&str]) -> bool| -> Vec<bool> {
        (0..series.time_s.len()).map(|row| wanted(&marks_in(series, row))).collect()
    };
    busiest(series, &rows(&|ran| ran == [id])).or_else(|| busiest(series, &rows(&|ran| ran.contains(&id))))
}

/// A training on batches that were made in memory.
fn reads_nothing(cell: &StudyCell) -> bool {
    cell.measured_one::<TrainCell>().is_some_and(|train| train.synthetic)
}

/// As collectl has it: whole numbers, but for those below ten.
fn whole(value: f64) -> String {
    if value >= 9.95 || value == 0.0 { group_digits(value.round() as u64) } else { quantity(value) }
}

fn nothing_read(run: &Run<'_>, cells: &[&StudyCell]) -> String {
    if !cells.is_empty() && cells.iter().all(|cell| reads_nothing(cell)) {
        return "These cells read nothing: their batches were made in memory.".to_owned();
    }
    let is_shaped = run.head().tiers.iter().any(|tier| tier.kind == TierKind::Shaped);
    let why = match is_shaped {
        true => "A shaped tier takes its bytes from memory if the page cache holds them.",
        false => "The bytes came from memory.",
    };
    format!("No disk read anything while these cells ran. {why}")
}

/// What ran in a row's time: what had begun before and was not over, and what began meanwhile.
fn marks_in(series: &Series, row: usize) -> Vec<&str> {
    let (from, to) = (row.checked_sub(1).map_or(0.0, |before| series.time_s[before]), series.time_s[row]);
    let before = series.marks.iter().rev().find(|mark| mark.time_s <= from);
    let meanwhile = series.marks.iter().filter(|mark| mark.time_s > from && mark.time_s <= to);
    before.into_iter().chain(meanwhile).map(|mark| mark.what.as_str()).collect()
}

fn ran(series: &Series, row: usize) -> String {
    let marks = marks_in(series, row);
    let more = marks.len().saturating_sub(MAX_NAMED);
    let mut named: Vec<String> = marks.into_iter().take(MAX_NAMED).map(str::to_owned).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    listed(&named)
}

/// The disk that read most in rows of these cells, and its busiest rows that follow each other.
fn busiest(series: &Series, of_cells: &[bool]) -> Option<(String, Range<usize>)> {
    let reads = series.columns.iter().filter_map(|column| {
        let disk = column.name.strip_prefix("disk.")?.strip_suffix(".read_bytes_per_s")?;
        let known = |(row, value): (usize, &Option<f64>)| {
            value.filter(|value| of_cells[row] && value.is_finite() && *value > 0.0).unwrap_or(0.0)
        };
        Some((disk, column.values.iter().enumerate().map(known).collect::<Vec<f64>>()))
    });
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let (disk, values) =
        reads.max_by(|a, b| sum(&a.1).total_cmp(&sum(&b.1))).filter(|(_, values)| sum(values) > 0.0)?;
    let n = ROWS.min(values.len());
    let whole = |start: &usize| of_cells[*start..*start + n].iter().all(|of| *of);
    let of_window = |start: usize| sum(&values[start..start + n]);
    let starts = || 0..=values.len() - n;
    let best = starts().filter(whole).max_by(|a, b| of_window(*a).total_cmp(&of_window(*b)));
    if let Some(start) = best.filter(|start| of_window(*start) > 0.0) {
        return Some((disk.to_owned(), start..start + n));
    }
    // Cells shorter than that: the busiest second alone, and its neighbours of the same cells.
    let peak = (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b]))?;
    let start = (peak.saturating_sub(n - 1)..=peak).find(|start| of_cells[*start..=peak].iter().all(|of| *of))?;
    let end = (peak..(start + n).min(values.len())).take_while(|row| of_cells[*row]).last()? + 1;
    Some((disk.to_owned(), start..end))
}

/// The time of day of a row, in UTC.
fn clock(series: &Series, row: usize) -> String {
    let began = parse_utc(&series.started_at).map_or(0.0, |since| since.as_secs_f64());
    // Cut, as every clock does; a microsecond is less than a sum of such numbers can hold.
    let second = (began + series.time_s[row] + 1e-6).floor() as u64 % 86_400;
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_record::{Column, Mark};

    fn series(reads: &[f64]) -> Series {
        let column = |name: &str, factor: f64| Column {
            name: format!("disk.{name}.read_bytes_per_s"),
            values: reads.iter().map(|value| Some(value * factor)).collect(),
        };
        Series {
            started_at: "2026-11-15T23:59:58Z".to_owned(),
            interval_s: 1.0,
            time_s: (1..=reads.len()).map(|i| i as f64).collect(),
            columns: vec![column("vdb", 0.5), column("vda", 1.0)],
            ..Series::default()
        }
    }

    #[test]
    fn the_busiest_seconds_are_those_of_the_figures_cells() {
        let series = series(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 90.0]);
        let mut of = vec![true; 8];
        assert_eq!(busiest(&series, &of), Some(("vda".to_owned(), 5..8)));
        of[7] = false;
        assert_eq!(busiest(&series, &of), Some(("vda".to_owned(), 3..6)));
        let two = [false, true, true, false, false, false, false, false];
        assert_eq!(busiest(&series, &two), Some(("vda".to_owned(), 1..3)), "cells shorter than the window");
        assert_eq!(busiest(&series, &[false; 8]), None);
        assert_eq!(clock(&series, 1), "00:00:00");
    }

    #[test]
    fn a_time_is_cut_and_not_rounded() {
        let mut series = series(&[1.0]);
        series.time_s[0] = 0.768;
        assert_eq!(clock(&series, 0), "23:59:58");
    }

    #[test]
    fn a_tick_names_every_cell_that_ran_in_it() {
        let mut series = series(&[1.0; 4]);
        let mark = |time_s: f64, what: &str| Mark { time_s, what: what.to_owned() };
        series.marks = vec![mark(0.0, "a"), mark(2.0, "b"), mark(2.0, "c"), mark(3.1, "d")];
        let ran: Vec<String> = (0..4).map(|row| ran(&series, row)).collect();
        assert_eq!(ran, ["a", "a, b and c", "c", "c and d"]);
        assert_eq!(window(&series, "a"), Some(("vda".to_owned(), 0..1)), "the tick that it has for itself");
        assert_eq!(window(&series, "b"), Some(("vda".to_owned(), 1..2)), "the one that it shares");
    }

    #[test]
    fn a_queue_that_rests_on_busy_time_that_was_not_counted_is_unknown() {
        let mut series = series(&[1.0, 1.0]);
        for (name, values) in [("queue_busy", [13.9, 1.96]), ("queue_mean", [0.22, 0.22]), ("svctm_ms", [0.0237, 0.19])]
        {
            series.columns.push(Column { name: format!("disk.vda.{name}"), values: values.map(Some).to_vec() });
        }
        let shown = |row: usize| values(&series, "vda", row)[7..9].to_vec();
        assert_eq!(shown(0), [Value::Unknown, Value::Unknown]);
        assert_eq!(shown(1), [Value::maybe(Some(1.96), whole), Value::maybe(Some(0.19), whole)]);
    }
}
