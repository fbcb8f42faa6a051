//! What can go wrong with a study as a whole. A cell that fails is no error: it is recorded, and the study goes on.

use std::path::PathBuf;

use forebay_units::PathText;

/// The result of an operation on a study.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A study that could not be read, planned or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such study.
    #[error("there is no study \"{name}\", built in or as a file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may be done.
        hint: String,
    },
    /// The file is not a study's.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// What is wrong there.
        message: String,
        /// What may have been meant.
        hint: Option<String>,
    },
    /// The file is a study's, but cannot be run.
    #[error("{place}: {reason}")]
    Plan {
        /// Where in the file: "experiment \"ingest\", factors.threads".
        place: String,
        /// What is wrong there.
        reason: String,
        /// What may have been meant.
        hint: Option<String>,
    },
    /// The run's folder holds something.
    #[error("{}: the folder is not empty", path.escaped())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// Whether it holds a run of a study.
        is_run: bool,
    },
    /// There is no run to go on with.
    #[error("there is no run in {} to go on with", path.escaped())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process is running a study there.
    #[error("{}: another process is running a study in this folder", path.escaped())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The run in the folder is of another plan.
    #[error("{}: the run there is of another plan: {what}", path.escaped())]
    Different {
        /// The folder.
        path: PathBuf,
        /// What differs, theirs and ours.
        what: String,
    },
    /// The record in the folder cannot be read.
    #[error("cannot go on with {}", path.escaped())]
    Record {
        /// The record.
        path: PathBuf,
        /// Why.
        source: forebay_record::Error,
    },
    /// There is not enough room.
    #[error("{}: {needed} are needed and {available} are free", path.escaped())]
    Space {
        /// Where.
        path: PathBuf,
        /// What the study writes there.
        needed: forebay_units::Bytes,
        /// What is free.
        available: forebay_units::Bytes,
        /// At which scale.
        scale: forebay_record::Scale,
    },
    /// A dataset could not be made.
    #[error("cannot make the dataset \"{name}\"")]
    Data {
        /// Its name.
        name: String,
        /// Why.
        source: forebay_dataset::Error,
    },
    /// A file of the run could not be written; it says which and why.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// The system refused something.
    #[error("cannot {attempt} {}", path.escaped())]
    Io {
        /// What was tried: "append to".
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn plan(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Plan { place: place.into(), reason: reason.into(), hint: None }
    }

    pub(crate) fn io(attempt: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { attempt, path, source }
    }

    /// What the user may do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { hint, .. } => Some(hint.clone()),
            Self::Syntax { hint, .. } | Self::Plan { hint, .. } => hint.clone(),
            Self::Occupied { is_run: true, .. } => {
                Some("--resume goes on with the run there; or give another --out".to_owned())
            }
            Self::Occupied { is_run: false, .. } => Some("give another --out".to_owned()),
            Self::NoRun { .. } => Some("leave --resume out to begin one there".to_owned()),
            Self::Record { source: forebay_record::Error::Line { line, .. }, .. } if *line > 1 => Some(format!(
                "keep the {} before that one and go on with --resume: the cells after them are run again",
                forebay_units::count(*line as u64 - 1, "line")
            )),
            Self::Different { .. } => Some("give another --out, or the study and flags of the first run".to_owned()),
            Self::Space { scale, .. } => {
                let less = if *scale == forebay_record::Scale::Full { ", or run with --scale quick" } else { "" };
                Some(format!("make room there, or put the data elsewhere with --data DIR{less}"))
            }
            Self::Data { source, .. } => source.hint().map(str::to_owned),
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                Some("make room, and go on with --resume".to_owned())
            }
            Self::Storage(forebay_storage::Error::Full { .. }) => Some("make room, and go on with --resume".to_owned()),
            _ => None,
        }
    }
}
