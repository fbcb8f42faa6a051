//! Decode and encode errors. Every variant that concerns a place in a file carries its offset.

/// Why decoding or encoding failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not in this format at all.
    #[error("not recognised: expected {expected}, found {found}")]
    NotRecognised {
        /// The formats that would have been accepted.
        expected: &'static str,
        /// What the bytes look like instead.
        found: String,
    },
    /// The bytes end too early.
    #[error("{what} at offset {offset}: truncated: {needed} bytes needed, {found} found")]
    Truncated {
        /// What is cut off, such as "record 12".
        what: String,
        /// Where that thing begins in the file.
        offset: u64,
        /// Its length, as far as known.
        needed: u64,
        /// How many of these bytes were found.
        found: u64,
    },
    /// The bytes are damaged.
    #[error("{what} at offset {offset}: {part} checksum: expected {expected:#010x}, found {found:#010x}")]
    Checksum {
        /// What is damaged, such as "record 12".
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
    /// A record has no suitable feature.
    #[error("{what}; features found: {found}")]
    NoFeature {
        /// What is missing, or of the wrong type.
        what: String,
        /// The features of the record, with their types.
        found: String,
    },
    /// Several features of a record could be its image, and none has one of the common names.
    #[error("several features hold images: {}", candidates.join(", "))]
    SeveralImages { candidates: Vec<String> },
    /// An archive or a compressed file of an unsupported kind.
    #[error("expected images, a shard or a list, found {how} data")]
    Archive { how: &'static str },
    /// Text in another encoding than lists use.
    #[error("expected a list in UTF-8, found UTF-16")]
    Utf16,
    /// The bytes may be valid, but this library does not support them.
    #[error("not supported: {what}")]
    Unsupported { what: String },
    /// An image of a format that this library does not decode.
    #[error("{format} is not supported")]
    UnsupportedImage { format: &'static str },
    /// Something is larger than a limit of this library or of its caller.
    #[error("{what} too large: {found}, limit {limit}")]
    TooLarge { what: String, limit: u64, found: u64 },
    /// The caller's memory does not fit the sample.
    #[error("output slot: expected {expected}, found {found}")]
    Slot {
        /// The required size or alignment.
        expected: String,
        found: String,
    },
    /// The caller's reader or writer failed.
    #[error("transferring bytes")]
    Io(#[source] std::io::Error),
    /// A format's own library, which opens files itself, failed.
    #[error("{path}: {library} library: {what}", path = .path.display())]
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
