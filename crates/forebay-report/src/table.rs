//! Aligned columns.

use crate::visible::visible;

/// On which side of its column a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
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
        assert_eq!(cells.len(), self.columns.len(), "a row has one cell per column");
        self.rows.push(cells.iter().map(|cell| visible(cell).into_owned()).collect());
    }

    /// The table as lines, without a column whose cells are all "–".
    pub fn render(&self) -> String {
        let shown: Vec<usize> =
            (0..self.columns.len()).filter(|i| self.rows.iter().any(|row| row[*i] != "–")).collect();
        let heads: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let cells = |row: &Vec<String>| shown.iter().map(|i| row[*i].clone()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(&heads).chain(&self.rows).map(cells).collect();
        columns(&rows, |column| self.columns[shown[column]].1)
    }
}

/// Rows of as many cells each as lines of aligned columns, two spaces apart.
pub fn columns(rows: &[Vec<String>], align: impl Fn(usize) -> Align) -> String {
    let n_columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| pad(cell, widths[column], align(column)));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

pub(crate) const WIDTH: usize = 80;

/// A text in lines of a terminal, indented by so many spaces and, from the second line on, by two more.
pub(crate) fn paragraph(text: &str, indent: usize) -> String {
    wrapped(text, indent, indent + 2)
}

/// A text in lines of a terminal, the first and the others indented by so many spaces. A number stays with what it counts.
pub(crate) fn wrapped(text: &str, indent: usize, rest: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while word.ends_with(|last: char| last.is_ascii_digit()) && words.peek().is_some() {
            word = format!("{word} {}", words.next().unwrap_or_default());
        }
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, " ".repeat(rest)));
            is_empty = true;
        }
        let space = if is_empty { "" } else { " " };
        line = format!("{line}{space}{word}");
        is_empty = false;
    }
    lines.push(line);
    lines.join("\n") + "\n"
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
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bbb", "c"], ["äö", "b", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows, |_| Align::Left), "a   bbb  c\näö  b\n");
    }

    #[test]
    fn paragraphs_keep_within_a_terminal_and_numbers_beside_their_units() {
        let text = "word ".repeat(15) + "1,234 images/s";
        let lines = format!("  {}\n    1,234 images/s\n", "word ".repeat(15).trim_end());
        assert_eq!(paragraph(&text, 2), lines);
        assert_eq!(paragraph("short", 0), "short\n");
    }

    #[test]
    fn columns_line_up_and_empty_ones_are_left_out() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right), ("none", Align::Right)]);
        table.row(vec!["a".to_owned(), "1".to_owned(), "–".to_owned()]);
        table.row(vec!["größer".to_owned(), "1,000".to_owned(), "–".to_owned()]);
        assert_eq!(table.render(), "name        n\na           1\ngrößer  1,000\n");
    }
}
