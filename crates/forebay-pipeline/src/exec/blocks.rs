//! Blocks of shards: neighbouring samples are read at once, and handed out from memory until all of them were.
//!
//! A shuffle window over interleaved shards wants single records in random order, but all of them lie in a few places. Read
//! one by one they are small random reads. Here the first wanted sample of a block reads the whole block, and the others
//! find it in memory. The order stays one of indices, so states remain exact.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::fetch::ShardBytes;
use super::pool::Pool;
use super::recent::Loaded;
use crate::dataset::Batched;
use crate::source::{Index, Packing, Place};

/// The block of samples that may not be read.
const NO_BLOCK: u32 = u32::MAX;
/// Samples stay in a window for several times its length; blocks whose samples linger longer make room.
const WINDOWS: u64 = 4;

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    n_samples: u32,
}

impl Span {
    /// A sample by itself.
    pub(crate) fn of(place: &Place) -> Self {
        Self { file: place.file, offset: place.offset, len: place.len, n_samples: 1 }
    }
}

struct Held {
    bytes: Arc<Loaded<ShardBytes>>,
    n_left: u32,
    last_use: u64,
}

#[derive(Default)]
struct Memory {
    held: HashMap<u32, Held>,
    /// Samples that were not handed out when their block made room.
    left_over: HashMap<u32, u32>,
    n_bytes: u64,
    n_uses: u64,
}

pub(crate) struct Blocks {
    block_of: Vec<u32>,
    spans: Vec<Span>,
    memory: Mutex<Memory>,
    most_bytes: u64,
}

/// How to get a sample.
pub(crate) enum Taken {
    /// From its block, which the first to want it reads.
    Block(Span, Arc<Loaded<ShardBytes>>),
    /// Alone: its block has made room already.
    Alone,
}

impl Blocks {
    /// Those of a pipeline, if its shards are to be read in blocks and can be.
    pub(crate) fn of(plan: &Batched, pool: &Pool) -> Option<Self> {
        let (mapped, source) = (&plan.mapped, &plan.mapped.dataset.source);
        let is_plain =
            matches!(source.index.packing, Packing::TfRecord | Packing::Tar | Packing::Tensor | Packing::Indexed);
        let (window, open) = mapped.dataset.window;
        let open = open.saturating_add(2 * pool.claiming as u64);
        let bytes = mapped.block_bytes.filter(|_| is_plain && !mapped.mapped_shards)?;
        Some(Self::new(&source.index, bytes, source.max_sample, window, open))
    }

    /// Blocks of about `block_bytes` over the samples of at most `max_sample` bytes. Memory is bounded by `open` blocks and a
    /// multiple of `window` samples.
    pub(crate) fn new(index: &Index, block_bytes: u64, max_sample: u64, window: u64, open: u64) -> Self {
        let (mut block_of, mut spans) = (Vec::with_capacity(index.places.len()), Vec::<Span>::new());
        for place in &index.places {
            if place.len > max_sample {
                block_of.push(NO_BLOCK);
                continue;
            }
            match spans.last_mut().filter(|span| continues(span, place, block_bytes)) {
                Some(span) => {
                    span.len += place.len;
                    span.n_samples += 1;
                }
                None => spans.push(Span { file: place.file, offset: place.offset, len: place.len, n_samples: 1 }),
            }
            block_of.push(spans.len() as u32 - 1);
        }
        let all: u64 = spans.iter().map(|span| span.len).sum();
        let mean = all / (index.places.len() as u64).max(1);
        let largest = spans.iter().map(|span| span.len).max().unwrap_or(0);
        let most_bytes =
            WINDOWS.saturating_mul(window).saturating_mul(mean).saturating_add(open.saturating_mul(largest));
        Self { block_of, spans, memory: Mutex::default(), most_bytes }
    }

    /// Says how to get a sample that will not be taken again in this epoch.
    pub(crate) fn take(&self, sample: u32) -> Taken {
        let number = self.block_of[sample as usize];
        if number == NO_BLOCK {
            return Taken::Alone;
        }
        let span = self.spans[number as usize];
        self.memory.lock().expect("no holder of this lock panics").take(number, span, self)
    }
}

fn continues(span: &Span, place: &Place, block_bytes: u64) -> bool {
    span.file == place.file && span.offset + span.len == place.offset && span.len + place.len <= block_bytes
}

