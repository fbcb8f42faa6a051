//! What a benchmark of checkpoints is going to do: validated, total.

use std::path::PathBuf;

use forebay_checkpoint::Mode;
use forebay_measure::Places;

/// The modes by their names.
pub const MODES: [(&str, Mode); 3] = [("direct", Mode::Direct), ("burst", Mode::Burst), ("async", Mode::Async)];

/// A mode's name.
pub fn mode_name(mode: Mode) -> &'static str {
    let named = MODES.iter().find(|(_, known)| *known == mode);
    named.map_or("unknown", |(name, _)| name)
}

/// What is saved.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// So many bytes, in tensors as a network has them.
    Bytes(u64),
    /// Weights and Adam's moments of a network, one of `forebay_train::Model::names`.
    Model(String),
}

/// An NVIDIA GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Which one.
    pub ordinal: usize,
    /// Where CUDA's libraries may lie.
    pub cuda_folders: Vec<PathBuf>,
}

/// A benchmark of checkpoints: each mode with each format.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Where they go.
    pub places: Places,
    /// What is saved.
    pub state: State,
    /// The GPU that a network's state lies on; `None` for this machine's memory.
    pub gpu: Option<Gpu>,
    /// The modes, in this order.
    pub modes: Vec<Mode>,
    /// The formats, by their names.
    pub formats: Vec<&'static str>,
    /// Saves and restores of each that are kept; one before them is not.
    pub saves: usize,
    /// The most that draining copies, bytes a second; it reads back what it copied at the same rate at the most.
    pub drain_bytes_per_s: Option<u64>,
    /// Whether the ceilings are measured beside.
    pub ceiling: bool,
    /// Seed of the values.
    pub seed: u64,
}
