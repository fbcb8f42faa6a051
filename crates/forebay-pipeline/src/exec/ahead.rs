//! Telling an object store which reads will come.
//!
//! The order of an epoch is known before its first sample is read, so a store that needs a round trip per request can be
//! asked long before a worker waits. The order is drawn a second time; it is the same by construction.

use std::sync::Arc;

use forebay_storage::{Ahead, NextRead, Reads, is_url};

use crate::dataset::Batched;
use crate::source::{Packing, Source};

/// Announces the reads of an iteration to the storage, in their order. `claimed` is how many samples all workers together
/// may have claimed.
pub(crate) fn announce(plan: &Batched, source: &Source, position: u64, claimed: usize) -> Option<Ahead> {
    // A local disk reads ahead by itself; the order need not be drawn twice for it.
    if !source.files().first().is_some_and(|file| is_url(file)) {
        return None;
    }
    let mapped = &plan.mapped;
    let is_whole = match source.index.packing {
        Packing::Files => true,
        Packing::TfRecord | Packing::Tar | Packing::Indexed => false,
        Packing::Tensor if !mapped.mapped_shards => false,
        _ => return None,
    };
    // Holes are replaced by later samples, so the last batch may need a few more; those are read directly.
    let wanted = plan.at_most.saturating_mul(plan.slots_per_batch() as u64);
    let limit = source.max_sample;
    let reads = || -> Reads {
        let mut order = mapped.dataset.chain.open(0);
        order.skip(position);
        let index = Arc::clone(&source.index);
        let samples = std::iter::from_fn(move || order.next()).take(usize::try_from(wanted).unwrap_or(usize::MAX));
        Box::new(samples.filter_map(move |sample| {
            let place = &index.places[sample as usize];
            let path = index.files[place.file as usize].clone();
            let range = (!is_whole).then(|| place.offset..place.offset + place.len);
            // A sample over the limit is refused without being read.
            (is_whole || place.len <= limit).then_some(NextRead { path, range })
        }))
    };
    // Claims of all workers, and the batches that the consumer may be given before an older sample is read.
    let spread = plan.n_buffers().saturating_mul(plan.slots_per_batch()) + claimed;
    source.storage.read_ahead(&reads, limit, spread)
}
