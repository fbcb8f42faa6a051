//! The gradient of a convolution's weights: a product over all positions of all images.
//!
//! Row *f*, column *j* is the sum, over all positions, of the gradient of filter *f* times value *j* of the patch under
//! the kernel. The patches of a few images are packed one panel of columns at a time; the gradients are read in place.
//! Work is cut by columns and, if that reads less memory, by images; each part then has its own sum, and the sums are
//! added in a fixed order.

use std::ops::Range;

use crate::engine::ConvShape;
use crate::engine::cpu::kernel::{Kernels, Start, Tile};
use crate::engine::cpu::memory::Memory;
use crate::engine::cpu::threads::{CHUNK, Threads, Woven, even, with_scratch};
use crate::engine::cpu::wide::widest;
use crate::error::Result;

/// Target number of tasks.
const TASKS: usize = 16;
/// Floats of a packed panel and its gradients that stay in the L2 cache.
const PANEL_LEN: usize = 32 << 10;
const GRADIENT_LEN: usize = 128 << 10;

pub(super) fn gradient(
    threads: &Threads,
    kernels: &Kernels,
    shape: &ConvShape,
    x: &[f32],
    dy: &[f32],
    partial: &mut Memory,
    dw: &mut [f32],
) -> Result<()> {
    let panels = shape.groups * shape.filter_len().div_ceil(kernels.columns);
    let cut = Cut::best(shape, panels, dw.len());
    let sums = partial.room((cut.parts - 1) * dw.len())?;
    let (first, others) = (Woven::new(dw), Woven::new(sums));
    threads.each(cut.parts * cut.ranges, |task| {
        let (part, range) = (task / cut.ranges, task % cut.ranges);
        let images = part * shape.batch / cut.parts..(part + 1) * shape.batch / cut.parts;
        let out = if part == 0 { first.at(0) } else { others.at((part - 1) * dw.len()) };
        for panel in range * panels / cut.ranges..(range + 1) * panels / cut.ranges {
            // SAFETY: `out` has the size of the weights, and this task alone writes these columns of this part.
            unsafe { columns(kernels, shape, x, dy, panel, images.clone(), out) };
        }
    });
    let sums = &*sums;
    if sums.is_empty() {
        return Ok(());
    }
    let len = dw.len();
    threads.pieces(dw, CHUNK, |i, total| {
        for part in sums.chunks_exact(len) {
            let part = &part[i * CHUNK..][..total.len()];
            total.iter_mut().zip(part).for_each(|(total, value)| *total += value);
        }
    });
    Ok(())
}

/// Into how many parts of the batch and ranges of columns the work is cut.
#[derive(Debug, PartialEq)]
struct Cut {
    parts: usize,
    ranges: usize,
}

impl Cut {
    /// The cut that moves the least memory: each range reads all gradients; each part writes and re-reads its own sum.
    fn best(shape: &ConvShape, panels: usize, weight_len: usize) -> Self {
        let gradients = shape.batch * shape.output.len();
        let cuts = [1, 2, 4, 8, 16].into_iter().filter(|parts| *parts <= shape.batch);
        let cut = |parts: usize| Self { parts, ranges: (TASKS / parts).clamp(1, panels) };
        let enough = |cut: &Self| cut.parts * cut.ranges >= TASKS.min(shape.batch * panels);
        let cost = |cut: &Self| (!enough(cut), cut.ranges * gradients + 3 * (cut.parts - 1) * weight_len);
        cuts.map(cut).min_by_key(cost).expect("one part is always possible")
    }
}

/// One panel of columns, for the given images, of all filters of its group.
///
/// # Safety
/// `out` must have the size of the weights, and nothing else may access these columns meanwhile.
unsafe fn columns(
    kernels: &Kernels,
    shape: &ConvShape,
    x: &[f32],
    dy: &[f32],
    panel: usize,
    images: Range<usize>,
    out: *mut f32,
) {
    let per_group = shape.filter_len().div_ceil(kernels.columns);
    let (group, first) = (panel / per_group, panel % per_group * kernels.columns);
    let width = kernels.columns.min(shape.filter_len() - first);
    let (places, channels) = (shape.output.pixels(), shape.output.channels);
    let filters = channels / shape.groups;
    let together = (PANEL_LEN / (places * kernels.columns)).min(GRADIENT_LEN / (places * channels)).max(1);
    let pieces = pieces(shape, group, first, width);
    with_scratch(together.min(images.len()) * places * kernels.columns, |scratch| {
        for (from, n_images) in even(images.len(), together) {
            let image = images.start + from;
            let packed = &mut scratch[..n_images * places * kernels.columns];
            for (i, packed) in packed.chunks_exact_mut(places * kernels.columns).enumerate() {
                pack(
                    shape,
                    &x[(image + i) * shape.input.len()..][..shape.input.len()],
                    &pieces,
                    kernels.columns,
                    packed,
                );
            }
            for (filter, height) in even(filters, kernels.rows) {
                let filter = group * filters + filter;
                let tile = Tile {
                    a: dy[image * places * channels + filter..].as_ptr(),
                    a_stride: channels,
                    runs: &[0],
                    run_len: n_images * places,
                    b: packed.as_ptr(),
                    c: out.wrapping_add(filter * shape.filter_len() + first),
                    c_stride: shape.filter_len(),
                    width,
                    start: if from == 0 { Start::Zero } else { Start::Present },
                    relu: false,
                };
                // SAFETY: dy holds all places of these images, the panel as many rows; the caller vouches for the output.
                unsafe { kernels.adjacent[height](&tile) };
            }
        }
    });
}

