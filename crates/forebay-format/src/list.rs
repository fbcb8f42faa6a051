//! Lists of files: a text with one `path label` line a sample.
//!
//! A label is a whole number behind the last space or tab; a line without one is all path, and a path may hold spaces.
//! Empty lines and lines that begin with `#` say nothing. Relative paths start where the list lies, which only its
//! reader knows.
//!
//! ```
//! use forebay_format::list;
//!
//! let entries: Vec<_> = list::parse("# cats\nmy cats/1.jpg 0\n").collect();
//! assert_eq!(entries, [list::Entry { path: "my cats/1.jpg", label: Some(0) }]);
//! ```

use std::fmt;
use std::path::Path;

/// The longest list that is read: some fifteen million lines.
pub const MAX_LEN: u64 = 1 << 30;

/// A line that names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The path as it stands in the list.
    pub path: &'a str,
    /// The label, if there is one.
    pub label: Option<i64>,
}

/// The files a list names, in its order. Any text is a list, if only of paths that do not exist.
pub fn parse(text: &str) -> impl Iterator<Item = Entry<'_>> {
    text.lines().filter_map(parse_line)
}

fn parse_line(line: &str) -> Option<Entry<'_>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    if let Some((path, last)) = line.rsplit_once([' ', '\t'])
        && let Ok(label) = last.parse()
    {
        return Some(Entry { path: path.trim_end(), label: Some(label) });
    }
    Some(Entry { path: line, label: None })
}

/// A line whose last word stands where a label should, and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misread<'a> {
    /// Which line, counted from 1.
    pub line: usize,
    /// The last word.
    pub word: &'a str,
    /// What the line is read as.
    pub entry: Entry<'a>,
}

/// The lines of a list that name a file and then, in place of its class, a word or a number that is no class.
///
/// A path may hold spaces, so it takes a name with an ending before the last word, and none in it: `cat.jpg tabby`.
pub fn misread(text: &str) -> impl Iterator<Item = Misread<'_>> {
    text.lines().enumerate().filter_map(|(i, line)| misread_line(i + 1, line))
}

fn misread_line(line: usize, text: &str) -> Option<Misread<'_>> {
    let entry = parse_line(text)?;
    let (path, word) = text.trim().rsplit_once([' ', '\t'])?;
    let has_ending = |path: &str| Path::new(path).extension().is_some_and(|ending| (1..=5).contains(&ending.len()));
    let is_misread = match entry.label {
        Some(label) => u32::try_from(label).is_err(),
        None => has_ending(path.trim_end()) && (!has_ending(word) || word.parse::<f64>().is_ok()),
    };
    is_misread.then_some(Misread { line, word, entry })
}

impl fmt::Display for Misread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, word, .. } = self;
        write!(f, "the last word of line {line}, \"{word}\", is not a class number: those are whole and count from 0")
    }
}

impl fmt::Display for Entry<'_> {
    /// The line without its end. It reads back as it was, unless the path begins with `#`, has white space at an end or
    /// a line's end within, or has no label and ends as if it had one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.label {
            Some(label) => write!(f, "{} {label}", self.path),
            None => f.write_str(self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_hold_spaces_and_a_label_may_be_missing() {
        let entry = |path, label| Some(Entry { path, label });
        assert_eq!(parse_line("a/b.jpg 7"), entry("a/b.jpg", Some(7)));
        assert_eq!(parse_line("my photos/b 2.jpg\t12 "), entry("my photos/b 2.jpg", Some(12)));
        assert_eq!(parse_line("a/b.jpg   -1\r"), entry("a/b.jpg", Some(-1)));
        assert_eq!(parse_line("a/b.jpg"), entry("a/b.jpg", None));
        assert_eq!(parse_line("7"), entry("7", None));
    }

    #[test]
    fn a_word_in_place_of_a_label_is_found_and_a_path_with_spaces_is_not_taken_for_one() {
        let text = "a.jpg 3\n# b.jpg cat\nb.jpg cat\nc.jpg\t-1\nd.jpg 99999999999\ne.jpg 1.5\n\
                    my photo 2.jpg\nmy photos/b\nA sentence. No\n";
        let found: Vec<_> = misread(text).map(|misread| (misread.line, misread.word)).collect();
        assert_eq!(found, [(3, "cat"), (4, "-1"), (5, "99999999999"), (6, "1.5")]);
        let wanted = "the last word of line 3, \"cat\", is not a class number: those are whole and count from 0";
        assert_eq!(misread(text).next().unwrap().to_string(), wanted);
    }

    #[test]
    fn empty_lines_and_comments_name_no_file() {
        assert_eq!(parse("\n  \n# a.jpg 3\n\t# b.jpg\n").count(), 0);
        assert_eq!(parse("").count(), 0);
    }

    #[test]
    fn a_number_too_large_for_a_label_is_part_of_the_path() {
        let line = "a.jpg 99999999999999999999";
        assert_eq!(parse_line(line), Some(Entry { path: line, label: None }));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read_back(
            files in proptest::collection::vec(("[a-z./äß][a-z ./äß]{0,20}[a-z.]", proptest::option::of(proptest::num::i64::ANY)), 0..8),
        ) {
            let lines: String = files.iter().map(|(path, label)| format!("{}\n", Entry { path, label: *label })).collect();
            let read: Vec<_> = parse(&lines).map(|entry| (entry.path.to_owned(), entry.label)).collect();
            proptest::prop_assert_eq!(read, files);
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC*") {
            parse(&text).for_each(|entry| assert!(!entry.path.is_empty()));
        }
    }
}
