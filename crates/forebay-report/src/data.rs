//! A table of values that is shown and exported alike: on the page, in a terminal, as JSON, as CSV.
//!
//! A number keeps its exact value beside the text that people see, so what is exported is what was measured.

mod narrow;

use forebay_record::Disturbed;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::basis;
use crate::markup::Markup;
use unicode_width::UnicodeWidthStr;

use crate::table::{Align, columns, paragraph};
use crate::visible::visible;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Unknown; shown as "–".
    Unknown,
    Text(String),
    Number(f64, String),
    Word(&'static str, Tone),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Neither,
}

impl Value {
    /// A number with the text that `show` makes of it; unknown when it is not finite.
    pub(crate) fn number(value: f64, show: impl Fn(f64) -> String) -> Self {
        if value.is_finite() { Self::Number(value, show(value)) } else { Self::Unknown }
    }

    /// As [`Value::number`], if there is one.
    pub(crate) fn maybe(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        value.map_or(Self::Unknown, |value| Self::number(value, show))
    }

    /// With the mark behind a number that people see, if it is one of a disturbed cell.
    pub(crate) fn marked(self, disturbed: Option<Disturbed>) -> Self {
        match self {
            Self::Number(value, shown) => Self::Number(value, basis::marked(shown, disturbed)),
            other => other,
        }
    }

    pub(crate) fn count(n: u64) -> Self {
        Self::Number(n as f64, forebay_units::group_digits(n))
    }

    /// Words; unknown when there are none.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::Unknown } else { Self::Text(text) }
    }

    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Unknown => "–",
            Self::Text(text) | Self::Number(_, text) => text,
            Self::Word(word, _) => word,
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown => serializer.serialize_none(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Word(word, _) => serializer.serialize_str(word),
            // A count is written without a point.
            Self::Number(value, _) if value.fract() == 0.0 && value.abs() < 9e15 => {
                serializer.serialize_i64(*value as i64)
            }
            Self::Number(value, _) => serializer.serialize_f64(*value),
        }
    }
}