/// A contiguous piece of a patch: kernel row, first float from the patch's left edge, and destination.
struct Piece {
    row: usize,
    from: usize,
    to: Range<usize>,
}

/// The pieces of a patch that make up `width` values of a filter, starting at `first`.
fn pieces(shape: &ConvShape, group: usize, first: usize, width: usize) -> Vec<Piece> {
    let pixel = shape.input.channels;
    let run_len = if shape.groups == 1 { shape.kernel * pixel } else { pixel / shape.groups };
    let mut pieces = Vec::new();
    let mut at = first;
    while at < first + width {
        let (run, within) = (at / run_len, at % run_len);
        let len = (run_len - within).min(first + width - at);
        let (row, column) = if shape.groups == 1 { (run, 0) } else { (run / shape.kernel, run % shape.kernel) };
        let from = column * pixel + group * (pixel / shape.groups) + within;
        pieces.push(Piece { row, from, to: at - first..at - first + len });
        at += len;
    }
    pieces
}

widest! {
    /// Packs the pieces of every patch of an image: one row of `columns` values per position.
    fn pack(shape: &ConvShape, image: &[f32], pieces: &[Piece], columns: usize, packed: &mut [f32]) {
        let line = shape.input.width * shape.input.channels;
        let width = pieces.last().map_or(0, |piece| piece.to.end);
        for (place, out) in packed.chunks_exact_mut(columns).enumerate() {
            let (y, x) = (place / shape.output.width, place % shape.output.width);
            let left = (x * shape.stride) as isize - shape.padding as isize;
            let left = left * shape.input.channels as isize;
            for piece in pieces {
                let out = &mut out[piece.to.clone()];
                let row = (y * shape.stride + piece.row).wrapping_sub(shape.padding);
                if row >= shape.input.height {
                    out.fill(0.0);
                } else {
                    copy_clipped(&image[row * line..][..line], left + piece.from as isize, out);
                }
            }
            out[width..].fill(0.0);
        }
    }
}

/// Copies the values from `start`; values beyond the ends of the row are 0.
#[inline(always)]
fn copy_clipped(row: &[f32], start: isize, out: &mut [f32]) {
    let end = start + out.len() as isize;
    if start >= 0 && end <= row.len() as isize {
        let from = &row[start as usize..end as usize];
        match (<&mut [f32; 32]>::try_from(&mut *out), <&[f32; 32]>::try_from(from)) {
            (Ok(out), Ok(from)) => *out = *from,
            _ => out.copy_from_slice(from),
        }
        return;
    }
    for (i, out) in out.iter_mut().enumerate() {
        *out = usize::try_from(start + i as isize).ok().and_then(|at| row.get(at)).copied().unwrap_or(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn the_cut_follows_what_is_larger_and_gives_every_task_work() {
        let shape = |batch, side, filters| ConvShape {
            batch,
            input: Shape::new(side, side, 64),
            output: Shape::new(side, side, filters),
            kernel: 3,
            stride: 1,
            padding: 1,
            groups: 1,
        };
        assert_eq!(Cut::best(&shape(64, 56, 64), 18, 36_864), Cut { parts: 16, ranges: 1 });
        assert_eq!(Cut::best(&shape(64, 13, 256), 108, 884_736), Cut { parts: 4, ranges: 4 });
        assert_eq!(Cut::best(&shape(1, 13, 256), 108, 884_736), Cut { parts: 1, ranges: 16 });
        assert_eq!(Cut::best(&shape(4, 13, 32), 2, 1000), Cut { parts: 4, ranges: 2 });
    }
}
