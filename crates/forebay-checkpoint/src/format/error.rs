//! What can be wrong with the files of a checkpoint, or with a snapshot that is to become one.

use std::io;

/// Why a checkpoint could not be read, or a snapshot not be laid out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is missing or the system could not read it.
    #[error("reading {file}")]
    Io {
        /// The file's name.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file ends before the thing it describes does.
    #[error("{file}: {what} at offset {offset}: truncated: {needed} bytes needed, {found} found")]
    Truncated {
        /// The file's name.
        file: String,
        /// The thing that is cut off.
        what: String,
        /// Where that thing begins.
        offset: u64,
        /// Its length.
        needed: u64,
        /// How many of these bytes are there.
        found: u64,
    },
    /// The bytes are not those that were written.
    #[error("{file}: {what} at offset {offset}: checksum: expected {expected:#010x}, found {found:#010x}")]
    Checksum {
        /// The file's name.
        file: String,
        /// The thing that is damaged.
        what: String,
        /// Where that thing begins.
        offset: u64,
        /// The checksum stored.
        expected: u32,
        /// The checksum of the bytes found.
        found: u32,
    },
    /// A field has a value that the format does not allow.
    #[error("{file}: {what} at offset {offset}: expected {expected}, found {found}")]
    Invalid {
        /// The file's name.
        file: String,
        /// The field or structure.
        what: String,
        /// Where it begins.
        offset: u64,
        /// What the format allows there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The checkpoint may well be valid, but this library does not read it.
    #[error("{file}: not supported: {what}")]
    Unsupported {
        /// The file's name.
        file: String,
        /// The feature that is missing here.
        what: String,
    },
    /// The checkpoint holds no tensor of that name.
    #[error("no tensor is named {name:?}")]
    NoTensor {
        /// The name asked for.
        name: String,
    },
    /// The format has no way to write this snapshot.
    #[error("cannot be saved as {format}: {what}")]
    Unsavable {
        /// The format's name.
        format: &'static str,
        /// What stands in the way.
        what: String,
    },
    /// The checksums handed over do not cover a tensor exactly once.
    #[error("checksums of tensor {index}: expected bytes from offset {expected}, found {found}")]
    Uncovered {
        /// Which tensor of the snapshot.
        index: usize,
        /// Where the next part should begin.
        expected: u64,
        /// Where it does.
        found: u64,
    },
}

/// A file under decoding: makes errors that name it.
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
