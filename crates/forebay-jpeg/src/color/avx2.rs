//! Colour conversion, 32 pixels at a time.
//!
//! The constants above 1 are split into an integer and a fraction that fits 16 bits. A high multiplication by twice the
//! operand followed by `(x + 1) >> 1` rounds exactly as the 32-bit formula does.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

const CHUNK: usize = 32;

/// Bytes written beyond the last pixel of a group of 8.
const OVERHANG: usize = 8;

/// Converts lines of Y, Cb and Cr.
#[target_feature(enable = "avx2")]
pub(super) fn ycbcr(lines: [&[u8]; 3], n_pixels: usize, out: &mut [MaybeUninit<u8>]) {
    check(lines, n_pixels, out);
    for x in (0..n_pixels).step_by(CHUNK) {
        let [y, cb, cr] = [load(lines[0], x), load(lines[1], x), load(lines[2], x)];
        let low = half(y, cb, cr, false);
        let high = half(y, cb, cr, true);
        let rgb = std::array::from_fn(|i| _mm256_packus_epi16(low[i], high[i]));
        store(rgb, out, x);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn interleave(lines: [&[u8]; 3], n_pixels: usize, out: &mut [MaybeUninit<u8>]) {
    check(lines, n_pixels, out);
    for x in (0..n_pixels).step_by(CHUNK) {
        store([load(lines[0], x), load(lines[1], x), load(lines[2], x)], out, x);
    }
}

/// Panics unless whole chunks can be read and written.
fn check(lines: [&[u8]; 3], n_pixels: usize, out: &[MaybeUninit<u8>]) {
    let n = n_pixels.next_multiple_of(CHUNK);
    assert!(lines.iter().all(|line| line.len() >= n) && out.len() >= 3 * n + OVERHANG);
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(line: &[u8], x: usize) -> __m256i {
    debug_assert!(x + CHUNK <= line.len());
    // SAFETY: `check` ensured that a chunk can be read at the start of each chunk.
    unsafe { _mm256_loadu_si256(line.as_ptr().add(x).cast()) }
}

/// Red, green and blue in 16 bits of the lower or upper 8 pixels of each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn half(y: __m256i, cb: __m256i, cr: __m256i, is_high: bool) -> [__m256i; 3] {
    let (zero, middle) = (_mm256_setzero_si256(), _mm256_set1_epi16(128));
    let [y, cb, cr] =
        [y, cb, cr].map(|v| if is_high { _mm256_unpackhi_epi8(v, zero) } else { _mm256_unpacklo_epi8(v, zero) });
    let (cb, cr) = (_mm256_sub_epi16(cb, middle), _mm256_sub_epi16(cr, middle));
    let (cb2, cr2) = (_mm256_add_epi16(cb, cb), _mm256_add_epi16(cr, cr));
    // 1.402 = 1 + 26345 / 65536; 1.772 = 2 - 14942 / 65536.
    let r = _mm256_add_epi16(cr, round_half(_mm256_mulhi_epi16(cr2, _mm256_set1_epi16(26345))));
    let b = _mm256_add_epi16(cb2, round_half(_mm256_mulhi_epi16(cb2, _mm256_set1_epi16(-14942))));
    // -0.34414 = -22554 / 65536; -0.71414 = 18734 / 65536 - 1.
    let low = green_term(_mm256_unpacklo_epi16(cb, cr));
    let high = green_term(_mm256_unpackhi_epi16(cb, cr));
    let g = _mm256_sub_epi16(_mm256_packs_epi32(low, high), cr);
    [_mm256_add_epi16(y, r), _mm256_add_epi16(y, g), _mm256_add_epi16(y, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn round_half(v: __m256i) -> __m256i {
    _mm256_srai_epi16::<1>(_mm256_add_epi16(v, _mm256_set1_epi16(1)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn green_term(pairs: __m256i) -> __m256i {
    let weights = _mm256_set1_epi32(18734 << 16 | (-22554i16 as u16) as i32);
    _mm256_srai_epi32::<16>(_mm256_add_epi32(_mm256_madd_epi16(pairs, weights), _mm256_set1_epi32(1 << 15)))
}

/// Writes 32 pixels, 8 at a time; each write exceeds its pixels by 8 bytes, which the next one overwrites.
#[inline]
#[target_feature(enable = "avx2")]
fn store([r, g, b]: [__m256i; 3], out: &mut [MaybeUninit<u8>], x: usize) {
    debug_assert!(3 * (x + CHUNK) + OVERHANG <= out.len());
    let (rg_low, rg_high) = (_mm256_unpacklo_epi8(r, g), _mm256_unpackhi_epi8(r, g));
    let (bb_low, bb_high) = (_mm256_unpacklo_epi8(b, b), _mm256_unpackhi_epi8(b, b));
    // Pixels as 4 bytes: 0-3 and 16-19, 4-7 and 20-23, 8-11 and 24-27, 12-15 and 28-31.
    let quads = [
        _mm256_unpacklo_epi16(rg_low, bb_low),
        _mm256_unpackhi_epi16(rg_low, bb_low),
        _mm256_unpacklo_epi16(rg_high, bb_high),
        _mm256_unpackhi_epi16(rg_high, bb_high),
    ];
    let groups = [
        _mm256_permute2x128_si256::<0x20>(quads[0], quads[1]),
        _mm256_permute2x128_si256::<0x20>(quads[2], quads[3]),
        _mm256_permute2x128_si256::<0x31>(quads[0], quads[1]),
        _mm256_permute2x128_si256::<0x31>(quads[2], quads[3]),
    ];
    for (i, group) in groups.into_iter().enumerate() {
        // SAFETY: `check` ensured that 96 + 8 bytes can be written per chunk; this writes 32 at 24 * i <= 72.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(3 * x + 24 * i).cast(), squeeze(group)) };
    }
}

/// Drops the fourth byte of each of 8 pixels.
#[inline]
#[target_feature(enable = "avx2")]
fn squeeze(pixels: __m256i) -> __m256i {
    let drop = _mm256_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    );
    let close = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(pixels, drop), close)
}
