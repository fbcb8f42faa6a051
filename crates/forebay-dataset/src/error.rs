//! Errors of dataset operations, as outcomes that a caller may handle differently.

use std::path::PathBuf;

use forebay_record::Fault;
use forebay_units::{Bytes, PathText, group_digits};

/// The result of an operation on a dataset.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A read or write failed.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// A parameter has an invalid value.
    #[error("{parameter} {value}: {reason}")]
    Parameter { parameter: &'static str, value: String, reason: &'static str },
    /// The folder contains files that this command did not create.
    #[error("{}: the folder is not empty and was not made by this command", path.escaped())]
    Foreign { path: PathBuf },
    /// This command made the folder with other parameters.
    #[error("{}: the folder was made with {theirs}; requested {ours}", path.escaped())]
    Different {
        path: PathBuf,
        /// The parameters that differ, as the folder has them.
        theirs: String,
        ours: String,
    },
    /// This command made the folder from the same number of inputs, but from other ones.
    #[error(
        "{}: the input files have changed since the folder was made (a name, size, modification time or label)",
        path.escaped()
    )]
    OtherInputs { path: PathBuf },
    #[error("{}: another process is writing to this folder", path.escaped())]
    Busy { path: PathBuf },
    #[error("{}: rank 0 did not mark this folder within a minute", path.escaped())]
    Unclaimed { path: PathBuf },
    /// Not enough space for the data to be made.
    #[error("{}: needs {needed}, but only {free} are free", path.escaped())]
    NoRoom {
        path: PathBuf,
        /// Bytes still to be written.
        needed: Bytes,
        /// Free bytes of the file system.
        free: Bytes,
    },
    /// A file is of an unsupported kind, or its records lack the requested features.
    #[error("{}", path.escaped())]
    Format { path: PathBuf, source: Box<forebay_format::Error> },
    /// Feature names were given for data without named features.
    #[error("{}: no TFRecord shards found; only TFRecord has named features", path.escaped())]
    NoFeatures { path: PathBuf },
    /// Not enough inodes for the files to be made.
    #[error("{}: needs {} files, but only {} more can be created", path.escaped(), group_digits(*needed), group_digits(*free))]
    NoInodes {
        path: PathBuf,
        /// Files still to be made.
        needed: u64,
        /// Free inodes of the file system.
        free: u64,
    },
    #[error("{}: {}", path.escaped(), left_out.as_deref().unwrap_or("no images or shards found"))]
    Empty { path: PathBuf, left_out: Option<String> },
    /// A text file is too large to be a list of files.
    #[error("{}: too large for a list: {size}, limit {limit}", path.escaped())]
    LongList { path: PathBuf, size: Bytes, limit: Bytes },
    /// Shards were given where image files are needed.
    #[error("{}: packing needs image files, found a {found} shard", path.escaped())]
    NotFiles { path: PathBuf, found: &'static str },
    /// The original files cannot be recovered.
    #[error("{}: cannot recover the original files from {found}", path.escaped())]
    Lossy { path: PathBuf, found: &'static str },
    /// A file or record is bad, and the caller wanted to stop at the first one.
    #[error("bad input: {0}")]
    Bad(Fault),
    /// The caller asked to stop. Finished files stay.
    #[error("stopped before the end")]
    Cancelled,
}

impl Error {
    /// How to fix it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Different { .. } | Self::OtherInputs { .. } => Some("use an empty or new folder, or remove this one"),
            _ => None,
        }
    }
}
