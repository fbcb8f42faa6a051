//! Max and average pooling, a task an image.

use rayon::prelude::*;

use super::threads::Threads;
use crate::engine::PoolShape;
use crate::error::Result;
use crate::room::filled;
use crate::shape::Shape;

/// A planned max pool with the winners of the last forward pass.
pub struct MaxPool {
    shape: PoolShape,
    /// For each output, which place of its window won, counted along rows.
    winners: Vec<u16>,
}

impl MaxPool {
    pub(super) fn new(shape: PoolShape) -> Result<Self> {
        Ok(Self { shape, winners: filled(shape.batch * shape.output.len(), 0)? })
    }

    pub(super) fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let shape = self.shape;
        let (from, to) = (shape.input.len(), shape.output.len());
        threads.run(|| {
            let images =
                y[..shape.batch * to].par_chunks_mut(to).zip(self.winners.par_chunks_mut(to)).zip(x.par_chunks(from));
            images.for_each(|((y, winners), x)| {
                let mut best = vec![0u32; shape.output.channels];
                for place in 0..shape.output.pixels() {
                    let at = place * shape.output.channels..(place + 1) * shape.output.channels;
                    window_max(&shape, x, place, &mut y[at.clone()], &mut best);
                    winners[at].iter_mut().zip(&best).for_each(|(winner, best)| *winner = *best as u16);
                }
            });
        });
    }

    pub(super) fn backward(&self, threads: &Threads, dy: &[f32], dx: &mut [f32]) {
        let shape = self.shape;
        let (from, to) = (shape.input.len(), shape.output.len());
        threads.pieces(&mut dx[..shape.batch * from], from, |image, dx| {
            dx.fill(0.0);
            let (dy, winners) = (&dy[image * to..][..to], &self.winners[image * to..][..to]);
            for place in 0..shape.output.pixels() {
                let corner = Corner::of(&shape, place);
                let channels = place * shape.output.channels..(place + 1) * shape.output.channels;
                for (c, (winner, dy)) in winners[channels.clone()].iter().zip(&dy[channels]).enumerate() {
                    let (y, x) = (usize::from(*winner) / shape.kernel, usize::from(*winner) % shape.kernel);
                    dx[corner.pixel(&shape.input, y, x) * shape.input.channels + c] += dy;
                }
            }
        });
    }
}

/// The largest values of a window by channel, NaN above all, and which place of the window they are at.
fn window_max(shape: &PoolShape, x: &[f32], place: usize, y: &mut [f32], best: &mut [u32]) {
    y.fill(f32::NEG_INFINITY);
    best.fill(0);
    let corner = Corner::of(shape, place);
    for (row, column) in corner.inside(shape) {
        let pixel = corner.pixel(&shape.input, row, column) * shape.input.channels;
        let number = (row * shape.kernel + column) as u32;
        for ((y, best), x) in y.iter_mut().zip(&mut *best).zip(&x[pixel..]) {
            let wins = *x > *y || x.is_nan();
            *y = if wins { *x } else { *y };
            *best = if wins { number } else { *best };
        }
    }
    // Where nothing beats -∞, the winner must still be a pixel of the image.
    if let Some((row, column)) = corner.inside(shape).next() {
        let first = (row * shape.kernel + column) as u32;
        best.iter_mut().zip(&*y).filter(|(_, y)| **y == f32::NEG_INFINITY).for_each(|(best, _)| *best = first);
    }
}

pub(super) fn average_forward(threads: &Threads, shape: PoolShape, x: &[f32], y: &mut [f32]) {
    let (from, to, channels) = (shape.input.len(), shape.output.len(), shape.input.channels);
    let share = 1.0 / (shape.kernel * shape.kernel) as f32;
    threads.pieces(&mut y[..shape.batch * to], to, |image, y| {
        let x = &x[image * from..][..from];
        for (place, y) in y.chunks_exact_mut(channels).enumerate() {
            y.fill(0.0);
            let corner = Corner::of(&shape, place);
            for (row, column) in corner.inside(&shape) {
                let pixel = corner.pixel(&shape.input, row, column) * channels;
                y.iter_mut().zip(&x[pixel..]).for_each(|(y, x)| *y += x);
            }
            y.iter_mut().for_each(|y| *y *= share);
        }
    });
}

pub(super) fn average_backward(threads: &Threads, shape: PoolShape, dy: &[f32], dx: &mut [f32]) {
    let (from, to, channels) = (shape.input.len(), shape.output.len(), shape.input.channels);
    let share = 1.0 / (shape.kernel * shape.kernel) as f32;
    threads.pieces(&mut dx[..shape.batch * from], from, |image, dx| {
        dx.fill(0.0);
        for (place, dy) in dy[image * to..][..to].chunks_exact(channels).enumerate() {
            let corner = Corner::of(&shape, place);
            for (row, column) in corner.inside(&shape) {
                let pixel = corner.pixel(&shape.input, row, column) * channels;
                dx[pixel..].iter_mut().zip(dy).for_each(|(dx, dy)| *dx += dy * share);
            }
        }
    });
}

/// The upper left pixel of a window; it may lie in the padding.
#[derive(Clone, Copy)]
struct Corner {
    y: isize,
    x: isize,
}

impl Corner {
    fn of(shape: &PoolShape, place: usize) -> Self {
        let at = |index: usize| (index * shape.stride) as isize - shape.padding as isize;
        Self { y: at(place / shape.output.width), x: at(place % shape.output.width) }
    }

    /// The rows and columns of the window that are in the image, in order.
    fn inside(self, shape: &PoolShape) -> impl Iterator<Item = (usize, usize)> {
        let within = |corner: isize, len: usize| {
            let first = (-corner).max(0) as usize;
            first..((len as isize - corner).max(0) as usize).min(shape.kernel)
        };
        let columns = within(self.x, shape.input.width);
        within(self.y, shape.input.height).flat_map(move |row| columns.clone().map(move |column| (row, column)))
    }

    /// The image's pixel at a row and column of the window.
    fn pixel(self, image: &Shape, row: usize, column: usize) -> usize {
        (self.y + row as isize) as usize * image.width + (self.x + column as isize) as usize
    }
}
