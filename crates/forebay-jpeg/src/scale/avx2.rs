//! Two blocks to 4x4 or 2x2 samples at a time, one in each half of the registers.
//!
//! Columns are transformed as in the full transform, one row per register. Each output of the remaining rows is a sum
//! of products along the row, so no transposition is needed: `vpmaddwd` computes four partial sums, and horizontal
//! additions combine them.

use std::arch::x86_64::*;

use super::{CONST_BITS, PASS1_BITS};
use crate::idct::{Job, dequantise_avx2};

const SHIFT_1: i32 = (CONST_BITS - PASS1_BITS + 1) as i32;
const SHIFT_2: i32 = (CONST_BITS + PASS1_BITS + 3 + 1) as i32;

/// Like [`super::pair`] for an edge of 4.
#[target_feature(enable = "avx2")]
pub(super) fn four(jobs: [Job<'_>; 2], samples: &mut [u8]) {
    let rows = columns(dequantise_avx2(jobs));
    for (y, row) in rows.into_iter().enumerate() {
        let pixels = pixels(row);
        let halves = [_mm256_castsi256_si128(pixels), _mm256_extracti128_si256::<1>(pixels)];
        for (job, half) in jobs.iter().zip(halves) {
            let bytes = _mm_cvtsi128_si32(half).to_le_bytes();
            samples[job.at + y * job.stride..][..4].copy_from_slice(&bytes);
        }
    }
}

/// Like [`super::pair`] for an edge of 2.
#[target_feature(enable = "avx2")]
pub(super) fn two(jobs: [Job<'_>; 2], samples: &mut [u8]) {
    let c = dequantise_avx2(jobs);
    let zero = _mm256_setzero_si256();
    let low = half_columns_of_two(
        _mm256_unpacklo_epi16(zero, c[0]),
        _mm256_unpacklo_epi16(c[1], c[3]),
        _mm256_unpacklo_epi16(c[5], c[7]),
    );
    let high = half_columns_of_two(
        _mm256_unpackhi_epi16(zero, c[0]),
        _mm256_unpackhi_epi16(c[1], c[3]),
        _mm256_unpackhi_epi16(c[5], c[7]),
    );
    let rows = [_mm256_packs_epi32(low[0], high[0]), _mm256_packs_epi32(low[1], high[1])];
    for (y, row) in rows.into_iter().enumerate() {
        let pixels = pixels_of_two(row);
        let halves = [_mm256_castsi256_si128(pixels), _mm256_extracti128_si256::<1>(pixels)];
        for (job, half) in jobs.iter().zip(halves) {
            let [a, b, ..] = _mm_cvtsi128_si32(half).to_le_bytes();
            samples[job.at + y * job.stride..][..2].copy_from_slice(&[a, b]);
        }
    }
}

/// Four columns of each block in 32 bits; `c0` is in the upper half of its elements.
#[inline]
#[target_feature(enable = "avx2")]
fn half_columns_of_two(c0: __m256i, c13: __m256i, c57: __m256i) -> [__m256i; 2] {
    const SHIFT: i32 = SHIFT_1 + 1;
    let even = _mm256_add_epi32(_mm256_srai_epi32::<1>(c0), _mm256_set1_epi32(1 << (SHIFT - 1)));
    let odd =
        _mm256_add_epi32(_mm256_madd_epi16(c13, weights(29692, -10426)), _mm256_madd_epi16(c57, weights(6967, -5906)));
    [_mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(even, odd)), _mm256_srai_epi32::<SHIFT>(_mm256_sub_epi32(even, odd))]
}

/// The two samples of a row of each block, in the lowest bytes of each half.
#[inline]
#[target_feature(enable = "avx2")]
fn pixels_of_two(row: __m256i) -> __m256i {
    const SHIFT: i32 = SHIFT_2 + 1;
    // The weight of the first coefficient is 1 << 15, which does not fit in 16 bits: half of it is at its own place,
    // the other half at the place of the second even coefficient, which does not contribute.
    let doubled = _mm256_setr_epi8(
        0, 1, 2, 3, 0, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 0, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    );
    let row = _mm256_shuffle_epi8(row, doubled);
    let first = _mm256_madd_epi16(row, along(1 << 14, 0, [29692, -10426, 6967, -5906]));
    let second = _mm256_madd_epi16(row, along(1 << 14, 0, [-29692, 10426, -6967, 5906]));
    let sums = _mm256_hadd_epi32(first, second);
    let sums = _mm256_hadd_epi32(sums, sums);
    let rounded = _mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << (SHIFT - 1))));
    let words = _mm256_packs_epi32(rounded, rounded);
    _mm256_add_epi8(_mm256_packs_epi16(words, words), _mm256_set1_epi8(-128))
}

