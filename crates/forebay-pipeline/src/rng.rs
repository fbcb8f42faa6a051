//! A small seeded generator whose output is part of the contract: the same seed always gives the same order.
//!
//! xoshiro256++ seeded by SplitMix64, both public-domain algorithms by Blackman and Vigna. A library generator may
//! change its stream between versions, which would change every recorded order.

use forebay_units::random::{GOLDEN, at};

#[derive(Debug, Clone)]
pub(crate) struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream for a seed and a stream number (an epoch). Neighbouring numbers give unrelated streams.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let seed = seed ^ stream.wrapping_mul(GOLDEN).rotate_left(17);
        Self { state: [0, 1, 2, 3].map(|index| at(seed, index)) }
    }

    fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A uniformly distributed number below `bound` (Lemire's method, with rejection).
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as usize;
            }
        }
    }

    /// Shuffles the items (Fisher–Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut rng = Rng::new(7, 0);
        let got: Vec<usize> = (0..8).map(|_| rng.below(1000)).collect();
        assert_eq!(got, EXPECTED);
    }

    const EXPECTED: [usize; 8] = [55, 172, 717, 427, 963, 465, 723, 329];

    #[test]
    fn streams_of_one_seed_differ() {
        let order = |epoch| {
            let mut items: Vec<u32> = (0..50).collect();
            Rng::new(1, epoch).shuffle(&mut items);
            items
        };
        assert_ne!(order(0), order(1));
        assert_eq!(order(3), order(3));
    }

    #[test]
    fn every_place_is_equally_likely() {
        let mut counts = [0u32; 10];
        for seed in 0..10_000 {
            let mut items: Vec<usize> = (0..10).collect();
            Rng::new(seed, 0).shuffle(&mut items);
            counts[items[0]] += 1;
        }
        // 1000 expected each; six standard deviations of a binomial are 180.
        assert!(counts.iter().all(|c| (820..=1180).contains(c)), "{counts:?}");
    }
}