#[derive(Debug, Clone)]
struct Column {
    key: String,
    name: String,
    align: Align,
    /// Exported and not shown.
    hidden: bool,
    /// Shown also where no value is known.
    kept: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Data {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl Data {
    /// A table with these columns: the key that JSON has, the name that people see, the side.
    pub(crate) fn new(columns: &[(&str, &str, Align)]) -> Self {
        let mut data = Self::default();
        for (key, name, align) in columns {
            data.column(key, name, *align);
        }
        data
    }

    /// Adds a column, before the first row.
    pub(crate) fn column(&mut self, key: &str, name: &str, align: Align) {
        self.columns.push(Column { key: key.to_owned(), name: name.to_owned(), align, hidden: false, kept: false });
    }

    /// Shows every column, also one without a known value: it is missing, and that is to be seen.
    pub(crate) fn keep_all(&mut self) {
        self.columns.iter_mut().for_each(|column| column.kept = true);
    }

    /// Takes a column out of what people see; programs still get it.
    pub(crate) fn hide(&mut self, key: &str) {
        for column in self.columns.iter_mut().filter(|column| column.key == key) {
            column.hidden = true;
        }
    }

    /// Hides a column all of whose known values are the same.
    pub(crate) fn hide_if_same(&mut self, key: &str) {
        let Some(i) = self.columns.iter().position(|column| column.key == key) else { return };
        let mut known = self.rows.iter().map(|row| &row[i]).filter(|value| **value != Value::Unknown);
        let first = known.next();
        if known.all(|value| Some(value) == first) {
            self.columns[i].hidden = true;
        }
    }

    /// Adds a column to the rows that are there.
    pub(crate) fn add_column(&mut self, key: &str, name: &str, align: Align, value: impl Fn(usize) -> Value) {
        self.column(key, name, align);
        for (i, row) in self.rows.iter_mut().enumerate() {
            row.push(value(i));
        }
    }

    /// Adds a row; it has as many values as there are columns.
    pub(crate) fn row(&mut self, values: Vec<Value>) {
        assert_eq!(values.len(), self.columns.len(), "a row has one value per column");
        self.rows.push(values);
    }

    /// Adds a row of which some values are known, by the columns' keys.
    pub(crate) fn row_of(&mut self, known: Vec<(&str, Value)>) {
        let mut row = vec![Value::Unknown; self.columns.len()];
        for (key, value) in known {
            let i = self.columns.iter().position(|column| column.key == key);
            row[i.expect("a value has a column")] = value;
        }
        self.rows.push(row);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let mut data = self.clone();
        data.columns.iter_mut().for_each(|column| column.hidden |= names.contains(&column.name.as_str()));
        data
    }

    /// The first rows for a terminal of so many columns: a single row is a list, what several share is said once below them, heads are
    /// broken, and columns that still do not fit follow in further tables, behind those that name the rows.
    pub(crate) fn fitted(&self, max_rows: usize, columns: usize) -> String {
        let text = |row: &[Value], i: usize| visible(row[i].shown()).into_owned();
        let named = |i: usize| vec![self.columns[i].name.clone(), text(&self.rows[0], i)];
        if self.rows.len() == 1 {
            return list(self.shown().map(named).collect(), columns);
        }
        let is_same = |i: &usize| self.rows.iter().all(|row| row[*i] == self.rows[0][*i]);
        let (same, differ): (Vec<usize>, Vec<usize>) = self.shown().partition(is_same);
        let column = |i: usize| {
            let values: Vec<String> = self.rows.iter().take(max_rows).map(|row| text(row, i)).collect();
            let values = if self.columns[i].key == "at" { shortened(values) } else { values };
            let head = broken(&self.columns[i].name, width(&values).max(LEAST_HEAD));
            (head.chain(values).collect::<Vec<String>>(), self.columns[i].align)
        };
        // What names a row.
        let n_lead = differ.iter().take_while(|i| self.columns[**i].align == Align::Left).count().max(1);
        let mut blocks: Vec<Vec<(Vec<String>, Align)>> = Vec::new();
        for column in differ.iter().map(|i| column(*i)) {
            let taken =
                |block: &Vec<(Vec<String>, Align)>| block.iter().map(|(lines, _)| width(lines) + 2).sum::<usize>();
            match blocks.iter_mut().find(|block| taken(block) + width(&column.0) <= columns) {
                Some(block) => block.push(column),
                None => {
                    let lead = blocks.first().map(|block| block[..n_lead.min(block.len())].to_vec());
                    blocks.push(lead.into_iter().flatten().chain([column]).collect());
                }
            }
        }
        let tables: Vec<String> = blocks.iter().map(|block| beside(block)).collect();
        let same: Vec<String> = same.into_iter().map(|i| named(i).join(" ")).collect();
        let same = if same.is_empty() {
            String::new()
        } else {
            paragraph(&format!("In every row: {}.", same.join("; ")), 0, columns)
        };
        tables.join("\n") + &same
    }

    /// Columns that are not hidden and have a known value, or are kept.
    fn shown(&self) -> impl Iterator<Item = usize> {
        let known = |i: &usize| self.columns[*i].kept || self.rows.iter().any(|row| row[*i] != Value::Unknown);
        (0..self.columns.len()).filter(move |i| !self.columns[*i].hidden && known(i))
    }

    /// The table on a page, with at most so many rows; columns without a known value are left out.
    pub(crate) fn to_html(&self, class: &str, caption: &str, max_rows: usize) -> Markup {
        let shown: Vec<(usize, String)> = self.shown().map(|i| (i, self.class(i))).collect();
        let mut page = Markup::default();
        page.open("div", &[("class", &"scroll"), ("tabindex", &0), ("role", &"group"), ("aria-label", &caption)]);
        page.open("table", &[("class", &class)]);
        page.open("thead", &[]);
        page.open("tr", &[]);
        for (i, class) in &shown {
            page.element("th", &[("scope", &"col"), ("class", class)], &self.columns[*i].name);
        }
        page.close("tr");
        page.close("thead");
        page.open("tbody", &[]);
        for row in self.rows.iter().take(max_rows) {
            page.open("tr", &[]);
            for (i, class) in &shown {
                cell(&mut page, &row[*i], class);
            }
            page.close("tr");
        }
        page.close("tbody");
        page.close("table");
        page.close("div");
        page
    }

    /// The class of a column's cells: its side, and whether its texts are long enough to be broken.
    fn class(&self, i: usize) -> String {
        let is_long = self.rows.iter().take(LOOKED_AT).any(|row| row[i].shown().chars().count() > LONG);
        format!("{}{}", side(self.columns[i].align), if is_long { " w" } else { "" })
    }
}

/// A list is set in two columns from this length on.
const LONG_LIST: usize = 6;
/// Characters of a value that has room in such a column.
const WIDEST_VALUE: usize = 16;

/// Names with their values: a long list in two columns, with the entries that are too wide for one below.
fn list(entries: Vec<Vec<String>>, width: usize) -> String {
    let is_narrow = |entry: &Vec<String>| entry[1].chars().count() <= WIDEST_VALUE;
    let (mut narrow, wide): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(is_narrow);
    let right = narrow.split_off(narrow.len().div_ceil(2));
    let spare = vec![String::new(); 2];
    let pairs = narrow.into_iter().zip(right.into_iter().chain(std::iter::repeat(spare)));
    let both = columns(&pairs.map(|(left, right)| [left, right].concat()).collect::<Vec<_>>(), |_| Align::Left);
    let fits = both.lines().all(|line| line.width() <= width);
    if entries.len() < LONG_LIST || !fits {
        return columns(&entries, |_| Align::Left);
    }
    both + &columns(&wide, |_| Align::Left)
}

/// The width up to which a head is not broken.
const LEAST_HEAD: usize = 9;
/// Lines that a head is broken into at most.
const HEAD_LINES: usize = 4;

/// Characters of the first column that are shown, where these tell its rows apart.
const FIRST: usize = 48;

fn shortened(texts: Vec<String>) -> Vec<String> {
    let cut = |text: &String| match text.chars().count() <= FIRST {
        true => text.clone(),
        false => text.chars().take(FIRST - 1).chain(['…']).collect(),
    };
    let short: Vec<String> = texts.iter().map(cut).collect();
    let n_apart = |texts: &[String]| texts.iter().collect::<std::collections::BTreeSet<_>>().len();
    if n_apart(&short) == n_apart(&texts) { short } else { texts }
}

fn width(lines: &[String]) -> usize {
    lines.iter().map(|line| line.width()).max().unwrap_or(0)
}

/// Columns of as many lines each, without the lines that are empty in all.
fn beside(block: &[(Vec<String>, Align)]) -> String {
    let rows = (0..block[0].0.len()).map(|line| block.iter().map(|(lines, _)| lines[line].clone()).collect());
    let rows: Vec<Vec<String>> = rows.filter(|row: &Vec<String>| row.iter().any(|cell| !cell.is_empty())).collect();
    columns(&rows, |column| block[column].1)
}

/// The words of a head in lines of at most so many characters, where words and the number of lines allow it, empty ones first.
fn broken(head: &str, width: usize) -> impl Iterator<Item = String> + use<> {
    let mut lines: Vec<String> = Vec::new();
    for word in head.split(' ') {
        let n_lines = lines.len();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width || n_lines == HEAD_LINES => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    std::iter::repeat_n(String::new(), HEAD_LINES - lines.len()).chain(lines)
}

/// Texts longer than this are broken over lines.
const LONG: usize = 24;
/// Rows that decide whether a column's texts are long.
const LOOKED_AT: usize = 400;

fn side(align: Align) -> &'static str {
    match align {
        Align::Left => "l",
        Align::Right => "r",
    }
}

fn cell(page: &mut Markup, value: &Value, class: &str) {
    match value {
        Value::Word(word, tone) => {
            let tone = match tone {
                Tone::Good => " good",
                Tone::Bad => " bad",
                Tone::Neither => "",
            };
            page.element("td", &[("class", &format_args!("{class}{tone}"))], word);
        }
        _ => page.element("td", &[("class", &class)], value.shown()),
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            rows.serialize_element(&Row { columns: &self.columns, row })?;
        }
        rows.end()
    }
}

struct Row<'a> {
    columns: &'a [Column],
    row: &'a [Value],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.row.len()))?;
        for (column, value) in self.columns.iter().zip(self.row) {
            map.serialize_entry(&column.key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::quantity;

    fn data() -> Data {
        let mut data = Data::new(&[("tier", "tier", Align::Left), ("rate", "images/s", Align::Right)]);
        data.column("none", "nothing", Align::Right);
        data.row(vec![Value::text("<hdd>"), Value::number(262.4321, quantity), Value::Unknown]);
        data.row(vec![Value::text(""), Value::number(f64::NAN, quantity), Value::count(1_000).maybe_not()]);
        data
    }

    impl Value {
        fn maybe_not(self) -> Self {
            Self::maybe(None, quantity)
        }
    }

    #[test]
    fn json_has_the_exact_numbers_in_the_columns_order() {
        let json = serde_json::to_string(&data()).unwrap();
        assert_eq!(json, r#"[{"tier":"<hdd>","rate":262.4321,"none":null},{"tier":null,"rate":null,"none":null}]"#);
    }

    #[test]
    fn pages_and_terminals_leave_out_what_nobody_knows() {
        assert_eq!(data().fitted(2, 80), "tier   images/s\n<hdd>       262\n–             –\n");
        let html = data().to_html("cells", "cells", 1).into_string();
        assert!(html.contains("<td class=\"l\">&lt;hdd&gt;</td><td class=\"r\">262</td>"), "{html}");
        assert!(!html.contains("nothing") && html.matches("<tr>").count() == 2, "{html}");
    }
}
