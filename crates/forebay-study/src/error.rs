//! Errors of a study as a whole. A failed cell is not one of them: it is recorded, and the study continues.

use std::path::PathBuf;

use forebay_units::PathText;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no built-in study or file named \"{name}\"")]
    Unknown { name: String, hint: String },
    /// The file does not parse.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Both count from 1; columns in characters.
        line: usize,
        column: usize,
        message: String,
        hint: Option<String>,
    },
    /// The file parses, but cannot be run.
    #[error("{place}: {reason}")]
    Plan {
        /// In the file: "experiment \"ingest\", factors.threads".
        place: String,
        reason: String,
        hint: Option<String>,
    },
    #[error("{}: the folder is not empty", path.escaped())]
    Occupied {
        path: PathBuf,
        /// Whether the folder holds a run, which `--resume` continues.
        is_run: bool,
    },
    #[error("no run to resume in {}", path.escaped())]
    NoRun { path: PathBuf },
    #[error("{}: another process is running a study in this folder", path.escaped())]
    Busy { path: PathBuf },
    /// Resuming must not mix cells of two plans.
    #[error("{}: the run in this folder has a different plan: {what}", path.escaped())]
    Different {
        path: PathBuf,
        /// Both values; the one in the folder first.
        what: String,
    },
    #[error("cannot resume {}", path.escaped())]
    Record { path: PathBuf, source: forebay_record::Error },
    #[error("{}: {needed} needed, {available} free", path.escaped())]
    Space {
        path: PathBuf,
        needed: forebay_units::Bytes,
        available: forebay_units::Bytes,
        /// The hint proposes a smaller scale only at the full one.
        scale: forebay_record::Scale,
    },
    #[error("cannot make dataset \"{name}\"")]
    Data { name: String, source: forebay_dataset::Error },
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    #[error("cannot {attempt} {}", path.escaped())]
    Io {
        /// Infinitive before the path: "append to".
        attempt: &'static str,
        path: PathBuf,
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

    /// The remedy, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { hint, .. } => Some(hint.clone()),
            Self::Syntax { hint, .. } | Self::Plan { hint, .. } => hint.clone(),
            Self::Occupied { is_run: true, .. } => {
                Some("resume the run with --resume, or give another --out".to_owned())
            }
            Self::Occupied { is_run: false, .. } => Some("give another --out".to_owned()),
            Self::NoRun { .. } => Some("omit --resume to start a new run there".to_owned()),
            Self::Record { source: forebay_record::Error::Line { line, .. }, .. } if *line > 1 => {
                Some(format!("delete line {line} and all lines after it, then use --resume; their cells run again"))
            }
            Self::Different { .. } => Some("give another --out, or the study and flags of the first run".to_owned()),
            Self::Space { scale, .. } => {
                let less = if *scale == forebay_record::Scale::Full { ", or run with --scale quick" } else { "" };
                Some(format!("free space there, or put the data elsewhere with --data DIR{less}"))
            }
            Self::Data { source, .. } => source.hint().map(str::to_owned),
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                Some("free space and continue with --resume".to_owned())
            }
            Self::Storage(forebay_storage::Error::Full { .. }) => {
                Some("free space and continue with --resume".to_owned())
            }
            _ => None,
        }
    }
}
