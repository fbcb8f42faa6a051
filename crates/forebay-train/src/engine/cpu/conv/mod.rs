//! Convolutions, without im2col.
//!
//! Forward and the gradient of the input are *sweeps*: a kernel slides over a framed (zero-padded) image and each place is
//! a row of a matrix product whose factor is read from the image where it is. The gradient of the input slides the
//! turned-round kernel over the gradient of the output; with stride *s* it falls into *s*² sweeps of stride 1, one for each
//! remainder of the place. The gradient of the weights is a product over all places (`weights.rs`).

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

/// Tasks that a sweep is cut into at least, where the batch is small.
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

/// One direction: what is framed, how the kernel slides, how large images are on both sides.
struct Motion {
    frame: Frame,
    sweeps: Vec<Sweep>,
    from_len: usize,
    to_len: usize,
    /// Whether some places of the output are under no sweep.
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
        Self { shape, kernels, forward, backward, packed: Memory::zeroed(0), partial: Memory::zeroed(0) }
    }

    pub(super) fn forward(
        &mut self,
        threads: &Threads,
        x: &[f32],
        weight: &[f32],
        bias: Option<&[f32]>,
        relu: bool,
        y: &mut [f32],
    ) {
        pack::forward(threads, &self.kernels, &self.shape, &self.forward.sweeps[0], weight, &mut self.packed);
        slide(
            threads,
            &self.kernels,
            &self.forward,
            &self.packed,
            (bias, relu),
            x,
            &mut y[..self.shape.batch * self.forward.to_len],
        );
    }

    pub(super) fn backward_data(&mut self, threads: &Threads, dy: &[f32], weight: &[f32], dx: &mut [f32]) {
        pack::backward(threads, &self.kernels, &self.shape, &self.backward.sweeps, weight, &mut self.packed);
        let dx = &mut dx[..self.shape.batch * self.backward.to_len];
        if self.backward.has_gaps {
            threads.pieces(dx, self.backward.to_len, |_, image| image.fill(0.0));
        }
        slide(threads, &self.kernels, &self.backward, &self.packed, (None, false), dy, dx);
    }

    pub(super) fn backward_weights(&mut self, threads: &Threads, x: &[f32], dy: &[f32], dw: &mut [f32]) {
        weights::gradient(threads, &self.kernels, &self.shape, x, dy, &mut self.partial, dw);
    }
}

/// Frames each image and sweeps over it. Small batches are cut by output channels too.
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
