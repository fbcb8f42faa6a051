//! The Huffman tables of the JPEG standard's Annex K, and the bits of a block under them.
//!
//! Most photographs on the net were written with these tables rather than with ones optimised for the picture, so
//! generated ones are too: what a decoder's tables see is then what they see in the field.

use std::sync::OnceLock;

use super::dct::Block;

/// A table as a file states it: how many codes there are of each length 1..=16, and the symbols in order.
pub(crate) struct Listing {
    pub(crate) counts: [u8; 16],
    pub(crate) symbols: &'static [u8],
}

pub(crate) const DC_LUMA: Listing = Listing {
    counts: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
    symbols: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
};

pub(crate) const DC_CHROMA: Listing = Listing {
    counts: [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0],
    symbols: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
};

pub(crate) const AC_LUMA: Listing = Listing {
    counts: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7D],
    symbols: &[
        0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
        0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72,
        0x82, 0x09, 0x0A, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37,
        0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59,
        0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x83,
        0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3,
        0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3,
        0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE1, 0xE2,
        0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
    ],
};

pub(crate) const AC_CHROMA: Listing = Listing {
    counts: [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77],
    symbols: &[
        0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22,
        0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xA1, 0xB1, 0xC1, 0x09, 0x23, 0x33, 0x52, 0xF0, 0x15, 0x62, 0x72, 0xD1,
        0x0A, 0x16, 0x24, 0x34, 0xE1, 0x25, 0xF1, 0x17, 0x18, 0x19, 0x1A, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x35, 0x36,
        0x37, 0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
        0x59, 0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A,
        0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A,
        0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA,
        0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA,
        0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
    ],
};

/// The symbol of sixteen zeros, and that of nothing but zeros to the end.
const SIXTEEN_ZEROS: usize = 0xF0;
const END_OF_BLOCK: usize = 0x00;

/// Code and length of every symbol of one component's two tables.
pub(crate) struct Codes {
    dc: [Code; 16],
    ac: [Code; 256],
}

#[derive(Clone, Copy, Default)]
struct Code {
    bits: u32,
    len: u32,
}

impl Codes {
    /// The codes of luma (component 0) or of the chroma components.
    pub(crate) fn of(component: usize) -> &'static Self {
        static CODES: OnceLock<[Codes; 2]> = OnceLock::new();
        let build = || {
            [
                Codes { dc: assign(&DC_LUMA), ac: assign(&AC_LUMA) },
                Codes { dc: assign(&DC_CHROMA), ac: assign(&AC_CHROMA) },
            ]
        };
        &CODES.get_or_init(build)[component.min(1)]
    }

    /// Hands every code of a quantised block, with the value bits that follow it, to `put(bits, len)`.
    #[inline(always)]
    pub(crate) fn walk(&self, block: &Block, dc_before: i16, mut put: impl FnMut(u64, u32)) {
        let emit = |code: Code, value: i32, size: u32, put: &mut dyn FnMut(u64, u32)| {
            put(joined(code, value, size), code.len + size)
        };
        let difference = i32::from(block[0]) - i32::from(dc_before);
        let size = size_of(difference);
        emit(self.dc[size as usize], difference, size, &mut put);

        let mut left = nonzero(block) & !1;
        let mut last = 0;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            let mut run = at - last - 1;
            last = at;
            while run > 15 {
                emit(self.ac[SIXTEEN_ZEROS], 0, 0, &mut put);
                run -= 16;
            }
            let value = i32::from(block[at]);
            let size = size_of(value);
            emit(self.ac[(run << 4) | size as usize], value, size, &mut put);
        }
        if last != 63 {
            emit(self.ac[END_OF_BLOCK], 0, 0, &mut put);
        }
    }
}

/// Code and value bits as one string; a negative value is sent as its ones' complement.
#[inline(always)]
fn joined(code: Code, value: i32, size: u32) -> u64 {
    let sent = (value + (value >> 31)) as u32 & ((1 << size) - 1);
    (u64::from(code.bits) << size) | u64::from(sent)
}

/// Number of bits of a value's magnitude.
#[inline(always)]
fn size_of(value: i32) -> u32 {
    32 - value.unsigned_abs().leading_zeros()
}

/// Bit n is set where coefficient n is not zero.
#[inline(always)]
fn nonzero(block: &Block) -> u64 {
    let flags: [u8; 64] = std::array::from_fn(|n| u8::from(block[n] != 0));
    let mut mask = 0;
    for (at, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The product gathers the low bit of each byte in the top byte.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= gathered << (8 * at);
    }
    mask
}

/// Canonical codes: consecutive within a length, doubled from one length to the next.
fn assign<const N: usize>(listing: &Listing) -> [Code; N] {
    let mut codes = [Code::default(); N];
    let (mut bits, mut symbols) = (0, listing.symbols.iter());
    for (len, &count) in (1..).zip(&listing.counts) {
        for &symbol in symbols.by_ref().take(usize::from(count)) {
            codes[usize::from(symbol)] = Code { bits, len };
            bits += 1;
        }
        bits <<= 1;
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_hold_as_many_symbols_as_they_count() {
        for listing in [DC_LUMA, DC_CHROMA, AC_LUMA, AC_CHROMA] {
            assert_eq!(listing.counts.iter().map(|&n| usize::from(n)).sum::<usize>(), listing.symbols.len());
        }
    }

    #[test]
    fn nonzero_marks_each_coefficient() {
        let mut block = [0; 64];
        for at in [0, 5, 8, 31, 62, 63] {
            block[at] = -1;
        }
        assert_eq!(nonzero(&block), (1 << 0) | (1 << 5) | (1 << 8) | (1 << 31) | (1 << 62) | (1 << 63));
    }

    #[test]
    fn a_known_block_gives_the_standards_bits() {
        let mut block = [0; 64];
        (block[0], block[1], block[3]) = (3, -2, 1);
        let mut text = String::new();
        Codes::of(0).walk(&block, 0, |bits, len| text.push_str(&format!("{bits:0width$b} ", width = len as usize)));
        // DC size 2 is 011, then 11; run 0 size 2 is 01, then 01; run 1 size 1 is 1100, then 1; end of block is 1010.
        assert_eq!(text, "01111 0101 11001 1010 ");
    }
}
