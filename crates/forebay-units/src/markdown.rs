//! Markdown of generated pages: prose, table rows and lines.

use std::fmt::Write;

/// Columns of a line of prose.
const WIDTH: usize = 110;

/// Plain text as Markdown: flags become code, and nothing reads as HTML or emphasis. Text in backquotes stays as it is.
pub fn prose(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let pieces = pieces.map(|(i, piece)| if i % 2 == 1 { code(piece) } else { plain(piece) });
    pieces.collect()
}

fn plain(text: &str) -> String {
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

fn word(word: &str) -> String {
    let (opening, closing) = (['(', '"'], ['.', ',', ';', ':', ')', '"']);
    let start = word.len() - word.trim_start_matches(opening).len();
    let end = word.trim_end().trim_end_matches(closing).len().max(start);
    let core = &word[start..end];
    // Two hyphens would be printed as a dash.
    if core.len() > 2 && (core.starts_with("--") || core.starts_with("++")) {
        return format!("{}{}{}", &word[..start], code(core), &word[end..]);
    }
    let mut out = String::new();
    for c in word.chars() {
        if "<>*~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A help text without its `[default: …]`, and what that says; both are plain text.
pub fn split_default(help: &str) -> (String, Option<&str>) {
    let pieces = || {
        let (before, rest) = help.split_once("[default: ")?;
        let (default, after) = rest.split_once(']')?;
        Some((format!("{}{after}", before.trim_end()), Some(default)))
    };
    pieces().unwrap_or_else(|| (help.to_owned(), None))
}

/// A code span.
pub fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A row of a table; cells are Markdown.
pub fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace("\n\n", "<br>")).collect();
    writeln!(out, "| {} |", cells.join(" | ").trim_end()).expect("a string takes every write");
}

/// The head of a table.
pub fn head(out: &mut String, titles: &[&str]) {
    row(out, titles);
    writeln!(out, "|{}", "---|".repeat(titles.len())).expect("a string takes every write");
}

/// Text in lines that end between words; paragraphs stay apart.
pub fn wrapped(text: &str) -> String {
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

fn paragraph(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        match line.chars().count() + word.chars().count() {
            0..WIDTH if line.is_empty() => line.push_str(word),
            0..WIDTH => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_shows_what_the_plain_text_shows() {
        assert_eq!(prose("an <N> of *.yaml in ~/x"), "an \\<N\\> of \\*.yaml in \\~/x");
        assert_eq!(prose("with `--to <X>`, (--read, \"--write\")"), "with `--to <X>`, (`--read`, \"`--write`\")");
        assert_eq!(prose("as ++workload.a.b=c; a -- b"), "as `++workload.a.b=c`; a -- b");
    }

    #[test]
    fn a_default_is_taken_out_of_its_help() {
        assert_eq!(split_default("Rate [default: 1, or 2]\n\nMore"), ("Rate\n\nMore".to_owned(), Some("1, or 2")));
        assert_eq!(split_default("Rate [1]"), ("Rate [1]".to_owned(), None));
    }

    #[test]
    fn a_bar_does_not_end_a_cell_and_a_paragraph_does_not_end_a_row() {
        let mut out = String::new();
        head(&mut out, &["a", "b"]);
        row(&mut out, &["`x|y`", "one\n\ntwo"]);
        assert_eq!(out, "| a | b |\n|---|---|\n| `x\\|y` | one<br>two |\n");
    }

    #[test]
    fn lines_end_between_words() {
        let text = wrapped(&format!("{} end\n\nnext", "word ".repeat(40)));
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, [109, 93, 0, 4]);
    }
}
