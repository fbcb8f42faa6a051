//! Convolutions, without im2col.
//!
//! Forward and the gradient of the input are *sweeps*: a kernel slides over a framed (zero-padded) image, and each
//! position is a row of a matrix product whose factor is read directly from the image. The gradient of the input slides
//! the flipped kernel over the gradient of the output; stride *s* splits it into *s*² sweeps of stride 1, one per
//! remainder of the position. The gradient of the weights is a product over all positions (`weights.rs`).

mod frame;
mod pack;
mod sweep;
mod weights;

use frame::Frame;
use sweep::{Sweep, backward_sweeps, forward_sweep};

use super::kernel::Kernels;
use super::memory::Memory;
use super::threads::{Threads, Woven, with_scratch};
use crate::engine::ConvShape;
use crate::error::Result;

/// Minimum number of tasks that a sweep is cut into for small batches.
const MIN_TASKS: usize = 16;

/// A planned convolution with its scratch memory.
pub struct Conv {
    shape: ConvShape,
    kernels: Kernels,
    forward: Motion,
    backward: Motion,
    packed: Memory,
    partial: Memory,
}

/// One direction: what is framed, how the kernel slides, and the image sizes on both sides.
struct Motion {
    frame: Frame,
    sweeps: Vec<Sweep>,
    from_len: usize,
    to_len: usize,
    /// Whether some output positions are covered by no sweep.
    has_gaps: bool,
}

impl Conv {
    pub(super) fn new(shape: ConvShape, kernels: Kernels) -> Self {
        let (input, output) = (shape.input, shape.output);
        let (frame, sweep) = forward_sweep(&shape, &kernels);
        let forward =
            Motion { frame, sweeps: vec![sweep], from_len: input.len(), to_len: output.len(), has_gaps: false };
        let (frame, sweeps) = backward_sweeps(&shape, &kernels);
        let has_gaps = shape.stride > shape.kernel;
        let backward = Motion { frame, sweeps, from_len: output.len(), to_len: input.len(), has_gaps };
        Self { shape, kernels, forward, backward, packed: Memory::empty(), partial: Memory::empty() }
    }

    pub(super) fn forward(
        &mut self,
        threads: &Threads,
        x: &[f32],
        weight: &[f32],
        bias: Option<&[f32]>,
        relu: bool,
        y: &mut [f32],
    ) -> Result<()> {
        pack::forward(threads, &self.kernels, &self.shape, &self.forward.sweeps[0], weight, &mut self.packed)?;
        slide(
            threads,
            &self.kernels,
            &self.forward,
            &self.packed,
            (bias, relu),
            x,
            &mut y[..self.shape.batch * self.forward.to_len],
        );
        Ok(())
    }

    pub(super) fn backward_data(
        &mut self,
        threads: &Threads,
        dy: &[f32],
        weight: &[f32],
        dx: &mut [f32],
    ) -> Result<()> {
        pack::backward(threads, &self.kernels, &self.shape, &self.backward.sweeps, weight, &mut self.packed)?;
        let dx = &mut dx[..self.shape.batch * self.backward.to_len];
        if self.backward.has_gaps {
            threads.pieces(dx, self.backward.to_len, |_, image| image.fill(0.0));
        }
        slide(threads, &self.kernels, &self.backward, &self.packed, (None, false), dy, dx);
        Ok(())
    }

    pub(super) fn backward_weights(&mut self, threads: &Threads, x: &[f32], dy: &[f32], dw: &mut [f32]) -> Result<()> {
        weights::gradient(threads, &self.kernels, &self.shape, x, dy, &mut self.partial, dw)
    }
}

