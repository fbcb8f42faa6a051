//! Seeded numbers: the same requests in every run of a seed, and bytes that no device can shrink.
//!
//! SplitMix64 (Steele, Lea and Flood, 2014): one addition and one mixing function a draw.

/// A stream of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream numbered `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(mixed(mixed(seed ^ 0x7072_6F62_6521_5F5F).wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03))))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// Uniform in `0..n`; the bias of at most n/2⁶⁴ is of no account.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Puts the items into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Fills memory with bytes that do not compress.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.bits().to_le_bytes()[..chunk.len()]);
        }
    }
}

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Marks every 4 KiB of a block with its place and the run, so that no two stored pages are alike.
///
/// Filling each block anew would cost more time than a fast device needs to write it; one word a page does not.
pub fn stamp(block: &mut [u8], offset: u64, run: u64) {
    for (page, bytes) in block.chunks_mut(4096).enumerate() {
        let mark = mixed(offset + page as u64 * 4096 + mixed(run));
        let n = bytes.len().min(8);
        bytes[..n].copy_from_slice(&mark.to_le_bytes()[..n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_is_a_permutation_and_streams_differ() {
        let order = |stream| {
            let mut items: Vec<u32> = (0..100).collect();
            Random::new(1, stream).shuffle(&mut items);
            items
        };
        let mut sorted = order(0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
        assert_ne!(order(0), order(1));
        assert_eq!(order(2), order(2));
    }

    #[test]
    fn stamped_pages_differ_from_one_another_and_from_run_to_run() {
        let mut block = vec![7u8; 3 * 4096];
        let mut seen = std::collections::BTreeSet::new();
        for (offset, run) in [(0, 0), (3 * 4096, 0), (0, 1)] {
            stamp(&mut block, offset, run);
            seen.extend(block.chunks(4096).map(<[u8]>::to_vec));
        }
        assert_eq!(seen.len(), 9);
    }
}
