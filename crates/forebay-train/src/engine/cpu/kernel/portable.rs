//! Tiles of 4 × 8 in plain Rust, for every processor.

use super::{Kernels, Start, Tile, kernel_table};
use crate::engine::cpu::elementwise::at_least;

const COLUMNS: usize = 8;

pub(super) const KERNELS: Kernels = Kernels {
    name: "portable",
    columns: COLUMNS,
    rows: 4,
    strided: kernel_table!(false; 0 1 2 3 4),
    adjacent: kernel_table!(true; 0 1 2 3 4),
};

/// # Safety
/// As [`Kernel`](super::Kernel) says.
unsafe fn tile<const ROWS: usize, const ADJACENT: bool>(tile: &Tile<'_>) {
    // SAFETY: the caller vouches for the bounds of everything the tile describes.
    unsafe {
        let mut sums = [[0.0f32; COLUMNS]; ROWS];
        for (row, sum) in sums.iter_mut().enumerate() {
            let from = match tile.start {
                Start::Zero => break,
                Start::Bias(bias) => bias,
                Start::Present => tile.c.add(row * tile.c_stride).cast_const(),
            };
            std::ptr::copy_nonoverlapping(from, sum.as_mut_ptr(), tile.width);
        }
        let mut b = tile.b.cast::<[f32; COLUMNS]>();
        for &run in tile.runs {
            let mut a = tile.a.add(run);
            for _ in 0..tile.run_len {
                let step = b.read_unaligned();
                for (row, sum) in sums.iter_mut().enumerate() {
                    let value = *a.add(if ADJACENT { row } else { row * tile.a_stride });
                    for (sum, b) in sum.iter_mut().zip(&step) {
                        *sum += value * b;
                    }
                }
                a = a.add(if ADJACENT { tile.a_stride } else { 1 });
                b = b.add(1);
            }
        }
        for (row, sum) in sums.iter_mut().enumerate() {
            if tile.relu {
                sum.iter_mut().for_each(|value| *value = at_least(0.0, *value));
            }
            std::ptr::copy_nonoverlapping(sum.as_ptr(), tile.c.add(row * tile.c_stride), tile.width);
        }
    }
}
