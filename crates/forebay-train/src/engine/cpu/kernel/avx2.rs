//! Tiles of 6 × 16 in AVX2 with FMA: 12 sums, two values of B and one of A of the 16 registers.

use std::arch::x86_64::{
    __m256, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_max_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps,
};

use super::{Kernels, Start, Tile, kernel_table};

const LANES: usize = 8;
const COLUMNS: usize = 2 * LANES;

pub(super) const KERNELS: Kernels = Kernels {
    name: "avx2",
    columns: COLUMNS,
    rows: 6,
    strided: kernel_table!(false; 0 1 2 3 4 5 6),
    adjacent: kernel_table!(true; 0 1 2 3 4 5 6),
};

/// # Safety
/// As [`Kernel`](super::Kernel) says.
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const ROWS: usize, const ADJACENT: bool>(tile: &Tile<'_>) {
    // SAFETY: the caller vouches for the bounds of everything the tile describes.
    unsafe {
        let mut sums = start::<ROWS>(tile);
        let mut b = tile.b;
        for &run in tile.runs {
            let mut a = tile.a.add(run);
            for _ in 0..tile.run_len {
                let (b0, b1) = (_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(LANES)));
                for (row, sum) in sums.iter_mut().enumerate() {
                    let value = _mm256_set1_ps(*a.add(if ADJACENT { row } else { row * tile.a_stride }));
                    sum[0] = _mm256_fmadd_ps(value, b0, sum[0]);
                    sum[1] = _mm256_fmadd_ps(value, b1, sum[1]);
                }
                a = a.add(if ADJACENT { tile.a_stride } else { 1 });
                b = b.add(COLUMNS);
            }
        }
        for (row, sum) in sums.iter().enumerate() {
            let mut values = [0.0; COLUMNS];
            for (half, value) in sum.iter().enumerate() {
                let value = if tile.relu { _mm256_max_ps(_mm256_setzero_ps(), *value) } else { *value };
                _mm256_storeu_ps(values.as_mut_ptr().add(half * LANES), value);
            }
            std::ptr::copy_nonoverlapping(values.as_ptr(), tile.c.add(row * tile.c_stride), tile.width);
        }
    }
}

/// # Safety
/// As [`Kernel`](super::Kernel) says.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn start<const ROWS: usize>(tile: &Tile<'_>) -> [[__m256; 2]; ROWS] {
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    for (row, sum) in sums.iter_mut().enumerate() {
        let from = match tile.start {
            Start::Zero => break,
            Start::Bias(bias) => bias,
            Start::Present => tile.c.wrapping_add(row * tile.c_stride).cast_const(),
        };
        let mut values = [0.0; COLUMNS];
        // SAFETY: the values within the tile's width are in bounds.
        unsafe {
            std::ptr::copy_nonoverlapping(from, values.as_mut_ptr(), tile.width);
            *sum = [_mm256_loadu_ps(values.as_ptr()), _mm256_loadu_ps(values.as_ptr().add(LANES))];
        }
    }
    sums
}
