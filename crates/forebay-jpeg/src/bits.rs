//! Entropy-coded data as a stream of bits.
//!
//! Markers divide the data of a scan into segments, and a stuffed 0 follows every 0xFF in them. A segment is first
//! copied without the stuffing, which is cheap for many bytes at a time; then the bit buffer can be refilled with one
//! unaligned load and without a test for 0xFF.

use crate::simd::Level;

#[cfg(target_arch = "x86_64")]
mod avx2;

/// A window of up to 64 bits on a segment, with the next bit at the top.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bits {
    pub(crate) buffer: u64,
    /// Number of valid bits in the buffer; the bits below them are correct or zero.
    n_valid: u32,
    /// Offset in the segment of the byte after the valid bits.
    pos: usize,
}

impl Bits {
    /// Makes at least 56 bits valid. Bits past the end of the segment are zero; [`Bits::is_overrun`] reports their use.
    #[inline(always)]
    pub(crate) fn refill(&mut self, segment: &[u8]) {
        let next = match segment.get(self.pos..).and_then(|s| s.first_chunk::<8>()) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => tail(segment, self.pos),
        };
        self.buffer |= next >> self.n_valid;
        self.pos += ((63 - self.n_valid) >> 3) as usize;
        self.n_valid |= 56;
    }

    /// Drops the first `n` bits, which must be valid since the last refill.
    #[inline(always)]
    pub(crate) fn skip(&mut self, n: u32) {
        self.buffer <<= n & 63;
        self.n_valid = self.n_valid.wrapping_sub(n) & 63;
    }

    /// The first `n` bits (at most 56) as a number; refills as needed.
    #[inline(always)]
    pub(crate) fn take(&mut self, n: u32, segment: &[u8]) -> u64 {
        if self.n_valid < n {
            self.refill(segment);
        }
        let value = self.buffer >> 1 >> (63 - n);
        self.skip(n);
        value
    }

    /// Whether more bits were consumed than the segment contains.
    #[inline(always)]
    pub(crate) fn is_overrun(&self, segment: &[u8]) -> bool {
        self.pos * 8 > segment.len() * 8 + self.n_valid as usize
    }

    /// Offset in the segment of the byte that holds the next bit.
    pub(crate) fn byte_pos(&self) -> usize {
        (self.pos * 8 - self.n_valid as usize) / 8
    }

    /// Whether at least one whole byte of the segment is left.
    pub(crate) fn has_bytes_left(&self, segment: &[u8]) -> bool {
        (segment.len() * 8 + self.n_valid as usize).saturating_sub(self.pos * 8) >= 8
    }
}

#[cold]
#[inline(never)]
fn tail(segment: &[u8], pos: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = segment.get(pos..).unwrap_or_default();
    let n = rest.len().min(8);
    bytes[..n].copy_from_slice(&rest[..n]);
    u64::from_be_bytes(bytes)
}

/// Copies `source` without stuffing up to the first marker. Returns the offset of the marker's last 0xFF, or the length
/// of `source` if there is no marker.
pub(crate) fn unstuff(level: Level, source: &[u8], segment: &mut Vec<u8>) -> usize {
    segment.clear();
    segment.reserve(source.len() + 32);
    let start = match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level guarantees that the CPU has AVX2.
        Level::Avx2 => match unsafe { avx2::unstuff(source, segment) } {
            Ok(marker) => return marker,
            Err(rest) => rest,
        },
        Level::Portable => 0,
    };
    unstuff_from(source, start, segment)
}

fn unstuff_from(source: &[u8], start: usize, segment: &mut Vec<u8>) -> usize {
    let mut from = start;
    let mut at = start;
    while let Some(n) = source[at..].iter().position(|&b| b == 0xFF) {
        at += n;
        match source.get(at + 1) {
            Some(0) => {
                segment.extend_from_slice(&source[from..=at]);
                at += 2;
                from = at;
            }
            Some(0xFF) => {
                segment.extend_from_slice(&source[from..at]);
                at += 1;
                from = at;
            }
            _ => {
                segment.extend_from_slice(&source[from..at]);
                return at;
            }
        }
    }
    segment.extend_from_slice(&source[from..]);
    source.len()
}

/// The offset in `source` of byte `pos` of its unstuffed copy, for error messages.
pub(crate) fn source_offset(source: &[u8], pos: usize) -> usize {
    let mut at = 0;
    for _ in 0..pos {
        match source.get(at..) {
            Some([0xFF, 0, ..]) => at += 2,
            Some([_, ..]) => at += 1,
            _ => break,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{Bits, source_offset, unstuff};
    use crate::simd::Level;
    use proptest::prelude::*;

    #[test]
    fn stuffing_is_removed_and_the_marker_found() {
        let source = [1, 0xFF, 0, 2, 0xFF, 0xFF, 0, 3, 0xFF, 0xFF, 0xD9, 4];
        let mut segment = Vec::new();
        assert_eq!(unstuff(Level::Portable, &source, &mut segment), 9);
        assert_eq!(segment, [1, 0xFF, 2, 0xFF, 3]);
        assert_eq!(source_offset(&source, 2), 3);
    }

    #[test]
    fn bits_past_the_end_are_zero_and_reported() {
        let segment = [0b1010_0000, 0xFF];
        let mut bits = Bits::default();
        assert_eq!(bits.take(3, &segment), 0b101);
        assert_eq!(bits.take(13, &segment), 0xFF);
        assert!(!bits.is_overrun(&segment) && !bits.has_bytes_left(&segment));
        assert_eq!(bits.take(1, &segment), 0);
        assert!(bits.is_overrun(&segment));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_level_unstuffs_alike(
            source in prop::collection::vec(prop_oneof![6 => 0u8..8, 2 => Just(0xFF), 1 => any::<u8>()], 0..300),
            gaps in prop::collection::vec(0usize..200, 0..4),
        ) {
            let mut source = source;
            for gap in gaps {
                source.extend(std::iter::repeat_n(7, gap));
                source.extend([0xFF, 0]);
            }
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let end = unstuff(Level::Portable, &source, &mut a);
            prop_assert_eq!(unstuff(Level::detect(), &source, &mut b), end);
            prop_assert_eq!(a, b);
        }
    }
}
