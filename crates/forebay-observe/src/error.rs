//! Errors before observation begins.

use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot start the sampler thread")]
    Thread(#[source] io::Error),
    /// The sink for the rows failed.
    #[error("cannot start writing rows")]
    Sink(#[source] io::Error),
    #[error("cannot run {program}")]
    Command { program: String, source: io::Error },
    /// Waiting for the command failed.
    #[error("cannot wait for the command")]
    Wait(#[source] io::Error),
}
