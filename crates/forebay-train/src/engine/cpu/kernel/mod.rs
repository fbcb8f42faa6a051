//! The inner loop of convolutions and matrix products: a small tile of the result, held in registers.
//!
//! A tile of `rows` × `columns` of C is the sum over *k* of a column of A times a row of B. B is packed in panels of
//! `columns` values per step; A is read in place, one value per row, and broadcast to a register. Activations are NHWC,
//! so the patch under a convolution's kernel is a few contiguous *runs* of the padded image, at the same distances for
//! every row of the tile. A convolution therefore needs no im2col: it is this loop with the offsets of the runs.
//!
//! Each result is one chain of multiply-adds in the order of *k*, in any tile, so the split into tiles never changes a
//! bit.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    Zero,
    /// A vector of one value per column, valid for the tile's width.
    Bias(*const f32),
    /// The current values of C: a second pass over *k* adds to the first.
    Present,
}

/// One tile to compute. Strides and offsets are in floats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<'a> {
    pub(super) a: *const f32,
    /// The stride along the non-contiguous direction: rows in strided kernels, steps in adjacent ones.
    pub(super) a_stride: usize,
    /// Where each run of A starts, from `a`.
    pub(super) runs: &'a [usize],
    pub(super) run_len: usize,
    /// The packed panel of B: `runs.len() * run_len` rows of `columns` values.
    pub(super) b: *const f32,
    pub(super) c: *mut f32,
    /// From one row of C to the next.
    pub(super) c_stride: usize,
    /// Columns of C that exist, at most `columns`.
    pub(super) width: usize,
    pub(super) start: Start,
    /// Whether negative results become 0; NaN stays NaN.
    pub(super) relu: bool,
}

/// Computes a tile.
///
/// # Safety
/// Everything the tile describes must be in bounds, C not aliased, and the processor must have the kernel's instructions.
pub(super) type Kernel = unsafe fn(&Tile<'_>);

/// The kernels of one instruction set; entry *r* of a table is for *r* rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels {
    pub(super) name: &'static str,
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// For A with contiguous steps.
    pub(super) strided: &'static [Kernel],
    /// For A with contiguous rows.
    pub(super) adjacent: &'static [Kernel],
}

impl Kernels {
    /// The fastest kernels this processor can run.
    pub(super) fn best() -> Self {
        Self::all().swap_remove(0)
    }

    /// All kernels this processor can run, fastest first.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                all.push(avx512::KERNELS);
            }
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                all.push(avx2::KERNELS);
            }
        }
        all.push(portable::KERNELS);
        all
    }
}

/// Instantiates `tile::<ROWS, ADJACENT>` for every number of rows; entry 0 is never called.
macro_rules! kernel_table {
    ($adjacent:literal; $($rows:literal)*) => { &[$(tile::<$rows, $adjacent>),*] };
}
use kernel_table;

#[cfg(test)]
mod tests {
    use super::*;

    /// The tile's sums, one value at a time.
    fn plain(kernels: &Kernels, tile: &Tile<'_>, rows: usize, adjacent: bool, before: &[f32]) -> Vec<f64> {
        let mut out = vec![0.0; rows * tile.width];
        for r in 0..rows {
            for j in 0..tile.width {
                let mut sum = f64::from(before[r * tile.c_stride + j]);
                for (i, run) in tile.runs.iter().enumerate() {
                    for k in 0..tile.run_len {
                        let at = if adjacent { k * tile.a_stride + r } else { r * tile.a_stride + k };
                        // SAFETY: the test's buffers hold what the tile describes.
                        let (a, b) = unsafe {
                            (*tile.a.add(run + at), *tile.b.add((i * tile.run_len + k) * kernels.columns + j))
                        };
                        sum += f64::from(a) * f64::from(b);
                    }
                }
                out[r * tile.width + j] = sum.max(if tile.relu { 0.0 } else { f64::NEG_INFINITY });
            }
        }
        out
    }

    #[test]
    fn every_kernel_computes_every_height_and_width() {
        let a: Vec<f32> = (0..4000).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
        let b: Vec<f32> = (0..4000).map(|i| ((i * 53 % 97) as f32 - 48.0) / 48.0).collect();
        for kernels in Kernels::all() {
            for rows in 1..=kernels.rows {
                for (adjacent, width) in [(false, kernels.columns), (true, kernels.columns), (false, 5), (true, 1)] {
                    let mut c: Vec<f32> = (0..rows * 40).map(|i| i as f32 / 100.0).collect();
                    let before = c.clone();
                    let tile = Tile {
                        a: a.as_ptr(),
                        a_stride: 20,
                        runs: &[0, 300, 310],
                        run_len: 7,
                        b: b.as_ptr(),
                        c: c.as_mut_ptr(),
                        c_stride: 40,
                        width,
                        start: Start::Present,
                        relu: rows % 2 == 0,
                    };
                    let table = if adjacent { kernels.adjacent } else { kernels.strided };
                    // SAFETY: the buffers are large enough, and `all` lists only what the processor has.
                    unsafe { table[rows](&tile) };
                    let want = plain(&kernels, &tile, rows, adjacent, &before);
                    for (i, want) in want.iter().enumerate() {
                        let got = c[i / width * 40 + i % width];
                        assert!((f64::from(got) - want).abs() < 1e-5, "{} {rows} {width}: {got} {want}", kernels.name);
                    }
                    let untouched = (0..rows * 40).filter(|i| i % 40 >= width).all(|i| c[i] == before[i]);
                    assert!(untouched, "{} wrote beyond its width", kernels.name);
                }
            }
        }
    }
}
