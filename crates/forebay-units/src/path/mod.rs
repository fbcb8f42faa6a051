//! Paths as text, and back.
//!
//! A path on Linux is bytes; JSON, TOML, terminals and pages hold text. Printing a path lossily gives a name that cannot
//! be found again, and printing it raw lets a file name move the cursor. So every path that is written or shown goes
//! through one escape that is injective, printable and reversible:
//!
//! - a backslash becomes `\\`;
//! - a byte that is not part of valid UTF-8, and each byte of a control character, becomes `\xNN`, in lower case;
//! - everything else stays as it is, so an ordinary path is its own text.
//!
//! ```
//! use std::ffi::OsStr;
//! use std::os::unix::ffi::OsStrExt;
//! use forebay_units::{PathText, unescape};
//!
//! let name = OsStr::from_bytes(b"ph\xffotos/a\nb.jpg");
//! assert_eq!(name.escaped(), r"ph\xffotos/a\x0ab.jpg");
//! assert_eq!(unescape(r"ph\xffotos/a\x0ab.jpg")?, name);
//! # Ok::<(), forebay_units::ParseError>(())
//! ```

pub mod serde_path;
mod shell;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

pub use shell::shell_word;

use crate::ParseError;

/// A path, or part of a path, as text.
pub trait PathText {
    /// The path with backslashes, control characters and bytes that are not UTF-8 escaped. [`unescape`] gives it back.
    fn escaped(&self) -> Cow<'_, str>;
}

impl PathText for OsStr {
    fn escaped(&self) -> Cow<'_, str> {
        match self.to_str() {
            Some(text) if !text.chars().any(is_escaped) => Cow::Borrowed(text),
            _ => Cow::Owned(escape(self.as_bytes())),
        }
    }
}

impl PathText for Path {
    fn escaped(&self) -> Cow<'_, str> {
        self.as_os_str().escaped()
    }
}

/// A command line as a record keeps it: each word escaped by itself.
pub fn escaped_words(words: impl IntoIterator<Item = OsString>) -> Vec<String> {
    words.into_iter().map(|word| word.escaped().into_owned()).collect()
}

fn is_escaped(c: char) -> bool {
    c == '\\' || c.is_control()
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str(r"\\"),
                c if c.is_control() => push_hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        push_hex(&mut out, chunk.invalid());
    }
    out
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(out, r"\x{byte:02x}").expect("writing to a string does not fail");
    }
}

/// The path whose text this is: the inverse of [`PathText::escaped`].
///
/// # Errors
/// When a backslash is followed by neither a backslash nor `xNN`, or when the text contains `\x00`, which no path can.
pub fn unescape(text: &str) -> Result<OsString, ParseError> {
    let refused = |reason: String| ParseError { text: text.to_owned(), kind: "path", reason };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        if let Some(after) = after.strip_prefix('\\') {
            out.push(b'\\');
            rest = after;
            continue;
        }
        let byte = after.strip_prefix('x').and_then(|hex| hex_byte(hex.as_bytes()));
        match byte {
            Some(0) => return Err(refused(r"a path cannot contain \x00".to_owned())),
            Some(byte) => out.push(byte),
            None => return Err(refused(r"expected \\ or \xNN after a backslash".to_owned())),
        }
        // An `x` and two digits: three bytes, all ASCII.
        rest = &after[3..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(OsString::from_vec(out))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests;
