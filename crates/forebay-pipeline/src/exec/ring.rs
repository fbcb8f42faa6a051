//! The ring of slots that batches are built in.
//!
//! Workers write samples straight into slots. A batch is a run of consecutive slots and is lent to the consumer in
//! place. Slot numbers grow without end; slot `v` lies at physical place `v mod capacity`.
//!
//! A failed sample leaves a hole. The samples before it in the same batch move up by one place, so the batch starts one
//! slot later and the samples after the hole stay in place. A failure costs at most the copy of one batch, and the
//! order is that of the stream without the failed sample. If a batch then straddles the end of the ring, its first part
//! moves to the headroom before slot 0, which has no other use.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapMut, MmapRaw};

/// The outcome of the sample in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// Not finished; the consumer waits for it.
    Pending,
    Good,
    Hole,
}

/// Memory and state of all slots.
///
/// Only the worker that claimed a slot writes it; the consumer reads it after the worker has published it through
/// `finished`. The consumer moves and lends only published slots.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: MmapRaw,
    slot_bytes: usize,
    capacity: usize,
    headroom: usize,
    /// `(v + 1) * 2 + hole` of the last sample finished at each place; so no reset is needed between laps.
    finished: Box<[AtomicU64]>,
    labels: Box<[AtomicI64]>,
    samples: Box<[AtomicU32]>,
}

