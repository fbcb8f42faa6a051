//! Elementwise operations.
//!
//! NaN stays NaN, as in PyTorch: a run that has diverged must not look like one that does not learn.

use forebay_units::random;
use rayon::prelude::*;

use super::threads::{CHUNK, Threads};
use super::wide::widest;
use crate::engine::{Normalize, keep_limit};

/// The larger of value and `floor`; NaN stays NaN. This operand order compiles to one instruction.
#[inline(always)]
pub(super) fn at_least(floor: f32, value: f32) -> f32 {
    if floor > value { floor } else { value }
}

widest! {
    /// Sets dy to 0 where a ReLU returned 0.
    pub(super) fn mask(y: &[f32], dy: &mut [f32]) {
        dy.iter_mut().zip(y).for_each(|(dy, y)| *dy = if *y <= 0.0 { 0.0 } else { *dy });
    }

    fn add_rows(rows: &[f32], sum: &mut [f32]) {
        for row in rows.chunks_exact(sum.len()) {
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }

    /// One chunk of dropout; `first` is the index of its first value.
    fn drop_values(x: &[f32], y: &mut [f32], rate: f32, key: u64, first: u64) {
        let (limit, factor) = (keep_limit(rate), 1.0 / (1.0 - rate));
        for (k, (y, x)) in y.iter_mut().zip(x).enumerate() {
            let keep = random::at(key, first + k as u64) >> 32 >= limit;
            *y = if keep { *x * factor } else { 0.0 };
        }
    }
}

pub(super) fn relu_forward(threads: &Threads, x: &[f32], y: &mut [f32]) {
    map(threads, x, y, |x| at_least(0.0, x));
}

pub(super) fn relu_backward(threads: &Threads, y: &[f32], dy: &[f32], dx: &mut [f32]) {
    threads.pieces(dx, CHUNK, |i, dx| {
        let (y, dy) = (&y[i * CHUNK..][..dx.len()], &dy[i * CHUNK..][..dx.len()]);
        for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
            *dx = if *y <= 0.0 { 0.0 } else { *dy };
        }
    });
}

/// Masks dy where a ReLU returned 0, and adds its rows to `bias` if given.
pub(super) fn bias_relu_backward(
    threads: &Threads,
    y: &[f32],
    dy: &mut [f32],
    columns: usize,
    relu: bool,
    bias: Option<&mut [f32]>,
) {
    let len = CHUNK.div_ceil(columns) * columns;
    let wants_sums = bias.is_some();
    let sums: Vec<Vec<f32>> = threads.run(|| {
        let tasks = dy.par_chunks_mut(len).enumerate().with_max_len(1);
        tasks.map(|(i, dy)| mask_and_sum(&y[i * len..][..dy.len()], dy, columns, relu, wants_sums)).collect()
    });
    if let Some(bias) = bias {
        bias.copy_from_slice(&sums[0]);
        for sum in &sums[1..] {
            bias.iter_mut().zip(sum).for_each(|(total, value)| *total += value);
        }
    }
}

fn mask_and_sum(y: &[f32], dy: &mut [f32], columns: usize, relu: bool, wants_sums: bool) -> Vec<f32> {
    if relu {
        mask(y, dy);
    }
    let mut sum = vec![0.0; if wants_sums { columns } else { 0 }];
    if wants_sums {
        add_rows(dy, &mut sum);
    }
    sum
}

pub(super) fn dropout(threads: &Threads, x: &[f32], y: &mut [f32], rate: f32, key: u64) {
    threads.pieces(y, CHUNK, |i, y| drop_values(&x[i * CHUNK..], y, rate, key, (i * CHUNK) as u64));
}

pub(super) fn add(threads: &Threads, a: &[f32], b: &[f32], y: &mut [f32], relu: bool) {
    let floor = if relu { 0.0 } else { f32::NEG_INFINITY };
    threads.pieces(y, CHUNK, |i, y| {
        let (a, b) = (&a[i * CHUNK..][..y.len()], &b[i * CHUNK..][..y.len()]);
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = at_least(floor, a + b);
        }
    });
}

pub(super) fn accumulate(threads: &Threads, x: &[f32], y: &mut [f32]) {
    threads.pieces(y, CHUNK, |i, y| {
        let x = &x[i * CHUNK..][..y.len()];
        y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
    });
}

pub(super) fn copy(threads: &Threads, x: &[f32], y: &mut [f32]) {
    map(threads, x, y, |x| x);
}

pub(super) fn normalize(threads: &Threads, x: &[f32], y: &mut [f32], by: &Normalize) {
    let channels = by.scale.len();
    let len = CHUNK.div_ceil(channels) * channels;
    threads.pieces(y, len, |i, y| {
        let x = &x[i * len..][..y.len()];
        for (y, x) in y.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
            for (c, (y, x)) in y.iter_mut().zip(x).enumerate() {
                *y = x * by.scale[c] + by.shift[c];
            }
        }
    });
}

fn map(threads: &Threads, x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32 + Sync + Send) {
    threads.pieces(y, CHUNK, |i, y| {
        let x = &x[i * CHUNK..][..y.len()];
        y.iter_mut().zip(x).for_each(|(y, x)| *y = f(*x));
    });
}
