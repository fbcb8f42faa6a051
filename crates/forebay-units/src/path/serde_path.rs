//! Serde for paths: `#[serde(with = "forebay_units::serde_path")]` on a `PathBuf`, and
//! `#[serde(with = "forebay_units::serde_path::option")]` on an `Option<PathBuf>`.
//!
//! Serde's own implementation fails on a path that is not UTF-8, after the work is done. This one writes the escaped
//! text. A text without a backslash is read as serde reads it.

use std::path::{Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use super::{PathText, unescape};

/// Writes a path as its escaped text.
///
/// # Errors
/// When the serializer fails.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.escaped())
}

/// Reads a path from its escaped text.
///
/// # Errors
/// When the text is not a valid escaped path.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    read(&String::deserialize(deserializer)?)
}

fn read<E: Error>(text: &str) -> Result<PathBuf, E> {
    unescape(text).map(PathBuf::from).map_err(E::custom)
}

/// The same for an optional path. If the key itself may be missing, add `#[serde(default)]`.
pub mod option {
    use super::*;

    /// Writes a path as its escaped text, or nothing.
    ///
    /// # Errors
    /// When the serializer fails.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => serializer.serialize_some(&*path.escaped()),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a path from its escaped text, or nothing.
    ///
    /// # Errors
    /// When the text is not a valid escaped path.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| read(&text)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Place {
        #[serde(with = "crate::serde_path")]
        path: PathBuf,
        #[serde(with = "crate::serde_path::option", default)]
        second: Option<PathBuf>,
    }

    fn read(json: &str) -> Result<Place, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn a_path_of_any_bytes_goes_through_json() {
        let path = || PathBuf::from(OsStr::from_bytes(b"ph\xffotos/a\\b\n"));
        let place = Place { path: path(), second: Some(path()) };
        let json = serde_json::to_string(&place).unwrap();
        assert_eq!(json, r#"{"path":"ph\\xffotos/a\\\\b\\x0a","second":"ph\\xffotos/a\\\\b\\x0a"}"#);
        assert_eq!(read(&json).unwrap(), place);
    }

    #[test]
    fn a_text_without_a_backslash_is_read_as_before() {
        let place = Place { path: "/data/ä 1".into(), second: None };
        assert_eq!(read(r#"{"path":"/data/ä 1"}"#).unwrap(), place);
        assert_eq!(read(r#"{"path":"/data/ä 1","second":null}"#).unwrap(), place);
    }

    #[test]
    fn a_backslash_that_escapes_nothing_is_an_error_that_says_what_was_expected() {
        let error = read(r#"{"path":"a\\d"}"#).unwrap_err().to_string();
        assert!(error.starts_with(r#""a\d" is not a path: expected \\ or \xNN after a backslash"#), "{error}");
    }
}
