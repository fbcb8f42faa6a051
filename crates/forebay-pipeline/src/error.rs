//! What can go wrong with one sample, and with a pipeline as a whole.

use std::error::Error as StdError;
use std::sync::Arc;

use forebay_units::Bytes;

/// Why one sample could not be made.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    #[error("its bytes could not be read")]
    Storage(#[source] Arc<forebay_storage::Error>),
    /// It is larger than a sample may be; it was not read.
    #[error("{size} exceeds the sample size limit of {limit}; raise it with --max-sample-size")]
    TooLarge { size: Bytes, limit: Bytes },
    /// Its bytes are not what they should be.
    #[error("its bytes could not be decoded")]
    Format(#[source] Arc<forebay_format::Error>),
    /// The map refused it, for this reason.
    #[error("{0}")]
    Refused(String),
    #[error("the map function panicked: {0}")]
    Panicked(String),
    /// One of several samples failed that the map makes together; `name` says which.
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

/// One sample that failed: which and why.
#[derive(Debug, Clone, thiserror::Error)]
#[error("sample {name}")]
pub struct FailedSample {
    pub index: u32,
    /// Where it lies: a path, with the offset for a record of a shard.
    pub name: String,
    #[source]
    pub error: SampleError,
}

impl FailedSample {
    /// What happened, with its causes, in one line for a report.
    pub fn reason(&self) -> String {
        // The outermost words only say which side failed, where there is more to say.
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
    /// A list, folder or shard is not what it was taken for.
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
    /// A saved state does not belong to this pipeline.
    #[error("this state was saved by another pipeline: {reason}")]
    State { reason: String },
    /// The consumer holds every batch buffer there is.
    #[error(
        "all {held} batch buffers are held by the consumer; drop a batch before asking for the next, or allow more with hold()"
    )]
    AllHeld { held: usize },
}
