//! Aligned columns.

use unicode_width::UnicodeWidthStr;

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
        self.rendered(&[])
    }

    /// As [`render`](Self::render), in lines of at most `width` columns if that is possible without the columns in `spare`.
    /// The first of them goes first.
    pub fn fitted(&self, width: usize, spare: &[&str]) -> String {
        let mut tables = (0..=spare.len()).map(|n| self.rendered(&spare[..n]));
        let fits = |table: &String| table.lines().all(|line| line.width() <= width);
        tables.clone().find(fits).or_else(|| tables.next_back()).unwrap_or_default()
    }

    fn rendered(&self, without: &[&str]) -> String {
        let is_known = |i: &usize| self.rows.iter().any(|row| row[*i] != "–");
        let is_wanted = |i: &usize| !without.contains(&self.columns[*i].0.as_str());
        let shown: Vec<usize> = (0..self.columns.len()).filter(is_known).filter(is_wanted).collect();
        let heads: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let cells = |row: &Vec<String>| shown.iter().map(|i| row[*i].clone()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(&heads).chain(&self.rows).map(cells).collect();
        columns(&rows, |column| self.columns[shown[column]].1)
    }
}

/// Rows of as many cells each as lines of aligned columns, two spaces apart.
pub fn columns(rows: &[Vec<String>], align: impl Fn(usize) -> Align) -> String {
    let n_columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| pad(cell, widths[column], align(column)));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Columns of a terminal that does not say how many it has.
pub const WIDTH: usize = 80;

/// Columns that continue a folded line, beyond its own indent.
const HANG: usize = 4;

/// A text whose lines are at most `width` columns wide: longer ones are broken at spaces.
///
/// A number stays with the word it counts, and a word wider than a line stays whole. A broken line continues below the
/// text behind its label ("reader   batch 7, …"), or indented by four columns; a line that begins with `forebay` is a
/// command to be copied, and continues after a backslash.
pub fn fold(text: &str, width: usize) -> String {
    let end = if text.ends_with('\n') { "\n" } else { "" };
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let lines: Vec<String> =
        lines.map(|line| if line.width() <= width { line.to_owned() } else { folded(line, width) }).collect();
    lines.join("\n") + end
}

fn folded(line: &str, width: usize) -> String {
    let said = line.trim_start_matches(' ');
    let indent = line.len() - said.len();
    if said.starts_with("forebay ") {
        let lines = lines_of(flags_with_values(said), indent, indent + HANG, width.saturating_sub(2));
        return lines.trim_end().replace('\n', " \\\n");
    }
    let rest = indent + label(said).filter(|at| indent + at <= width / 2).unwrap_or(HANG);
    wrapped(said, indent, rest, width).lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Where the text behind a label begins: after a gap of two spaces or more.
fn label(line: &str) -> Option<usize> {
    let gap = line.find("  ")?;
    let rest = line[gap..].trim_start_matches(' ');
    Some(line[..line.len() - rest.len()].width())
}

/// A text in lines of a terminal, indented by so many spaces and, from the second line on, by two more.
pub(crate) fn paragraph(text: &str, indent: usize, width: usize) -> String {
    wrapped(text, indent, indent + 2, width)
}

/// A text in lines of a terminal, the first and the others indented by so many spaces. A number stays with what it counts.
pub(crate) fn wrapped(text: &str, indent: usize, rest: usize, width: usize) -> String {
    let is_counted = |word: &str, next: &str| {
        word.ends_with(|last: char| last.is_ascii_digit()) && rest + word.width() + 1 + next.width() <= width
    };
    lines_of(joined(text, is_counted), indent, rest, width)
}

/// A command's flags, each with its value.
fn flags_with_values(command: &str) -> Vec<String> {
    let is_flag = |word: &str| word.starts_with("--") && !word.contains(' ');
    joined(command, |word, next| is_flag(word) && !next.starts_with('-'))
}

/// The words of a text, those together of which `is_one` says so.
fn joined(text: &str, is_one: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for next in text.split(' ') {
        match words.last_mut().filter(|word| is_one(word, next)) {
            Some(word) => *word = format!("{word} {next}"),
            None => words.push(next.to_owned()),
        }
    }
    words
}

fn lines_of(words: Vec<String>, indent: usize, rest: usize, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    for word in words {
        if !is_empty && line.width() + 1 + word.width() > width {
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
    let space = " ".repeat(width - text.width());
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
        assert_eq!(paragraph(&text, 2, WIDTH), lines);
        assert_eq!(paragraph("short", 0, WIDTH), "short\n");
    }

    #[test]
    fn long_lines_are_folded_at_words_and_short_ones_stay() {
        assert_eq!(fold("one two\nthree four five 6 seven\n", 15), "one two\nthree four five\n    6 seven\n");
        assert_eq!(fold("  a /long/path/of/one/word b", 12), "  a\n      /long/path/of/one/word\n      b");
        assert_eq!(fold("name   one two three four", 16), "name   one two\n       three\n       four");
        assert_eq!(fold("  forebay run x --out y", 20), "  forebay run x \\\n      --out y");
        assert_eq!(fold("  forebay run --out y", 18), "  forebay run \\\n      --out y", "a flag stays with its value");
        assert_eq!(fold("日本語 日本語 x", 8), "日本語\n    日本語\n    x");
    }

    #[test]
    fn spare_columns_go_until_the_table_fits() {
        let mut table = Table::new(&[("name", Align::Left), ("first", Align::Right), ("second", Align::Right)]);
        table.row(vec!["a".to_owned(), "1".to_owned(), "2".to_owned()]);
        assert_eq!(table.fitted(80, &["second", "first"]), table.render());
        assert_eq!(table.fitted(11, &["second", "first"]), "name  first\na         1\n");
        assert_eq!(table.fitted(10, &["second", "first"]), "name\na\n");
        assert_eq!(table.fitted(3, &["second"]), "name  first\na         1\n", "as narrow as it can be");
    }

    #[test]
    fn columns_line_up_and_empty_ones_are_left_out() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right), ("none", Align::Right)]);
        table.row(vec!["a".to_owned(), "1".to_owned(), "–".to_owned()]);
        table.row(vec!["größer".to_owned(), "1,000".to_owned(), "–".to_owned()]);
        assert_eq!(table.render(), "name        n\na           1\ngrößer  1,000\n");
    }
}