/// Frames each image and sweeps over it. Small batches are also cut by output channels.
fn slide(
    threads: &Threads,
    kernels: &Kernels,
    motion: &Motion,
    packed: &[f32],
    finish: (Option<&[f32]>, bool),
    from: &[f32],
    to: &mut [f32],
) {
    let batch = to.len() / motion.to_len;
    let n_panels = motion.sweeps.iter().map(Sweep::n_panels).max().unwrap_or(1);
    let cuts = MIN_TASKS.div_ceil(batch).clamp(1, n_panels);
    let out = Woven::new(to);
    threads.each(batch * cuts, |task| {
        let (image, cut) = (task / cuts, task % cuts);
        let from = &from[image * motion.from_len..][..motion.from_len];
        let to = out.at(image * motion.to_len);
        let panels = cut * n_panels / cuts..(cut + 1) * n_panels / cuts;
        with_scratch(motion.frame.scratch_len(), |scratch| {
            let framed = motion.frame.fill(from, scratch);
            for sweep in &motion.sweeps {
                // SAFETY: `to` is this image of the output, and this task alone writes these panels of it.
                unsafe { sweep.run(kernels, framed, packed, panels.clone(), finish, to) };
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::random;
    use crate::shape::Shape;

    fn numbers(n: usize, step: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * step % 101) as f32 - 50.0) / 50.0).collect()
    }

    /// Output, gradient of the input and gradient of the weights, computed from their definitions.
    fn plain(shape: &ConvShape, x: &[f32], w: &[f32], dy: &[f32]) -> [Vec<f64>; 3] {
        let (input, output) = (shape.input, shape.output);
        let (per_group, filters) = (input.channels / shape.groups, output.channels / shape.groups);
        let mut out = [vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; w.len()]];
        for (i, dy) in dy.iter().enumerate() {
            let (filter, place) = (i % output.channels, i / output.channels);
            let (column, row, image) =
                (place % output.width, place / output.width % output.height, place / output.pixels());
            for tap in 0..shape.filter_len() {
                let (channel, kx, ky) =
                    (tap % per_group, tap / per_group % shape.kernel, tap / per_group / shape.kernel);
                let y = (row * shape.stride + ky).wrapping_sub(shape.padding);
                let x_at = (column * shape.stride + kx).wrapping_sub(shape.padding);
                if y >= input.height || x_at >= input.width {
                    continue;
                }
                let channel = filter / filters * per_group + channel;
                let from = ((image * input.height + y) * input.width + x_at) * input.channels + channel;
                let weight = filter * shape.filter_len() + tap;
                out[0][i] += f64::from(x[from]) * f64::from(w[weight]);
                out[1][from] += f64::from(*dy) * f64::from(w[weight]);
                out[2][weight] += f64::from(*dy) * f64::from(x[from]);
            }
        }
        out
    }

    fn case(
        batch: usize,
        (height, width, channels): (usize, usize, usize),
        filters: usize,
        cut: [usize; 4],
    ) -> ConvShape {
        let [kernel, stride, padding, groups] = cut;
        let along = |len: usize| (len + 2 * padding - kernel) / stride + 1;
        let (input, output) = (Shape::new(height, width, channels), Shape::new(along(height), along(width), filters));
        ConvShape { batch, input, output, kernel, stride, padding, groups }
    }

    fn check(kernels: Kernels, threads: &Threads, shape: ConvShape) {
        let x = numbers(shape.batch * shape.input.len(), 37);
        let w = numbers(shape.output.channels * shape.filter_len(), 53);
        let dy = numbers(shape.batch * shape.output.len(), 29);
        let mut got = [vec![f32::NAN; dy.len()], vec![f32::NAN; x.len()], vec![f32::NAN; w.len()]];
        let mut conv = Conv::new(shape, kernels);
        conv.forward(threads, &x, &w, None, false, &mut got[0]).unwrap();
        conv.backward_data(threads, &dy, &w, &mut got[1]).unwrap();
        conv.backward_weights(threads, &x, &dy, &mut got[2]).unwrap();
        for (which, (got, want)) in got.iter().zip(plain(&shape, &x, &w, &dy)).enumerate() {
            for (i, (got, want)) in got.iter().zip(want).enumerate() {
                let near = (f64::from(*got) - want).abs() < 1e-3;
                assert!(near, "{} {shape:?} {which} {i}: {got} {want}", kernels.name);
            }
        }
    }

    #[test]
    fn every_kernel_convolves_in_every_shape() {
        let threads = Threads::new(2).unwrap();
        let cases = [
            case(3, (9, 17, 5), 40, [3, 1, 1, 1]),
            case(3, (11, 8, 6), 4, [5, 3, 2, 2]),
            case(3, (7, 7, 3), 2, [2, 3, 0, 1]),
            case(3, (6, 5, 512), 3, [1, 2, 0, 1]),
            case(3, (20, 18, 1), 33, [11, 4, 2, 1]),
        ];
        for (kernels, shape) in Kernels::all().into_iter().flat_map(|kernels| cases.map(|shape| (kernels, shape))) {
            check(kernels, &threads, shape);
        }
    }

    #[test]
    fn shapes_that_nobody_thought_of_convolve_too() {
        let threads = Threads::new(2).unwrap();
        let mut rng = random(7, 0);
        let mut below = |n: usize| (rng.unit() * n as f64) as usize;
        for _ in 0..200 {
            let groups = 1 + below(3);
            let (channels, filters) = (groups * (1 + below(8)), groups * (1 + below(40)));
            let (kernel, stride, padding) = (1 + below(5), 1 + below(6), below(7));
            let mut side = || (1 + below(12)).max(kernel.saturating_sub(2 * padding));
            let size = (side(), side(), channels);
            let shape = case(1 + below(4), size, filters, [kernel, stride, padding, groups]);
            Kernels::all().into_iter().for_each(|kernels| check(kernels, &threads, shape));
        }
    }
}
