//! Samples that their map reads by itself: the pipeline neither indexes nor fetches them.
//!
//! If a batch needs only 2 MB of a 100 MB file, only the file's own reader can read that part, in pieces into a small
//! buffer. The pipeline knows only the number of samples and their names, so a source of billions takes no memory.
//! Small samples may share a slot; one thread then makes them together.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_storage::Memory;

use super::{Index, Packing, Source};

/// A slot's display name, used only if it fails.
type NameOf = dyn Fn(u32) -> String + Send + Sync;

/// A slot's group, for the stages that shuffle or interleave groups.
type GroupOf = dyn Fn(u32) -> u32 + Send + Sync;

pub(crate) struct Streamed {
    pub(crate) n_slots: u32,
    pub(crate) samples_per_slot: usize,
    pub(crate) name_of: Box<NameOf>,
    pub(crate) group_of: Box<GroupOf>,
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
    let streamed = Streamed {
        n_slots,
        samples_per_slot: samples_per_slot.max(1),
        name_of: Box::new(name_of),
        group_of: Box::new(|_| 0),
    };
    of_files(Vec::new(), streamed)
}

/// Samples of files that the map reads; the files identify them.
pub(crate) fn of_files(files: Vec<PathBuf>, streamed: Streamed) -> Source {
    let mut index = Index::new(Packing::Streamed, files, Vec::new());
    index.streamed = Some(streamed);
    Source::new(Arc::new(Memory::default()), index)
}
