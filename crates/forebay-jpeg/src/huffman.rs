//! Huffman codes, and the tables that decode a code together with the bits after it.
//!
//! A code of at most [`FAST_BITS`] bits is found by one look-up. Its entry holds everything the decoder needs, in the
//! form in which it needs it: how far to shift the bit buffer, how many coefficients to advance, and the position of
//! the value's bits. The chain from one coefficient to the next is then a shift, a load and a shift. Everything unusual
//! (longer codes, unassigned codes, values too long for the refill budget) has one kind of entry, which makes the
//! decoder leave its loop.

use crate::Error;

/// Code bits that index the table. With 10, two tables take 8 KiB; longer codes occur for about 1 % of coefficients.
pub(crate) const FAST_BITS: u32 = 10;

/// Maximum number of bits of an ordinary entry: three entries fit in the 56 bits of a refill.
const MAX_FAST_TOTAL: u32 = 18;

/// Advance of an entry that ends the block: beyond the end from any coefficient of a block.
pub(crate) const ADVANCE_END: u32 = 80;

/// Advance of an entry that consumes nothing, because the table does not suffice: beyond that of any end.
pub(crate) const ADVANCE_SLOW: u32 = 160;

/// A look-up result. Bits 0-7: bits to consume; 8-15: coefficients to advance; 16-23: 63 minus the size of the value
/// (for an end-of-block entry its run); 24-31: length of the code. A shift uses only the low 6 bits of its count, so
/// the fields need no masking before a shift.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry(u32);

impl Entry {
    pub(crate) const SLOW: Entry = Entry(ADVANCE_SLOW << 8);

    fn coefficient(length: u32, run: u32, size: u32) -> Self {
        Entry((length + size) | (run + 1) << 8 | (63 - size) << 16 | length << 24)
    }

    fn end(length: u32, run: u32) -> Self {
        Entry(length | ADVANCE_END << 8 | run << 16 | length << 24)
    }

    #[inline(always)]
    pub(crate) fn total(self) -> u32 {
        self.0 & 63
    }

    #[inline(always)]
    pub(crate) fn advance(self) -> u32 {
        self.0 >> 8 & 255
    }

    /// Run field of an end-of-block entry: the number of blocks in the progressive process.
    #[inline(always)]
    pub(crate) fn end_run(self) -> u32 {
        self.0 >> 16 & 255
    }

    /// The value after the code, given the bit buffer as it was before the code.
    ///
    /// A value of `size` bits whose first bit is 0 is negative: the complement of its magnitude.
    #[inline(always)]
    pub(crate) fn value(self, buffer: u64) -> i32 {
        let bits = buffer << (self.0 >> 24 & 63);
        let negative = !((bits as i64) >> 63) as u64;
        let magnitude = (bits ^ negative) >> 1 >> (self.0 >> 16 & 63);
        ((magnitude ^ negative).wrapping_sub(negative)) as i32
    }
}

/// A code as a DHT segment defines it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CodeSpec {
    /// Number of codes of each length from 1 to 16.
    counts: [u8; 16],
    symbols: [u8; 256],
}

impl std::fmt::Debug for CodeSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CodeSpec({:?})", self.counts)
    }
}

impl CodeSpec {
    /// Reads a table at the beginning of `bytes`; also returns its number of bytes.
    pub(crate) fn parse(bytes: &[u8], is_ac: bool, offset: usize) -> Result<(Self, usize), Error> {
        let wrong = |found: &str| Error::corrupt(offset, "a Huffman table", found);
        let counts: [u8; 16] = *bytes.first_chunk().ok_or_else(|| wrong("a segment too short"))?;
        let n_symbols: usize = counts.iter().map(|&n| usize::from(n)).sum();
        let values = bytes.get(16..16 + n_symbols).ok_or_else(|| wrong("a segment too short"))?;
        if n_symbols > 256 {
            return Err(wrong("more than 256 codes"));
        }
        if !is_ac && values.iter().any(|&size| size > 15) {
            return Err(wrong("a DC difference of more than 15 bits"));
        }
        let mut symbols = [0; 256];
        symbols[..n_symbols].copy_from_slice(values);
        let spec = CodeSpec { counts, symbols };
        if spec.codes().any(|(code, length, _)| code >> length != 0) {
            return Err(wrong("more codes of a length than fit"));
        }
        Ok((spec, 16 + n_symbols))
    }

    /// Canonical codes in increasing order: code, length, symbol.
    fn codes(&self) -> impl Iterator<Item = (u32, u32, u8)> + '_ {
        let lengths = (1..=16u32).zip(self.counts).flat_map(|(l, n)| std::iter::repeat_n(l, n.into()));
        let mut state = (0u32, 0u32);
        lengths.zip(self.symbols).map(move |(length, symbol)| {
            let (next, previous) = state;
            let code = next << (length - previous);
            state = (code + 1, length);
            (code, length, symbol)
        })
    }

    pub(crate) fn symbols(&self) -> &[u8; 256] {
        &self.symbols
    }

    /// Per length, the first 16-bit window that is not a code of at most that length, and the offset from a code to the
    /// index of its symbol.
    pub(crate) fn bounds(&self) -> ([u32; 17], [i32; 17]) {
        let (mut limits, mut offsets) = ([0; 17], [0; 17]);
        for (i, (code, length, _)) in self.codes().enumerate() {
            offsets[length as usize] = i as i32 - code as i32;
            limits[length as usize] = (code + 1) << (16 - length);
        }
        // A length without codes has the limit of the next shorter length.
        for length in 1..17 {
            limits[length] = limits[length].max(limits[length - 1]);
        }
        (limits, offsets)
    }
}

