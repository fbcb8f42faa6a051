//! Order and location of requests.
//!
//! Sequential: each worker reads or writes one part of the file from end to end in blocks, as IOR's tasks do.
//!
//! Random: the file is divided into disjoint pieces of the requested sizes, each at a multiple of 4 KiB, in random
//! order. No page is requested twice, so a cold cache stays cold.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_units::random::Random;

use super::mix::Mix;

/// Alignment of random requests.
pub(super) const GRAIN: u64 = 4096;

/// Limits the list to 64 MB of memory; in a longer file, the pieces are spread evenly.
const LIST_MAX: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) offset: u64,
    pub(super) len: u64,
}

#[derive(Debug)]
pub(super) enum Requests {
    Sequential {
        block: u64,
        size: u64,
    },
    /// In the order of the requests; each idle worker takes the next.
    Random {
        pieces: Vec<Request>,
        next: AtomicUsize,
    },
}

impl Requests {
    pub(super) fn random(mix: &Mix, size: u64, random: &mut Random) -> Self {
        Self::random_up_to(mix, size, random, LIST_MAX)
    }

    fn random_up_to(mix: &Mix, size: u64, random: &mut Random, n_max: usize) -> Self {
        let mut lens = Vec::new();
        let mut taken = 0;
        while lens.len() < n_max {
            let len = mix.draw(random);
            let slot = len.next_multiple_of(GRAIN);
            if taken + slot > size {
                break;
            }
            taken += slot;
            lens.push(len);
        }
        let mut pieces = spread(&lens, size - taken, random);
        random.shuffle(&mut pieces);
        Self::Random { pieces, next: AtomicUsize::new(0) }
    }

    /// The requests of one of `n_workers` workers; together they cover each request once.
    pub(super) fn of_worker(&self, worker: usize, n_workers: usize) -> Box<dyn Iterator<Item = Request> + Send + '_> {
        match self {
            Self::Sequential { block, size } => {
                let (block, size) = (*block, *size);
                let n_blocks = size.div_ceil(block);
                let share = |worker: usize| n_blocks * worker as u64 / n_workers as u64;
                Box::new((share(worker)..share(worker + 1)).map(move |number| {
                    let offset = number * block;
                    Request { offset, len: (size - offset).min(block) }
                }))
            }
            Self::Random { pieces, next } => {
                Box::new(std::iter::from_fn(move || pieces.get(next.fetch_add(1, Ordering::Relaxed)).copied()))
            }
        }
    }
}

/// Places pieces in a row, with random gaps between them that sum to `left_over`.
fn spread(lens: &[u64], left_over: u64, random: &mut Random) -> Vec<Request> {
    let n_grains = left_over / GRAIN;
    let mut begin = 0;
    let mut pieces = Vec::with_capacity(lens.len());
    for (number, len) in lens.iter().enumerate() {
        // The gaps before piece i sum to about i/n of all; (i + r)/n never decreases as i grows.
        let part = ((number as u128) << 32) + u128::from(random.bits() >> 32);
        let gap = ((u128::from(n_grains) * part / lens.len() as u128) >> 32) as u64 * GRAIN;
        pieces.push(Request { offset: begin + gap, len: *len });
        begin += len.next_multiple_of(GRAIN);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(requests: &Requests, n_workers: usize) -> Vec<Request> {
        (0..n_workers).flat_map(|worker| requests.of_worker(worker, n_workers)).collect()
    }

    #[test]
    fn sequential_parts_are_disjoint_and_cover_the_file() {
        for n_workers in [1, 3, 8] {
            let requests = all(&Requests::Sequential { block: 1000, size: 4500 }, n_workers);
            let found: Vec<(u64, u64)> = requests.iter().map(|r| (r.offset, r.len)).collect();
            assert_eq!(
                found,
                [(0, 1000), (1000, 1000), (2000, 1000), (3000, 1000), (4000, 500)],
                "{n_workers} workers"
            );
        }
    }

    fn check_random(mix: &str, size: u64, n_max: usize) -> Vec<Request> {
        let requests = Requests::random_up_to(&mix.parse().unwrap(), size, &mut forebay_measure::random(3, 1), n_max);
        let mut pieces = all(&requests, 2);
        assert!(!pieces.is_sorted_by_key(|piece| piece.offset), "the order is random");
        pieces.sort_by_key(|piece| piece.offset);
        for pair in pieces.windows(2) {
            let end = pair[0].offset + pair[0].len.next_multiple_of(GRAIN);
            assert!(end <= pair[1].offset, "{pair:?} share a page");
        }
        assert!(pieces.iter().all(|piece| piece.offset % GRAIN == 0));
        assert!(pieces.last().is_some_and(|last| last.offset + last.len <= size));
        pieces
    }

    #[test]
    fn random_pieces_of_one_size_are_every_block_once() {
        let pieces = check_random("4K/100", 1 << 20, LIST_MAX);
        assert_eq!(
            pieces.iter().map(|piece| piece.offset).collect::<Vec<_>>(),
            (0..256).map(|n| n * 4096).collect::<Vec<u64>>()
        );
    }

    #[test]
    fn random_pieces_of_a_mix_do_not_touch_one_another_and_fill_the_file() {
        let pieces = check_random("2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1", 64 << 20, LIST_MAX);
        let bytes: u64 = pieces.iter().map(|piece| piece.len).sum();
        assert!(bytes > 63 << 20, "{bytes}");
    }

    #[test]
    fn a_file_longer_than_the_list_is_sampled_all_over() {
        let pieces = check_random("4K/50:128K/50", 1 << 30, 1000);
        assert_eq!(pieces.len(), 1000);
        for quarter in 0..4u64 {
            let (from, to) = (quarter << 28, (quarter + 1) << 28);
            let n = pieces.iter().filter(|piece| (from..to).contains(&piece.offset)).count();
            assert!((200..300).contains(&n), "{n} of 1000 requests in quarter {quarter}");
        }
    }
}
