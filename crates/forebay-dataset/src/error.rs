//! What can go wrong with a dataset, as outcomes that a caller may treat differently.

use std::path::PathBuf;

use forebay_record::Fault;
use forebay_units::{Bytes, PathText, group_digits};

/// The result of an operation on a dataset.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage could not read or write something; it says what and why.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// A parameter has a value that cannot be.
    #[error("{parameter} {value}: {reason}")]
    Parameter { parameter: &'static str, value: String, reason: &'static str },
    /// The folder holds something that this command did not put there.
    #[error("{}: the folder is not empty and was not made by this command", path.escaped())]
    Foreign { path: PathBuf },
    /// The folder was made by this command from something else.
    #[error("{}: the folder was made with {theirs}, not {ours}", path.escaped())]
    Different {
        path: PathBuf,
        /// What it was made with, where that differs.
        theirs: String,
        ours: String,
    },
    /// The folder was made by this command from the same number of inputs, but not from these.
    #[error(
        "{}: the folder was made from other input files: since then a name, size, modification time or label has changed",
        path.escaped()
    )]
    OtherInputs { path: PathBuf },
    #[error("{}: another process is writing to this folder", path.escaped())]
    Busy { path: PathBuf },
    #[error("{}: the first rank has not marked this folder within a minute", path.escaped())]
    Unclaimed { path: PathBuf },
    /// What is to be made is more than what is free.
    #[error("{}: {needed} are needed, {free} are free", path.escaped())]
    NoRoom {
        path: PathBuf,
        /// Bytes that are still to be written.
        needed: Bytes,
        /// Bytes that the file system has left.
        free: Bytes,
    },
    /// A file is of a kind that is not read, or its records lack what was asked for.
    #[error("{}", path.escaped())]
    Format { path: PathBuf, source: Box<forebay_format::Error> },
    /// Names of features were given for data that have none.
    #[error("{}: no TFRecord records found; only those have named features", path.escaped())]
    NoFeatures { path: PathBuf },
    /// What is to be made is more files than the file system has room for.
    #[error("{}: {} files are needed, {} more can be created", path.escaped(), group_digits(*needed), group_digits(*free))]
    NoInodes {
        path: PathBuf,
        /// Files that are still to be made.
        needed: u64,
        /// Inodes that the file system has left.
        free: u64,
    },
    #[error("{}: {}", path.escaped(), left_out.as_deref().unwrap_or("no images or shards found"))]
    Empty { path: PathBuf, left_out: Option<String> },
    /// A text is too large to be a list of files.
    #[error("{}: too large for a list: {size}, limit {limit}", path.escaped())]
    LongList { path: PathBuf, size: Bytes, limit: Bytes },
    /// Shards were given where image files are needed.
    #[error("{}: packing starts from image files, not from a {found} shard", path.escaped())]
    NotFiles { path: PathBuf, found: &'static str },
    /// The original files cannot be had back from what is there.
    #[error("{}: {found} cannot be turned back into the files they were made from", path.escaped())]
    Lossy { path: PathBuf, found: &'static str },
    /// A file or record is bad, and the caller wanted to stop at the first such.
    #[error("bad input: {0}")]
    Bad(Fault),
    /// The caller asked to stop. What was finished stays.
    #[error("stopped before the end")]
    Cancelled,
}

impl Error {
    /// What the user may do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Different { .. } | Self::OtherInputs { .. } => {
                Some("give an empty or new folder, or remove this one to make it again")
            }
            _ => None,
        }
    }
}
