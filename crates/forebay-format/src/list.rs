//! Lists of files: a text with one `path label` line per sample.
//!
//! A label is a whole number after the last space or tab; a line without a label is just a path, and a path may contain
//! spaces. Empty lines, lines that begin with `#` and a byte-order mark are ignored; lines may end in CR LF. Relative
//! paths are relative to the list's folder, which only the reader knows. Paths are bytes, so a list need not be UTF-8.
//!
//! ```
//! use std::path::Path;
//! use forebay_format::list;
//!
//! let entries: Vec<_> = list::parse("# cats\nmy cats/1.jpg 0\n").collect();
//! assert_eq!(entries, [list::Entry { path: Path::new("my cats/1.jpg"), label: Some(0) }]);
//! ```

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The byte-order mark that Windows editors write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The largest list that is read: about fifteen million lines.
pub const MAX_LEN: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The path as written in the list.
    pub path: &'a Path,
    pub label: Option<i64>,
}

/// The files that a list names, in order. Any text is a valid list, though its paths may not exist.
pub fn parse(text: &(impl AsRef<[u8]> + ?Sized)) -> impl Iterator<Item = Entry<'_>> {
    lines(text.as_ref()).filter_map(parse_line)
}

/// Whether bytes that are not UTF-8 can still be a list: no byte below a tab, which binary data has and text has not, and
/// at least one byte in four printable ASCII, as in file names of another encoding with slashes, extensions and labels.
pub fn is_lines_of_bytes(bytes: &[u8]) -> bool {
    let n_printable = bytes.iter().filter(|&&byte| byte == b' ' || byte.is_ascii_graphic()).count();
    !bytes.iter().any(|&byte| byte < b'\t') && n_printable >= bytes.len().div_ceil(4)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii)
}

fn parse_line(line: &[u8]) -> Option<Entry<'_>> {
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    if let Some((path, last)) = split_last_word(line)
        && let Some(label) = number(last)
    {
        return Some(Entry { path: as_path(path), label: Some(label) });
    }
    Some(Entry { path: as_path(line), label: None })
}

/// The text before the last space or tab, and the word after it.
fn split_last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().rposition(|byte| b" \t".contains(byte))?;
    Some((line[..at].trim_ascii_end(), &line[at + 1..]))
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A line whose last word is in the label's place but is not a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread<'a> {
    /// Counted from 1, as in editors.
    pub line: usize,
    pub word: Cow<'a, str>,
    pub entry: Entry<'a>,
}

/// The lines of a list that have a file name followed by a word or number that is not a class number.
///
/// A path may contain spaces, so only a name with an extension followed by a word without one counts: `cat.jpg tabby`.
pub fn misread(text: &(impl AsRef<[u8]> + ?Sized)) -> impl Iterator<Item = Misread<'_>> {
    lines(text.as_ref()).enumerate().filter_map(|(i, line)| misread_line(i + 1, line))
}

fn misread_line(line: usize, text: &[u8]) -> Option<Misread<'_>> {
    let entry = parse_line(text)?;
    let (path, word) = split_last_word(text)?;
    let has_ending = |path: &[u8]| as_path(path).extension().is_some_and(|ending| (1..=5).contains(&ending.len()));
    let is_misread = match entry.label {
        Some(label) => u32::try_from(label).is_err(),
        None => has_ending(path) && (!has_ending(word) || number::<f64>(word).is_some()),
    };
    is_misread.then(|| Misread { line, word: String::from_utf8_lossy(word), entry })
}

impl fmt::Display for Misread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, word, .. } = self;
        write!(f, "line {line}: expected a class number (a whole number from 0) as the last word, found \"{word}\"")
    }
}

