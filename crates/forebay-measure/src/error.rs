//! Errors common to all experiments, each with what the user can do about it.

use std::io;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

use crate::file_system::FileSystem;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{}: no such folder; create it, or name another", path.escaped())]
    NotThere { path: PathBuf },
    /// The folder exists, but nothing can be created in it; for example `/proc`.
    #[error("{}: nothing can be created there; name another folder", path.escaped())]
    NothingCanBeMade { path: PathBuf },
    #[error("{}: the file system is mounted read-only; name a folder on another", path.escaped())]
    ReadOnly { path: PathBuf },
    #[error("{}: permission denied; name a folder you may write to", path.escaped())]
    Denied { path: PathBuf },
    /// Space ran out during the experiment, although it sufficed at the start.
    #[error("{}: no space left on the device; free some, or name another folder", path.escaped())]
    Full { path: PathBuf },
    #[error("{}: no inodes left on the file system; name another folder", path.escaped())]
    NoInodes { path: PathBuf },
    /// This process cannot open a file or folder that it created: the umask is too strict.
    #[error("{}: just created, but not accessible; allow the owner access with `umask 077`", path.escaped())]
    Masked { path: PathBuf },
    #[error("{what} {}", path.escaped())]
    Io {
        /// Participle before the path: "opening".
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A setting has no meaning where the data is.
    #[error("{}: the data is {is}: `{setting}` {why}; omit it", path.escaped())]
    Misplaced { setting: &'static str, why: &'static str, path: PathBuf, is: &'static str },
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    #[error(transparent)]
    Pipeline(#[from] forebay_pipeline::Error),
    #[error(transparent)]
    Checkpoint(#[from] forebay_checkpoint::Error),
    #[error(transparent)]
    Format(#[from] forebay_checkpoint::format::Error),
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// Lets `?` convert the shared errors into the variant `Shared` of an experiment's own error.
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

    /// For files that this process created in its own folder: only its umask can deny access to them.
    pub fn from_own(what: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Masked { path: path.to_owned() },
            _ => Self::from_io(what, path, source),
        }
    }
}

/// ENOSPC means either; only the file system's counters tell a lack of inodes from a lack of space.
fn is_without_inodes(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| FileSystem::of(path).ok());
    found.is_some_and(|system| system.free_files == Some(0) && system.free_bytes != Some(0))
}

pub trait Context<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::from_io(what, path, source))
    }
}
