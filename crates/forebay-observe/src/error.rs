//! What can go wrong before anything is observed.

use std::io;

/// An observation that could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system gave no thread.
    #[error("cannot start the thread that observes the machine")]
    Thread(#[source] io::Error),
    /// What was to take the rows refused them.
    #[error("cannot begin to write the rows")]
    Sink(#[source] io::Error),
    /// The command could not be started.
    #[error("cannot run {program}")]
    Command {
        /// The program, as it was named.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The command could not be waited for.
    #[error("cannot wait for the command")]
    Wait(#[source] io::Error),
}
