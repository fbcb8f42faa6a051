//! A growing series with a limited number of rows.

use std::time::Duration;

use forebay_record::{Column, Row, Series};
use forebay_units::format_utc;

use crate::merge::regroup;

/// A series that is being taken. When it is full, pairs of rows are merged, and twice as many ticks make a row from
/// then on.
pub(crate) struct Growing {
    series: Series,
    started: Duration,
    max_rows: usize,
    ticks_per_row: usize,
    /// Ticks at the end that do not yet make a row.
    n_loose: usize,
}

impl Growing {
    pub(crate) fn new(interval: Duration, max_rows: usize, notes: Vec<String>) -> Self {
        let series = Series { interval_s: interval.as_secs_f64(), notes, ..Series::default() };
        Self { series, started: Duration::ZERO, max_rows: max_rows.max(2), ticks_per_row: 1, n_loose: 0 }
    }

    /// Sets the time of the start, since 1970.
    pub(crate) fn begin(&mut self, started: Duration) {
        // Dates in records have milliseconds; the rows of the CSV must agree with them.
        self.started = Duration::from_millis(started.as_millis() as u64);
        self.series.started_at = format_utc(self.started);
    }

    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    pub(crate) fn push(&mut self, row: &Row<'_>) {
        let series = &mut self.series;
        for name in row.names.iter().skip(series.columns.len()) {
            series.columns.push(Column { name: name.clone(), values: vec![None; series.time_s.len()] });
        }
        for (column, value) in series.columns.iter_mut().zip(row.values) {
            column.values.push(*value);
        }
        series.time_s.push(row.time_s);
        series.late_s.push(row.late_s);
        series.marks.extend_from_slice(row.marks);
        self.n_loose += 1;
        if self.n_loose == self.ticks_per_row {
            regroup_tail(series, self.n_loose);
            self.n_loose = 0;
            if series.time_s.len() >= self.max_rows {
                regroup(series, 0, 2);
                self.ticks_per_row *= 2;
            }
        }
    }

    /// The series, with a note if its rows are coarser than requested.
    pub(crate) fn end(&mut self) -> Series {
        let mut series = std::mem::take(&mut self.series);
        if self.ticks_per_row > 1 {
            let n = self.ticks_per_row;
            series.notes.push(format!("each row merges {n} ticks, to keep the series below {} rows", self.max_rows));
        }
        series
    }
}

fn regroup_tail(series: &mut Series, n_rows: usize) {
    if n_rows > 1 {
        regroup(series, series.time_s.len() - n_rows, n_rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grow(n_ticks: usize, max_rows: usize) -> Series {
        let mut growing = Growing::new(Duration::from_secs(1), max_rows, Vec::new());
        growing.begin(Duration::from_millis(1_500));
        let names = ["a.bytes_per_s".to_owned()];
        for tick in 1..=n_ticks {
            let (time_s, values) = (tick as f64, [Some(tick as f64)]);
            growing.push(&Row { time_s, late_s: 0.0, marks: &[], names: &names, values: &values });
        }
        growing.end()
    }

    #[test]
    fn a_long_series_is_halved_again_and_again_and_says_so() {
        assert_eq!(grow(3, 4).time_s, [1.0, 2.0, 3.0]);
        assert!(grow(3, 4).notes.is_empty());
        let series = grow(100, 4);
        assert_eq!(series.time_s.len(), 3 + 4, "three rows of 32 ticks, and four ticks that do not yet make a row");
        assert_eq!(series.time_s[..3], [32.0, 64.0, 96.0]);
        assert_eq!(series.total("a.bytes_per_s"), Some(5_050.0), "nothing is lost");
        assert_eq!(series.notes, ["each row merges 32 ticks, to keep the series below 4 rows"]);
        assert_eq!(series.started_at, "1970-01-01T00:00:01.500Z");
    }

    #[test]
    fn a_column_that_comes_late_is_unknown_before() {
        let mut growing = Growing::new(Duration::from_secs(1), 100, Vec::new());
        let names = ["a.x".to_owned(), "b.x".to_owned()];
        for (time_s, n_columns) in [(1.0, 1), (2.0, 2)] {
            let values = [Some(time_s), Some(time_s)];
            let (names, values) = (&names[..n_columns], &values[..n_columns]);
            growing.push(&Row { time_s, late_s: 0.0, marks: &[], names, values });
        }
        let series = growing.end();
        assert_eq!(series.values("a.x"), Some(&[Some(1.0), Some(2.0)][..]));
        assert_eq!(series.values("b.x"), Some(&[None, Some(2.0)][..]));
    }
}
