//! A kernel that slides over framed images.

use std::ops::Range;

use super::frame::Frame;
use crate::engine::ConvShape;
use crate::engine::cpu::kernel::{Kernels, Start, Tile};
use crate::engine::cpu::threads::even;

/// Output positions on a grid, and the kernel's position in the frame for each. Distances are in floats.
#[derive(Debug)]
pub(super) struct Sweep {
    rows: usize,
    columns: usize,
    from: Grid,
    to: Grid,
    /// Contiguous pieces of the frame under the kernel.
    runs: Vec<usize>,
    run_len: usize,
    groups: usize,
    /// Channels of the input and of the output in a group.
    group_in: usize,
    pub(super) group_out: usize,
    /// Panels of packed weights per group.
    panels: usize,
    pub(super) packed_at: usize,
    /// Rows and columns of the weights' kernel that take part, in the order of the runs (backward sweeps).
    pub(super) taps: (Vec<usize>, Vec<usize>),
}

/// The first position, and the distances to the next row and column.
#[derive(Debug, Clone, Copy)]
struct Grid {
    start: usize,
    row: usize,
    column: usize,
}

impl Sweep {
    pub(super) fn steps(&self) -> usize {
        self.runs.len() * self.run_len
    }

    pub(super) fn n_panels(&self) -> usize {
        self.groups * self.panels
    }

    pub(super) fn packed_len(&self, kernels: &Kernels) -> usize {
        self.n_panels() * self.steps() * kernels.columns
    }

    /// The group of a panel, its first channel within the group, and its number of channels.
    pub(super) fn panel(&self, kernels: &Kernels, panel: usize) -> (usize, usize, usize) {
        let first = panel % self.panels * kernels.columns;
        (panel / self.panels, first, kernels.columns.min(self.group_out - first))
    }

    /// Computes the output channels of `panels` at every position.
    ///
    /// # Safety
    /// `to` must be an image of the output, and nothing else may access these channels meanwhile.
    pub(super) unsafe fn run(
        &self,
        kernels: &Kernels,
        frame: &[f32],
        packed: &[f32],
        panels: Range<usize>,
        (bias, relu): (Option<&[f32]>, bool),
        to: *mut f32,
    ) {
        for panel in panels {
            let (group, first, width) = self.panel(kernels, panel);
            let channel = group * self.group_out + first;
            let b = packed[self.packed_at + panel * self.steps() * kernels.columns..].as_ptr();
            let start = bias.map_or(Start::Zero, |bias| Start::Bias(bias[channel..channel + width].as_ptr()));
            for row in 0..self.rows {
                for (column, height) in even(self.columns, kernels.rows) {
                    let a = self.from.start + row * self.from.row + column * self.from.column + group * self.group_in;
                    let tile = Tile {
                        a: frame[a..].as_ptr(),
                        a_stride: self.from.column,
                        runs: &self.runs,
                        run_len: self.run_len,
                        b,
                        c: to.wrapping_add(self.to.start + row * self.to.row + column * self.to.column + channel),
                        c_stride: self.to.column,
                        width,
                        start,
                        relu,
                    };
                    // SAFETY: the frame was made so that the kernel lies within it at every place, the weights are packed
                    // for this sweep, and the caller vouches for the output.
                    unsafe { kernels.strided[height](&tile) };
                }
            }
        }
    }
}

/// The path of the kernel over the padded input.
pub(super) fn forward_sweep(shape: &ConvShape, kernels: &Kernels) -> (Frame, Sweep) {
    let (input, output, pad) = (shape.input, shape.output, shape.padding);
    let size = (input.height + 2 * pad, input.width + 2 * pad);
    let frame = Frame::new(input, (pad, pad), size, shape.kernel == 1);
    // A 1 × 1 kernel does not depend on rows, so the image is treated as one long row.
    let flat = shape.kernel == 1 && shape.stride == 1 && pad == 0;
    let (rows, columns) = if flat { (1, output.pixels()) } else { (output.height, output.width) };
    let group_out = output.channels / shape.groups;
    let taps: Vec<usize> = (0..shape.kernel).collect();
    let (runs, run_len) = runs(&frame, shape.groups, input.channels, (shape.kernel, shape.kernel));
    let sweep = Sweep {
        rows,
        columns,
        from: Grid { start: 0, row: shape.stride * frame.row(), column: shape.stride * frame.pixel },
        to: Grid { start: 0, row: output.width * output.channels, column: output.channels },
        runs,
        run_len,
        groups: shape.groups,
        group_in: input.channels / shape.groups,
        group_out,
        panels: group_out.div_ceil(kernels.columns),
        packed_at: 0,
        taps: (taps.clone(), taps),
    };
    (frame, sweep)
}

