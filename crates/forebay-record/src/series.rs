//! What the machine did meanwhile: one row a tick, one column a quantity.

use serde::{Deserialize, Serialize};

/// A per-tick series, held by columns.
///
/// A column's name says its subject and ends in its unit: `cpu.user_percent`, `disk.vda.read_bytes_per_s`,
/// `process.read_bytes_per_s`, `psi.io.some_percent`. A rate is the mean over the time since the tick before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// When the series began, in UTC, as "2026-11-15T17:03:00Z".
    pub started_at: String,
    /// The interval that was asked for, in seconds.
    pub interval_s: f64,
    /// When each row was taken, in seconds since the beginning.
    pub time_s: Vec<f64>,
    /// How late each row was, in seconds after its deadline.
    pub late_s: Vec<f64>,
    /// The quantities; every column has as many values as there are rows.
    pub columns: Vec<Column>,
    /// What happened when: the beginning of a cell, of a repeat.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// One quantity over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Column {
    /// Subject and unit, as "disk.vda.read_bytes_per_s".
    pub name: String,
    /// A value a row; `None` where it could not be told.
    pub values: Vec<Option<f64>>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// When, in seconds since the beginning of the series.
    pub time_s: f64,
    /// What.
    pub what: String,
}

impl Series {
    /// The values of a column; `None` when there is no such column.
    pub fn values(&self, name: &str) -> Option<&[Option<f64>]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.values.as_slice())
    }

    /// A tick that came later than half an interval after its deadline.
    pub fn is_late(&self, row: usize) -> bool {
        self.late_s.get(row).is_some_and(|late| *late > self.interval_s / 2.0)
    }

    /// Whether there is not a single row.
    pub fn is_empty(&self) -> bool {
        self.time_s.is_empty()
    }
}
