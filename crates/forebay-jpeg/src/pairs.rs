//! Tables that decode two coefficients at a time.
//!
//! A coefficient takes 5 to 6 bits on average at the usual qualities of photographs, and the latency of the look-up
//! determines its decoding time. So the table yields two coefficients whenever both fit in its window, including their
//! values. An entry without a second coefficient repeats the first at the same place, which needs no branch.

use crate::huffman::{ADVANCE_END, ADVANCE_SLOW, CodeSpec, Entry, Table};

/// Bits that index the table. Five look-ups consume at most 55 bits, one less than a refill provides, and the tables of
/// luma and chroma together take half of a level 1 cache of 32 KiB at 10 bits, all of it at 11.
const WINDOW_BITS: u32 = 10;

/// Look-ups per refill of the bit buffer, which provides at least 56 bits.
pub(crate) const LOOK_UPS_PER_REFILL: u32 = 56 / WINDOW_BITS;

/// A look-up result. Bits 0-7: bits of both coefficients; 8-15 and 16-23: advance of the first and the second; 24-31:
/// bits of the first; 32-47 and 48-63: their values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair(u64);

impl Pair {
    fn single(entry: Entry, value: i32) -> Self {
        let (total, value) = (u64::from(entry.total()), u64::from(value as u16));
        Pair(total | u64::from(entry.advance()) << 8 | total << 24 | value << 32 | value << 48)
    }

    fn with_second(self, entry: Entry, value: i32) -> Self {
        let total = u64::from(self.total() + entry.total());
        Pair(self.0 & 0xFFFF_FF00_FF00 | total | u64::from(entry.advance()) << 16 | u64::from(value as u16) << 48)
    }

    #[inline(always)]
    pub(crate) fn total(self) -> u32 {
        self.0 as u32 & 63
    }

    #[inline(always)]
    pub(crate) fn total_of_first(self) -> u32 {
        (self.0 >> 24) as u32 & 63
    }

    #[inline(always)]
    pub(crate) fn advances(self) -> (u32, u32) {
        ((self.0 >> 8) as u32 & 255, (self.0 >> 16) as u32 & 255)
    }

    #[inline(always)]
    pub(crate) fn values(self) -> (i16, i16) {
        ((self.0 >> 32) as i16, (self.0 >> 48) as i16)
    }
}

/// A table of pairs for one code of AC coefficients.
#[derive(Debug, Clone)]
pub(crate) struct PairTable {
    spec: Option<CodeSpec>,
    pairs: Box<[Pair; 1 << WINDOW_BITS]>,
}

impl Default for PairTable {
    fn default() -> Self {
        PairTable { spec: None, pairs: Box::new([Pair(0); 1 << WINDOW_BITS]) }
    }
}

impl PairTable {
    /// Derives the pairs from the table of single codes, unless they already are those pairs.
    pub(crate) fn set(&mut self, codes: &Table) {
        if self.is_of(codes) {
            return;
        }
        self.spec = codes.spec().cloned();
        for (window, pair) in self.pairs.iter_mut().enumerate() {
            *pair = look_ahead(codes, (window as u64) << (64 - WINDOW_BITS));
        }
    }

    /// Whether the pairs are those of `codes`.
    pub(crate) fn is_of(&self, codes: &Table) -> bool {
        self.spec.as_ref() == codes.spec()
    }

    /// The pair that the bits at the top of the buffer begin with. If it does not fit in the window, the result
    /// advances by [`ADVANCE_SLOW`] and consumes nothing.
    #[inline(always)]
    pub(crate) fn look_up(&self, buffer: u64) -> Pair {
        self.pairs[(buffer >> (64 - WINDOW_BITS)) as usize]
    }
}

fn look_ahead(codes: &Table, buffer: u64) -> Pair {
    let first = codes.look_up(buffer);
    if first.advance() == ADVANCE_SLOW || first.total() > WINDOW_BITS {
        return Pair::single(Entry::SLOW, 0);
    }
    let pair = Pair::single(first, first.value(buffer));
    let rest = buffer << first.total();
    let second = codes.look_up(rest);
    let fits = second.advance() != ADVANCE_SLOW && first.total() + second.total() <= WINDOW_BITS;
    if first.advance() == ADVANCE_END || !fits { pair } else { pair.with_second(second, second.value(rest)) }
}

#[cfg(test)]
#[allow(clippy::unusual_byte_groupings, reason = "bits are grouped by code and value")]
mod tests {
    use super::{ADVANCE_END, ADVANCE_SLOW, PairTable};
    use crate::huffman::{CodeSpec, Table};

    /// Codes 00 for the end of the block, 01 for a run of 0 and 1 bit, 10 for a run of 2 and 5 bits, 110 for 9 bits.
    fn table() -> PairTable {
        let mut bytes = vec![0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0x00, 0x01, 0x25, 0x09]);
        let (mut codes, mut pairs) = (Table::default(), PairTable::default());
        codes.set(&CodeSpec::parse(&bytes, true, 0).unwrap().0, true);
        pairs.set(&codes);
        pairs
    }

    #[test]
    fn two_coefficients_in_the_window_come_together() {
        let pair = table().look_up(0b10_00111_01_1_u64 << 54);
        assert_eq!((pair.total(), pair.total_of_first(), pair.advances(), pair.values()), (10, 7, (3, 1), (-24, 1)));
    }

    #[test]
    fn end_of_block_comes_with_the_coefficient_before_it() {
        let pair = table().look_up(0b01_0_00_u64 << 59);
        assert_eq!((pair.total(), pair.advances(), pair.values().0), (5, (1, ADVANCE_END), -1));
        assert_eq!(table().look_up(0b00_01_u64 << 60).advances(), (ADVANCE_END, 0));
    }

    #[test]
    fn coefficient_without_room_for_a_second_is_given_twice() {
        let pair = table().look_up(0b10_10000_10_0_u64 << 54);
        assert_eq!((pair.total(), pair.advances(), pair.values()), (7, (3, 0), (16, 16)));
    }

    #[test]
    fn value_that_leaves_the_window_is_slow() {
        let pair = table().look_up(0b110_u64 << 61);
        assert_eq!((pair.total(), pair.advances()), (0, (ADVANCE_SLOW, 0)));
    }
}
