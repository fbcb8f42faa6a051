//! Unstuffing 32 bytes at a time.

use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_storeu_si256,
};

/// Like [`super::unstuff`], into an empty `segment` of sufficient capacity, up to the last 33 bytes. `Ok` is the offset
/// of the marker, `Err` the offset from which the rest must still be copied.
///
/// Every step copies 32 bytes and then counts only those before the next 0xFF, so the copy needs no loop.
#[target_feature(enable = "avx2,bmi1")]
pub(super) fn unstuff(source: &[u8], segment: &mut Vec<u8>) -> Result<usize, usize> {
    assert!(segment.is_empty() && segment.capacity() >= source.len() + 32);
    let marks = _mm256_set1_epi8(-1);
    let (mut at, mut n_out) = (0, 0);
    let mut end = None;
    while at + 33 <= source.len() {
        // SAFETY: 32 bytes at `at` are in `source`; `n_out <= at`, so 32 bytes at `n_out` are within the capacity, which
        // is at least 32 more than the length of `source`.
        let chunk = unsafe {
            let chunk = _mm256_loadu_si256(source.as_ptr().add(at).cast::<__m256i>());
            _mm256_storeu_si256(segment.as_mut_ptr().add(n_out).cast::<__m256i>(), chunk);
            chunk
        };
        let found = _mm256_movemask_epi8(_mm256_cmpeq_epi8(chunk, marks)) as u32;
        let n = found.trailing_zeros() as usize;
        if n == 32 {
            (at, n_out) = (at + 32, n_out + 32);
            continue;
        }
        match source[at + n + 1] {
            0 => (at, n_out) = (at + n + 2, n_out + n + 1),
            0xFF => (at, n_out) = (at + n + 1, n_out + n),
            _ => {
                (at, n_out) = (at + n, n_out + n);
                end = Some(at);
                break;
            }
        }
    }
    // SAFETY: the loop has written every byte below `n_out`, which is within the capacity.
    unsafe { segment.set_len(n_out) };
    end.ok_or(at)
}
