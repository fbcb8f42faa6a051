//! Errors of the libraries as Python exceptions.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::path::Path;

use forebay_checkpoint::Error as CheckpointFailure;
use forebay_pipeline::{Error, FailedSample, SampleError as SampleFailure};
use forebay_storage::{SCHEMES, is_url};
use forebay_units::chain;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(forebay, SampleError, PyValueError, "A sample cannot be decoded. The message names its file.");
create_exception!(forebay, CheckpointError, PyRuntimeError, "A checkpoint is damaged, or cannot be saved or restored.");

/// An address that is neither a path nor the URL of an object.
pub(crate) fn not_a_path(path: &str) -> Option<PyErr> {
    let (scheme, _) = path.split_once("://").filter(|_| !is_url(Path::new(path)))?;
    let said = format!("{path}: {scheme}:// is none of {}", SCHEMES.join("://, ") + "://");
    Some(PyValueError::new_err(said))
}

pub(crate) fn of_pipeline(error: &Error) -> PyErr {
    match error {
        Error::Storage(storage) => of_storage(storage, chain(error)),
        Error::Sample(failed) => of_sample(failed),
        _ => PyValueError::new_err(chain(error)),
    }
}

fn of_sample(failed: &FailedSample) -> PyErr {
    let said = chain(failed);
    match &failed.error {
        SampleFailure::Storage(storage) => of_storage(storage, said),
        _ => SampleError::new_err(said),
    }
}

fn of_storage(error: &forebay_storage::Error, said: String) -> PyErr {
    use forebay_storage::Error as Storage;
    match error {
        Storage::NotFound { .. } => PyFileNotFoundError::new_err(said),
        Storage::Denied { .. } => PyPermissionError::new_err(said),
        _ => PyOSError::new_err(said),
    }
}

pub(crate) fn of_checkpoint(error: &CheckpointFailure) -> PyErr {
    let said = chain(error);
    match root_of(error) {
        CheckpointFailure::NotFound { .. } => PyFileNotFoundError::new_err(said),
        CheckpointFailure::Full { .. } | CheckpointFailure::NoRoom { .. } => PyOSError::new_err((libc_enospc(), said)),
        CheckpointFailure::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            PyPermissionError::new_err(said)
        }
        CheckpointFailure::Io { .. } => PyOSError::new_err(said),
        CheckpointFailure::Memory { .. } => PyMemoryError::new_err(said),
        CheckpointFailure::Stopped => PyKeyboardInterrupt::new_err(said),
        _ => CheckpointError::new_err(said),
    }
}

/// What a background failure was caused by.
fn root_of(error: &CheckpointFailure) -> &CheckpointFailure {
    match error {
        CheckpointFailure::Background { source, .. } => root_of(source),
        other => other,
    }
}

fn libc_enospc() -> i32 {
    // The same number on every Linux.
    28
}

pub(crate) fn of_format(error: &(dyn StdError + 'static)) -> PyErr {
    CheckpointError::new_err(chain(error))
}
