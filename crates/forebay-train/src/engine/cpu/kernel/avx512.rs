//! Tiles of 14 × 32 in AVX-512: 28 sums, two values of B and one spare of the 32 registers.

use std::arch::x86_64::{
    __m512, __mmask16, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_max_ps,
    _mm512_set1_ps, _mm512_setzero_ps,
};

use super::{Kernels, Start, Tile, kernel_table};

const LANES: usize = 16;

pub(super) const KERNELS: Kernels = Kernels {
    name: "avx512",
    columns: 2 * LANES,
    rows: 14,
    strided: kernel_table!(false; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
    adjacent: kernel_table!(true; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
};

/// # Safety
/// As [`Kernel`](super::Kernel) says.
#[target_feature(enable = "avx512f")]
unsafe fn tile<const ROWS: usize, const ADJACENT: bool>(tile: &Tile<'_>) {
    let masks = [mask(tile.width), mask(tile.width.saturating_sub(LANES))];
    // SAFETY: the caller vouches for the bounds of everything the tile describes; masked lanes are not touched.
    unsafe {
        let mut sums = start::<ROWS>(tile, masks);
        let mut b = tile.b;
        for &run in tile.runs {
            let mut a = tile.a.add(run);
            for _ in 0..tile.run_len {
                let (b0, b1) = (_mm512_loadu_ps(b), _mm512_loadu_ps(b.add(LANES)));
                for (row, sum) in sums.iter_mut().enumerate() {
                    let value = _mm512_set1_ps(*a.add(if ADJACENT { row } else { row * tile.a_stride }));
                    sum[0] = _mm512_fmadd_ps(value, b0, sum[0]);
                    sum[1] = _mm512_fmadd_ps(value, b1, sum[1]);
                }
                a = a.add(if ADJACENT { tile.a_stride } else { 1 });
                b = b.add(2 * LANES);
            }
        }
        for (row, sum) in sums.iter().enumerate() {
            let c = tile.c.add(row * tile.c_stride);
            for (half, value) in sum.iter().enumerate() {
                let value = if tile.relu { _mm512_max_ps(_mm512_setzero_ps(), *value) } else { *value };
                _mm512_mask_storeu_ps(c.wrapping_add(half * LANES), masks[half], value);
            }
        }
    }
}

/// # Safety
/// As [`Kernel`](super::Kernel) says.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn start<const ROWS: usize>(tile: &Tile<'_>, masks: [__mmask16; 2]) -> [[__m512; 2]; ROWS] {
    let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
    for (row, sum) in sums.iter_mut().enumerate() {
        let from = match tile.start {
            Start::Zero => break,
            Start::Bias(bias) => bias,
            Start::Present => tile.c.wrapping_add(row * tile.c_stride).cast_const(),
        };
        for (half, value) in sum.iter_mut().enumerate() {
            // SAFETY: the lanes within the tile's width are in bounds, the others are masked.
            *value = unsafe { _mm512_maskz_loadu_ps(masks[half], from.wrapping_add(half * LANES)) };
        }
    }
    sums
}

fn mask(width: usize) -> __mmask16 {
    if width >= LANES { !0 } else { (1 << width) - 1 }
}