impl Entry<'_> {
    /// The line with its line feed. It reads back unchanged, unless the path begins with `#`, begins or ends with white
    /// space, contains a line feed, or has no label but ends as if it had one.
    pub fn to_line(&self) -> Vec<u8> {
        let label = self.label.map_or_else(String::new, |label| format!(" {label}"));
        [self.path.as_os_str().as_bytes(), label.as_bytes(), b"\n"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_hold_spaces_and_a_label_may_be_missing() {
        let entry = |path: &'static str, label| Some(Entry { path: Path::new(path), label });
        let parse_line = |line: &'static str| parse(line).next();
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
        let found: Vec<_> = misread(text).map(|misread| (misread.line, misread.word.into_owned())).collect();
        let wanted = [(3, "cat"), (4, "-1"), (5, "99999999999"), (6, "1.5")];
        assert_eq!(found, wanted.map(|(line, word)| (line, word.to_owned())));
        let wanted = "line 3: expected a class number (a whole number from 0) as the last word, found \"cat\"";
        assert_eq!(misread(text).next().unwrap().to_string(), wanted);
    }

    #[test]
    fn a_byte_order_mark_and_windows_line_ends_are_no_part_of_a_path() {
        let text = "\u{feff}a.jpg 0\r\nb.jpg 1\r\nc.jpg cat\r\n";
        let found: Vec<_> = parse(text).map(|entry| (entry.path.to_str().unwrap(), entry.label)).collect();
        assert_eq!(found, [("a.jpg", Some(0)), ("b.jpg", Some(1)), ("c.jpg cat", None)]);
        let found: Vec<_> = misread(text).map(|misread| (misread.line, misread.word.into_owned())).collect();
        assert_eq!(found, [(3, "cat".to_owned())]);
        assert_eq!(parse("\u{feff}# a comment\r\n").count(), 0);
    }

    #[test]
    fn empty_lines_and_comments_name_no_file() {
        assert_eq!(parse("\n  \n# a.jpg 3\n\t# b.jpg\n").count(), 0);
        assert_eq!(parse("").count(), 0);
    }

    #[test]
    fn a_number_too_large_for_a_label_is_part_of_the_path() {
        let line = "a.jpg 99999999999999999999";
        assert_eq!(parse(line).next(), Some(Entry { path: Path::new(line), label: None }));
    }

    #[test]
    fn a_path_of_any_bytes_stands_in_a_list() {
        let entry = Entry { path: as_path(b"ph\xffotos/a \xfe.jpg"), label: Some(4) };
        assert_eq!(entry.to_line(), b"ph\xffotos/a \xfe.jpg 4\n");
        assert_eq!(parse(&entry.to_line()).collect::<Vec<_>>(), [entry]);
        assert_eq!(misread(b"a\xfe.jpg c\xffat\n").next().unwrap().word, "c\u{fffd}at");
    }

    #[test]
    fn names_in_another_encoding_are_lines_and_noise_is_not() {
        assert!(is_lines_of_bytes(b"\xcd\xbc\xc6\xac/\xc3\xa8.jpg 3\r\n"));
        assert!(!is_lines_of_bytes(&[0x81; 99]));
        assert!(!is_lines_of_bytes(b"\xff\xd8\x00 photo.jpg 1\n"));
        assert!(is_lines_of_bytes(b"\xff \x1b[31m.jpg 1\n"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read_back(
            files in proptest::collection::vec(("[a-z./äß][a-z ./äß]{0,20}[a-z.]", proptest::option::of(proptest::num::i64::ANY)), 0..8),
        ) {
            let line = |(path, label): &(String, Option<i64>)| Entry { path: Path::new(path), label: *label }.to_line();
            let lines: Vec<u8> = files.iter().flat_map(line).collect();
            let read: Vec<_> = parse(&lines).map(|entry| (entry.path.to_str().unwrap().to_owned(), entry.label)).collect();
            proptest::prop_assert_eq!(read, files);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(text in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            parse(&text).for_each(|entry| assert!(!entry.path.as_os_str().is_empty()));
            misread(&text).for_each(drop);
        }
    }
}
