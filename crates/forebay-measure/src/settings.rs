//! Settings that several experiments take.

use forebay_storage::Mode;

/// How many threads make samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadCount {
    /// That many.
    Fixed(usize),
    /// As many as pay.
    Auto,
}

/// What the page cache shall hold when a repeat starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The files, as the warm-up leaves them.
    Warm,
    /// Nothing of them: evicted before each repeat, and proven.
    Cold,
}

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// In this mode.
    Fixed(Mode),
    /// In the mode that a short measurement on this disk finds fastest.
    Auto,
}