/// The transform down the registers, saturated to 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn columns(c: [__m256i; 8]) -> [__m256i; 4] {
    let zero = _mm256_setzero_si256();
    let low = half_columns(
        _mm256_unpacklo_epi16(zero, c[0]),
        _mm256_unpacklo_epi16(c[2], c[6]),
        _mm256_unpacklo_epi16(c[1], c[3]),
        _mm256_unpacklo_epi16(c[5], c[7]),
    );
    let high = half_columns(
        _mm256_unpackhi_epi16(zero, c[0]),
        _mm256_unpackhi_epi16(c[2], c[6]),
        _mm256_unpackhi_epi16(c[1], c[3]),
        _mm256_unpackhi_epi16(c[5], c[7]),
    );
    [
        _mm256_packs_epi32(low[0], high[0]),
        _mm256_packs_epi32(low[1], high[1]),
        _mm256_packs_epi32(low[2], high[2]),
        _mm256_packs_epi32(low[3], high[3]),
    ]
}

/// Four columns of each block in 32 bits; `c0` is in the upper half of its elements.
#[inline]
#[target_feature(enable = "avx2")]
fn half_columns(c0: __m256i, c26: __m256i, c13: __m256i, c57: __m256i) -> [__m256i; 4] {
    let e0 = _mm256_add_epi32(_mm256_srai_epi32::<2>(c0), _mm256_set1_epi32(1 << (SHIFT_1 - 1)));
    let e2 = _mm256_madd_epi16(c26, weights(15137, -6270));
    let inner =
        _mm256_add_epi32(_mm256_madd_epi16(c13, weights(8697, -17799)), _mm256_madd_epi16(c57, weights(11893, -1730)));
    let outer =
        _mm256_add_epi32(_mm256_madd_epi16(c13, weights(20995, 7373)), _mm256_madd_epi16(c57, weights(-4926, -4176)));
    let (p, q) = (_mm256_add_epi32(e0, e2), _mm256_sub_epi32(e0, e2));
    [
        _mm256_srai_epi32::<SHIFT_1>(_mm256_add_epi32(p, outer)),
        _mm256_srai_epi32::<SHIFT_1>(_mm256_add_epi32(q, inner)),
        _mm256_srai_epi32::<SHIFT_1>(_mm256_sub_epi32(q, inner)),
        _mm256_srai_epi32::<SHIFT_1>(_mm256_sub_epi32(p, outer)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn weights(a: i16, b: i16) -> __m256i {
    _mm256_set1_epi32(i32::from(b) << 16 | i32::from(a as u16))
}

/// The four samples of a row of each block, in the lowest bytes of each half.
#[inline]
#[target_feature(enable = "avx2")]
fn pixels(row: __m256i) -> __m256i {
    let first = _mm256_madd_epi16(row, along(15137, -6270, [20995, 7373, -4926, -4176]));
    let second = _mm256_madd_epi16(row, along(-15137, 6270, [8697, -17799, 11893, -1730]));
    let third = _mm256_madd_epi16(row, along(-15137, 6270, [-8697, 17799, -11893, 1730]));
    let fourth = _mm256_madd_epi16(row, along(15137, -6270, [-20995, -7373, 4926, 4176]));
    let sums = _mm256_hadd_epi32(_mm256_hadd_epi32(first, second), _mm256_hadd_epi32(third, fourth));
    let rounded = _mm256_srai_epi32::<SHIFT_2>(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << (SHIFT_2 - 1))));
    let words = _mm256_packs_epi32(rounded, rounded);
    _mm256_add_epi8(_mm256_packs_epi16(words, words), _mm256_set1_epi8(-128))
}

/// Weights of the coefficients of a row: of 2 and 6, and of the odd ones.
#[inline]
#[target_feature(enable = "avx2")]
fn along(w2: i16, w6: i16, [w1, w3, w5, w7]: [i16; 4]) -> __m256i {
    let w0 = 1 << 14;
    _mm256_setr_epi16(w0, w1, w2, w3, 0, w5, w6, w7, w0, w1, w2, w3, 0, w5, w6, w7)
}
