//! What can go wrong with a dataset, as outcomes that a caller may treat differently.

use std::path::PathBuf;

use forebay_record::Fault;
use forebay_units::Bytes;

/// The result of an operation on a dataset.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation on a dataset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage could not read or write something; it says what and why.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// A parameter has a value that cannot be.
    #[error("{parameter} {value}: {reason}")]
    Parameter {
        /// Which parameter.
        parameter: &'static str,
        /// The value given.
        value: String,
        /// Why it cannot be.
        reason: &'static str,
    },
    /// The folder holds something that this command did not put there.
    #[error("{}: the folder is not empty and was not made by this command", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was made by this command from something else.
    #[error("{}: the folder was made with {theirs}, not {ours}", path.display())]
    Different {
        /// The folder.
        path: PathBuf,
        /// What it was made with, where that differs.
        theirs: String,
        /// What was asked for.
        ours: String,
    },
    /// Another process is writing there.
    #[error("{}: another process is writing to this folder", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The first rank did not begin.
    #[error("{}: the first rank has not marked this folder within a minute", path.display())]
    Unclaimed {
        /// The folder.
        path: PathBuf,
    },
    /// What is to be made is more than what is free.
    #[error("{}: {needed} are needed, {free} are free", path.display())]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// Bytes that are still to be written.
        needed: Bytes,
        /// Bytes that the file system has left.
        free: Bytes,
    },
    /// There is nothing to work on.
    #[error("{}: {}", path.display(), left_out.as_deref().unwrap_or("no images and no shards are there"))]
    Empty {
        /// Where there is nothing.
        path: PathBuf,
        /// What is there instead.
        left_out: Option<String>,
    },
    /// A text is too large to be a list of files.
    #[error("{}: too large for a list: {size}, limit {limit}", path.display())]
    LongList {
        /// The text.
        path: PathBuf,
        /// How large it is.
        size: Bytes,
        /// How large a list may be.
        limit: Bytes,
    },
    /// Shards were given where image files are needed.
    #[error("{}: packing starts from image files, not from a {found} shard", path.display())]
    NotFiles {
        /// The shard.
        path: PathBuf,
        /// Its format.
        found: &'static str,
    },
    /// The original files cannot be had back from what is there.
    #[error("{}: {found} cannot be turned back into the files they were made from", path.display())]
    Lossy {
        /// What was to be turned back.
        path: PathBuf,
        /// What it holds.
        found: &'static str,
    },
    /// A file or record is bad, and the caller wanted to stop at the first such.
    #[error("bad input: {0}")]
    Bad(Fault),
    /// The caller asked to stop. What was finished stays.
    #[error("stopped before the end")]
    Cancelled,
}
