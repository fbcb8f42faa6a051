//! A series as CSV, which `pandas.read_csv` and spreadsheets open as it is.
//!
//! One header line, then one line per row: `time` in seconds since 1970, `elapsed_s`, `late_s`, `mark`, and the quantities by name.
//! An empty cell is an unknown value. Quoting follows RFC 4180. Numbers are written so that reading them gives the same bits. A
//! mark loses its exact time: it gets that of the row after it.

use std::fmt::Write;
use std::time::Duration;

use forebay_units::{format_utc, parse_utc};

use crate::{Column, Error, Mark, Series};

const FIXED: [&str; 4] = ["time", "elapsed_s", "late_s", "mark"];
/// Separates several marks of one row.
const BETWEEN_MARKS: &str = "; ";

/// One tick of a series, borrowed for writing.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// In seconds since the beginning of the series.
    pub time_s: f64,
    /// Seconds after its deadline.
    pub late_s: f64,
    /// Events since the row before.
    pub marks: &'a [Mark],
    /// In a growing series, names are only ever added at the end.
    pub names: &'a [String],
    /// One value per column.
    pub values: &'a [Option<f64>],
}

impl Row<'_> {
    /// `None` if the value is unknown or there is no such column.
    pub fn get(&self, name: &str) -> Option<f64> {
        let index = self.names.iter().position(|known| known == name)?;
        *self.values.get(index)?
    }
}

/// Writes a series as CSV line by line, while it grows.
#[derive(Debug, Clone)]
pub struct CsvLines {
    started_s: f64,
    n_columns: usize,
}

impl CsvLines {
    /// `started` is the time since 1970; also returns the header line.
    pub fn begin(started: Duration, names: &[String]) -> (Self, String) {
        let mut head = FIXED.join(",");
        for name in names {
            head.push(',');
            push_text(&mut head, name);
        }
        head.push('\n');
        (Self { started_s: started.as_secs_f64(), n_columns: names.len() }, head)
    }

    /// Columns added after the header have no place in the file and are left out.
    pub fn line(&self, row: &Row<'_>) -> String {
        let mut line = format!("{:.6},{},{},", self.started_s + row.time_s, row.time_s, row.late_s);
        let marks: Vec<String> = row.marks.iter().map(|mark| mark.what.replace(BETWEEN_MARKS, ", ")).collect();
        push_text(&mut line, &marks.join(BETWEEN_MARKS));
        for index in 0..self.n_columns {
            line.push(',');
            if let Some(value) = row.values.get(index).copied().flatten() {
                write!(line, "{value}").expect("a string takes every write");
            }
        }
        line.push('\n');
        line
    }
}

impl Series {
    /// The series as CSV.
    pub fn to_csv(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let (lines, mut text) = CsvLines::begin(parse_utc(&self.started_at).unwrap_or_default(), &names);
        let mut marks = self.marks.as_slice();
        for (row, &time_s) in self.time_s.iter().enumerate() {
            let is_last = row + 1 == self.time_s.len();
            let n_marks = marks.iter().take_while(|mark| is_last || mark.time_s <= time_s).count();
            let (here, later) = marks.split_at(n_marks);
            marks = later;
            let values: Vec<Option<f64>> = self.columns.iter().map(|column| column.values[row]).collect();
            let late_s = self.late_s[row];
            text.push_str(&lines.line(&Row { time_s, late_s, marks: here, names: &names, values: &values }));
        }
        text
    }

    /// Skips a last line without its end, as a killed writer leaves it. The interval is the median distance between rows.
    ///
    /// # Errors
    /// When the header is not ours, or a line has too few cells or a cell that is not a number.
    pub fn from_csv(text: &str) -> Result<Self, Error> {
        let mut records = Records { text, line: 1 };
        let head = records.next().ok_or(Error::Csv { line: 1, what: "a header line is expected" })?.1;
        if head.len() < FIXED.len() || head[..FIXED.len()] != FIXED {
            return Err(Error::Csv { line: 1, what: "the columns time, elapsed_s, late_s and mark must come first" });
        }
        let columns = head[FIXED.len()..].iter().map(|name| Column { name: name.clone(), values: Vec::new() });
        let mut series = Self { columns: columns.collect(), ..Self::default() };
        let mut started_s = None;
        for (line, cells) in records {
            let time = series.push_cells(&cells).map_err(|what| Error::Csv { line, what })?;
            started_s.get_or_insert(time);
        }
        let started = Duration::try_from_secs_f64(started_s.unwrap_or_default()).unwrap_or_default();
        series.started_at = format_utc(Duration::from_millis((started.as_secs_f64() * 1e3).round() as u64));
        series.interval_s = series.median_distance();
        Ok(series)
    }

    /// Returns the start of the series since 1970, as implied by this line.
    fn push_cells(&mut self, cells: &[String]) -> Result<f64, &'static str> {
        if cells.len() != FIXED.len() + self.columns.len() {
            return Err("it has another number of cells than the header");
        }
        let number = |cell: &String| cell.parse::<f64>().map_err(|_| "a cell is not a number");
        let (time, time_s, late_s) = (number(&cells[0])?, number(&cells[1])?, number(&cells[2])?);
        self.time_s.push(time_s);
        self.late_s.push(late_s);
        let marks = cells[3].split(BETWEEN_MARKS).filter(|what| !what.is_empty());
        self.marks.extend(marks.map(|what| Mark { time_s, what: what.to_owned() }));
        for (column, cell) in self.columns.iter_mut().zip(&cells[FIXED.len()..]) {
            column.values.push(if cell.is_empty() { None } else { Some(number(cell)?) });
        }
        Ok(time - time_s)
    }

    fn median_distance(&self) -> f64 {
        let before = std::iter::once(&0.0).chain(&self.time_s);
        let distances: Vec<f64> = self.time_s.iter().zip(before).map(|(time, before)| time - before).collect();
        forebay_units::median(&distances).unwrap_or(0.0)
    }
}

