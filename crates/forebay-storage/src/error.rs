//! What can go wrong with bytes, as outcomes that a caller may treat differently.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText};

/// The result of a storage operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What was being done when it went wrong; also what `counted` counts and `faulty` breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Listing a folder.
    List,
    /// Asking for a length.
    Size,
    /// Opening for reading.
    Open,
    /// Reading bytes.
    Read,
    /// Mapping into memory.
    Map,
    /// Starting a new object.
    Create,
    /// Writing bytes.
    Write,
    /// Making an object durable and visible.
    Commit,
    /// Removing an object.
    Remove,
    /// Controlling or querying the page cache.
    Cache,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "listing",
            Self::Size => "asking for the size of",
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

/// A failed storage operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing by that name.
    #[error("{operation} {}: no such file or folder", path.escaped())]
    NotFound {
        /// What was being done.
        operation: Operation,
        /// To what.
        path: PathBuf,
    },
    /// The object ends before the wanted range does.
    #[error("reading {}: wanted {wanted} bytes from offset {offset}, found {found}", path.escaped())]
    Truncated {
        /// Which object.
        path: PathBuf,
        /// Where the range starts.
        offset: u64,
        /// How many bytes were wanted.
        wanted: u64,
        /// How many there were.
        found: u64,
    },
    /// The object is larger than the caller allows.
    #[error("reading {}: {size} exceeds the limit of {limit}", path.escaped())]
    TooLarge {
        /// Which object.
        path: PathBuf,
        /// How large it is.
        size: Bytes,
        /// How large it may be.
        limit: Bytes,
    },
    /// No space is left.
    #[error("{operation} {}: no space left on the device", path.escaped())]
    Full {
        /// What was being done.
        operation: Operation,
        /// To what.
        path: PathBuf,
    },
    /// The caller may not do that.
    #[error("{operation} {}: permission denied", path.escaped())]
    Denied {
        /// What was being done.
        operation: Operation,
        /// To what.
        path: PathBuf,
    },
    /// The backend or the file system under it cannot do that.
    #[error("{operation} {}: {what}", path.escaped())]
    Unsupported {
        /// What was being done.
        operation: Operation,
        /// To what.
        path: PathBuf,
        /// What cannot be done.
        what: String,
    },
    /// Anything else the system reported.
    #[error("{operation} {}", path.escaped())]
    Io {
        /// What was being done.
        operation: Operation,
        /// To what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Sorts a system error into its outcome.
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

    /// The object it happened to.
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path, .. }
            | Self::Truncated { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Full { path, .. }
            | Self::Denied { path, .. }
            | Self::Unsupported { path, .. }
            | Self::Io { path, .. } => path,
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
