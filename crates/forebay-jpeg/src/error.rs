//! Errors of decoding, by what the caller may do about them.

use thiserror::Error;

use crate::Region;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The data does not begin with a JPEG start-of-image marker.
    #[error("not a JPEG file: it does not begin with ff d8 ff")]
    NotJpeg,
    /// The data ends before the image does.
    #[error("JPEG data ends at byte {offset}, before the image is complete")]
    Truncated { offset: usize },
    /// The data contradicts the format.
    #[error("corrupt JPEG data at byte {offset}: expected {expected}, found {found}")]
    Corrupt {
        /// Offset in the file of the byte where the error was found.
        offset: usize,
        expected: &'static str,
        found: String,
    },
    /// A valid JPEG file of a kind that this decoder does not support.
    #[error("unsupported JPEG: {what}")]
    Unsupported { what: String },
    /// More pixels than the [`Limits`](crate::Limits) allow.
    #[error("JPEG of {width}x{height} pixels exceeds the limit of {max_pixels} pixels")]
    TooLarge {
        /// From the frame header, before any scaling.
        width: u32,
        height: u32,
        max_pixels: u64,
    },
    /// More scans than the [`Limits`](crate::Limits) allow.
    #[error("JPEG exceeds the limit of {max_scans} scans at byte {offset}")]
    TooManyScans {
        /// Offset of the scan that exceeds the limit.
        offset: usize,
        max_scans: u32,
    },
    /// A part was wanted that is empty, or not within the decoded image.
    #[error("no part of {width}x{height} pixels: {region:?}")]
    NoSuchRegion { region: Region, width: u32, height: u32 },
}

impl Error {
    pub(crate) fn corrupt(offset: usize, expected: &'static str, found: impl ToString) -> Self {
        Error::Corrupt { offset, expected, found: found.to_string() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Error::Unsupported { what: what.into() }
    }
}
