//! SplitMix64 (Steele, Lea and Flood, 2014): the same numbers for a seed on every machine and in every version.
//!
//! Datasets, orders and initial weights are functions of these numbers, so a library generator, which may change its
//! stream between versions, cannot replace them. Value *i* of a seed is one mixing function of `seed + (i + 1) · GOLDEN`:
//! [`at`] computes any value by itself, [`Random`] walks through them.

/// Increment of SplitMix64: 2⁶⁴ divided by the golden ratio.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The mixing function of SplitMix64: a bijection in which every input bit reaches every output bit; 0 stays 0.
// Inlined into loops that are compiled for wider registers than the rest.
#[inline(always)]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Hashes an integer: the first value of `value` taken as a seed.
#[inline(always)]
pub const fn hash(value: u64) -> u64 {
    at(value, 0)
}

#[inline(always)]
pub const fn at(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add(GOLDEN.wrapping_mul(index.wrapping_add(1))))
}

/// A seed for stream `stream` of `seed`: neighbouring streams and seeds are unrelated.
pub const fn stream_seed(seed: u64, stream: u64) -> u64 {
    mix(mix(seed).wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03)))
}

#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts at value 0 of the seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Stream number `stream` of the seed: see [`stream_seed`].
    pub const fn stream(seed: u64, stream: u64) -> Self {
        Self(stream_seed(seed, stream))
    }

    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in `0..n`, with a bias of at most n/2⁶⁴; 0 for `n` of 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Puts the items into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Fills memory with bytes that do not compress; a value per 8 bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.bits().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first values for seed 1234567, as published with the algorithm; they must never change.
    const REFERENCE: [u64; 5] = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];

    #[test]
    fn values_are_the_published_ones() {
        let mut random = Random::new(1_234_567);
        assert_eq!(REFERENCE.map(|_| random.bits()), REFERENCE);
        assert_eq!([0, 1, 2, 3, 4].map(|index| at(1_234_567, index)), REFERENCE);
        assert_eq!([at(0, 0), at(0, 1)], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let seeds = [stream_seed(1, 0), stream_seed(1, 1), stream_seed(2, 0)];
        assert_eq!(std::collections::BTreeSet::from(seeds).len(), 3);
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        let mut sorted = order(0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
        assert_ne!(order(0), order(1));
    }

    #[test]
    fn memory_is_filled_to_its_last_byte() {
        let mut bytes = [0; 11];
        Random::new(1_234_567).fill(&mut bytes);
        assert_eq!(bytes[..8], REFERENCE[0].to_le_bytes());
        assert_eq!(bytes[8..], REFERENCE[1].to_le_bytes()[..3]);
    }
}
