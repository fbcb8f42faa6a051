//! A store's values, copied in pieces from any thread.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::result;

use super::device::{Address, Device};
use super::lock::{Locks, Way};
use super::store::Store;
use crate::engine::{Part, SlotId};
use crate::error::Result;
use crate::lent::{HostMemory, PageLock};
use crate::view::{Fetch, Remote};

struct Piece {
    /// `None` for moments of a network before its first step: they are all zero.
    at: Option<Address>,
    n_bytes: usize,
}

/// Values of a store that nobody changes meanwhile.
pub(super) struct StoreView<'a> {
    /// The stream of all operations: copies see their results.
    way: Way,
    locks: Locks,
    pieces: Vec<Piece>,
    _store: PhantomData<&'a Store>,
}

impl Store {
    pub(super) fn view<'a>(&'a self, device: &Device, wanted: &[(SlotId, Part)]) -> StoreView<'a> {
        let piece = |(slot, part): &(SlotId, Part)| {
            let (at, len) = self.lies(*slot, *part);
            Piece { at, n_bytes: 4 * len }
        };
        let (context, stream) = (Arc::clone(&device.context), Arc::clone(&device.stream));
        let (way, locks) = (Way { context, stream }, device.locks.clone());
        StoreView { way, locks, pieces: wanted.iter().map(piece).collect(), _store: PhantomData }
    }
}

impl Remote for StoreView<'_> {
    fn fetch(&self, pieces: &mut [Fetch<'_>]) -> Result<()> {
        self.way.context.bind_to_thread()?;
        let queued = pieces.iter_mut().try_for_each(|Fetch { entry, offset, into }| {
            let piece = &self.pieces[*entry];
            assert!(*offset + into.len() <= piece.n_bytes, "a piece lies within its entry");
            match piece.at {
                // SAFETY: the range was allocated for these values, and the stream is waited for before the slice can go.
                Some(at) => unsafe {
                    result::memcpy_dtoh_async(into, at + *offset as u64, self.way.stream.cu_stream())
                },
                None => {
                    into.fill(0);
                    Ok(())
                }
            }
        });
        // Even after an error: queued copies still write to the caller's memory.
        let arrived = self.way.stream.synchronize();
        queued?;
        Ok(arrived?)
    }
    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<PageLock> {
        self.locks.lock(self.way.clone(), memory).map(PageLock::of)
    }
}
