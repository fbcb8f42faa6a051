//! Seeded random numbers: a seed gives the same requests in every run, and data that does not compress.

use forebay_units::random::{Random, mix};

pub fn random(seed: u64, stream: u64) -> Random {
    Random::stream(seed ^ 0x7072_6F62_6521_5F5F, stream)
}

/// Marks every 4 KiB of a block with its offset and the run, so no two stored pages are equal and nothing can be
/// deduplicated.
///
/// Filling each block with new data would take longer than a fast device needs to write it; one word per page does not.
pub fn stamp(block: &mut [u8], offset: u64, run: u64) {
    for (page, bytes) in block.chunks_mut(4096).enumerate() {
        let mark = mix(offset + page as u64 * 4096 + mix(run));
        let n = bytes.len().min(8);
        bytes[..n].copy_from_slice(&mark.to_le_bytes()[..n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
