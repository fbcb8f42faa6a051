//! A store's values, fetched a piece at a time from any thread.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, result};

use super::device::{Address, Device};
use super::store::Store;
use crate::engine::{Part, SlotId};
use crate::error::Result;
use crate::view::{Fetch, Remote};

/// Where a slot's values lie.
struct Piece {
    /// `None` for moments of a network that made no step yet: they are all zero.
    at: Option<Address>,
    n_bytes: usize,
}

/// Values of a store that nobody changes meanwhile.
pub(super) struct StoreView<'a> {
    context: Arc<CudaContext>,
    /// The stream of all operations: what is fetched is what they left.
    stream: Arc<CudaStream>,
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
        StoreView { context, stream, pieces: wanted.iter().map(piece).collect(), _store: PhantomData }
    }
}

impl Remote for StoreView<'_> {
    fn fetch(&self, pieces: &mut [Fetch<'_>]) -> Result<()> {
        self.context.bind_to_thread()?;
        let queued = pieces.iter_mut().try_for_each(|Fetch { entry, offset, into }| {
            let piece = &self.pieces[*entry];
            assert!(*offset + into.len() <= piece.n_bytes, "a piece lies within its entry");
            match piece.at {
                // SAFETY: the range was allocated for these values, and the stream is waited for before the slice can go.
                Some(at) => unsafe { result::memcpy_dtoh_async(into, at + *offset as u64, self.stream.cu_stream()) },
                None => {
                    into.fill(0);
                    Ok(())
                }
            }
        });
        // Also after an error: copies that were queued still write to the caller's memory.
        let arrived = self.stream.synchronize();
        queued?;
        Ok(arrived?)
    }
}
