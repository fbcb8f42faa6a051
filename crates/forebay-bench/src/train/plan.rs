//! What a training run is going to do: validated, total.

use std::path::PathBuf;

use forebay_checkpoint::{Mode, WhenBehind};
use forebay_format::example::KeyNames;
use forebay_measure::Places;
use forebay_measure::{Cache, Io, ThreadCount};
use forebay_storage::Profile;
use forebay_train::{Emulation, Optimizer, Precision};
use forebay_units::Bytes;

/// Where batches come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A folder of images, a list, or shards.
    Data(PathBuf),
    /// One batch made once, in memory: the upper bound.
    Synthetic,
}

/// What computes the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Device {
    /// This machine's cores.
    Cpu {
        /// Threads that compute.
        threads: usize,
    },
    /// An NVIDIA GPU.
    Cuda {
        /// Which one.
        ordinal: usize,
        /// The arithmetic.
        precision: Precision,
    },
}

/// What takes batches.
#[derive(Debug, Clone, PartialEq)]
pub enum Accelerator {
    /// A network that is trained.
    Network {
        /// Its name, one of `forebay_train::Model::names`.
        model: String,
        /// Classes it tells apart; as many as the data has without it.
        classes: Option<usize>,
        /// What computes it.
        device: Device,
        /// How gradients change it.
        optimizer: Optimizer,
    },
    /// One that only takes time.
    Emulated(Emulation),
}

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many steps, over the data again where it ends.
    Steps(u64),
    /// So many times the whole batches of one pass over the data; what a pass leaves over begins the next.
    Epochs(u64),
}

/// What a network is judged on after every epoch.
#[derive(Debug, Clone, PartialEq)]
pub enum Validate {
    /// This data.
    Data(PathBuf),
    /// This share of the training data, which is then not learnt from.
    Share(f64),
}

/// The checkpoints of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpointing {
    /// Where they go.
    pub places: Places,
    /// Steps between two.
    pub every: u64,
    /// When training goes on.
    pub mode: Mode,
    /// Their format, one of `forebay_checkpoint::format::FORMATS`.
    pub format: &'static str,
    /// What a save does that finds those before it unfinished.
    pub when_behind: WhenBehind,
    /// The most that draining copies, bytes a second; it reads back what it copied at the same rate at the most.
    pub drain_bytes_per_s: Option<u64>,
    /// Whether the run goes on from the newest good one instead of beginning anew.
    pub resume: bool,
    /// Bytes of an emulated accelerator's state, which has none of its own; a network's state has its own size.
    pub size: Option<u64>,
}

/// A training run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where batches come from.
    pub input: Input,
    /// The features of TFRecord records that hold image and label, where they are known.
    pub keys: KeyNames,
    /// What takes them.
    pub accelerator: Accelerator,
    /// Samples a step.
    pub batch: usize,
    /// How long it is.
    pub length: Length,
    /// Threads that make samples.
    pub threads: ThreadCount,
    /// Batches made ahead.
    pub prefetch: usize,
    /// Batches sent to the device ahead of the one that is computed; only a device with memory of its own has any.
    pub device_prefetch: usize,
    /// Cold or warm.
    pub cache: Cache,
    /// How files are read.
    pub io: Io,
    /// A larger sample fails, and is not read.
    pub max_sample: Bytes,
    /// The device to emulate.
    pub tier: Option<Profile>,
    /// The device that the kernel emulates below the data.
    pub kernel_tier: Option<Profile>,
    /// Folders that CUDA's libraries may lie in, beside those the system knows.
    pub cuda_folders: Vec<PathBuf>,
    /// What the network is judged on after every epoch.
    pub validate: Option<Validate>,
    /// The checkpoints it makes.
    pub checkpoint: Option<Checkpointing>,
    /// Steps on a batch in memory that are measured first, to know what I/O costs; 0 measures none.
    pub baseline: u64,
    /// Seed of shuffle, weights and emulated times.
    pub seed: u64,
    /// Runs that are not kept.
    pub warmups: usize,
    /// Runs that are kept.
    pub repeats: usize,
}
