//! A finished batch, lent to the consumer in place.

use std::ops::Range;
use std::sync::Arc;

use crate::exec::worker::Shared;

/// A group of samples, contiguous in memory. Dropping it returns its slots to the workers.
pub struct Batch {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: i64,
    pub(crate) slots: Range<u64>,
    pub(crate) labels: Vec<i64>,
    pub(crate) samples: Vec<u32>,
    pub(crate) one_hot: Vec<f32>,
}

impl Batch {
    pub fn len(&self) -> usize {
        self.samples.len() * self.samples_per_slot()
    }

    fn samples_per_slot(&self) -> usize {
        self.shared.source.index.samples_per_slot()
    }

    /// Always false: the iterator never yields an empty batch.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub fn sample_bytes(&self) -> usize {
        self.shared.dispatch.ring.slot_bytes() / self.samples_per_slot()
    }

    pub fn data(&self) -> &[u8] {
        // SAFETY: the slots are published and are released only when this batch is dropped.
        unsafe { self.shared.dispatch.ring.samples_at(self.place, self.samples.len()) }
    }

    /// The samples' memory, for consumers that lend it to other libraries. It belongs to this batch until the batch is
    /// dropped, and is aligned for floats.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.shared.dispatch.ring.address(self.place)
    }

    /// All samples as 32-bit floats.
    ///
    /// # Panics
    /// When the samples' size is not a multiple of four bytes.
    pub fn as_f32(&self) -> &[f32] {
        assert_eq!(self.sample_bytes() % 4, 0, "samples of {} bytes are not 32-bit floats", self.sample_bytes());
        // SAFETY: every bit pattern is a float. Slot 0 is page-aligned and slots are multiples of four bytes.
        let (before, floats, after) = unsafe { self.data().align_to::<f32>() };
        assert!(before.is_empty() && after.is_empty(), "slots of whole floats are aligned");
        floats
    }

    pub fn labels(&self) -> &[i64] {
        &self.labels
    }

    /// The samples' indices in the source; for streamed samples, the slots' indices.
    pub fn samples(&self) -> &[u32] {
        &self.samples
    }

    /// The display name of the sample at `place` in this batch; for streamed samples, of its slot.
    pub fn name_of(&self, place: usize) -> String {
        self.shared.source.name_of(self.samples[place])
    }

    /// The labels as one-hot rows; empty unless [`one_hot`](crate::Mapped::one_hot) is set.
    pub fn one_hot(&self) -> &[f32] {
        &self.one_hot
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.shared.dispatch.release(self.slots.start, self.slots.end);
    }
}

/// The memory of all batches of an iterator. It keeps its address as long as this value lives, even after the iterator
/// is dropped.
#[derive(Clone)]
pub struct BatchMemory {
    pub(crate) shared: Arc<Shared>,
}

impl BatchMemory {
    pub fn as_ptr(&self) -> *const u8 {
        self.shared.dispatch.ring.memory().0
    }

    pub fn n_bytes(&self) -> usize {
        self.shared.dispatch.ring.memory().1
    }
}

impl std::fmt::Debug for BatchMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchMemory").field("n_bytes", &self.n_bytes()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("samples", &self.samples).finish_non_exhaustive()
    }
}
