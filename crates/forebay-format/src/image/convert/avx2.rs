//! The conversions, eight values at a time. Remainders go through the portable code.

use std::arch::x86_64::*;

use super::{Planes, Store, split, u8_to_f32_portable};

#[target_feature(enable = "avx2")]
pub(super) fn u8_to_f32(src: &[u8], dst: &mut [f32]) {
    let store = Store::for_slot(dst);
    let aligned = dst.as_ptr().addr().is_multiple_of(32);
    let (chunks, rest) = src.as_chunks::<16>();
    let (outs, out_rest) = dst.as_chunks_mut::<16>();
    if store == Store::Streaming && aligned {
        for (chunk, out) in chunks.iter().zip(outs) {
            let (low, high) = sixteen(chunk);
            // SAFETY: `out` holds 16 floats and, like the slice's beginning, is aligned to 32 bytes.
            unsafe {
                _mm256_stream_ps(out.as_mut_ptr(), low);
                _mm256_stream_ps(out.as_mut_ptr().add(8), high);
            }
        }
    } else {
        for (chunk, out) in chunks.iter().zip(outs) {
            let (low, high) = sixteen(chunk);
            // SAFETY: `out` holds 16 floats.
            unsafe {
                _mm256_storeu_ps(out.as_mut_ptr(), low);
                _mm256_storeu_ps(out.as_mut_ptr().add(8), high);
            }
        }
    }
    u8_to_f32_portable(rest, out_rest);
    store.complete();
}

#[target_feature(enable = "avx2")]
#[inline]
fn sixteen(chunk: &[u8; 16]) -> (__m256, __m256) {
    // SAFETY: the chunk holds 16 bytes.
    let bytes = unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) };
    let low = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    let high = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128::<8>(bytes)));
    (low, high)
}

/// For each channel, the places of four pixels' bytes in either 128-bit lane; 0x80 yields zero. The upper lane is
/// loaded eight bytes on, so that its pixels begin four bytes into it.
const fn channel_shuffle(channel: u8) -> [u8; 32] {
    let mut shuffle = [0x80; 32];
    let mut n = 0;
    while n < 4 {
        shuffle[4 * n] = 3 * n as u8 + channel;
        shuffle[16 + 4 * n] = 4 + 3 * n as u8 + channel;
        n += 1;
    }
    shuffle
}

const CHANNELS: [[u8; 32]; 3] = [channel_shuffle(0), channel_shuffle(1), channel_shuffle(2)];

#[target_feature(enable = "avx2")]
pub(super) fn u8_to_f32_nchw(src: &[u8], mut planes: Planes<'_, f32>) {
    let (chunks, rest) = src.as_chunks::<24>();
    for (n, chunk) in chunks.iter().enumerate() {
        let out = planes.row(8 * n, 8);
        for (shuffle, out) in CHANNELS.iter().zip([out.red, out.green, out.blue]) {
            // SAFETY: the chunk holds 24 bytes, of which 0..16 and 8..24 are loaded; the shuffle 32; `out` 8 floats.
            unsafe {
                let bytes = _mm256_loadu2_m128i(chunk.as_ptr().add(8).cast(), chunk.as_ptr().cast());
                let values = _mm256_shuffle_epi8(bytes, _mm256_loadu_si256(shuffle.as_ptr().cast()));
                _mm256_storeu_ps(out.as_mut_ptr(), _mm256_cvtepi32_ps(values));
            }
        }
    }
    let done = 8 * chunks.len();
    split(rest, planes.row(done, rest.len() / 3), f32::from);
}

/// Of 24 interleaved floats in three vectors, no two of one channel share a lane: blending gathers a channel, and one
/// permutation puts it in order.
#[target_feature(enable = "avx2")]
pub(super) fn deinterleave(row: &[f32], mut planes: Planes<'_, f32>) {
    let (chunks, rest) = row.as_chunks::<24>();
    for (n, chunk) in chunks.iter().enumerate() {
        let out = planes.row(8 * n, 8);
        // SAFETY: the chunk holds 24 floats.
        let [a, b, c] = unsafe { [0, 8, 16].map(|at| _mm256_loadu_ps(chunk.as_ptr().add(at))) };
        let red = _mm256_blend_ps::<0b0010_0100>(_mm256_blend_ps::<0b1001_0010>(a, b), c);
        let green = _mm256_blend_ps::<0b0100_1001>(_mm256_blend_ps::<0b0010_0100>(a, b), c);
        let blue = _mm256_blend_ps::<0b1001_0010>(_mm256_blend_ps::<0b0100_1001>(a, b), c);
        let red = _mm256_permutevar8x32_ps(red, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
        let green = _mm256_permutevar8x32_ps(green, _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6));
        let blue = _mm256_permutevar8x32_ps(blue, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));
        // SAFETY: each of the slices holds eight floats.
        unsafe {
            _mm256_storeu_ps(out.red.as_mut_ptr(), red);
            _mm256_storeu_ps(out.green.as_mut_ptr(), green);
            _mm256_storeu_ps(out.blue.as_mut_ptr(), blue);
        }
    }
    let done = 8 * chunks.len();
    split(rest, planes.row(done, rest.len() / 3), |value| value);
}
