//! Max and average pooling, one task per image.

use rayon::prelude::*;

use super::threads::Threads;
use super::wide::widest;
use crate::engine::PoolShape;
use crate::error::Result;
use crate::room::filled;
use crate::shape::Shape;

/// A planned max pool with the winners of the last forward pass.
pub struct MaxPool {
    shape: PoolShape,
    /// For each output, the position of the maximum within its window, counted along rows.
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
            images.for_each(|((y, winners), x)| largest(&shape, x, y, winners));
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

widest! {
    /// The maxima of all windows of an image, and their positions within the windows.
    fn largest(shape: &PoolShape, x: &[f32], y: &mut [f32], winners: &mut [u16]) {
        let channels = shape.output.channels;
        let mut best = vec![0u32; channels];
        for (place, (y, winners)) in y.chunks_exact_mut(channels).zip(winners.chunks_exact_mut(channels)).enumerate() {
            window_max(shape, x, place, y, &mut best);
            winners.iter_mut().zip(&best).for_each(|(winner, best)| *winner = *best as u16);
        }
    }
}

/// The maximum of a window per channel (NaN is largest), and its position within the window.
#[inline(always)]
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
    // If nothing exceeds -∞, the position must still be a pixel of the image.
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

    /// The rows and columns of the window that are inside the image, in order.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::random;

    /// Pixels of a sample under window `place`, in order.
    fn under(shape: &PoolShape, place: usize) -> Vec<usize> {
        let (row, column) = (place / shape.output.width * shape.stride, place % shape.output.width * shape.stride);
        let all = (0..shape.kernel * shape.kernel).map(|k| (row + k / shape.kernel, column + k % shape.kernel));
        let inside = all.filter_map(|(y, x)| Some((y.checked_sub(shape.padding)?, x.checked_sub(shape.padding)?)));
        let inside = inside.filter(|(y, x)| *y < shape.input.height && *x < shape.input.width);
        inside.map(|(y, x)| y * shape.input.width + x).collect()
    }

    /// Output and gradient of the input of both pools from their definitions; the gradient of the output is its index.
    fn plain(shape: &PoolShape, x: &[f32]) -> [[Vec<f32>; 2]; 2] {
        let channels = shape.input.channels;
        let new = || [vec![0.0; shape.batch * shape.output.len()], vec![0.0; x.len()]];
        let (mut most, mut mean) = (new(), new());
        for i in 0..shape.batch * shape.output.len() {
            let (c, place) = (i % channels, i / channels % shape.output.pixels());
            let start = i / shape.output.len() * shape.input.len();
            let window: Vec<usize> = under(shape, place).iter().map(|pixel| start + pixel * channels + c).collect();
            let best = window.iter().fold(window[0], |best, at| if x[*at] > x[best] { *at } else { best });
            most[0][i] = x[best];
            most[1][best] += i as f32;
            let share = 1.0 / (shape.kernel * shape.kernel) as f32;
            mean[0][i] = window.iter().map(|at| x[*at]).sum::<f32>() * share;
            window.iter().for_each(|at| mean[1][*at] += i as f32 * share);
        }
        [most, mean]
    }

    #[test]
    fn pools_of_any_shape_do_what_they_are_defined_to() {
        let threads = Threads::new(2).unwrap();
        let mut rng = random(11, 0);
        let mut below = |n: usize| (rng.unit() * n as f64) as usize;
        for _ in 0..100 {
            let (kernel, stride, channels, batch) = (1 + below(4), 1 + below(4), 1 + below(20), 1 + below(3));
            let padding = below(kernel / 2 + 1);
            let input = Shape::new(kernel + below(7), kernel + below(7), channels);
            let along = |len: usize| (len + 2 * padding - kernel) / stride + 1;
            let output = Shape::new(along(input.height), along(input.width), channels);
            let shape = PoolShape { batch, input, output, kernel, stride, padding };
            // Few distinct values, so windows have ties.
            let x: Vec<f32> = (0..batch * input.len()).map(|_| below(9) as f32).collect();
            let dy: Vec<f32> = (0..batch * output.len()).map(|i| i as f32).collect();
            let [most, mean] = plain(&shape, &x);
            let (mut y, mut dx) = (vec![f32::NAN; dy.len()], vec![f32::NAN; x.len()]);
            let mut pool = MaxPool::new(shape).unwrap();
            pool.forward(&threads, &x, &mut y);
            pool.backward(&threads, &dy, &mut dx);
            assert_eq!([&y, &dx], [&most[0], &most[1]], "{shape:?}");
            average_forward(&threads, shape, &x, &mut y);
            average_backward(&threads, shape, &dy, &mut dx);
            let near = |got: &[f32], want: &[f32]| {
                got.iter().zip(want).all(|(got, want)| (got - want).abs() <= 1e-5 * want.abs().max(1.0))
            };
            assert!(near(&y, &mean[0]) && near(&dx, &mean[1]), "{shape:?}");
        }
    }
}
