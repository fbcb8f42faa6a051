//! Errors while a network is built or run.

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layer does not accept the output of the previous one.
    #[error("layer {layer}: {reason}")]
    Shape { layer: String, reason: String },
    /// A slice has the wrong length.
    #[error("{what}: expected {expected} values, found {found}")]
    Length { what: String, expected: usize, found: usize },
    /// A label is out of range.
    #[error("label {label} of sample {sample} is out of range: the network has {n_classes} classes")]
    Label { sample: usize, label: i64, n_classes: usize },
    /// No model has this name.
    #[error("unknown model \"{name}\"; expected one of {known}")]
    UnknownModel { name: String, known: String },
    /// A saved state does not belong to this network.
    #[error("the state does not match the network: {0}")]
    State(String),
    #[error("invalid accelerator \"{text}\": {reason}")]
    Accelerator { text: String, reason: String },
    #[error("out of memory: cannot allocate {bytes} bytes; use a smaller batch or model")]
    Memory {
        /// Bytes of the allocation that failed.
        bytes: u128,
    },
    /// The engine's threads could not be started.
    #[error("cannot start {threads} threads for training")]
    Threads { threads: usize, source: rayon::ThreadPoolBuildError },
    /// A library that a device needs is missing on this machine.
    #[error("cannot load {name} (looked for {looked_for}): {remedy}")]
    MissingLibrary {
        name: &'static str,
        /// The file names that were tried.
        looked_for: String,
        remedy: &'static str,
    },
    /// A device failed or does not support the request.
    #[error("{what} failed: {why}")]
    Device { what: String, why: String },
    #[error("unknown precision \"{0}\"; expected f32, tf32 or bf16")]
    Precision(String),
    /// Calls in the wrong order, such as a step without a staged batch, or an empty request.
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

    /// Returns an error unless a slice has the expected length.
    pub(crate) fn check_length(what: &str, expected: usize, found: usize) -> Result<()> {
        if expected == found { Ok(()) } else { Err(Self::Length { what: what.to_owned(), expected, found }) }
    }
}
