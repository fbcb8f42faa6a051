//! Batch norm: shifts and scales each channel by its mean and variance.

use rayon::prelude::*;

use super::elementwise::{at_least, mask};
use super::threads::{CHUNK, Threads};
use crate::engine::NormShape;

/// A planned batch norm with the statistics of the last forward pass.
pub struct Norm {
    shape: NormShape,
    mean: Vec<f32>,
    inverse: Vec<f32>,
}

/// The parameters of the layer and its running statistics.
pub(super) struct Affine<'a> {
    pub(super) weight: &'a [f32],
    pub(super) bias: &'a [f32],
}

impl Norm {
    pub(super) fn new(shape: NormShape) -> Self {
        Self { shape, mean: vec![0.0; shape.channels], inverse: vec![0.0; shape.channels] }
    }

    /// Uses mean and variance of the batch and moves the running ones towards them.
    pub(super) fn learn(
        &mut self,
        threads: &Threads,
        x: &[f32],
        running_mean: &mut [f32],
        running_variance: &mut [f32],
    ) {
        let n = self.shape.rows as f64;
        let sums = self.sum(threads, x, |_, x| x);
        let means: Vec<f64> = sums.iter().map(|sum| sum / n).collect();
        self.mean.iter_mut().zip(&means).for_each(|(mean, exact)| *mean = *exact as f32);
        let mean = &self.mean;
        let squares = self.sum(threads, x, |c, x| (x - mean[c]) * (x - mean[c]));
        let share = f64::from(self.shape.momentum);
        for (c, square) in squares.iter().enumerate() {
            let variance = square / n;
            let unbiased = square / (n - 1.0).max(1.0);
            self.inverse[c] = (1.0 / (variance + f64::from(self.shape.epsilon)).sqrt()) as f32;
            running_mean[c] = ((1.0 - share) * f64::from(running_mean[c]) + share * means[c]) as f32;
            running_variance[c] = ((1.0 - share) * f64::from(running_variance[c]) + share * unbiased) as f32;
        }
    }

    /// Uses the running statistics unchanged.
    pub(super) fn recall(&mut self, running_mean: &[f32], running_variance: &[f32]) {
        self.mean.copy_from_slice(running_mean);
        for (inverse, variance) in self.inverse.iter_mut().zip(running_variance) {
            *inverse = 1.0 / (variance + self.shape.epsilon).sqrt();
        }
    }

    pub(super) fn apply(&self, threads: &Threads, x: &[f32], affine: &Affine<'_>, relu: bool, y: &mut [f32]) {
        let floor = if relu { 0.0 } else { f32::NEG_INFINITY };
        let scale: Vec<f32> =
            self.inverse.iter().zip(affine.weight).map(|(inverse, weight)| inverse * weight).collect();
        let len = self.chunk_len();
        threads.pieces(&mut y[..self.shape.rows * self.shape.channels], len, |i, y| {
            let x = &x[i * len..][..y.len()];
            for (y, x) in y.chunks_exact_mut(scale.len()).zip(x.chunks_exact(scale.len())) {
                for (c, (y, x)) in y.iter_mut().zip(x).enumerate() {
                    *y = at_least(floor, (x - self.mean[c]) * scale[c] + affine.bias[c]);
                }
            }
        });
    }

    /// The gradients of scale and shift; with `relu`, dy is masked first.
    #[expect(clippy::too_many_arguments, reason = "the formula has these terms")]
    pub(super) fn backward_affine(
        &self,
        threads: &Threads,
        x: &[f32],
        y: &[f32],
        dy: &mut [f32],
        relu: bool,
        weight: &mut [f32],
        bias: &mut [f32],
    ) {
        let len = self.chunk_len();
        let channels = self.shape.channels;
        let parts: Vec<Vec<f32>> = threads.run(|| {
            let chunks = dy[..self.shape.rows * channels].par_chunks_mut(len).enumerate().with_max_len(1);
            chunks
                .map(|(i, dy)| self.affine_part(&x[i * len..][..dy.len()], &y[i * len..][..dy.len()], dy, relu))
                .collect()
        });
        let totals = total(&parts, 2 * channels);
        for c in 0..channels {
            bias[c] = totals[c] as f32;
            weight[c] = (totals[channels + c] * f64::from(self.inverse[c])) as f32;
        }
    }

    /// A chunk's sums of dy, then of dy · (x - mean).
    fn affine_part(&self, x: &[f32], y: &[f32], dy: &mut [f32], relu: bool) -> Vec<f32> {
        if relu {
            mask(y, dy);
        }
        let channels = self.shape.channels;
        let mut sums = vec![0.0; 2 * channels];
        let (plain, moved) = sums.split_at_mut(channels);
        for (dy, x) in dy.chunks_exact(channels).zip(x.chunks_exact(channels)) {
            for c in 0..channels {
                plain[c] += dy[c];
                moved[c] += dy[c] * (x[c] - self.mean[c]);
            }
        }
        sums
    }

    /// The gradient of the input, from those of scale and shift.
    #[expect(clippy::too_many_arguments, reason = "the formula has these terms")]
    pub(super) fn backward_data(
        &self,
        threads: &Threads,
        x: &[f32],
        dy: &[f32],
        weight: &[f32],
        d_weight: &[f32],
        d_bias: &[f32],
        dx: &mut [f32],
    ) {
        let channels = self.shape.channels;
        let share = 1.0 / self.shape.rows as f32;
        let scale: Vec<f32> = weight.iter().zip(&self.inverse).map(|(weight, inverse)| weight * inverse).collect();
        let tilt: Vec<f32> = d_weight.iter().zip(&self.inverse).map(|(d, inverse)| d * inverse * share).collect();
        let level: Vec<f32> = d_bias.iter().map(|d| d * share).collect();
        let len = self.chunk_len();
        threads.pieces(&mut dx[..self.shape.rows * channels], len, |i, dx| {
            let (x, dy) = (&x[i * len..][..dx.len()], &dy[i * len..][..dx.len()]);
            let rows = dx.chunks_exact_mut(channels).zip(x.chunks_exact(channels)).zip(dy.chunks_exact(channels));
            for ((dx, x), dy) in rows {
                for c in 0..channels {
                    dx[c] = scale[c] * (dy[c] - level[c] - (x[c] - self.mean[c]) * tilt[c]);
                }
            }
        });
    }

    /// Sums a function of the values by channel: single precision within a chunk, double between them.
    fn sum(&self, threads: &Threads, x: &[f32], term: impl Fn(usize, f32) -> f32 + Sync + Send) -> Vec<f64> {
        let (len, channels) = (self.chunk_len(), self.shape.channels);
        let x = &x[..self.shape.rows * channels];
        let parts = threads.map(x.len().div_ceil(len), |i| {
            let mut sums = vec![0.0f32; channels];
            for row in x[i * len..x.len().min((i + 1) * len)].chunks_exact(channels) {
                for (c, (sum, x)) in sums.iter_mut().zip(row).enumerate() {
                    *sum += term(c, *x);
                }
            }
            sums
        });
        total(&parts, channels)
    }

    fn chunk_len(&self) -> usize {
        CHUNK.div_ceil(self.shape.channels) * self.shape.channels
    }
}

fn total(parts: &[Vec<f32>], len: usize) -> Vec<f64> {
    let mut total = vec![0.0; len];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(total, value)| *total += f64::from(*value));
    }
    total
}
