//! Errors of single samples and of pipelines.

use std::error::Error as StdError;
use std::sync::Arc;

use forebay_units::Bytes;

/// Why a sample could not be made.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    #[error("cannot be read")]
    Storage(#[source] Arc<forebay_storage::Error>),
    /// The sample exceeds the size limit and was not read.
    #[error("{size} exceeds the sample size limit of {limit}; raise it with --max-sample-size")]
    TooLarge { size: Bytes, limit: Bytes },
    /// The bytes are damaged or of an unexpected format.
    #[error("cannot be decoded")]
    Format(#[source] Arc<forebay_format::Error>),
    /// The map rejected the sample, for this reason.
    #[error("{0}")]
    Refused(String),
    #[error("the map function panicked: {0}")]
    Panicked(String),
    /// One of several samples that the map makes together failed; `name` identifies it.
    #[error("{name}")]
    Of {
        name: String,
        #[source]
        error: Box<SampleError>,
    },
}

impl From<forebay_storage::Error> for SampleError {
    fn from(error: forebay_storage::Error) -> Self {
        match error {
            forebay_storage::Error::TooLarge { size, limit, .. } => Self::TooLarge { size, limit },
            error => Self::Storage(Arc::new(error)),
        }
    }
}

impl From<forebay_format::Error> for SampleError {
    fn from(error: forebay_format::Error) -> Self {
        Self::Format(Arc::new(error))
    }
}

/// A failed sample: its name and the error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("sample {name}")]
pub struct FailedSample {
    pub index: u32,
    /// A path, with the offset for a record of a shard.
    pub name: String,
    #[source]
    pub error: SampleError,
}

impl FailedSample {
    /// The error with its causes, on one line, for a report.
    pub fn reason(&self) -> String {
        // The outermost text only says whether reading or decoding failed, so it is dropped if there is a cause.
        forebay_units::chain(StdError::source(&self.error).unwrap_or(&self.error))
    }
}

/// A pipeline that cannot be built, or a batch that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{stage}: {reason}")]
    Plan { stage: &'static str, reason: String },
    #[error("no samples in {what}")]
    Empty { what: String },
    /// A list, folder or shard has unexpected contents.
    #[error("{what}")]
    Source {
        what: String,
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// Storage failed while the source was listed or indexed.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// A sample failed and errors are not ignored.
    #[error(transparent)]
    Sample(#[from] FailedSample),
    /// A saved state cannot be restored by this pipeline.
    #[error("cannot resume from this state: {reason}")]
    State { reason: String },
    /// The consumer holds all batch buffers.
    #[error(
        "the consumer holds all {held} batch buffers; drop a batch before requesting the next, or allow more with hold()"
    )]
    AllHeld { held: usize },
}
