//! Two blocks at a time, one in each half of the registers.
//!
//! A register holds a row of both blocks, so the transform of the columns is the same arithmetic in every lane.
//! Products are summed in pairs by `vpmaddwd`, which is exact. Between the passes and at the end, the 8x8 matrices are
//! transposed within the halves.

use std::arch::x86_64::*;

use super::{Job, SHIFT_1, SHIFT_2, rotation};

type Rows = [__m256i; 8];

#[target_feature(enable = "avx2")]
pub(super) fn pair(jobs: [Job<'_>; 2], samples: &mut [u8]) {
    assert!(jobs[0].fits(samples.len()) && jobs[1].fits(samples.len()));
    let columns = pass::<{ SHIFT_1 as i32 }>(dequantise(jobs));
    let pixels = pass::<{ SHIFT_2 as i32 }>(transpose(columns));
    store(pixels, jobs, samples);
}

/// Rows of both blocks, multiplied by their quantisation tables.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn dequantise(jobs: [Job<'_>; 2]) -> Rows {
    std::array::from_fn(|y| {
        let c = join(jobs[0].coefficients, jobs[1].coefficients, y);
        let q = join(jobs[0].quant, jobs[1].quant, y);
        _mm256_mullo_epi16(c, q)
    })
}

#[inline]
#[target_feature(enable = "avx2")]
fn join(a: &[i16; 64], b: &[i16; 64], y: usize) -> __m256i {
    let (a, b) = (&a[8 * y..8 * y + 8], &b[8 * y..8 * y + 8]);
    // SAFETY: both slices have 8 elements of 2 bytes.
    unsafe { _mm256_loadu2_m128i(b.as_ptr().cast(), a.as_ptr().cast()) }
}

/// The one-dimensional transform down the registers, descaled by `SHIFT` with rounding and saturated to 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn pass<const SHIFT: i32>(c: Rows) -> Rows {
    let sum = _mm256_add_epi16(c[0], c[4]);
    let difference = _mm256_sub_epi16(c[0], c[4]);
    let mix = (_mm256_add_epi16(c[7], c[3]), _mm256_add_epi16(c[5], c[1]));
    let low = half::<SHIFT>(
        widen(_mm256_unpacklo_epi16(_mm256_setzero_si256(), sum)),
        widen(_mm256_unpacklo_epi16(_mm256_setzero_si256(), difference)),
        _mm256_unpacklo_epi16(c[2], c[6]),
        _mm256_unpacklo_epi16(mix.0, mix.1),
        _mm256_unpacklo_epi16(c[7], c[1]),
        _mm256_unpacklo_epi16(c[5], c[3]),
    );
    let high = half::<SHIFT>(
        widen(_mm256_unpackhi_epi16(_mm256_setzero_si256(), sum)),
        widen(_mm256_unpackhi_epi16(_mm256_setzero_si256(), difference)),
        _mm256_unpackhi_epi16(c[2], c[6]),
        _mm256_unpackhi_epi16(mix.0, mix.1),
        _mm256_unpackhi_epi16(c[7], c[1]),
        _mm256_unpackhi_epi16(c[5], c[3]),
    );
    std::array::from_fn(|i| _mm256_packs_epi32(low[i], high[i]))
}

/// Moves values down from the upper 16 bits, to scale them by the constants' 13 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn widen(v: __m256i) -> __m256i {
    _mm256_srai_epi32::<3>(v)
}

