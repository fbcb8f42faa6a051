//! Matrix products for linear layers: C = A · B, cut by columns of C.
//!
//! A has few rows or few columns here (the batch), so it is packed once. Each task packs the part of B for its columns,
//! one block of *k* at a time to stay in the L2 cache, and sweeps all rows over it.

use super::kernel::{Kernels, Start, Tile};
use super::memory::Memory;
use super::threads::{Threads, Woven, even, with_scratch};
use crate::error::Result;

/// Columns of C per task: a multiple of every kernel's width.
const TASK_COLUMNS: usize = 128;
/// Steps of *k* for which B is packed at a time.
const BLOCK: usize = 256;

/// A matrix in memory, with the strides of its rows and columns; one of them is 1.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) values: &'a [f32],
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

impl<'a> View<'a> {
    /// A matrix of rows of `len` values.
    pub(super) fn rows(values: &'a [f32], len: usize) -> Self {
        Self { values, row_stride: len, column_stride: 1 }
    }

    /// The transpose of a matrix of rows of `len` values.
    pub(super) fn columns(values: &'a [f32], len: usize) -> Self {
        Self { values, row_stride: 1, column_stride: len }
    }
}

/// What is applied to C while it is still in registers.
#[derive(Clone, Copy)]
pub(super) struct Finish<'a> {
    pub(super) bias: Option<&'a [f32]>,
    pub(super) relu: bool,
}

impl Finish<'_> {
    pub(super) const PLAIN: Self = Self { bias: None, relu: false };
}

/// Rows, columns and steps of a product.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) steps: usize,
}

/// C = A · B + bias, C being contiguous.
#[expect(clippy::too_many_arguments, reason = "a product has three matrices and their sizes")]
pub(super) fn product(
    threads: &Threads,
    kernels: &Kernels,
    size: Size,
    a: View<'_>,
    b: View<'_>,
    finish: Finish<'_>,
    packed: &mut Memory,
    c: &mut [f32],
) -> Result<()> {
    let packed = packed.room(size.rows * size.steps)?;
    pack_a(threads, kernels, size, a, packed);
    let (packed, out) = (&*packed, Woven::new(&mut c[..size.rows * size.columns]));
    threads.each(size.columns.div_ceil(TASK_COLUMNS), |task| {
        let first = task * TASK_COLUMNS;
        let columns = first..(first + TASK_COLUMNS).min(size.columns);
        with_scratch(BLOCK * TASK_COLUMNS, |block| {
            for (k, len) in even(size.steps, BLOCK) {
                for (i, column) in columns.clone().step_by(kernels.columns).enumerate() {
                    let panel = &mut block[i * BLOCK * kernels.columns..][..len * kernels.columns];
                    let width = kernels.columns.min(size.columns - column);
                    pack_b(b, k, column, width, kernels.columns, panel);
                }
                let steps = Steps { first: k, len, last: k + len == size.steps };
                multiply(kernels, size, packed, block, columns.clone(), steps, finish, out);
            }
        });
    });
    Ok(())
}

#[derive(Clone, Copy)]
struct Steps {
    first: usize,
    len: usize,
    last: bool,
}

/// One task's columns for one block of steps.
#[expect(clippy::too_many_arguments, reason = "a product has three matrices and their sizes")]
fn multiply(
    kernels: &Kernels,
    size: Size,
    packed: &[f32],
    block: &[f32],
    columns: std::ops::Range<usize>,
    steps: Steps,
    finish: Finish<'_>,
    out: Woven,
) {
    for (row, height) in even(size.rows, kernels.rows) {
        for (i, column) in columns.clone().step_by(kernels.columns).enumerate() {
            let start = match (steps.first, finish.bias) {
                (0, Some(bias)) => Start::Bias(bias[column..].as_ptr()),
                (0, None) => Start::Zero,
                _ => Start::Present,
            };
            let tile = Tile {
                a: packed[row * size.steps + steps.first * height..].as_ptr(),
                a_stride: height,
                runs: &[0],
                run_len: steps.len,
                b: block[i * BLOCK * kernels.columns..].as_ptr(),
                c: out.at(row * size.columns + column),
                c_stride: size.columns,
                width: kernels.columns.min(size.columns - column),
                start,
                relu: finish.relu && steps.last,
            };
            // SAFETY: A's tile holds `steps` values of `height` rows, B's panel `len` rows; C's rows and columns exist and
            // belong to this task alone; the engine picked kernels that the processor has.
            unsafe { kernels.adjacent[height](&tile) };
        }
    }
}

