//! Errors of a probe, with what the user can do about them.

use std::io;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Shared(forebay_measure::Error),
    /// The hint differs from the shared one: a probe can still measure reads of an existing file.
    #[error("{0}, or a large file to measure its reads alone")]
    NotWritable(forebay_measure::Error),
    #[error("{}: neither a folder nor a regular file; name a folder on the disk to be measured", path.escaped())]
    NotAFolder { path: PathBuf },
    #[error(
        "{}: the probe needs {needed}, but only {free} are free; give a smaller --size, or another folder",
        path.escaped()
    )]
    TooLittleSpace { path: PathBuf, needed: Bytes, free: Bytes },
    /// Inodes may run out before space does.
    #[error(
        "{}: the probe creates {needed} files and folders, but only {free} inodes are free; give another folder",
        path.escaped()
    )]
    TooFewInodes { path: PathBuf, needed: u64, free: u64 },
    #[error(
        "the buffers need {needed} of memory, but only {available} are available; give a smaller --block, --depth or --mix"
    )]
    TooLittleMemory { needed: Bytes, available: Bytes },
    #[error("{}: this file system does not support direct I/O ({reason}); use --engine sync", path.escaped())]
    NoDirect {
        path: PathBuf,
        /// From the kernel.
        reason: String,
    },
    #[error("io_uring cannot be used here ({reason}); use --engine direct or sync")]
    NoRing {
        /// From the kernel.
        reason: String,
    },
    /// Settings that contradict each other or the target.
    #[error("{what}")]
    Senseless { what: String },
    #[error("cannot start {n} threads; give a smaller --depth")]
    Threads {
        n: usize,
        #[source]
        source: io::Error,
    },
}

forebay_measure::share_errors!(Error: forebay_storage::Error);

impl From<forebay_measure::Error> for Error {
    fn from(error: forebay_measure::Error) -> Self {
        use forebay_measure::Error::{Denied, ReadOnly};
        if matches!(error, Denied { .. } | ReadOnly { .. }) { Self::NotWritable(error) } else { Self::Shared(error) }
    }
}

impl Error {
    pub(super) fn senseless(what: impl Into<String>) -> Self {
        Self::Senseless { what: what.into() }
    }
}

pub(super) trait Context<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        Ok(forebay_measure::Context::context(self, what, path)?)
    }
}
