//! Why a probe could not be, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText};

use crate::file_system::FileSystem;

/// A probe that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to probe.
    #[error("{}: no such folder; make it, or name one on the disk to be measured", path.escaped())]
    NotThere {
        /// What was named.
        path: PathBuf,
    },
    /// It is there, and nothing can be made in it.
    #[error("{}: nothing can be created there; name a folder on the disk to be measured", path.escaped())]
    NothingCanBeMade {
        /// What was named.
        path: PathBuf,
    },
    /// It is a pipe or a device.
    #[error("{}: neither a folder nor a regular file; name a folder on the disk to be measured", path.escaped())]
    NotAFolder {
        /// What was named.
        path: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error(
        "{}: the file system is mounted read-only; probe another folder, or name a large file on this one: its reads are \
         measured without writing",
        path.escaped()
    )]
    ReadOnly {
        /// What was named.
        path: PathBuf,
    },
    /// The user may not write there.
    #[error("{}: permission denied; name a folder you may write to, or a large file you may read", path.escaped())]
    Denied {
        /// What was named.
        path: PathBuf,
    },
    /// There is less room than the probe needs.
    #[error(
        "{}: the probe needs {needed} and {free} are free; give a smaller --size, or another folder",
        path.escaped()
    )]
    TooLittleSpace {
        /// Where.
        path: PathBuf,
        /// What it needs.
        needed: Bytes,
        /// What there is.
        free: Bytes,
    },
    /// The device has no room left, although there was enough when the probe began.
    #[error("{}: no space left on the device; give a smaller --size, or another folder", path.escaped())]
    Full {
        /// Where.
        path: PathBuf,
    },
    /// The file system takes fewer new files than the probe makes, whatever space it has.
    #[error(
        "{}: the probe creates {needed} files and folders and {free} inodes are free; give another folder",
        path.display()
    )]
    TooFewInodes {
        /// Where.
        path: PathBuf,
        /// How many it makes.
        needed: u64,
        /// How many there may be.
        free: u64,
    },
    /// The file system ran out of inodes meanwhile.
    #[error("{}: no inodes left on the file system; give another folder", path.display())]
    NoInodes {
        /// Where.
        path: PathBuf,
    },
    /// A folder or file that the probe made itself may not be opened.
    #[error("{}: just created and not accessible; allow the owner access with `umask 077`", path.display())]
    Masked {
        /// What was made.
        path: PathBuf,
    },
    /// The buffers do not fit into memory.
    #[error(
        "the buffers need {needed} of memory and {available} are available; give a smaller --block, --depth or --mix"
    )]
    TooLittleMemory {
        /// What they need.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
    /// Direct I/O does not work there.
    #[error("{}: this file system does not support direct I/O ({reason}); use --engine sync", path.escaped())]
    NoDirect {
        /// Where.
        path: PathBuf,
        /// What the kernel said.
        reason: String,
    },
    /// io_uring does not work here.
    #[error("io_uring cannot be used here ({reason}); use --engine direct or sync")]
    NoRing {
        /// What the kernel said.
        reason: String,
    },
    /// A plan that makes no sense.
    #[error("{what}")]
    Senseless {
        /// Why not.
        what: String,
    },
    /// The data that the probe should be like cannot be used.
    #[error(transparent)]
    Data(#[from] forebay_pipeline::Error),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// No more threads can be had.
    #[error("cannot start {n} threads; give a smaller --depth")]
    Threads {
        /// How many were wanted.
        n: usize,
        /// What the system said.
        #[source]
        source: io::Error,
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
}

impl Error {
    pub(super) fn senseless(what: impl Into<String>) -> Self {
        Self::Senseless { what: what.into() }
    }

    /// The same for what the probe has just made or makes in its own folder: only the process's umask can deny that.
    pub(super) fn from_own(what: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Masked { path: path.to_owned() },
            _ => Self::from_io(what, path, source),
        }
    }

    /// Sorts a system error into its outcome.
    pub(super) fn from_io(what: &'static str, path: &Path, source: io::Error) -> Self {
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
}

/// Whether the file system of a file that could not be written has space and lacks inodes.
fn is_without_inodes(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| FileSystem::of(path).ok());
    found.is_some_and(|system| system.free_files == Some(0) && system.free_bytes != Some(0))
}

/// Adds what was attempted, and on what, to a system error.
pub(super) trait Context<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::from_io(what, path, source))
    }
}
