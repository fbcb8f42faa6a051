//! The file `checkpoint` of a folder: names the newest checkpoint, as a text protocol buffer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use forebay_units::PathText;

/// Content of the file `checkpoint`. Paths are relative to its folder and use the escapes of
/// [`forebay_units::unescape`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The newest checkpoint's path without extension.
    pub newest: String,
    /// All checkpoints kept, oldest first.
    pub all: Vec<String>,
}

const NEWEST: &str = "model_checkpoint_path";
const ALL: &str = "all_model_checkpoint_paths";

impl State {
    pub fn encode(&self) -> String {
        let line = |key: &str, path: &str| format!("{key}: \"{}\"\n", escape(path));
        let all: String = self.all.iter().map(|path| line(ALL, path)).collect();
        line(NEWEST, &self.newest) + &all
    }

    /// Parses the text. Unknown keys, such as timestamps, are ignored. Returns `None` when no newest checkpoint is
    /// named or a path is not a string.
    pub fn parse(text: &str) -> Option<Self> {
        let mut state = Self::default();
        let mut found = false;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            match key.trim() {
                NEWEST => {
                    state.newest = unescape(value)?;
                    found = true;
                }
                ALL => state.all.push(unescape(value)?),
                _ => {}
            }
        }
        found.then_some(state)
    }
}

/// Writes quotes, backslashes and everything except printable ASCII as octal escapes. Text with invalid escapes is kept
/// unchanged.
fn escape(path: &str) -> String {
    let path = forebay_units::unescape(path).unwrap_or_else(|_| path.into());
    let mut out = String::new();
    for &byte in path.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out
}

fn unescape(value: &str) -> Option<String> {
    let quoted = value.trim();
    let quote = quoted.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    let inner = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut out = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match rest.next()? {
            first @ b'0'..=b'7' => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                out.push(u8::try_from(value).ok()?);
            }
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            same @ (b'"' | b'\'' | b'\\') => out.push(same),
            _ => return None,
        }
    }
    Some(OsStr::from_bytes(&out).escaped().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_tensorflow() {
        let state = State { newest: "model-40".to_owned(), all: vec!["model-20".to_owned(), "model-40".to_owned()] };
        let text = "model_checkpoint_path: \"model-40\"\n\
            all_model_checkpoint_paths: \"model-20\"\n\
            all_model_checkpoint_paths: \"model-40\"\n";
        assert_eq!(state.encode(), text);
        assert_eq!(State::parse(&format!("{text}last_preserved_timestamp: 1.5\n")), Some(state));
    }

    #[test]
    fn odd_paths_go_there_and_back() {
        for path in ["", r#"a"b\\c"#, r"größe\x0a\x09\x017", "\u{10ffff}", "it's", r"ph\xffotos"] {
            let state = State { newest: path.to_owned(), all: vec![path.to_owned(); 2] };
            assert_eq!(State::parse(&state.encode()), Some(state));
        }
        let bytes = State { newest: r"ph\xffotos".to_owned(), all: Vec::new() };
        assert_eq!(bytes.encode(), "model_checkpoint_path: \"ph\\377otos\"\n", "as TensorFlow writes those bytes");
    }

    #[test]
    fn what_is_no_state_is_none() {
        for text in
            ["", "x", "all_model_checkpoint_paths: \"a\"", "model_checkpoint_path: 7", "model_checkpoint_path: \""]
        {
            assert_eq!(State::parse(text), None, "{text}");
        }
        assert_eq!(State::parse("model_checkpoint_path: \"\\x\""), None);
        assert_eq!(State::parse("model_checkpoint_path: \"\\777\""), None);
    }
}
