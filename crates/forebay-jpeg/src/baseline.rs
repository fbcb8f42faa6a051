//! Entropy decoding of a block of the sequential process.
//!
//! The loop over AC coefficients has a single branch per pair of coefficients, taken about once per block. A
//! coefficient is stored before it is known to exist, and outside the block if it does not; an end of block, a value
//! too long for the table and an overrun of the block all appear as an index of 63 or more.

use crate::bits::Bits;
use crate::huffman::{ADVANCE_END, ADVANCE_SLOW, Table, signed};
use crate::pairs::{LOOK_UPS_PER_REFILL, Pair, PairTable};
use crate::zigzag::{SCATTER, Workspace};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bits are not a code of the table.
    NoCode,
    /// A run that exceeds the last coefficient.
    Overflow,
    Exhausted,
    /// A progressive refinement of more than one bit.
    BadRefinement,
}

#[derive(Clone, Copy)]
pub(crate) struct Codes<'a> {
    pub(crate) dc: &'a Table,
    pub(crate) ac: &'a Table,
    /// `None` for short scans, for which building the table would take longer than it saves.
    pub(crate) pairs: Option<&'a PairTable>,
}

/// Decodes one block into `block`, which must be zero. Returns the zigzag index of its last coefficient.
#[inline(always)]
pub(crate) fn decode_block(
    segment: &[u8],
    state: &mut Bits,
    codes: Codes<'_>,
    prediction: &mut i32,
    block: &mut Workspace,
) -> Result<u32, Fault> {
    let mut bits = *state;
    bits.refill(segment);
    *prediction = prediction.wrapping_add(difference(&mut bits, codes.dc)?);
    block[0] = *prediction as i16;
    let mut k = 0;
    let last = loop {
        if let Some(pairs) = codes.pairs {
            let (before, k_first, k_second, pair) = run_pairs(segment, bits, pairs, k, block);
            // A pair may extend beyond the end of the block; then only its first coefficient counts.
            let is_one = k_first >= 63;
            let (k_end, total) = if is_one { (k_first, pair.total_of_first()) } else { (k_second, pair.total()) };
            bits = before;
            bits.skip(total);
            match k_end {
                63 => break 63,
                ADVANCE_END..ADVANCE_SLOW => break k_end - ADVANCE_END,
                ADVANCE_SLOW.. => k = k_end - ADVANCE_SLOW,
                _ => return Err(Fault::Overflow),
            }
        }
        // By value: a reference to the bit buffer would keep it in memory during the whole loop.
        let is_end;
        (bits, k, is_end) = one_coefficient(segment, bits, codes.ac, k, block)?;
        if is_end {
            break k;
        }
    };
    *state = bits;
    if bits.is_overrun(segment) { Err(Fault::Exhausted) } else { Ok(last) }
}

/// Decodes pairs from coefficient `k` on until an index of 63 or more. Returns the last pair, the bits before it and
/// the indices after each of its coefficients.
#[inline(always)]
fn run_pairs(
    segment: &[u8],
    mut bits: Bits,
    pairs: &PairTable,
    mut k: u32,
    block: &mut Workspace,
) -> (Bits, u32, u32, Pair) {
    loop {
        bits.refill(segment);
        for _ in 0..LOOK_UPS_PER_REFILL {
            let before = bits;
            let pair = pairs.look_up(bits.buffer);
            bits.skip(pair.total());
            let (advance, advance_second) = pair.advances();
            let (value, value_second) = pair.values();
            let k_first = k + advance;
            k = k_first + advance_second;
            block[usize::from(SCATTER[(k_first & 255) as usize])] = value;
            block[usize::from(SCATTER[(k & 255) as usize])] = value_second;
            if k >= 63 {
                return (before, k_first, k, pair);
            }
        }
    }
}

/// Decodes a DC difference; the buffer must be freshly refilled.
#[inline(always)]
pub(crate) fn difference(bits: &mut Bits, dc: &Table) -> Result<i32, Fault> {
    let entry = dc.look_up(bits.buffer);
    if entry.advance() == ADVANCE_SLOW {
        let (size, length) = dc.slow(bits.buffer).ok_or(Fault::NoCode)?;
        bits.skip(length);
        let value = signed(bits.buffer, size.into());
        bits.skip(size.into());
        return Ok(value);
    }
    let value = entry.value(bits.buffer);
    bits.skip(entry.total());
    Ok(value)
}

/// Decodes one coefficient of any length, and tells whether it ended the block.
#[inline(always)]
fn one_coefficient(
    segment: &[u8],
    mut bits: Bits,
    ac: &Table,
    mut k: u32,
    block: &mut Workspace,
) -> Result<(Bits, u32, bool), Fault> {
    bits.refill(segment);
    let entry = ac.look_up(bits.buffer);
    let value = match entry.advance() {
        ADVANCE_SLOW => {
            let (symbol, length) = ac.slow(bits.buffer).ok_or(Fault::NoCode)?;
            bits.skip(length);
            let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 && run < 15 {
                return Ok((bits, k, true));
            }
            k += run + 1;
            let value = signed(bits.buffer, size);
            bits.skip(size);
            value
        }
        ADVANCE_END => {
            bits.skip(entry.total());
            return Ok((bits, k, true));
        }
        advance => {
            k += advance;
            let value = entry.value(bits.buffer);
            bits.skip(entry.total());
            value
        }
    };
    if k > 63 {
        return Err(Fault::Overflow);
    }
    block[usize::from(SCATTER[(k & 255) as usize])] = value as i16;
    Ok((bits, k, k == 63))
}
