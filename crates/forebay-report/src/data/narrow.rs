//! A long table in few columns, for a terminal: every row once, on one line.

use super::{Data, Value, visible};
use crate::table::{Align, Table};
use unicode_width::UnicodeWidthStr;

/// A name is not shortened below this, even if the line gets too long.
const LEAST_NAME: usize = 24;

impl Data {
    /// The first rows on a line each, without columns that say nothing: unknown or 0 in all of them. The columns in `spare` go, the
    /// first one first, until lines of so many columns have room; then the texts in the column `name` lose their beginning.
    pub(crate) fn narrow(&self, max_rows: usize, columns: usize, name: &str, spare: &[&str]) -> String {
        let says = |i: &usize| self.rows.iter().any(|row| !is_nothing(&row[*i]));
        let shown: Vec<usize> = self.shown().filter(says).collect();
        let is_name = |i: &usize| self.columns[*i].name == name;
        let table = |room: usize| {
            let heads: Vec<(&str, Align)> =
                shown.iter().map(|i| (self.columns[*i].name.as_str(), self.columns[*i].align)).collect();
            let mut table = Table::new(&heads);
            for row in self.rows.iter().take(max_rows) {
                let cell = |i: &usize| {
                    let text = visible(row[*i].shown()).into_owned();
                    if is_name(i) { end_of(&text, room) } else { text }
                };
                table.row(shown.iter().map(cell).collect());
            }
            table
        };
        let widest = |text: &str| text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
        // As much as the name leaves: its own width is taken from that of the whole.
        let least = table(LEAST_NAME).fitted(columns, spare);
        let room = LEAST_NAME + columns.saturating_sub(widest(&least));
        let roomy = table(room).fitted(columns, spare);
        if widest(&roomy) <= columns { roomy } else { least }
    }
}

fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Unknown) || matches!(value, Value::Number(number, _) if *number == 0.0)
}

/// The last characters, behind a mark where some are missing.
fn end_of(text: &str, room: usize) -> String {
    let n = text.chars().count();
    if n <= room {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(n - room + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Align::{Left, Right};

    #[test]
    fn names_lose_their_beginning_and_columns_of_nothing_are_left_out() {
        let mut data = Data::new(&[("name", "file", Left), ("n", "reads", Right), ("m", "writes", Right)]);
        data.column("s", "time in calls", Right);
        for (name, n) in [("/a/very/long/path/to/the/photographs/of/cats/1.jpg", 12), ("/b", 3)] {
            data.row(vec![Value::text(name), Value::count(n), Value::count(0), Value::count(n)]);
        }
        let path = "…to/the/photographs/of/cats/1.jpg";
        let narrow = data.narrow(1, 40, "file", &["time in calls"]);
        assert_eq!(narrow, format!("{:33}  reads\n{path}     12\n", "file"));
        let wide = data.narrow(9, 80, "file", &[]);
        assert!(
            wide.lines().count() == 3 && wide.contains("/a/very/long/path/to/the/photographs/of/cats/1.jpg  "),
            "{wide}"
        );
        assert!(wide.contains("time in calls") && !wide.contains("writes"), "{wide}");
    }
}
