//! The resize with AVX-512 and its byte permutation (VBMI): sixteen output values per step.
//!
//! Up to a scale of about four, the source bytes of sixteen consecutive output values lie within 64 bytes of the row: one
//! load brings them, one permutation picks the left-hand neighbours, one more, three bytes on, the right-hand ones.
//!
//! The permutation drops each byte into the lowest byte of the float 2^23. Such floats are the byte plus 2^23 exactly, so
//! differences of bytes are differences of them, and of the four conversions to float only one subtraction remains.

use std::arch::x86_64::*;

use super::super::convert::Store;
use super::columns::Rows;
use super::{Tap, taps};

/// What is the same in every row for sixteen output values.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
struct Block {
    /// For each value the place of the left source byte after `load_at`, in the lowest byte of four.
    left: [u32; 16],
    weight: [f32; 16],
    /// Where in the row the source bytes are loaded.
    load_at: usize,
}

#[derive(Debug)]
pub(super) struct Plan {
    blocks: Vec<Block>,
    row_bytes: usize,
    out_len: usize,
}

const LOAD: usize = 64;
/// The lowest byte of each 32-bit lane.
const LOWEST_BYTES: u64 = 0x1111_1111_1111_1111;

impl Plan {
    /// `None` without AVX-512 VBMI, if the row is shorter than a load, or if a block would need more than one.
    pub(super) fn new(src_width: u32, dst_width: u32) -> Option<Self> {
        let row_bytes = src_width as usize * 3;
        let supported = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        if !supported || row_bytes < LOAD {
            return None;
        }
        let taps: Vec<Tap> = taps(src_width, dst_width).collect();
        let out_len = taps.len() * 3;
        let blocks = (0..out_len).step_by(16).map(|at| Block::new(&taps, at, row_bytes)).collect::<Option<_>>()?;
        Some(Self { blocks, row_bytes, out_len })
    }

    pub(super) fn resize_row(&self, rows: Rows<'_>, out: &mut [f32], store: Store) {
        assert_eq!((rows.top.len(), rows.bottom.len(), out.len()), (self.row_bytes, self.row_bytes, self.out_len));
        let aligned = out.as_ptr().addr().is_multiple_of(64);
        // SAFETY: `new` found the extensions. Every `load_at` leaves 64 bytes before the end of a row of `row_bytes` bytes,
        // and both rows have this length. What is streamed is aligned.
        unsafe {
            match store {
                Store::Streaming if aligned => resize_row::<true>(&self.blocks, rows, out),
                _ => resize_row::<false>(&self.blocks, rows, out),
            }
        }
    }
}

impl Block {
    /// The block of the output values from `at` on, if its source bytes lie within one load. Values past the end of the
    /// row repeat its last pixel.
    fn new(taps: &[Tap], at: usize, row_bytes: usize) -> Option<Self> {
        let tap_of = |value: usize| taps[(value / 3).min(taps.len() - 1)];
        let load_at = (tap_of(at).lower as usize * 3).min(row_bytes - LOAD);
        if tap_of(at + 15).upper as usize * 3 + 3 > load_at + LOAD {
            return None;
        }
        let place = |value: usize| (tap_of(value).lower as usize * 3 + value % 3 - load_at) as u32;
        Some(Self {
            left: std::array::from_fn(|n| place(at + n)),
            weight: std::array::from_fn(|n| tap_of(at + n).weight),
            load_at,
        })
    }
}

/// # Safety
/// For each block, 64 bytes at its `load_at` lie within both rows. With `STREAM`, `out` is aligned to 64 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn resize_row<const STREAM: bool>(blocks: &[Block], rows: Rows<'_>, out: &mut [f32]) {
    let down = _mm512_set1_ps(rows.weight);
    let (outs, out_rest) = out.as_chunks_mut::<16>();
    for (block, out) in blocks.iter().zip(outs) {
        // SAFETY: as the caller promises; `out` holds sixteen floats.
        unsafe {
            let values = sixteen(block, rows, down);
            if STREAM {
                _mm512_stream_ps(out.as_mut_ptr(), values);
            } else {
                _mm512_storeu_ps(out.as_mut_ptr(), values);
            }
        }
    }
    if !out_rest.is_empty() {
        let present = (1_u16 << out_rest.len()) - 1;
        // SAFETY: as above; a block exists for the last, incomplete sixteen values too, and only those present are stored.
        unsafe {
            _mm512_mask_storeu_ps(out_rest.as_mut_ptr(), present, sixteen(&blocks[blocks.len() - 1], rows, down))
        };
    }
}

/// # Safety
/// 64 bytes at the block's `load_at` lie within both rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
unsafe fn sixteen(block: &Block, rows: Rows<'_>, down: __m512) -> __m512 {
    // SAFETY: as the caller promises; the block's arrays are as long as the vectors.
    let (top, bottom, left, across) = unsafe {
        (
            _mm512_loadu_si512(rows.top.as_ptr().add(block.load_at).cast()),
            _mm512_loadu_si512(rows.bottom.as_ptr().add(block.load_at).cast()),
            _mm512_load_si512(block.left.as_ptr().cast()),
            _mm512_load_ps(block.weight.as_ptr()),
        )
    };
    // Past the load's end the place wraps around to some other byte; its weight is zero then.
    let right = _mm512_add_epi32(left, _mm512_set1_epi32(3));
    let (top_left, top_right) = (spread(top, left), spread(top, right));
    let (bottom_left, bottom_right) = (spread(bottom, left), spread(bottom, right));
    let top_step = _mm512_sub_ps(top_right, top_left);
    let bottom_step = _mm512_sub_ps(bottom_right, bottom_left);
    let above = _mm512_fmadd_ps(top_step, across, _mm512_sub_ps(top_left, _mm512_set1_ps(TWO_POW_23)));
    let below_minus_above =
        _mm512_fmadd_ps(_mm512_sub_ps(bottom_step, top_step), across, _mm512_sub_ps(bottom_left, top_left));
    _mm512_fmadd_ps(below_minus_above, down, above)
}

const TWO_POW_23: f32 = 8_388_608.0;

/// The bytes at `places` as floats that are 2^23 too large.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn spread(bytes: __m512i, places: __m512i) -> __m512 {
    let base = _mm512_castps_si512(_mm512_set1_ps(TWO_POW_23));
    _mm512_castsi512_ps(_mm512_mask_permutexvar_epi8(base, LOWEST_BYTES, places, bytes))
}
