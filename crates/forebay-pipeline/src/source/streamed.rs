//! Samples that their map gets for itself: nothing is indexed and nothing is fetched.
//!
//! A file of a hundred megabytes of which a batch keeps two is read in pieces into one small buffer; that only its reader
//! can do. All that the pipeline knows of such a source is how many there are and what they are called, so that a source
//! of billions takes no memory. Where samples are small, several may share a slot and are made together by one thread.

use std::fmt;
use std::sync::Arc;

use forebay_storage::Memory;

use super::{Index, Packing, Source};

/// A slot's display name, used only when it fails.
type NameOf = dyn Fn(u32) -> String + Send + Sync;

pub(crate) struct Streamed {
    pub(crate) n_slots: u32,
    pub(crate) samples_per_slot: usize,
    pub(crate) name_of: Box<NameOf>,
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed")
            .field("n_slots", &self.n_slots)
            .field("samples_per_slot", &self.samples_per_slot)
            .finish_non_exhaustive()
    }
}

pub(super) fn index(
    n_slots: u32,
    samples_per_slot: usize,
    name_of: impl Fn(u32) -> String + Send + Sync + 'static,
) -> Source {
    let mut index = Index::new(Packing::Streamed, Vec::new(), Vec::new());
    index.streamed = Some(Streamed { n_slots, samples_per_slot: samples_per_slot.max(1), name_of: Box::new(name_of) });
    Source::new(Arc::new(Memory::default()), index)
}