/// A in tiles: for each tile all steps, for each step the tile's rows side by side.
fn pack_a(threads: &Threads, kernels: &Kernels, size: Size, a: View<'_>, packed: &mut [f32]) {
    let tiles: Vec<(usize, usize)> = even(size.rows, kernels.rows).collect();
    let out = Woven::new(packed);
    threads.each(tiles.len(), |i| {
        let (first, height) = tiles[i];
        // SAFETY: tile `i` owns the values from its first row on, `height` rows of `steps`.
        let tile = unsafe { std::slice::from_raw_parts_mut(out.at(first * size.steps), height * size.steps) };
        for row in 0..height {
            let from = (first + row) * a.row_stride;
            for step in 0..size.steps {
                tile[step * height + row] = a.values[from + step * a.column_stride];
            }
        }
    });
}

/// A panel of B: rows `first..` of `width` columns, padded with zeros.
pub(super) fn pack_b(b: View<'_>, first: usize, column: usize, width: usize, columns: usize, panel: &mut [f32]) {
    if b.column_stride == 1 {
        for (k, row) in panel.chunks_exact_mut(columns).enumerate() {
            row[..width].copy_from_slice(&b.values[(first + k) * b.row_stride + column..][..width]);
            row[width..].fill(0.0);
        }
        return;
    }
    if width < columns {
        panel.fill(0.0);
    }
    let steps = panel.len() / columns;
    let row = |j: usize| &b.values[(column + j) * b.column_stride + first..][..steps];
    let whole = width / 4 * 4;
    for j in (0..whole).step_by(4) {
        transpose_four([row(j), row(j + 1), row(j + 2), row(j + 3)], columns, &mut panel[j..]);
    }
    for j in whole..width {
        for (k, value) in row(j).iter().enumerate() {
            panel[k * columns + j] = *value;
        }
    }
}

/// Four rows become four columns, by blocks of 4 × 4 that stay in registers.
fn transpose_four(rows: [&[f32]; 4], columns: usize, out: &mut [f32]) {
    let steps = rows[0].len();
    for k in (0..steps / 4 * 4).step_by(4) {
        let [a, b, c, d]: [[f32; 4]; 4] = rows.map(|row| row[k..k + 4].try_into().expect("four values"));
        for i in 0..4 {
            out[(k + i) * columns..][..4].copy_from_slice(&[a[i], b[i], c[i], d[i]]);
        }
    }
    for k in steps / 4 * 4..steps {
        out[k * columns..][..4].copy_from_slice(&rows.map(|row| row[k]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_all_orientations_are_right() {
        let threads = Threads::new(2).unwrap();
        let size = Size { rows: 17, columns: 150, steps: 300 };
        let a: Vec<f32> = (0..17 * 300).map(|i| ((i * 7 % 13) as f32 - 6.0) / 6.0).collect();
        let b: Vec<f32> = (0..150 * 300).map(|i| ((i * 11 % 17) as f32 - 8.0) / 8.0).collect();
        let bias: Vec<f32> = (0..150).map(|i| i as f32 / 100.0).collect();
        for kernels in Kernels::all() {
            for (at, bt) in [(false, false), (false, true), (true, false), (true, true)] {
                let a_view = if at { View::columns(&a, 17) } else { View::rows(&a, 300) };
                let b_view = if bt { View::columns(&b, 300) } else { View::rows(&b, 150) };
                let mut c = vec![0.0; 17 * 150];
                let finish = Finish { bias: Some(&bias), relu: false };
                product(&threads, &kernels, size, a_view, b_view, finish, &mut Memory::empty(), &mut c).unwrap();
                for (i, got) in c.iter().enumerate() {
                    let (row, column) = (i / 150, i % 150);
                    let term = |k: usize| {
                        f64::from(a_view.values[row * a_view.row_stride + k * a_view.column_stride])
                            * f64::from(b_view.values[k * b_view.row_stride + column * b_view.column_stride])
                    };
                    let want = f64::from(bias[column]) + (0..300).map(term).sum::<f64>();
                    assert!((f64::from(*got) - want).abs() < 1e-4, "{} {at} {bt} {i}: {got} {want}", kernels.name);
                }
            }
        }
    }
}
