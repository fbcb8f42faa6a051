//! Triangle filters, 32 samples at a time.

use std::arch::x86_64::*;

use super::{CHUNK, Source};

#[target_feature(enable = "avx2")]
pub(super) fn fancy_h2v2(s: Source<'_>, out: &mut [u8]) {
    check(&s, s.far, out);
    for x in (0..s.n_samples).step_by(CHUNK) {
        store([square_half::<false>(s.near, s.far, x), square_half::<true>(s.near, s.far, x)], out, x);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn fancy_h2v1(s: Source<'_>, out: &mut [u8]) {
    check(&s, s.near, out);
    for x in (0..s.n_samples).step_by(CHUNK) {
        store([row_half::<false>(s.near, x), row_half::<true>(s.near, x)], out, x);
    }
}

/// Pixels of the lower or upper 8 samples of each lane of the chunk at `x`, filtered in both directions.
#[inline]
#[target_feature(enable = "avx2")]
fn square_half<const IS_HIGH: bool>(near: &[u8], far: &[u8], x: usize) -> __m256i {
    let left = weigh::<IS_HIGH>(load(near, x), load(far, x));
    let here = weigh::<IS_HIGH>(load(near, x + 1), load(far, x + 1));
    let right = weigh::<IS_HIGH>(load(near, x + 2), load(far, x + 2));
    let here = _mm256_add_epi16(here, _mm256_add_epi16(here, here));
    let even = _mm256_add_epi16(_mm256_add_epi16(here, left), _mm256_set1_epi16(8));
    let odd = _mm256_add_epi16(_mm256_add_epi16(here, right), _mm256_set1_epi16(7));
    _mm256_or_si256(_mm256_srli_epi16::<4>(even), _mm256_slli_epi16::<8>(_mm256_srli_epi16::<4>(odd)))
}

/// The same, filtered along the row only.
#[inline]
#[target_feature(enable = "avx2")]
fn row_half<const IS_HIGH: bool>(near: &[u8], x: usize) -> __m256i {
    let here = load(near, x + 1);
    let even = _mm256_add_epi16(weigh::<IS_HIGH>(here, load(near, x)), _mm256_set1_epi16(1));
    let odd = _mm256_add_epi16(weigh::<IS_HIGH>(here, load(near, x + 2)), _mm256_set1_epi16(2));
    _mm256_or_si256(_mm256_srli_epi16::<2>(even), _mm256_slli_epi16::<8>(_mm256_srli_epi16::<2>(odd)))
}

/// Panics unless whole chunks can be read, with a neighbour on each side, and written.
fn check(s: &Source<'_>, far: &[u8], out: &[u8]) {
    let n = s.n_samples.next_multiple_of(CHUNK);
    assert!(s.near.len() >= n + 2 && far.len() >= n + 2 && out.len() >= 2 * n);
}

/// Three times the near sample plus the far one, for the lower or upper 8 samples of each lane. [`store`] restores the
/// order of the lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn weigh<const IS_HIGH: bool>(near: __m256i, far: __m256i) -> __m256i {
    let pairs = if IS_HIGH { _mm256_unpackhi_epi8(near, far) } else { _mm256_unpacklo_epi8(near, far) };
    _mm256_maddubs_epi16(pairs, _mm256_set1_epi16(0x0103))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(row: &[u8], x: usize) -> __m256i {
    debug_assert!(x + CHUNK <= row.len());
    // SAFETY: `check` ensured that a chunk can be read up to 2 samples after the start of each chunk.
    unsafe { _mm256_loadu_si256(row.as_ptr().add(x).cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(pixels: [__m256i; 2], out: &mut [u8], x: usize) {
    debug_assert!(2 * (x + CHUNK) <= out.len());
    let first = _mm256_permute2x128_si256::<0x20>(pixels[0], pixels[1]);
    let second = _mm256_permute2x128_si256::<0x31>(pixels[0], pixels[1]);
    // SAFETY: `check` ensured that two chunks can be written at twice the start of each chunk.
    unsafe {
        let to = out.as_mut_ptr().add(2 * x);
        _mm256_storeu_si256(to.cast(), first);
        _mm256_storeu_si256(to.add(32).cast(), second);
    }
}
