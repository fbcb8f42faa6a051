//! The source of batches: the pipeline, or a single synthetic batch used repeatedly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use forebay_pipeline::{Batch, BatchMemory, Batches, Meter, Stats, Times};
use forebay_train::{HostMemory, Lent};
use forebay_units::random::Random;

use super::run::Error;

#[derive(Debug)]
pub(super) struct MadeBatch {
    pub(super) pixels: Arc<Vec<f32>>,
    pub(super) labels: Vec<i64>,
}

impl MadeBatch {
    /// Random pixels and classes; their values do not affect the time of a step.
    pub(super) fn new(batch: usize, image_len: usize, classes: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let pixels = (0..batch * image_len).map(|_| random.below(256) as f32).collect();
        let labels = (0..batch).map(|_| random.below(classes as u64) as i64).collect();
        Self { pixels: Arc::new(pixels), labels }
    }
}

pub(super) enum Load {
    Read(Batch),
    Made(Arc<MadeBatch>),
}

impl Load {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(batch) => batch.len(),
            Self::Made(batch) => batch.labels.len(),
        }
    }

    pub(super) fn labels(&self) -> &[i64] {
        match self {
            Self::Read(batch) => batch.labels(),
            Self::Made(batch) => &batch.labels,
        }
    }
}

impl Lent for Load {
    fn floats(&self) -> &[f32] {
        match self {
            Self::Read(batch) => batch.as_f32(),
            Self::Made(batch) => &batch.pixels,
        }
    }
}

/// Memory for a device that copies from it by itself.
struct Ring(BatchMemory);

impl HostMemory for Ring {
    fn address(&self) -> *const u8 {
        self.0.as_ptr()
    }

    fn n_bytes(&self) -> usize {
        self.0.n_bytes()
    }
}

pub(super) enum Feeder {
    Pipeline(Box<Batches>),
    Memory { batch: Arc<MadeBatch>, left: u64 },
}

type Next = Option<Result<Load, Error>>;

impl Feeder {
    /// The next batch; none at the end, or once `cancel` is set.
    pub(super) fn next(&mut self, cancel: &AtomicBool) -> Next {
        match self {
            Self::Pipeline(batches) => batches.next_unless(cancel).map(read),
            Self::Memory { .. } if cancel.load(Ordering::Relaxed) => None,
            Self::Memory { batch, left } => made(batch, left),
        }
    }

    pub(super) fn poll(&mut self) -> Poll<Next> {
        match self {
            Self::Pipeline(batches) => batches.poll_next().map(|next| next.map(read)),
            Self::Memory { batch, left } => Poll::Ready(made(batch, left)),
        }
    }

    /// Delivers so many batches once more; only a batch in memory can be.
    pub(super) fn give_again(&mut self, n_batches: u64) {
        if let Self::Memory { left, .. } = self {
            *left += n_batches;
        }
    }

    /// Samples used up to the last batch delivered; `None` for synthetic batches.
    pub(super) fn position(&self) -> Option<u64> {
        match self {
            Self::Pipeline(batches) => batches.state().ok().map(|state| state.position),
            Self::Memory { .. } => None,
        }
    }

    /// What workers did during waits, so far.
    pub(super) fn stall(&self) -> Times {
        match self {
            Self::Pipeline(batches) => batches.stall_time(),
            Self::Memory { .. } => Times::default(),
        }
    }

    pub(super) fn bytes_read(&self) -> u64 {
        match self {
            Self::Pipeline(batches) => batches.bytes_read(),
            Self::Memory { .. } => 0,
        }
    }

    pub(super) fn stats(&self) -> Option<Stats> {
        match self {
            Self::Pipeline(batches) => Some(batches.stats()),
            Self::Memory { .. } => None,
        }
    }

    pub(super) fn meter(&self) -> Option<Meter> {
        match self {
            Self::Pipeline(batches) => Some(batches.meter()),
            Self::Memory { .. } => None,
        }
    }

    pub(super) fn memory(&self) -> Arc<dyn HostMemory> {
        match self {
            Self::Pipeline(batches) => Arc::new(Ring(batches.memory())),
            Self::Memory { batch, .. } => Arc::clone(&batch.pixels) as Arc<dyn HostMemory>,
        }
    }
}

fn read(batch: Result<Batch, forebay_pipeline::Error>) -> Result<Load, Error> {
    batch.map(Load::Read).map_err(Error::from)
}

fn made(batch: &Arc<MadeBatch>, left: &mut u64) -> Next {
    *left = left.checked_sub(1)?;
    Some(Ok(Load::Made(Arc::clone(batch))))
}
