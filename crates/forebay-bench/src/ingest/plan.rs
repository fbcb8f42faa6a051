//! What an ingest run is going to do: validated, total.

use std::path::PathBuf;

use forebay_format::example::KeyNames;
use forebay_format::image::ImageSpec;
use forebay_measure::{Cache, Io, ThreadCount};
use forebay_storage::Profile;
use forebay_units::Bytes;

/// An ingest run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// A folder of images, a list, or shards.
    pub data: PathBuf,
    /// The features of TFRecord records that hold image and label, where they are known.
    pub keys: KeyNames,
    /// The thread counts to sweep.
    pub threads: Vec<ThreadCount>,
    /// Threads that only read; 0 lets every thread do both.
    pub readers: usize,
    /// Samples a batch.
    pub batch: usize,
    /// Batches a repeat; `None` for one pass over the data.
    pub batches: Option<u64>,
    /// Batches made ahead.
    pub prefetch: usize,
    /// Read without decoding.
    pub read_only: bool,
    /// What an image becomes.
    pub image: ImageSpec,
    /// Whether pre-decoded shards are resized too; otherwise they keep their size.
    pub resize_pixels: bool,
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
    /// Map pre-decoded shards into memory instead of reading them.
    pub map_shards: bool,
    /// Rounds that are run and not kept.
    pub warmups: usize,
    /// Rounds that are kept.
    pub repeats: usize,
    /// Seed of the shuffle.
    pub seed: u64,
    /// Give samples in the order in which they arrive.
    pub first_come: bool,
}

impl Plan {
    /// Images of one repeat, given how many samples there are.
    pub(super) fn images_a_repeat(&self, n_samples: u64) -> u64 {
        self.batches.map_or(n_samples, |n| n.saturating_mul(self.batch as u64))
    }
}
