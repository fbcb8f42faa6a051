//! How data is read.

use serde::{Deserialize, Serialize};

use super::Element;
use crate::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loader {
    #[default]
    Tensorflow,
    Pytorch,
    Dali,
    NativeDali,
    Synthetic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    #[default]
    Off,
    Seed,
    /// With a fresh seed, which is recorded.
    Random,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reader {
    /// The loader that the file names; kept for the report.
    pub loader: Loader,
    /// Samples per step and accelerator.
    pub batch_size: u64,
    pub batch_size_eval: u64,
    /// Threads per accelerator; with 0 the accelerator's own thread reads while it waits.
    pub read_threads: u64,
    /// Preprocessing threads; separate from the read threads if there is more than one.
    pub computation_threads: u64,
    /// Batches prefetched per accelerator; see [`n_ahead`](Self::n_ahead) for the effective number.
    pub prefetch_size: u64,
    pub file_shuffle: Shuffle,
    pub sample_shuffle: Shuffle,
    /// Size of the shuffle buffer in samples; 0 for all samples.
    pub shuffle_size: u64,
    /// Samples stay in memory after the first read.
    pub in_memory: bool,
    /// Bytes per read; `None` for the format's default.
    pub transfer_size: Option<u64>,
    pub odirect: bool,
    /// Preprocessing time per sample.
    pub preprocess_time: Time,
    /// Decode rate in bytes per second of a core that all readers of an accelerator share, each making whole batches, like
    /// the workers of PyTorch's loader. No key sets it; a study that imitates that loader does.
    pub decode_bytes_per_s: Option<f64>,
    /// The shape of the output tensor, instead of the resized length.
    pub transformed_dims: Vec<u64>,
    pub transformed_element: Element,
}

impl Reader {
    /// Effective number of prefetched batches: without read threads an accelerator reads only while it waits.
    pub fn n_ahead(&self) -> u64 {
        if self.read_threads == 0 { 0 } else { self.prefetch_size }
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            loader: Loader::Tensorflow,
            batch_size: 1,
            batch_size_eval: 1,
            read_threads: 1,
            computation_threads: 1,
            prefetch_size: 2,
            file_shuffle: Shuffle::Off,
            sample_shuffle: Shuffle::Off,
            shuffle_size: 1024,
            in_memory: false,
            transfer_size: None,
            odirect: false,
            preprocess_time: Time::default(),
            decode_bytes_per_s: None,
            transformed_dims: Vec::new(),
            transformed_element: Element::U8,
        }
    }
}