/// The paths of the flipped kernel over the gradient of the output, one per remainder of row and column.
pub(super) fn backward_sweeps(shape: &ConvShape, kernels: &Kernels) -> (Frame, Vec<Sweep>) {
    let (input, output) = (shape.input, shape.output);
    let across = Axis::all(shape, input.width);
    let down = Axis::all(shape, input.height);
    let margin =
        |axes: &[Axis]| axes.iter().map(|axis| (axis.taps.len() - 1).saturating_sub(axis.last)).max().unwrap_or(0);
    let extent = |axes: &[Axis]| axes.iter().map(|axis| axis.last + axis.places).max().unwrap_or(0);
    let (top, left) = (margin(&down), margin(&across));
    let size = (top + extent(&down).max(output.height), left + extent(&across).max(output.width));
    let frame = Frame::new(output, (top, left), size, shape.kernel == 1);
    let group_out = input.channels / shape.groups;
    let mut packed_at = 0;
    let mut sweeps = Vec::new();
    for (y, x) in down.iter().flat_map(|y| across.iter().map(move |x| (y, x))) {
        let start = (y.last + top + 1 - y.taps.len()) * frame.row() + (x.last + left + 1 - x.taps.len()) * frame.pixel;
        let (runs, run_len) = runs(&frame, shape.groups, output.channels, (y.taps.len(), x.taps.len()));
        let pixel = input.channels;
        let sweep = Sweep {
            rows: y.places,
            columns: x.places,
            from: Grid { start, row: frame.row(), column: frame.pixel },
            to: Grid {
                start: (y.first * input.width + x.first) * pixel,
                row: shape.stride * input.width * pixel,
                column: shape.stride * pixel,
            },
            runs,
            run_len,
            groups: shape.groups,
            group_in: output.channels / shape.groups,
            group_out,
            panels: group_out.div_ceil(kernels.columns),
            packed_at,
            taps: (y.taps.clone(), x.taps.clone()),
        };
        packed_at += sweep.packed_len(kernels);
        sweeps.push(sweep);
    }
    (frame, sweeps)
}

/// The input positions along one axis that share a remainder, and the kernel taps that reach them.
struct Axis {
    /// The first position and their number; the distance between them is the stride.
    first: usize,
    places: usize,
    /// Taps of the kernel that reach them, starting with the one farthest back in the output.
    taps: Vec<usize>,
    /// For the first position, the output position under the last of these taps.
    last: usize,
}

impl Axis {
    fn all(shape: &ConvShape, len: usize) -> Vec<Self> {
        (0..shape.stride.min(len)).filter_map(|first| Self::new(shape, len, first)).collect()
    }

    fn new(shape: &ConvShape, len: usize, first: usize) -> Option<Self> {
        let remainder = (first + shape.padding) % shape.stride;
        let taps: Vec<usize> = (remainder..shape.kernel).step_by(shape.stride).rev().collect();
        let last = (first + shape.padding) / shape.stride;
        (!taps.is_empty()).then(|| Self { first, places: (len - first).div_ceil(shape.stride), taps, last })
    }
}

/// The contiguous pieces under a kernel of `height` × `width`: whole rows, or single pixels if a group has only some of
/// the channels.
fn runs(frame: &Frame, groups: usize, channels: usize, (height, width): (usize, usize)) -> (Vec<usize>, usize) {
    if groups == 1 {
        return ((0..height).map(|y| y * frame.row()).collect(), width * channels);
    }
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
    (pixels.map(|(y, x)| y * frame.row() + x * frame.pixel).collect(), channels / groups)
}
