//! Errors of the device; damage of files is none.

use cudarc::driver::DriverError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library that the device needs is missing on this machine.
    #[error("cannot load {0}")]
    MissingLibrary(&'static str),
    /// The device failed; it cannot be used any more.
    #[error("{what} failed: {why}")]
    Device { what: String, why: String },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn device(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Device { what: what.into(), why: why.into() }
    }
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        let why = match error.error_string() {
            Ok(text) => format!("{} ({:?})", text.to_string_lossy(), error.0),
            Err(_) => format!("{:?}", error.0),
        };
        Self::device("a call of the CUDA driver", why)
    }
}
