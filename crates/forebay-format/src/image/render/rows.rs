//! One row of a sample from the rows of an image: first down the columns, then along the row.

use super::filter::Filter;

/// Floats that are read or written beyond the end of a row, because pixels are handled as four values.
const SLACK: usize = 4;

#[derive(Debug)]
pub(super) struct Rows {
    width: usize,
    /// The weighted sum of source rows.
    sum: Vec<f32>,
    /// The finished row, and slack.
    row: Vec<f32>,
}

impl Rows {
    /// Rows of `width` pixels.
    pub(super) fn new(width: usize) -> Self {
        Self { width, sum: Vec::new(), row: vec![0.0; width * 3 + SLACK] }
    }

    /// The row that the source rows from `tap` on make; `line` gives the columns of a source row that have weights, as
    /// interleaved bytes.
    pub(super) fn make<'a>(
        &mut self,
        line: impl Fn(u32) -> &'a [u8],
        tap: (usize, &[f32]),
        columns: &Filter,
    ) -> &mut [f32] {
        let (first, weights) = tap;
        // The first line exists for every tap, also where its weight is all there is.
        let n_values = line(first as u32).len();
        let n_needed = n_values + 3 * columns.n() + SLACK;
        if self.sum.len() < n_needed {
            self.sum.resize(n_needed, 0.0);
        }
        // Weights of zero beyond the end of the row must meet numbers.
        self.sum[n_values..n_needed].fill(0.0);
        let (sum, row) = (&mut self.sum[..n_needed], &mut self.row[..]);
        let lines = weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
        let lines = lines.map(|(k, weight)| (*weight, line((first + k) as u32)));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was detected.
            unsafe { make_avx2(lines, columns, sum, row) };
            return &mut self.row[..self.width * 3];
        }
        make(lines, columns, sum, row);
        &mut self.row[..self.width * 3]
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn make_avx2<'a>(lines: impl Iterator<Item = (f32, &'a [u8])>, columns: &Filter, sum: &mut [f32], row: &mut [f32]) {
    make(lines, columns, sum, row);
}

/// Inlined into a function per vector extension. No multiplication is fused, so all give the same bits.
#[inline(always)]
fn make<'a>(lines: impl Iterator<Item = (f32, &'a [u8])>, columns: &Filter, sum: &mut [f32], row: &mut [f32]) {
    for (k, (weight, line)) in lines.enumerate() {
        if k == 0 {
            sum.iter_mut().zip(line).for_each(|(sum, byte)| *sum = weight * f32::from(*byte));
        } else {
            sum.iter_mut().zip(line).for_each(|(sum, byte)| *sum += weight * f32::from(*byte));
        }
    }
    match columns.n() {
        1 => along::<1>(columns, sum, row),
        2 => along::<2>(columns, sum, row),
        3 => along::<3>(columns, sum, row),
        4 => along::<4>(columns, sum, row),
        5 => along::<5>(columns, sum, row),
        6 => along::<6>(columns, sum, row),
        _ => along_any(columns, sum, row),
    }
}

/// Writes four values per pixel, of which the next pixel overwrites the last.
#[inline(always)]
fn along<const N: usize>(columns: &Filter, sum: &[f32], row: &mut [f32]) {
    let first = columns.span().start;
    for (x, (start, weights)) in columns.taps().enumerate() {
        let (Some(weights), from) = (weights.first_chunk::<N>(), (*start - first) as usize * 3) else { return };
        let window = &sum[from..from + 3 * N + 1];
        let mut pixel = [0.0; 4];
        for (k, weight) in weights.iter().enumerate() {
            let values: &[f32; 4] = window[3 * k..3 * k + 4].first_chunk().expect("four values");
            pixel.iter_mut().zip(values).for_each(|(pixel, value)| *pixel += weight * value);
        }
        row[3 * x..3 * x + 4].copy_from_slice(&pixel);
    }
}

#[inline(always)]
fn along_any(columns: &Filter, sum: &[f32], row: &mut [f32]) {
    let first = columns.span().start;
    for (x, (start, weights)) in columns.taps().enumerate() {
        let window = &sum[(*start - first) as usize * 3..];
        let mut pixel = [0.0; 4];
        for (weight, values) in weights.iter().zip(window.windows(4).step_by(3)) {
            pixel.iter_mut().zip(values).for_each(|(pixel, value)| *pixel += weight * value);
        }
        row[3 * x..3 * x + 4].copy_from_slice(&pixel);
    }
}
