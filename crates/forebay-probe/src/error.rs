//! Why a probe could not be, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText};

/// A probe that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any experiment may fail with.
    #[error(transparent)]
    Shared(forebay_measure::Error),
    /// Nothing can be written there.
    #[error("{0}, or a large file to measure its reads alone")]
    NotWritable(forebay_measure::Error),
    /// It is a pipe or a device.
    #[error("{}: neither a folder nor a regular file; name a folder on the disk to be measured", path.escaped())]
    NotAFolder {
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
    /// The file system takes fewer new files than the probe makes, whatever space it has.
    #[error(
        "{}: the probe creates {needed} files and folders and {free} inodes are free; give another folder",
        path.escaped()
    )]
    TooFewInodes {
        /// Where.
        path: PathBuf,
        /// How many it makes.
        needed: u64,
        /// How many there may be.
        free: u64,
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
    /// No more threads can be had.
    #[error("cannot start {n} threads; give a smaller --depth")]
    Threads {
        /// How many were wanted.
        n: usize,
        /// What the system said.
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

/// Adds what was attempted, and on what, to a system error.
pub(super) trait Context<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        Ok(forebay_measure::Context::context(self, what, path)?)
    }
}
