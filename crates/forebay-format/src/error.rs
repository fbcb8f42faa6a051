//! What can be wrong with bytes. Every variant that concerns a place in a file carries its offset.

/// Why bytes could not be read as, or turned into, what was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not in this format at all.
    #[error("not recognised: expected {expected}, found {found}")]
    NotRecognised {
        /// The formats that would have been understood.
        expected: &'static str,
        /// A description of what the bytes look like instead.
        found: String,
    },
    /// The bytes end before the thing they describe does.
    #[error("{what} at offset {offset}: truncated: {needed} bytes needed, {found} found")]
    Truncated {
        /// The thing that is cut off, such as "record 12".
        what: String,
        /// Where that thing begins in the file.
        offset: u64,
        /// Its length, as far as it is known.
        needed: u64,
        /// How many of these bytes are there.
        found: u64,
    },
    /// The bytes are not those that were written.
    #[error("{what} at offset {offset}: {part} checksum: expected {expected:#010x}, found {found:#010x}")]
    Checksum {
        /// The thing that is damaged, such as "record 12".
        what: String,
        /// Where that thing begins in the file.
        offset: u64,
        /// Which of its parts is damaged, such as "payload".
        part: &'static str,
        expected: u32,
        found: u32,
    },
    /// A field has a value that the format does not allow.
    #[error("{what} at offset {offset}: expected {expected}, found {found}")]
    Invalid {
        /// The field or structure, such as "tar header: size".
        what: String,
        offset: u64,
        expected: String,
        found: String,
    },
    /// A record has no feature that fits.
    #[error("{what}; features found: {found}")]
    NoFeature {
        /// What is missing, or of the wrong type.
        what: String,
        /// The features that are there, with their types.
        found: String,
    },
    /// Several features of a record could be its image, and none has one of the common names.
    #[error("several features hold images: {}", candidates.join(", "))]
    SeveralImages { candidates: Vec<String> },
    /// An archive or a compressed file of a kind that is not read.
    #[error("expected images, a shard or a list, found {how} data")]
    Archive { how: &'static str },
    /// Text that is not in the encoding of a list.
    #[error("expected a list in UTF-8, found UTF-16")]
    Utf16,
    /// The bytes may well be valid, but this library does not read them.
    #[error("not supported: {what}")]
    Unsupported { what: String },
    /// The bytes are an image of a format that this library does not decode.
    #[error("{format} is not supported")]
    UnsupportedImage { format: &'static str },
    /// Something is larger than a limit of this library or of its caller.
    #[error("{what} too large: {found}, limit {limit}")]
    TooLarge { what: String, limit: u64, found: u64 },
    /// The caller's memory does not fit the sample that is to be written there.
    #[error("output slot: expected {expected}, found {found}")]
    Slot {
        /// The size or alignment that is needed.
        expected: String,
        found: String,
    },
    /// The caller could not take or give bytes.
    #[error("bytes cannot be moved")]
    Io(#[source] std::io::Error),
    /// The library of a format failed, which opens files by itself.
    #[error("{path}: {library}'s library: {what}", path = .path.display())]
    Library { library: &'static str, path: std::path::PathBuf, what: String },
    /// A JPEG file could not be decoded.
    #[error("jpeg image cannot be decoded")]
    Jpeg(#[from] forebay_jpeg::Error),
    /// A PNG file could not be decoded.
    #[error("png image cannot be decoded")]
    Png(#[from] png::DecodingError),
    /// A file of another image format could not be decoded.
    #[error("{format} image cannot be decoded")]
    Image {
        /// The format, as [`Kind::name`](crate::Kind::name) has it.
        format: &'static str,
        #[source]
        source: image::ImageError,
    },
}

impl Error {
    pub(crate) fn truncated(what: impl Into<String>, offset: u64, needed: u64, found: u64) -> Self {
        Self::Truncated { what: what.into(), offset, needed, found }
    }

    pub(crate) fn invalid(
        what: impl Into<String>,
        offset: u64,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Self {
        Self::Invalid { what: what.into(), offset, expected: expected.into(), found: found.to_string() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }
}