impl Ring {
    /// Allocates `n_batches` batches of `batch` samples of `slot_bytes` bytes, and headroom for one more.
    pub(crate) fn new(n_batches: usize, batch: usize, slot_bytes: usize) -> std::io::Result<Self> {
        let capacity = n_batches.checked_mul(batch).ok_or(std::io::ErrorKind::OutOfMemory)?;
        // The headroom consists of whole pages, to keep slot 0 page-aligned. It is touched only if a batch straddles.
        let headroom = batch.checked_mul(slot_bytes).and_then(|bytes| bytes.checked_next_multiple_of(4096));
        let total = headroom.and_then(|head| capacity.checked_mul(slot_bytes)?.checked_add(head));
        let (Some(headroom), Some(total)) = (headroom, total) else {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        };
        let memory = MmapRaw::from(MmapMut::map_anon(total.max(1))?);
        Ok(Self {
            memory,
            slot_bytes,
            capacity,
            headroom,
            finished: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            labels: (0..capacity).map(|_| AtomicI64::new(0)).collect(),
            samples: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    pub(crate) fn memory(&self) -> (*const u8, usize) {
        (self.memory.as_ptr(), self.memory.len())
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// The place of a slot, in slots; the headroom has negative places.
    pub(crate) fn place(&self, slot: u64) -> i64 {
        (slot % self.capacity as u64) as i64
    }

    fn pointer(&self, place: i64) -> *mut u8 {
        let offset = self.headroom as i64 + place * self.slot_bytes as i64;
        debug_assert!(offset >= 0 && place < self.capacity as i64, "place {place} is out of range");
        // SAFETY: places lie between minus one batch (the headroom) and the capacity, all within the mapping.
        unsafe { self.memory.as_mut_ptr().add(offset as usize) }
    }

    /// The slot's memory.
    ///
    /// # Safety
    /// The caller has claimed `slot` and not finished it yet, and holds no other reference to it.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slot_mut(&self, slot: u64) -> &mut [u8] {
        // SAFETY: the place lies within the mapping; the caller guarantees exclusive access.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(self.place(slot)), self.slot_bytes) }
    }

    /// Publishes a slot: its content now belongs to the consumer.
    pub(crate) fn finish(&self, slot: u64, sample: u32, label: i64, state: SlotState) {
        let place = self.place(slot) as usize;
        self.labels[place].store(label, Ordering::Relaxed);
        self.samples[place].store(sample, Ordering::Relaxed);
        let mark = (slot + 1) * 2 + u64::from(state == SlotState::Hole);
        // Sequentially consistent: the worker stores and then checks whether the consumer waits for this slot; the
        // consumer announces its wait and then checks the slot. One of them must see the other.
        self.finished[place].store(mark, Ordering::SeqCst);
    }

    pub(crate) fn state(&self, slot: u64) -> SlotState {
        let mark = self.finished[self.place(slot) as usize].load(Ordering::SeqCst);
        match mark.checked_sub((slot + 1) * 2) {
            Some(0) => SlotState::Good,
            Some(1) => SlotState::Hole,
            _ => SlotState::Pending,
        }
    }

    pub(crate) fn label(&self, slot: u64) -> i64 {
        self.labels[self.place(slot) as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn sample(&self, slot: u64) -> u32 {
        self.samples[self.place(slot) as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn address(&self, place: i64) -> *mut u8 {
        self.pointer(place)
    }

    /// Moves the samples at `places` (ascending in the stream) up to end at slot `end - 1` without gaps, and updates
    /// `places`. Only the consumer calls it, for samples that were published and not yet lent.
    pub(crate) fn compact(&self, places: &mut [i64], end: u64) {
        let mut target = self.place(end - 1);
        for place in places.iter_mut().rev() {
            if *place != target {
                // SAFETY: both are different whole slots within the mapping; the target is a hole, an already moved
                // sample's old place, or headroom that no lent batch uses, because a batch in the headroom also holds
                // the first slots of the ring, which are claimed again only after it was released.
                unsafe {
                    std::ptr::copy_nonoverlapping(self.pointer(*place), self.pointer(target), self.slot_bytes);
                }
                *place = target;
            }
            target -= 1;
        }
    }

    /// The memory of `n` contiguous samples from `place` on.
    ///
    /// # Safety
    /// These slots are published and are not claimed again while the slice lives.
    pub(crate) unsafe fn samples_at(&self, place: i64, n: usize) -> &[u8] {
        // SAFETY: the run lies within the mapping; the caller guarantees that nobody writes to it meanwhile.
        unsafe { std::slice::from_raw_parts(self.pointer(place), n * self.slot_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(ring: &Ring, slot: u64, value: u8) {
        // SAFETY: the test is single-threaded and uses one slot at a time.
        unsafe { ring.slot_mut(slot) }.fill(value);
        ring.finish(slot, u32::from(value), i64::from(value), SlotState::Good);
    }

    fn content(ring: &Ring, place: i64, n: usize) -> Vec<u8> {
        // SAFETY: single-threaded, and nothing is claimed meanwhile.
        unsafe { ring.samples_at(place, n) }.chunks(ring.slot_bytes).map(|slot| slot[0]).collect()
    }

    #[test]
    fn a_place_knows_which_lap_its_sample_is_of() {
        let ring = Ring::new(2, 2, 8).unwrap();
        assert_eq!(ring.state(0), SlotState::Pending);
        fill(&ring, 0, 7);
        assert_eq!((ring.state(0), ring.label(0), ring.sample(0)), (SlotState::Good, 7, 7));
        assert_eq!(ring.state(4), SlotState::Pending, "the same place, one lap later");
        ring.finish(4, 1, 0, SlotState::Hole);
        assert_eq!(ring.state(4), SlotState::Hole);
    }

    #[test]
    fn a_hole_moves_only_what_comes_before_it() {
        let ring = Ring::new(2, 4, 8).unwrap();
        for (slot, value) in [(0, 10), (1, 11), (3, 13), (4, 14)] {
            fill(&ring, slot, value);
        }
        let mut places = vec![0, 1, 3, 4];
        ring.compact(&mut places, 5);
        assert_eq!(places, [1, 2, 3, 4]);
        assert_eq!(content(&ring, 1, 4), [10, 11, 13, 14]);
    }

    #[test]
    fn a_batch_across_the_end_is_made_whole_in_the_headroom() {
        let ring = Ring::new(1, 4, 8).unwrap();
        for (slot, value) in [(2, 12), (3, 13), (4, 14), (5, 15)] {
            fill(&ring, slot, value);
        }
        let mut places = vec![2, 3, 0, 1];
        ring.compact(&mut places, 6);
        assert_eq!(places, [-2, -1, 0, 1]);
        assert_eq!(content(&ring, -2, 4), [12, 13, 14, 15]);
    }

    #[test]
    fn slot_zero_is_page_aligned_whatever_the_sample_size() {
        let ring = Ring::new(2, 3, 13_068).unwrap();
        assert_eq!(ring.pointer(0) as usize % 4096, 0);
    }
}
