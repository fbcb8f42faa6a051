//! Errors of storage, as outcomes that a caller may handle differently.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText};

pub type Result<T> = std::result::Result<T, Error>;

/// The operation that failed; also what `counted` counts and `faulty` breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    List,
    Size,
    Open,
    Read,
    Map,
    Create,
    Write,
    /// Includes the sync that makes the object durable.
    Commit,
    Remove,
    Cache,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "listing",
            Self::Size => "getting the size of",
            Self::Open => "opening",
            Self::Read => "reading",
            Self::Map => "mapping",
            Self::Create => "creating",
            Self::Write => "writing",
            Self::Commit => "committing",
            Self::Remove => "removing",
            Self::Cache => "controlling the page cache of",
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{operation} {}: no such file or folder", path.escaped())]
    NotFound { operation: Operation, path: PathBuf },
    /// The object ends before the requested range does.
    #[error("reading {}: wanted {wanted} bytes from offset {offset}, found {found}", path.escaped())]
    Truncated { path: PathBuf, offset: u64, wanted: u64, found: u64 },
    /// The object is larger than the caller allows.
    #[error("reading {}: {size} exceeds the limit of {limit}", path.escaped())]
    TooLarge { path: PathBuf, size: Bytes, limit: Bytes },
    #[error("{operation} {}: no space left on the device", path.escaped())]
    Full { operation: Operation, path: PathBuf },
    #[error("{operation} {}: permission denied", path.escaped())]
    Denied { operation: Operation, path: PathBuf },
    /// The backend or its file system does not support the operation.
    #[error("{operation} {}: {what}", path.escaped())]
    Unsupported { operation: Operation, path: PathBuf, what: String },
    /// An object store refused a request, failed, or could not be reached.
    #[error("{operation} {}: {what}", path.escaped())]
    Remote {
        operation: Operation,
        path: PathBuf,
        what: String,
        /// Whether it answered at all.
        answered: bool,
    },
    #[error("{operation} {}", path.escaped())]
    Io {
        operation: Operation,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Maps a system error to its outcome.
    pub fn from_io(operation: Operation, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { operation, path },
            io::ErrorKind::PermissionDenied => Self::Denied { operation, path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { operation, path },
            _ => Self::Io { operation, path, source },
        }
    }

    /// Refuses an object that is larger than the caller allows.
    pub(crate) fn check_size(path: &Path, size: u64, limit: u64) -> Result<()> {
        if size > limit {
            return Err(Self::TooLarge { path: path.to_owned(), size: Bytes(size), limit: Bytes(limit) });
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path, .. }
            | Self::Truncated { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Full { path, .. }
            | Self::Denied { path, .. }
            | Self::Unsupported { path, .. }
            | Self::Remote { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// Whether another request would fail too, after as long a time.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Remote { answered: false, .. })
    }

    /// The same outcome for another reader of the same bytes.
    #[cfg(feature = "object")]
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::NotFound { operation, path } => Self::NotFound { operation: *operation, path: path.clone() },
            Self::Truncated { path, offset, wanted, found } => {
                Self::Truncated { path: path.clone(), offset: *offset, wanted: *wanted, found: *found }
            }
            Self::TooLarge { path, size, limit } => Self::TooLarge { path: path.clone(), size: *size, limit: *limit },
            Self::Remote { operation, path, what, answered } => {
                Self::Remote { operation: *operation, path: path.clone(), what: what.clone(), answered: *answered }
            }
            other => Self::Remote {
                operation: Operation::Read,
                path: other.path().to_owned(),
                what: forebay_units::chain(other),
                answered: true,
            },
        }
    }
}

/// Adds the operation and the path to a system error.
pub(crate) trait Context<T> {
    fn context(self, operation: Operation, path: &Path) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: Operation, path: &Path) -> Result<T> {
        self.map_err(|source| Error::from_io(operation, path, source))
    }
}
