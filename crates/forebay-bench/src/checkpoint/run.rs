//! Running the plan.

use std::sync::atomic::AtomicBool;

use forebay_record::{CheckpointCell, Environment, Record};

use super::Plan;

/// A benchmark that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A checkpoint could not be saved, restored or removed.
    #[error(transparent)]
    Checkpoint(#[from] forebay_checkpoint::Error),
    /// The state cannot be laid out.
    #[error(transparent)]
    Format(#[from] forebay_checkpoint::format::Error),
    /// The network whose state is wanted cannot be built.
    #[error(transparent)]
    Train(#[from] forebay_train::Error),
}

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Something before the first save, in words.
    Preparing {
        /// What.
        what: String,
    },
    /// A mode and a format begin.
    Started {
        /// In words: "burst, safetensors".
        what: String,
        /// Saves it will have, the one that is not kept included.
        n_saves: u64,
    },
    /// A save was made and restored.
    Saved {
        /// Which, from 1.
        save: u64,
        /// How long the caller stood still.
        stall_s: f64,
    },
}

/// Runs the plan in folders of its own below the places, which it removes. When `cancel` is set it stops after the save
/// at work and yields what it has.
///
/// # Errors
/// When a place cannot be used, or a save or restore fails.
pub fn run(
    _plan: &Plan,
    _environment: Environment,
    _command_line: Vec<String>,
    _observe: &mut dyn FnMut(Event),
    _cancel: &AtomicBool,
) -> Result<Record<CheckpointCell>, Error> {
    unimplemented!()
}
