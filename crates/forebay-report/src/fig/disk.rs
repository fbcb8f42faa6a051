//! The busiest disk in its busiest seconds, in the columns of collectl.

use std::ops::Range;

use forebay_record::{Series, StudyCell, TierKind};
use forebay_units::{group_digits, parse_utc};

use crate::data::{Data, Value};
use crate::number::quantity;
use crate::run::Run;
use crate::table::Align::{Left, Right};

use super::{Context, Drawn};

/// Seconds that are shown.
const ROWS: usize = 5;
/// The kernel's kilobyte, which is collectl's.
const KIB: f64 = 1024.0;

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

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let Some(series) = context.run.series() else {
        return Drawn::nothing("The run kept no per-second series.");
    };
    let cells = context.cells();
    let rows: Vec<bool> = (0..series.time_s.len()).map(|row| is_of(context, series, &cells, row)).collect();
    let Some((disk, window)) = busiest(series, &rows) else {
        return Drawn::nothing(format!("No disk read anything while these cells ran.{}", why_none(context.run)));
    };
    let mut data = Data::new(&[("time", "Time", Left), ("disk", "Name", Left)]);
    for (key, name, _, _) in COLUMNS {
        data.column(key, name, Right);
    }
    data.column("cell", "cell", Left);
    data.keep_all();
    for row in window {
        let mut values = vec![Value::text(clock(series, row)), Value::text(disk.clone())];
        values.extend(COLUMNS.map(|(_, _, column, by)| {
            let value =
                series.values(&format!("disk.{disk}.{column}")).and_then(|values| values.get(row).copied().flatten());
            Value::maybe(value.map(|value| value / by), whole)
        }));
        values.push(Value::text(mark_at(series, row).unwrap_or_default()));
        data.row(values);
    }
    Drawn {
        data,
        reading: "Reads of the disk that read most, in its busiest seconds of this experiment, as collectl writes them: KBytes, \
                  merges and requests a second, KBytes a request, milliseconds a read waited, requests under way while there \
                  were any, milliseconds of service (a legacy: it takes the disk for one that does one thing at a time). \
                  Times are UTC."
            .to_owned(),
        is_table: true,
        ..Drawn::default()
    }
}

/// As collectl has it: whole numbers, but for those below ten.
fn whole(value: f64) -> String {
    if value >= 9.95 || value == 0.0 { group_digits(value.round() as u64) } else { quantity(value) }
}

fn why_none(run: &Run<'_>) -> &'static str {
    match run.head().tiers.iter().any(|tier| tier.kind == TierKind::Shaped) {
        true => {
            " A tier that is shaped in this process takes its bytes from memory where the machine holds them there."
        }
        false => " The bytes came from memory.",
    }
}

/// What was being measured in most of a row's time.
fn mark_at(series: &Series, row: usize) -> Option<&str> {
    let middle = series.time_s[row] - series.span_s(row)? / 2.0;
    series.marks.iter().rev().find(|mark| mark.time_s <= middle).map(|mark| mark.what.as_str())
}

/// Whether a row is of one of the figure's cells; of a single command all are.
fn is_of(context: &Context<'_>, series: &Series, cells: &[&StudyCell], row: usize) -> bool {
    if !context.run.is_study() {
        return true;
    }
    mark_at(series, row).is_some_and(|what| cells.iter().any(|cell| cell.id == what))
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
    let second = (began + series.time_s[row]).round() as u64 % 86_400;
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_record::Column;

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
        assert_eq!(busiest(&series, &of), Some(("vda".to_owned(), 3..8)));
        of[7] = false;
        assert_eq!(busiest(&series, &of), Some(("vda".to_owned(), 0..5)));
        let two = [false, true, true, false, false, false, false, false];
        assert_eq!(busiest(&series, &two), Some(("vda".to_owned(), 1..3)), "cells shorter than the window");
        assert_eq!(busiest(&series, &[false; 8]), None);
        assert_eq!(clock(&series, 1), "00:00:00");
    }
}