/// A decoding table, kept between images because most files use the same few codes.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    spec: Option<CodeSpec>,
    fast: Box<[Entry; 1 << FAST_BITS]>,
    /// See [`CodeSpec::bounds`].
    limits: [u32; 17],
    offsets: [i32; 17],
}

impl Default for Table {
    fn default() -> Self {
        Table { spec: None, fast: Box::new([Entry::SLOW; 1 << FAST_BITS]), limits: [0; 17], offsets: [0; 17] }
    }
}

impl Table {
    /// Builds the table of `spec`, unless it already is that table.
    pub(crate) fn set(&mut self, spec: &CodeSpec, is_ac: bool) {
        if self.spec.as_ref() != Some(spec) {
            self.build(spec, is_ac);
            self.spec = Some(spec.clone());
        }
    }

    /// The code of this table.
    pub(crate) fn spec(&self) -> Option<&CodeSpec> {
        self.spec.as_ref()
    }

    fn build(&mut self, spec: &CodeSpec, is_ac: bool) {
        self.fast.fill(Entry::SLOW);
        (self.limits, self.offsets) = spec.bounds();
        for (code, length, symbol) in spec.codes() {
            if length <= FAST_BITS {
                let window = (code << (FAST_BITS - length)) as usize;
                self.fast[window..window + (1 << (FAST_BITS - length))].fill(entry(length, symbol, is_ac));
            }
        }
    }

    /// The entry for the code at the top of the bit buffer.
    #[inline(always)]
    pub(crate) fn look_up(&self, buffer: u64) -> Entry {
        self.fast[(buffer >> (64 - FAST_BITS)) as usize]
    }

    /// Symbol and length of a code in the fast table.
    #[inline(always)]
    pub(crate) fn symbol(&self, buffer: u64) -> Option<(u8, u32)> {
        let entry = self.look_up(buffer);
        let length = entry.0 >> 24;
        match entry.advance() {
            ADVANCE_SLOW => None,
            ADVANCE_END => Some(((entry.end_run() << 4) as u8, length)),
            advance => Some(((advance - 1) as u8 * 16 + (entry.total() - length) as u8, length)),
        }
    }

    /// Symbol and length of the code at the top of the bit buffer, whatever its length; `None` if unassigned.
    #[cold]
    #[inline(never)]
    pub(crate) fn slow(&self, buffer: u64) -> Option<(u8, u32)> {
        let window = (buffer >> 48) as u32;
        let length = (1..17).find(|&l| window < self.limits[l])?;
        let index = (window >> (16 - length)) as i32 + self.offsets[length];
        let symbol = self.spec.as_ref()?.symbols.get(usize::try_from(index).ok()?)?;
        Some((*symbol, length as u32))
    }
}

fn entry(length: u32, symbol: u8, is_ac: bool) -> Entry {
    let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
    match (is_ac, run, size) {
        (false, ..) => Entry::coefficient(length, 0, size),
        (true, 15, 0) => Entry::coefficient(length, 15, 0),
        (true, _, 0) => Entry::end(length, run),
        (true, ..) if length + size > MAX_FAST_TOTAL => Entry::SLOW,
        (true, ..) => Entry::coefficient(length, run, size),
    }
}

/// The signed value whose `size` bits are at the top of `bits`.
#[inline(always)]
pub(crate) fn signed(bits: u64, size: u32) -> i32 {
    Entry::coefficient(0, 0, size).value(bits)
}

#[cfg(test)]
mod tests {
    use super::{ADVANCE_END, ADVANCE_SLOW, CodeSpec, Table, signed};

    /// Codes 00, 01, 10 for symbols 0x00, 0x01, 0x23 and 1100_0000_000 (11 bits) for 0xF0.
    fn table() -> Table {
        let mut bytes = vec![0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        bytes.extend([0x00, 0x01, 0x23, 0xF0, 0xAA]);
        let (spec, n_bytes) = CodeSpec::parse(&bytes, true, 0).unwrap();
        assert_eq!(n_bytes, 20);
        let mut table = Table::default();
        table.set(&spec, true);
        table
    }

    #[test]
    fn entry_gives_run_value_and_length() {
        let buffer = 0b10_101_u64 << 59;
        let entry = table().look_up(buffer);
        assert_eq!((entry.total(), entry.advance(), entry.value(buffer)), (5, 3, 5));
        let buffer = 0b10_010_u64 << 59;
        assert_eq!(table().look_up(buffer).value(buffer), -5);
        assert_eq!(table().look_up(0).advance(), ADVANCE_END);
    }

    #[test]
    fn long_code_is_found_by_the_slow_way_and_unassigned_code_is_not() {
        let buffer = 0b110_0000_0000_u64 << 53;
        assert_eq!(table().look_up(buffer).advance(), ADVANCE_SLOW);
        assert_eq!(table().slow(buffer), Some((0xF0, 11)));
        assert_eq!(table().slow(1 << 63), Some((0x23, 2)));
        assert_eq!(table().slow(u64::MAX), None);
    }

    #[test]
    fn signed_values_cover_both_halves_of_each_size() {
        assert_eq!(signed(u64::MAX, 0), 0);
        assert_eq!((signed(0, 1), signed(1 << 63, 1)), (-1, 1));
        assert_eq!((signed(0, 11), signed(u64::MAX, 11)), (-2047, 2047));
    }

    #[test]
    fn oversubscribed_code_is_refused() {
        let mut bytes = vec![3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([1, 2, 3]);
        assert!(CodeSpec::parse(&bytes, true, 7).unwrap_err().to_string().contains("byte 7"));
    }
}