impl Memory {
    fn take(&mut self, number: u32, span: Span, blocks: &Blocks) -> Taken {
        self.n_uses += 1;
        if let Some(n_left) = self.left_over.get_mut(&number) {
            *n_left -= 1;
            if *n_left == 0 {
                self.left_over.remove(&number);
            }
            return Taken::Alone;
        }
        let n_uses = self.n_uses;
        let held = self.held.entry(number).or_insert_with(|| {
            self.n_bytes += span.len;
            Held { bytes: Arc::default(), n_left: span.n_samples, last_use: n_uses }
        });
        held.n_left -= 1;
        held.last_use = n_uses;
        let bytes = Arc::clone(&held.bytes);
        if held.n_left == 0 {
            self.held.remove(&number);
            self.n_bytes -= span.len;
        }
        while self.n_bytes > blocks.most_bytes && self.held.len() > 1 {
            self.make_room(number, blocks);
        }
        Taken::Block(span, bytes)
    }

    /// Forgets the block that was used least recently, other than this one.
    fn make_room(&mut self, number: u32, blocks: &Blocks) {
        let others = self.held.iter().filter(|(other, _)| **other != number);
        let Some(oldest) = others.min_by_key(|(_, held)| held.last_use).map(|(oldest, _)| *oldest) else { return };
        if let Some(held) = self.held.remove(&oldest) {
            self.n_bytes -= blocks.spans[oldest as usize].len;
            self.left_over.insert(oldest, held.n_left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(lens: &[(u32, u64)]) -> Index {
        let mut ends = HashMap::new();
        let places = lens.iter().map(|(file, len)| {
            let end: &mut u64 = ends.entry(*file).or_default();
            *end += len;
            Place { offset: *end - len, label: 0, len: *len, file: *file, group: *file }
        });
        Index::new(Packing::TfRecord, Vec::new(), places.collect())
    }

    fn span(blocks: &Blocks, sample: u32) -> Option<(u32, u64, u64)> {
        match blocks.take(sample) {
            Taken::Block(span, _) => Some((span.file, span.offset, span.len)),
            Taken::Alone => None,
        }
    }

    #[test]
    fn blocks_end_at_their_size_at_the_end_of_a_shard_and_at_samples_that_are_too_large() {
        let index = index(&[(0, 40), (0, 40), (0, 40), (0, 900), (0, 10), (1, 10), (1, 300)]);
        let blocks = Blocks::new(&index, 100, 500, 100, 10);
        let found: Vec<_> = (0..7).map(|sample| span(&blocks, sample)).collect();
        let wanted = [
            Some((0, 0, 80)),
            Some((0, 0, 80)),
            Some((0, 80, 40)),
            None,
            Some((0, 1020, 10)),
            Some((1, 0, 10)),
            Some((1, 10, 300)),
        ];
        assert_eq!(found, wanted, "a sample larger than a block is a block");
        assert_eq!(blocks.memory.lock().unwrap().held.len(), 0, "every block was handed out");
    }

    #[test]
    fn a_block_is_one_place_in_memory_until_its_last_sample_and_then_a_new_one() {
        let blocks = Blocks::new(&index(&[(0, 10), (0, 10), (0, 10)]), 100, 500, 100, 10);
        let place = |sample| match blocks.take(sample) {
            Taken::Block(_, bytes) => bytes,
            Taken::Alone => panic!("in memory"),
        };
        let first = place(0);
        assert!(Arc::ptr_eq(&first, &place(2)) && Arc::ptr_eq(&first, &place(1)));
        assert!(!Arc::ptr_eq(&first, &place(0)), "the next epoch reads it again");
    }

    #[test]
    fn memory_is_bounded_and_samples_of_a_block_that_made_room_are_read_alone() {
        let index = index(&[(0, 50), (0, 50), (1, 50), (1, 50), (2, 50), (2, 50)]);
        let blocks = Blocks::new(&index, 100, 500, 0, 2);
        for sample in [0, 2, 4] {
            assert!(span(&blocks, sample).is_some());
            assert!(blocks.memory.lock().unwrap().n_bytes <= 200);
        }
        assert_eq!(span(&blocks, 1), None, "the oldest made room");
        assert!(span(&blocks, 3).is_some() && span(&blocks, 5).is_some());
        assert!(span(&blocks, 0).is_some(), "forgotten once all its samples were taken");
    }
}
