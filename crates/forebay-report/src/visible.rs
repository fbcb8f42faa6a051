//! Text of others on a terminal: shown, never obeyed.
//!
//! Records, studies and file names hold whatever somebody wrote into them. A terminal takes some of it for orders: ESC
//! begins them, CR and BS write over what stands there, and marks of writing direction show a line in another order than
//! it has. They are shown as escapes (`\x1b`), as names of files that are no text are.

use std::borrow::Cow;
use std::fmt::Write;

use forebay_record::{AnyRecord, StudyRun};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::run::NamedRun;

/// A piece of text on one line: control characters, ends of lines and tabs among them, and marks of writing direction are
/// written as escapes.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Text of several lines: as [`visible`], but lines end where they do.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n')
}

fn escaped(text: &str, is_kept: fn(char) -> bool) -> Cow<'_, str> {
    let is_hidden = |c: char| is_order(c) && !is_kept(c);
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        let _ = match c {
            c if !is_hidden(c) => out.write_char(c),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
            c => write!(out, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(out)
}

/// Whether a terminal, or a browser, would do something instead of showing the character: C0, DEL, C1, the marks,
/// embeddings, overrides and isolates of writing direction, and the two separators that end a line.
pub(crate) fn is_order(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A run for the terminal: every text of its record [`visible`], and its name.
pub(crate) fn for_terminal(named: &NamedRun) -> NamedRun {
    let record = match &named.record {
        AnyRecord::Ingest(record) => AnyRecord::Ingest(each(record)),
        AnyRecord::Probe(record) => AnyRecord::Probe(each(record)),
        AnyRecord::Train(record) => AnyRecord::Train(each(record)),
        AnyRecord::Checkpoint(record) => AnyRecord::Checkpoint(each(record)),
        AnyRecord::Workload(record) => AnyRecord::Workload(each(record)),
        AnyRecord::Trace(record) => AnyRecord::Trace(each(record)),
        AnyRecord::Study(run) => AnyRecord::Study(Box::new(StudyRun {
            head: each(&run.head),
            cells: run.cells.iter().map(each).collect(),
            resumed: run.resumed.iter().map(each).collect(),
            series: run.series.clone(),
        })),
    };
    NamedRun { name: visible(&named.name).into_owned(), record }
}

fn each<T: Serialize + DeserializeOwned + Clone>(value: &T) -> T {
    let Ok(mut json) = serde_json::to_value(value) else { return value.clone() };
    if !escape(&mut json) {
        return value.clone();
    }
    serde_json::from_value(json).unwrap_or_else(|_| value.clone())
}

/// Escapes all texts and keys; whether there was one to escape.
fn escape(json: &mut Value) -> bool {
    match json {
        Value::String(text) => match visible(text) {
            Cow::Owned(shown) => {
                *text = shown;
                true
            }
            Cow::Borrowed(_) => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |any, item| escape(item) | any),
        Value::Object(map) => {
            let is_hidden = |key: &String| matches!(visible(key), Cow::Owned(_));
            let in_keys = map.keys().any(is_hidden);
            if in_keys {
                *map = std::mem::take(map).into_iter().map(|(key, of)| (visible(&key).into_owned(), of)).collect();
            }
            map.values_mut().fold(in_keys, |any, item| escape(item) | any)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_or_turns_the_line_is_shown_and_not_obeyed() {
        assert_eq!(visible("a\x1b[2Jb\nc\rd\te\x07"), "a\\x1b[2Jb\\nc\\rd\\te\\x07");
        assert_eq!(
            visible("\u{9b}31m\u{7f}\u{202e}abc\u{2069}\u{2028}"),
            "\\u{9b}31m\\x7f\\u{202e}abc\\u{2069}\\u{2028}"
        );
        assert_eq!(visible_lines("a\nb\x1b[0m\r\n"), "a\nb\\x1b[0m\\r\n");
    }

    #[test]
    fn text_is_left_as_it_is() {
        for text in ["größer – “so” 日本語", "optane → hdd", "C:\\x1b", ""] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
