//! System activity over time: one row per tick, one column per quantity.

use forebay_units::parse_utc;
use serde::{Deserialize, Serialize};

/// Megabytes read from storage over time since the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reads {
    /// Length of an interval, in seconds; longer in long runs, whose entries are merged.
    pub every_s: f64,
    /// Megabytes (10^6 bytes) read in each interval.
    pub mb: Vec<f64>,
}

/// System activity at a fixed interval, stored by column.
///
/// A column's name says its subject and ends in its unit: `cpu.user_percent`, `disk.vda.read_bytes_per_s`,
/// `process.read_bytes_per_s`, `psi.io.some_percent`. A rate is the mean since the previous row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Start of the series in UTC, such as "2026-11-15T17:03:00Z".
    pub started_at: String,
    /// Requested interval, in seconds.
    pub interval_s: f64,
    /// Time of each row, in seconds since the start of the series.
    pub time_s: Vec<f64>,
    /// Delay of each row after its deadline, in seconds.
    pub late_s: Vec<f64>,
    /// The quantities; every column has one value per row.
    pub columns: Vec<Column>,
    /// Events: the start of a cell or of a repeat.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Remarks: sources that could not be read and why, rows merged to save memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One quantity over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// Subject and unit, such as "disk.vda.read_bytes_per_s".
    pub name: String,
    /// One value per row; `None` where unknown.
    pub values: Vec<Option<f64>>,
}

/// An event in a series.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// Time in seconds since the start of the series.
    pub time_s: f64,
    /// What happened: the name of the cell or repeat.
    pub what: String,
}

impl Series {
    /// `None` if there is no such column.
    pub fn values(&self, name: &str) -> Option<&[Option<f64>]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.values.as_slice())
    }

    /// Time that a row covers, in seconds: since the row before, or since the beginning.
    pub fn span_s(&self, row: usize) -> Option<f64> {
        let before = row.checked_sub(1).map_or(0.0, |before| self.time_s[before]);
        self.time_s.get(row).map(|time| time - before)
    }

    /// Integral of a rate: of bytes per second, the bytes. Rows without a value add nothing; `None` if no row has one.
    pub fn total(&self, name: &str) -> Option<f64> {
        let values = self.values(name)?.iter().enumerate();
        let known = values.filter_map(|(row, value)| Some((*value)? * self.span_s(row)?));
        known.fold(None, |total, amount| Some(total.unwrap_or(0.0) + amount))
    }

    /// More than half an interval after its deadline.
    pub fn is_late(&self, row: usize) -> bool {
        self.late_s.get(row).is_some_and(|late| *late > self.interval_s / 2.0)
    }

    /// Appends a later series at its distance in time. A column that only one of the two has is unknown in the other.
    pub fn append(&mut self, later: Self) {
        if self.is_empty() {
            *self = later;
            return;
        }
        let began = |text: &str| parse_utc(text).map_or(0.0, |since| since.as_secs_f64());
        // If the clock was set back meanwhile, the later one follows at once.
        let end = self.time_s.last().copied().unwrap_or(0.0);
        let shift = (began(&later.started_at) - began(&self.started_at)).max(end);
        let (n_before, n_later) = (self.time_s.len(), later.time_s.len());
        self.time_s.extend(later.time_s.iter().map(|time| time + shift));
        self.late_s.extend(later.late_s);
        self.notes.extend(later.notes);
        self.notes.dedup();
        self.marks.extend(later.marks.into_iter().map(|mark| Mark { time_s: mark.time_s + shift, ..mark }));
        for theirs in later.columns {
            match self.columns.iter_mut().find(|ours| ours.name == theirs.name) {
                Some(ours) => ours.values.extend(theirs.values),
                None => {
                    let unknown = vec![None; n_before];
                    self.columns.push(Column { name: theirs.name, values: [unknown, theirs.values].concat() });
                }
            }
        }
        self.columns.iter_mut().for_each(|column| column.values.resize(n_before + n_later, None));
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.time_s.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_rate_weighs_every_row_with_its_own_time() {
        let rate = |values: &[Option<f64>]| Column { name: "a.bytes_per_s".to_owned(), values: values.to_vec() };
        let time_s = vec![1.0, 1.5, 3.5];
        let series = Series { time_s, columns: vec![rate(&[Some(10.0), None, Some(4.0)])], ..Series::default() };
        assert_eq!(series.total("a.bytes_per_s"), Some(18.0));
        assert_eq!((series.span_s(0), series.span_s(2), series.span_s(3)), (Some(1.0), Some(2.0), None));
        assert_eq!(series.total("b.bytes_per_s"), None);
        let unknown = Series { time_s: vec![1.0], columns: vec![rate(&[None])], ..Series::default() };
        assert_eq!(unknown.total("a.bytes_per_s"), None, "unknown is not nothing");
    }

    fn series(started_at: &str, name: &str, times: &[f64]) -> Series {
        Series {
            started_at: started_at.to_owned(),
            interval_s: 1.0,
            time_s: times.to_vec(),
            late_s: vec![0.0; times.len()],
            columns: vec![Column { name: name.to_owned(), values: times.iter().copied().map(Some).collect() }],
            marks: vec![Mark { time_s: 0.5, what: name.to_owned() }],
            notes: vec!["one disk".to_owned()],
        }
    }

    #[test]
    fn a_later_series_follows_after_the_gap_and_missing_columns_are_unknown() {
        let mut all = Series::default();
        all.append(series("2026-11-15T17:00:00Z", "a", &[1.0, 2.0]));
        all.append(series("2026-11-15T17:01:00Z", "b", &[1.0]));
        assert_eq!(all.time_s, [1.0, 2.0, 61.0]);
        assert_eq!(all.notes, ["one disk"]);
        assert_eq!(all.values("a").unwrap(), [Some(1.0), Some(2.0), None]);
        assert_eq!(all.values("b").unwrap(), [None, None, Some(1.0)]);
        assert_eq!(all.marks[1], Mark { time_s: 60.5, what: "b".to_owned() });
        all.append(series("2026-11-15T16:00:00Z", "a", &[1.0]));
        assert_eq!(all.time_s[3], 62.0, "a clock that was set back does not make time go back");
    }
}