/// Quotes the text if needed.
fn push_text(line: &mut String, text: &str) {
    if text.contains([',', '"', '\n', '\r']) {
        line.push('"');
        line.push_str(&text.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(text);
    }
}

/// Complete records of a CSV text, each with the line it begins on.
struct Records<'a> {
    text: &'a str,
    line: usize,
}

impl Iterator for Records<'_> {
    type Item = (usize, Vec<String>);

    fn next(&mut self) -> Option<Self::Item> {
        let (line, mut cells, mut cell, mut quoted) = (self.line, Vec::new(), String::new(), false);
        let mut chars = self.text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            self.line += usize::from(c == '\n');
            match c {
                '"' if quoted && chars.next_if(|(_, next)| *next == '"').is_some() => cell.push('"'),
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(std::mem::take(&mut cell)),
                '\n' if !quoted => {
                    cells.push(cell.strip_suffix('\r').map(str::to_owned).unwrap_or(cell));
                    self.text = &self.text[at + 1..];
                    return Some((line, cells));
                }
                c => cell.push(c),
            }
        }
        // A line without its end was torn off: half a number looks like a number.
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series() -> Series {
        let column = |name: &str, values: [Option<f64>; 2]| Column { name: name.to_owned(), values: values.to_vec() };
        Series {
            started_at: "2026-11-15T16:44:05.007Z".to_owned(),
            interval_s: 1.0,
            time_s: vec![1.0, 2.0],
            late_s: vec![0.0, 0.25],
            columns: vec![
                column("cpu.user_percent", [Some(12.5), None]),
                column("disk.a,\"b\".queue_mean", [None, Some(0.1)]),
            ],
            marks: vec![
                Mark { time_s: 2.0, what: "cell \"a\", repeat 1".to_owned() },
                Mark { time_s: 2.0, what: "repeat 2".to_owned() },
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_series_is_a_header_and_a_line_a_row() {
        let expected = "time,elapsed_s,late_s,mark,cpu.user_percent,\"disk.a,\"\"b\"\".queue_mean\"\n\
            1794761046.007000,1,0,,12.5,\n\
            1794761047.007000,2,0.25,\"cell \"\"a\"\", repeat 1; repeat 2\",,0.1\n";
        assert_eq!(series().to_csv(), expected);
        assert_eq!(Series::from_csv(expected).unwrap(), series());
    }

    #[test]
    fn a_text_torn_anywhere_gives_the_rows_before() {
        let text = series().to_csv();
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for cut in ends[0]..=text.len() {
            let read = Series::from_csv(&text[..cut]).unwrap();
            let n_rows = ends[1..].iter().filter(|end| **end <= cut).count();
            assert_eq!(read.time_s, series().time_s[..n_rows], "cut at {cut}");
            assert!(read.columns.iter().all(|column| column.values.len() == n_rows), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_ours_is_refused_with_its_line() {
        let said = |text: &str| Series::from_csv(text).unwrap_err().to_string();
        assert_eq!(said(""), "line 1 of the CSV: a header line is expected");
        assert!(said("a,b\n1,2\n").starts_with("line 1 of the CSV: the columns time, elapsed_s"));
        let head = "time,elapsed_s,late_s,mark,x.y\r\n10,1,0,,4\r\n";
        assert_eq!(Series::from_csv(head).unwrap().values("x.y"), Some(&[Some(4.0)][..]), "as Windows ends lines");
        assert!(said(&format!("{head}11,2,0,\n")).starts_with("line 3 of the CSV: it has another number"));
        assert_eq!(said(&format!("{head}11,2,0,,x\n")), "line 3 of the CSV: a cell is not a number");
    }

    #[test]
    fn columns_that_come_later_are_left_out_of_the_lines() {
        let mut names = vec!["a.b".to_owned()];
        let (lines, head) = CsvLines::begin(Duration::ZERO, &names);
        assert_eq!(head, "time,elapsed_s,late_s,mark,a.b\n");
        names.push("c.d".to_owned());
        let row = Row { time_s: 0.5, late_s: 0.0, marks: &[], names: &names, values: &[None, Some(1.0)] };
        assert_eq!(lines.line(&row), "0.500000,0.5,0,,\n");
        assert_eq!((row.get("c.d"), row.get("a.b"), row.get("e.f")), (Some(1.0), None, None));
    }

    proptest! {
        #[test]
        fn a_series_is_read_as_it_was_written(
            rows in prop::collection::vec((0.001f64..1e6, any::<Option<f32>>(), "[a-z,\"\r\n ]{0,8}"), 1..20),
        ) {
            let mut written = Series { started_at: "2026-11-15T16:44:05.007Z".to_owned(), ..Series::default() };
            let values = rows.iter().map(|(_, value, _)| value.filter(|v| v.is_finite()).map(f64::from)).collect();
            written.columns = vec![Column { name: "a.b".to_owned(), values }];
            for (distance, _, what) in &rows {
                let time_s = written.time_s.last().unwrap_or(&0.0) + distance;
                written.time_s.push(time_s);
                written.late_s.push(distance / 3.0);
                if !what.is_empty() {
                    written.marks.push(Mark { time_s, what: what.clone() });
                }
            }
            written.interval_s = written.median_distance();
            prop_assert_eq!(Series::from_csv(&written.to_csv()).unwrap(), written);
        }
    }
}
