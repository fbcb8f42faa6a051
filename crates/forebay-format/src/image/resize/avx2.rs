//! The resize with AVX2 and FMA: eight output values per step, without regard to pixel boundaries.
//!
//! Four consecutive values belong to two neighbouring output pixels. Their source bytes come into one 128-bit lane, by
//! one load where both source pixels lie within 16 bytes, else by two loads of 8 bytes; a byte shuffle then spreads them
//! to 32-bit lanes. Moving the shuffle three bytes on yields the right-hand neighbours.

use std::arch::x86_64::*;

use super::super::convert::Store;
use super::columns::Rows;
use super::{Tap, taps};

/// What is the same in every row for eight output values.
#[derive(Debug, Clone)]
#[repr(C, align(32))]
struct Block {
    /// For each value the place of the left source byte in its lane; the other bytes are 0x80, which yields zero.
    left: [u8; 32],
    weight: [f32; 8],
    /// Where in the row the lanes' source bytes are loaded: first and second half of the lower lane, then of the upper.
    /// With wide loads only the first of each two counts.
    load_at: [u32; 4],
}

#[derive(Debug)]
pub(super) struct Plan {
    blocks: Vec<Block>,
    /// Whether each lane comes by one load of 16 bytes.
    wide_loads: bool,
    row_bytes: usize,
    out_len: usize,
}

const WIDE: usize = 16;
const NARROW: usize = 8;

impl Plan {
    /// `None` without AVX2 and FMA, or if the row is shorter than a load.
    pub(super) fn new(src_width: u32, dst_width: u32) -> Option<Self> {
        let row_bytes = src_width as usize * 3;
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") || row_bytes < WIDE {
            return None;
        }
        let taps: Vec<Tap> = taps(src_width, dst_width).collect();
        // Of two neighbouring pixels and the right-hand neighbour of the second, the last byte is within the load.
        let wide_loads = taps.windows(2).all(|pair| (pair[1].upper - pair[0].lower) as usize * 3 + 3 <= WIDE);
        let out_len = taps.len() * 3;
        let blocks = (0..out_len).step_by(8).map(|at| Block::new(&taps, at, row_bytes, wide_loads)).collect();
        Some(Self { blocks, wide_loads, row_bytes, out_len })
    }

    pub(super) fn resize_row(&self, rows: Rows<'_>, out: &mut [f32], store: Store) {
        assert_eq!((rows.top.len(), rows.bottom.len(), out.len()), (self.row_bytes, self.row_bytes, self.out_len));
        let stream = store == Store::Streaming && out.as_ptr().addr().is_multiple_of(32);
        // SAFETY: `new` found AVX2 and FMA. Every `load_at` leaves a whole load before the end of a row of `row_bytes`
        // bytes, and both rows have this length. What is streamed is aligned.
        unsafe {
            match (self.wide_loads, stream) {
                (true, true) => resize_row::<true, true>(&self.blocks, rows, out),
                (true, false) => resize_row::<true, false>(&self.blocks, rows, out),
                (false, true) => resize_row::<false, true>(&self.blocks, rows, out),
                (false, false) => resize_row::<false, false>(&self.blocks, rows, out),
            }
        }
    }
}

impl Block {
    /// The block of the output values from `at` on. Values past the end of the row repeat its last pixel.
    fn new(taps: &[Tap], at: usize, row_bytes: usize, wide_loads: bool) -> Self {
        let load_len = if wide_loads { WIDE } else { NARROW };
        let mut block = Self { left: [0x80; 32], weight: [0.0; 8], load_at: [0; 4] };
        for lane in 0..2 {
            let first = at + 4 * lane;
            let pair = [0, 1].map(|half| taps[(first / 3 + half).min(taps.len() - 1)]);
            let sources = pair.map(|tap| tap.lower as usize * 3);
            let loads = sources.map(|source| source.min(row_bytes - load_len));
            for n in 0..4 {
                let half = (first + n) / 3 - first / 3;
                let (load, shift) = if wide_loads { (loads[0], 0) } else { (loads[half], NARROW * half) };
                block.left[16 * lane + 4 * n] = (shift + sources[half] + (first + n) % 3 - load) as u8;
                block.weight[4 * lane + n] = pair[half].weight;
            }
            block.load_at[2 * lane..][..2].copy_from_slice(&loads.map(|load| load as u32));
        }
        block
    }
}

/// # Safety
/// For each block, a whole load at each of its `load_at` lies within both rows. With `STREAM`, `out` is aligned to 32 bytes.
#[target_feature(enable = "avx2,fma")]
unsafe fn resize_row<const WIDE_LOADS: bool, const STREAM: bool>(blocks: &[Block], rows: Rows<'_>, out: &mut [f32]) {
    let down = _mm256_set1_ps(rows.weight);
    let (outs, out_rest) = out.as_chunks_mut::<8>();
    for (block, out) in blocks.iter().zip(outs) {
        // SAFETY: as the caller promises; `out` holds eight floats.
        unsafe {
            let values = eight::<WIDE_LOADS>(block, rows, down);
            if STREAM {
                _mm256_stream_ps(out.as_mut_ptr(), values);
            } else {
                _mm256_storeu_ps(out.as_mut_ptr(), values);
            }
        }
    }
    if !out_rest.is_empty() {
        let mut last = [0.0; 8];
        // SAFETY: as above; a block exists for the last, incomplete eight values too.
        unsafe { _mm256_storeu_ps(last.as_mut_ptr(), eight::<WIDE_LOADS>(&blocks[blocks.len() - 1], rows, down)) };
        out_rest.copy_from_slice(&last[..out_rest.len()]);
    }
}

/// # Safety
/// A whole load at each of the block's `load_at` lies within both rows.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn eight<const WIDE_LOADS: bool>(block: &Block, rows: Rows<'_>, down: __m256) -> __m256 {
    // SAFETY: as the caller promises.
    let (top, bottom) = unsafe { (load::<WIDE_LOADS>(block, rows.top), load::<WIDE_LOADS>(block, rows.bottom)) };
    // SAFETY: the block's arrays are as long as the vectors.
    let (left, across) =
        unsafe { (_mm256_load_si256(block.left.as_ptr().cast()), _mm256_load_ps(block.weight.as_ptr())) };
    let right = _mm256_add_epi8(left, _mm256_set1_epi8(3));
    let above = lerp(spread(top, left), spread(top, right), across);
    let below = lerp(spread(bottom, left), spread(bottom, right), across);
    lerp(above, below, down)
}

/// # Safety
/// A whole load at each of the block's `load_at` lies within `row`.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn load<const WIDE_LOADS: bool>(block: &Block, row: &[u8]) -> __m256i {
    let at = |n: usize| row.as_ptr().wrapping_add(block.load_at[n] as usize);
    // SAFETY: as the caller promises.
    unsafe {
        if WIDE_LOADS {
            return _mm256_loadu2_m128i(at(2).cast(), at(0).cast());
        }
        let [a, b, c, d] = [0, 1, 2, 3].map(|n| at(n).cast::<i64>().read_unaligned());
        _mm256_setr_epi64x(a, b, c, d)
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn spread(bytes: __m256i, shuffle: __m256i) -> __m256 {
    _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, shuffle))
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn lerp(from: __m256, to: __m256, weight: __m256) -> __m256 {
    _mm256_fmadd_ps(_mm256_sub_ps(to, from), weight, from)
}
