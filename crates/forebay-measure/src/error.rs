//! Why an experiment cannot be run, as far as experiments have it in common, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

use crate::file_system::FileSystem;

/// What any experiment may fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing lies there.
    #[error("{}: no such folder; create it, or name another", path.escaped())]
    NotThere {
        /// What was named.
        path: PathBuf,
    },
    /// It is there, and nothing can be made in it.
    #[error("{}: nothing can be created there; name another folder", path.escaped())]
    NothingCanBeMade {
        /// What was named.
        path: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("{}: the file system is mounted read-only; name a folder on another", path.escaped())]
    ReadOnly {
        /// What was named.
        path: PathBuf,
    },
    /// The user may not write there.
    #[error("{}: permission denied; name a folder you may write to", path.escaped())]
    Denied {
        /// What was named.
        path: PathBuf,
    },
    /// The device has no room left, although there was enough when the experiment began.
    #[error("{}: no space left on the device; free some, or name another folder", path.escaped())]
    Full {
        /// Where.
        path: PathBuf,
    },
    /// The file system ran out of inodes meanwhile.
    #[error("{}: no inodes left on the file system; name another folder", path.escaped())]
    NoInodes {
        /// Where.
        path: PathBuf,
    },
    /// A folder or file that this process made itself may not be opened.
    #[error("{}: just created and not accessible; allow the owner access with `umask 077`", path.escaped())]
    Masked {
        /// What was made.
        path: PathBuf,
    },
    /// Anything else the system reported.
    #[error("{what} {}", path.escaped())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// The data cannot be used, or the pipeline not be built.
    #[error(transparent)]
    Pipeline(#[from] forebay_pipeline::Error),
    /// A checkpoint could not be saved, restored or removed.
    #[error(transparent)]
    Checkpoint(#[from] forebay_checkpoint::Error),
    /// A state cannot be laid out in its format, or not be read from it.
    #[error(transparent)]
    Format(#[from] forebay_checkpoint::format::Error),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// Lets `?` turn what experiments have in common into the variant `Shared` of an experiment's own error.
#[macro_export]
macro_rules! share_errors {
    ($error:ty) => {
        $crate::share_errors!($error: $crate::StorageError, $crate::PipelineError, $crate::CheckpointError, $crate::FormatError);

        impl From<$crate::Error> for $error {
            fn from(error: $crate::Error) -> Self {
                Self::Shared(error)
            }
        }
    };
    ($error:ty: $($source:ty),+) => {
        $(impl From<$source> for $error {
            fn from(error: $source) -> Self {
                Self::Shared(error.into())
            }
        })+
    };
}

impl Error {
    /// Sorts a system error into its outcome.
    pub fn from_io(what: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull if is_without_inodes(&path) => Self::NoInodes { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            io::ErrorKind::NotFound => Self::NotThere { path },
            _ => Self::Io { what, path, source },
        }
    }

    /// The same for what this process has just made or makes in its own folder: only the process's umask can deny that.
    pub fn from_own(what: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Masked { path: path.to_owned() },
            _ => Self::from_io(what, path, source),
        }
    }
}

/// Whether the file system of a file that could not be written has space and lacks inodes.
fn is_without_inodes(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| FileSystem::of(path).ok());
    found.is_some_and(|system| system.free_files == Some(0) && system.free_bytes != Some(0))
}

/// Adds what was attempted, and on what, to a system error.
pub trait Context<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::from_io(what, path, source))
    }
}
