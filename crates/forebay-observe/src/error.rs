//! What can go wrong before anything is observed.

use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot start the thread that observes the machine")]
    Thread(#[source] io::Error),
    /// What was to take the rows refused them.
    #[error("cannot begin to write the rows")]
    Sink(#[source] io::Error),
    #[error("cannot run {program}")]
    Command { program: String, source: io::Error },
    /// The command could not be waited for.
    #[error("cannot wait for the command")]
    Wait(#[source] io::Error),
}
