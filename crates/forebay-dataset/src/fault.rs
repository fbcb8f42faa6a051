//! What is wrong with a file or a record, as data.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A bad file, or a bad record in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, when it is one of several samples.
    pub offset: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl Fault {
    pub(crate) fn of_file(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: None, reason: reason.into() }
    }

    pub(crate) fn of_record(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: Some(offset), reason: reason.into() }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at offset {offset}: {}", self.path.display(), self.reason),
            None => write!(f, "{}: {}", self.path.display(), self.reason),
        }
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// What a storage error says about a file, without naming the file again.
pub(crate) fn why_unreadable(error: &forebay_storage::Error) -> String {
    use forebay_storage::Error as E;
    match error {
        E::NotFound { .. } => "no such file".to_owned(),
        E::Denied { .. } => "permission denied".to_owned(),
        E::Io { source, .. } => format!("cannot be read: {source}"),
        other => chain(other),
    }
}
