//! Errors in the files of a checkpoint, or in a snapshot to be saved.

use std::io;

/// Why a checkpoint could not be read or a snapshot could not be laid out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is missing or could not be read.
    #[error("reading {file}")]
    Io { file: String, source: io::Error },
    /// The file ends too early.
    #[error("{file}: {what} at offset {offset}: truncated: {needed} bytes needed, {found} found")]
    Truncated {
        file: String,
        what: String,
        offset: u64,
        needed: u64,
        /// How many of the needed bytes exist.
        found: u64,
    },
    /// The checksum does not match.
    #[error("{file}: {what} at offset {offset}: checksum: expected {expected:#010x}, found {found:#010x}")]
    Checksum { file: String, what: String, offset: u64, expected: u32, found: u32 },
    /// A field has a value that the format does not allow.
    #[error("{file}: {what} at offset {offset}: expected {expected}, found {found}")]
    Invalid { file: String, what: String, offset: u64, expected: String, found: String },
    /// The checkpoint may be valid, but this library cannot read it.
    #[error("{file}: not supported: {what}")]
    Unsupported { file: String, what: String },
    /// The checkpoint has no tensor with this name.
    #[error("no tensor named {name:?}")]
    NoTensor { name: String },
    /// The format cannot represent this snapshot.
    #[error("cannot save as {format}: {what}")]
    Unsavable { format: &'static str, what: String },
    /// The collected checksums do not cover a tensor exactly once.
    #[error("checksums of tensor {index}: expected bytes from offset {expected}, found {found}")]
    Uncovered { index: usize, expected: u64, found: u64 },
}

/// A file being decoded; builds errors that name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
}

impl Place<'_> {
    pub(super) fn io(self, source: io::Error) -> Error {
        Error::Io { file: self.file.to_owned(), source }
    }

    pub(super) fn truncated(self, what: impl Into<String>, offset: u64, needed: u64, found: u64) -> Error {
        Error::Truncated { file: self.file.to_owned(), what: what.into(), offset, needed, found }
    }

    pub(super) fn checksum(self, what: impl Into<String>, offset: u64, expected: u32, found: u32) -> Error {
        Error::Checksum { file: self.file.to_owned(), what: what.into(), offset, expected, found }
    }

    pub(super) fn invalid(
        self,
        what: impl Into<String>,
        offset: u64,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Error {
        let (expected, found) = (expected.into(), found.to_string());
        Error::Invalid { file: self.file.to_owned(), what: what.into(), offset, expected, found }
    }

    pub(super) fn unsupported(self, what: impl Into<String>) -> Error {
        Error::Unsupported { file: self.file.to_owned(), what: what.into() }
    }
}
