//! Aligned columns.

use crate::visible::visible;

/// On which side of its column a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table for a terminal.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row; it has as many cells as there are columns, each shown on one line.
    ///
    /// # Panics
    /// When it has not.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell a column");
        self.rows.push(cells.iter().map(|cell| visible(cell).into_owned()).collect());
    }

    /// The table as lines, without a column whose cells are all "–".
    pub fn render(&self) -> String {
        let shown: Vec<usize> =
            (0..self.columns.len()).filter(|i| self.rows.iter().any(|row| row[*i] != "–")).collect();
        let heads: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let width = |i: usize| {
            let cells = self.rows.iter().map(|row| &row[i]).chain([&heads[i]]);
            cells.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let mut out = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let cells: Vec<String> = shown.iter().map(|i| pad(&row[*i], width(*i), self.columns[*i].1)).collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }
}

fn pad(text: &str, width: usize, align: Align) -> String {
    let space = " ".repeat(width - text.chars().count());
    match align {
        Align::Left => format!("{text}{space}"),
        Align::Right => format!("{space}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_are_left_out() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right), ("none", Align::Right)]);
        table.row(vec!["a".to_owned(), "1".to_owned(), "–".to_owned()]);
        table.row(vec!["größer".to_owned(), "1,000".to_owned(), "–".to_owned()]);
        assert_eq!(table.render(), "name        n\na           1\ngrößer  1,000\n");
    }
}
