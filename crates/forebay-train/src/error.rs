//! What can go wrong while a network is built or run.

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layer cannot take what the one before it gives.
    #[error("layer {layer}: {reason}")]
    Shape { layer: String, reason: String },
    /// A slice of the wrong length was handed in.
    #[error("{what}: expected {expected} values, found {found}")]
    Length { what: String, expected: usize, found: usize },
    /// A label is no class of the network.
    #[error("label {label} of sample {sample} is not a class: the network has {n_classes}")]
    Label { sample: usize, label: i64, n_classes: usize },
    /// There is no model of this name.
    #[error("there is no model \"{name}\"; there are {known}")]
    UnknownModel { name: String, known: String },
    /// A saved state is not one of this network.
    #[error("the state does not fit: {0}")]
    State(String),
    #[error("\"{text}\" is not an accelerator: {reason}")]
    Accelerator { text: String, reason: String },
    #[error("there is no memory for another {bytes} bytes; a smaller batch or model needs less")]
    Memory {
        /// Bytes of the one allocation that failed.
        bytes: u128,
    },
    /// The engine's threads could not be started.
    #[error("cannot start {threads} threads for training")]
    Threads { threads: usize, source: rayon::ThreadPoolBuildError },
    /// A library that a device needs is not on this machine.
    #[error("{name} does not load; looked for {looked_for}: {remedy}")]
    MissingLibrary {
        name: &'static str,
        /// The file names it was looked for under.
        looked_for: String,
        remedy: &'static str,
    },
    /// A device failed, or cannot do what was asked.
    #[error("{what} failed: {why}")]
    Device { what: String, why: String },
    #[error("there is no precision \"{0}\"; there are f32, tf32 and bf16")]
    Precision(String),
    /// A step was asked for with no batch staged, a batch staged with no place left, or nothing at all to be computed.
    #[error("{0}")]
    Order(&'static str),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn shape(layer: &str, reason: impl Into<String>) -> Self {
        Self::Shape { layer: layer.to_owned(), reason: reason.into() }
    }

    pub(crate) fn memory<T>(len: usize) -> Self {
        Self::Memory { bytes: len as u128 * size_of::<T>() as u128 }
    }

    /// An error unless a slice has the length it should have.
    pub(crate) fn check_length(what: &str, expected: usize, found: usize) -> Result<()> {
        if expected == found { Ok(()) } else { Err(Self::Length { what: what.to_owned(), expected, found }) }
    }
}
