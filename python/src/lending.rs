//! Which batches are lent in place, and when they have to be copied.
//!
//! A lent batch occupies its slots in the loader's ring, and the slots behind it are not reused before it is dropped. A loop
//! that holds one or two batches never notices. One that keeps more gets copies from then on: the ring is made anew without
//! the kept batches, which stay valid where they are.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use forebay_pipeline::Batch;

use crate::tensor::{Memory, Pool};

/// Batches that the consumer may hold in addition to those prepared ahead: the one it uses, the one before, and the one that is
/// being made.
const HOLD: usize = 3;

#[derive(Default)]
pub(crate) struct Lending {
    /// More batches that the Python half has on their way, to `map` or to a device.
    ahead: usize,
    /// The lent batches, oldest first, from the oldest that is still held.
    lent: VecDeque<Weak<Memory>>,
    copies: bool,
    pool: Pool,
    /// Batches that were copied.
    pub(crate) n_copied: u64,
}

impl Lending {
    pub(crate) fn new(ahead: usize) -> Self {
        Self { ahead, ..Self::default() }
    }

    /// Batches that the ring needs room for beside those prepared ahead.
    pub(crate) fn hold(&self) -> usize {
        if self.copies { 1 } else { HOLD + self.ahead }
    }

    /// Whether the consumer keeps so many batches that the ring is about to be full. From then on, batches are copied, and the
    /// caller has to make the ring anew.
    pub(crate) fn is_full(&mut self) -> bool {
        while self.lent.front().is_some_and(|memory| memory.strong_count() == 0) {
            self.lent.pop_front();
        }
        let is_full = !self.copies && self.lent.len() >= self.hold();
        if is_full {
            self.copies = true;
            self.lent.clear();
        }
        is_full
    }

    pub(crate) fn take(&mut self, batch: Batch) -> Arc<Memory> {
        if self.copies {
            self.n_copied += 1;
            return Memory::copied(&batch, &self.pool);
        }
        let memory = Memory::lent(batch);
        self.lent.push_back(Arc::downgrade(&memory));
        memory
    }

    /// Forgets the batches of a ring that is gone.
    pub(crate) fn new_ring(&mut self) {
        self.lent.clear();
    }
}
