//! Settings shared by several experiments.

use forebay_storage::Mode;

/// Threads that read and decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadCount {
    Fixed(usize),
    /// Add threads until more no longer help.
    Auto,
}

/// Page cache at the start of a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Holds the data's files as the warm-up leaves them.
    Warm,
    /// Holds none of the data's files: they are evicted before each repeat, and this is verified.
    Cold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    Fixed(Mode),
    /// The mode that a short measurement on this disk finds fastest.
    Auto,
}