/// The transform of four columns of each block in 32 bits; pairs of inputs are interleaved.
#[inline]
#[target_feature(enable = "avx2")]
fn half<const SHIFT: i32>(e0: __m256i, e1: __m256i, c26: __m256i, mix: __m256i, c71: __m256i, c53: __m256i) -> Rows {
    let round = _mm256_set1_epi32(1 << (SHIFT - 1));
    let (e0, e1) = (_mm256_add_epi32(e0, round), _mm256_add_epi32(e1, round));
    let [e2, e3] = rotate(rotation::EVEN, c26);
    let even = [_mm256_add_epi32(e0, e3), _mm256_add_epi32(e1, e2), _mm256_sub_epi32(e1, e2), _mm256_sub_epi32(e0, e3)];
    let [m3, m4] = rotate(rotation::MIX, mix);
    let [o0, o3] = rotate(rotation::ODD_71, c71);
    let [o1, o2] = rotate(rotation::ODD_53, c53);
    let odd = [_mm256_add_epi32(o3, m4), _mm256_add_epi32(o2, m3), _mm256_add_epi32(o1, m4), _mm256_add_epi32(o0, m3)];
    std::array::from_fn(|i| {
        _mm256_srai_epi32::<SHIFT>(match i {
            0..4 => _mm256_add_epi32(even[i], odd[i]),
            _ => _mm256_sub_epi32(even[7 - i], odd[7 - i]),
        })
    })
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate(by: [[i16; 2]; 2], pairs: __m256i) -> [__m256i; 2] {
    let by = by.map(|[p, q]| i32::from(q) << 16 | i32::from(p as u16));
    [_mm256_madd_epi16(pairs, _mm256_set1_epi32(by[0])), _mm256_madd_epi16(pairs, _mm256_set1_epi32(by[1]))]
}

/// Transposes the 8x8 matrix in each half.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(r: Rows) -> Rows {
    // Each stage doubles the length of contiguous runs.
    let a: Rows = std::array::from_fn(|i| {
        let (p, q) = (r[2 * (i / 2)], r[2 * (i / 2) + 1]);
        if i % 2 == 0 { _mm256_unpacklo_epi16(p, q) } else { _mm256_unpackhi_epi16(p, q) }
    });
    let b: Rows = std::array::from_fn(|i| {
        let (p, q) = (a[4 * (i / 4) + i % 4 / 2], a[4 * (i / 4) + i % 4 / 2 + 2]);
        if i % 2 == 0 { _mm256_unpacklo_epi32(p, q) } else { _mm256_unpackhi_epi32(p, q) }
    });
    std::array::from_fn(|i| {
        let (p, q) = (b[i / 2], b[i / 2 + 4]);
        if i % 2 == 0 { _mm256_unpacklo_epi64(p, q) } else { _mm256_unpackhi_epi64(p, q) }
    })
}

/// Writes columns of values centred on 0 as rows of samples.
#[inline]
#[target_feature(enable = "avx2")]
fn store(columns: Rows, jobs: [Job<'_>; 2], samples: &mut [u8]) {
    let packed: [__m256i; 4] = std::array::from_fn(|x| {
        _mm256_add_epi8(_mm256_packs_epi16(columns[x], columns[x + 4]), _mm256_set1_epi8(-128))
    });
    let (c01, c45) = (_mm256_unpacklo_epi8(packed[0], packed[1]), _mm256_unpackhi_epi8(packed[0], packed[1]));
    let (c23, c67) = (_mm256_unpacklo_epi8(packed[2], packed[3]), _mm256_unpackhi_epi8(packed[2], packed[3]));
    let left = [_mm256_unpacklo_epi16(c01, c23), _mm256_unpackhi_epi16(c01, c23)];
    let right = [_mm256_unpacklo_epi16(c45, c67), _mm256_unpackhi_epi16(c45, c67)];
    let start = samples.as_mut_ptr();
    for i in 0..2 {
        let rows = [_mm256_unpacklo_epi32(left[i], right[i]), _mm256_unpackhi_epi32(left[i], right[i])];
        for (j, row) in rows.into_iter().enumerate() {
            let y = 4 * i + 2 * j;
            let halves = [_mm256_castsi256_si128(row), _mm256_extracti128_si256::<1>(row)];
            for (job, both) in jobs.iter().zip(halves) {
                // SAFETY: `pair` ensured that 8 rows of 8 samples from `at` are in `samples`; these are rows y and y +
                // 1.
                unsafe {
                    let to = start.add(job.at + y * job.stride);
                    _mm_storel_epi64(to.cast(), both);
                    _mm_storeh_pd(to.add(job.stride).cast(), _mm_castsi128_pd(both));
                }
            }
        }
    }
}
