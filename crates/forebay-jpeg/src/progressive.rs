//! Entropy decoding of a block in the four kinds of progressive scan.
//!
//! The upper bits of a coefficient come first, its lower bits later (successive approximation), and bands of
//! coefficients come separately (spectral selection). In AC scans, a run of blocks without further coefficients is sent
//! as a count.
//!
//! A refinement scan sends a bit for each coefficient known to be nonzero, interspersed with coefficients that become
//! nonzero. A loop over the coefficients would cost a misprediction for every other one. So the known ones are kept as
//! a bit set, in which arithmetic finds the place of a new one and the bits before it.

use crate::baseline::{Fault, difference};
use crate::bits::Bits;
use crate::coefficients::Block;
use crate::huffman::{Table, signed};
use crate::place_set;
use crate::simd::Level;
use crate::zigzag::NATURAL;

/// The part of each block that a scan sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    /// First and last coefficient in zigzag order.
    pub(crate) band: (u32, u32),
    /// Lowest bit sent, as the left shift of the values read (Al in the standard).
    pub(crate) shift: u32,
    pub(crate) level: Level,
}

#[inline(always)]
pub(crate) fn dc_first(
    segment: &[u8],
    bits: &mut Bits,
    dc: &Table,
    prediction: &mut i32,
    pass: Pass,
    block: Block<'_>,
) -> Result<(), Fault> {
    bits.refill(segment);
    *prediction = prediction.wrapping_add(difference(bits, dc)?);
    block.coefficients[0] = prediction.wrapping_shl(pass.shift) as i16;
    exhausted(bits, segment)
}

/// Later scan of DC coefficients: one bit per coefficient.
#[inline(always)]
pub(crate) fn dc_refine(segment: &[u8], bits: &mut Bits, pass: Pass, block: Block<'_>) -> Result<(), Fault> {
    block.coefficients[0] |= (bits.take(1, segment) << pass.shift) as i16;
    exhausted(bits, segment)
}

/// First scan of a band of AC coefficients; `end_run` counts blocks without coefficients.
#[inline(always)]
pub(crate) fn ac_first(
    segment: &[u8],
    state: &mut Bits,
    ac: &Table,
    end_run: &mut u32,
    pass: Pass,
    block: Block<'_>,
) -> Result<(), Fault> {
    if *end_run > 0 {
        *end_run -= 1;
        return Ok(());
    }
    let mut bits = *state;
    let (mut k, last) = (pass.band.0 - 1, pass.band.1);
    while k < last {
        bits.refill(segment);
        let (symbol, length) = symbol(ac, bits.buffer)?;
        bits.skip(length);
        let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 && run < 15 {
            *end_run = run_length(&mut bits, segment, run) - 1;
            break;
        }
        k += run + 1;
        if k > last {
            return Err(Fault::Overflow);
        }
        block.coefficients[NATURAL[(k & 63) as usize]] = (signed(bits.buffer, size) << pass.shift) as i16;
        if size != 0 {
            *block.nonzero |= place_set::at(k);
        }
        bits.skip(size);
    }
    *state = bits;
    exhausted(&bits, segment)
}

/// Later scan of a band of AC coefficients.
#[inline(always)]
pub(crate) fn ac_refine(
    segment: &[u8],
    state: &mut Bits,
    ac: &Table,
    end_run: &mut u32,
    pass: Pass,
    block: Block<'_>,
) -> Result<(), Fault> {
    let mut bits = *state;
    let (mut k, last) = pass.band;
    let band = !place_set::from(last + 1);
    let (known, unknown) = (*block.nonzero & band, !*block.nonzero & band);
    let mut corrections = 0;
    if *end_run == 0 {
        while k <= last {
            bits.refill(segment);
            let (symbol, length) = symbol(ac, bits.buffer)?;
            bits.skip(length);
            let (run, size) = (u32::from(symbol >> 4), symbol & 15);
            if size == 0 && run < 15 {
                *end_run = run_length(&mut bits, segment, run);
                break;
            }
            let is_positive = size == 1 && bits.take(1, segment) == 1;
            let place = place_set::nth(pass.level, unknown & place_set::from(k), run);
            let passed = known & place_set::from(k) & !place_set::from(place);
            corrections |= take_for(segment, &mut bits, pass.level, passed);
            match size {
                0 => {}
                1 if place <= last => {
                    let one = 1 << pass.shift;
                    block.coefficients[NATURAL[(place & 63) as usize]] = if is_positive { one } else { -one };
                    *block.nonzero |= place_set::at(place);
                }
                1 => return Err(Fault::Overflow),
                _ => return Err(Fault::BadRefinement),
            }
            k = place + 1;
        }
    }
    if *end_run > 0 {
        corrections |= take_for(segment, &mut bits, pass.level, known & place_set::from(k));
        *end_run -= 1;
    }
    correct(block.coefficients, corrections, pass.shift);
    *state = bits;
    exhausted(&bits, segment)
}

/// Reads a bit for each of `places`; returns the places whose bit is 1.
#[inline(always)]
fn take_for(segment: &[u8], bits: &mut Bits, level: Level, places: u64) -> u64 {
    let n = places.count_ones();
    if n <= 56 {
        return place_set::deposit(level, bits.take(n, segment), places);
    }
    // More bits than a refill provides: first 32 coefficients, then the rest.
    let rest = places & place_set::from(32);
    let first = places & !rest;
    let first = place_set::deposit(level, bits.take(first.count_ones(), segment), first);
    first | place_set::deposit(level, bits.take(rest.count_ones(), segment), rest)
}

/// Moves the coefficients at `places` away from zero.
#[inline(always)]
fn correct(coefficients: &mut [i16; 64], mut places: u64, shift: u32) {
    while places != 0 {
        let place = places.trailing_zeros();
        let coefficient = &mut coefficients[NATURAL[(63 - place) as usize & 63]];
        *coefficient = coefficient.wrapping_add((*coefficient >> 15 | 1) << shift);
        places &= places - 1;
    }
}

/// Number of blocks that an end-of-band code covers, including this one.
#[inline(always)]
fn run_length(bits: &mut Bits, segment: &[u8], n_bits: u32) -> u32 {
    (1 << n_bits) + bits.take(n_bits, segment) as u32
}

#[inline(always)]
fn symbol(ac: &Table, buffer: u64) -> Result<(u8, u32), Fault> {
    ac.symbol(buffer).or_else(|| ac.slow(buffer)).ok_or(Fault::NoCode)
}

#[inline(always)]
fn exhausted(bits: &Bits, segment: &[u8]) -> Result<(), Fault> {
    if bits.is_overrun(segment) { Err(Fault::Exhausted) } else { Ok(()) }
}
