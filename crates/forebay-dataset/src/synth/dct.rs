//! The forward cosine transform of 8×8 blocks, after Arai, Agui and Nakajima (1988).
//!
//! Five multiplications per eight samples; the scaling it leaves to the end is applied on the way into zigzag order.
//! Plain f32 arithmetic, so the compiler may use any vector width and the result stays the same.

/// A block's coefficients in zigzag order, in eighths (Q3).
pub(crate) type Block = [i16; 64];

/// Position in the block, row by row, of the n-th coefficient in zigzag order.
pub(crate) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// Adding this to a small f32 leaves its nearest integer in the low bits of the mantissa.
const ROUND: f32 = 12_582_912.0;

/// One over √2·cos(kπ/16), and 1 for k = 0: what the fast transform leaves out.
const DESCALE: [f32; 8] = [1.0, 0.720_959_8, 0.765_366_9, 0.850_430_1, 1.0, 1.272_758_6, 1.847_759, 3.624_509_8];

/// Nearest integer of a value below 2²² in size, ties to even.
#[inline(always)]
pub(crate) fn round(value: f32) -> i32 {
    ((value + ROUND).to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32)
}

/// Transforms the block whose first row starts at `samples[0]`, rows lying `stride` apart.
pub(crate) fn forward(samples: &[u8], stride: usize) -> Block {
    let mut rows = [[0f32; 8]; 8];
    for (row, line) in rows.iter_mut().zip(samples.chunks(stride)) {
        for (value, &sample) in row.iter_mut().zip(&line[..8]) {
            *value = f32::from(sample) - 128.0;
        }
    }
    pass(&mut rows);
    let mut columns = transposed(&rows);
    pass(&mut columns);
    // `columns[u][v]`: horizontal frequency u, vertical frequency v.
    for (u, column) in columns.iter_mut().enumerate() {
        for (value, descale) in column.iter_mut().zip(DESCALE) {
            *value *= descale * DESCALE[u];
        }
    }
    ZIGZAG.map(|at| round(columns[usize::from(at % 8)][usize::from(at / 8)]) as i16)
}

fn transposed(rows: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    let mut columns = [[0f32; 8]; 8];
    for (y, row) in rows.iter().enumerate() {
        for (x, value) in row.iter().enumerate() {
            columns[x][y] = *value;
        }
    }
    columns
}

/// Eight one-dimensional transforms along the first index.
#[expect(
    clippy::needless_range_loop,
    reason = "the lanes of eight rows at once, which the compiler turns into vectors"
)]
fn pass(v: &mut [[f32; 8]; 8]) {
    for lane in 0..8 {
        let (s0, d0) = (v[0][lane] + v[7][lane], v[0][lane] - v[7][lane]);
        let (s1, d1) = (v[1][lane] + v[6][lane], v[1][lane] - v[6][lane]);
        let (s2, d2) = (v[2][lane] + v[5][lane], v[2][lane] - v[5][lane]);
        let (s3, d3) = (v[3][lane] + v[4][lane], v[3][lane] - v[4][lane]);

        let (e0, e3, e1, e2) = (s0 + s3, s0 - s3, s1 + s2, s1 - s2);
        let turn = (e2 + e3) * std::f32::consts::FRAC_1_SQRT_2;
        (v[0][lane], v[4][lane]) = (e0 + e1, e0 - e1);
        (v[2][lane], v[6][lane]) = (e3 + turn, e3 - turn);

        let (o0, o1, o2) = (d3 + d2, d2 + d1, d1 + d0);
        let shared = (o0 - o2) * 0.382_683_43;
        let low = 0.541_196_1 * o0 + shared;
        let high = 1.306_563 * o2 + shared;
        let middle = o1 * std::f32::consts::FRAC_1_SQRT_2;
        let (sum, difference) = (d0 + middle, d0 - middle);
        (v[5][lane], v[3][lane]) = (difference + low, difference - low);
        (v[1][lane], v[7][lane]) = (sum + high, sum - high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The transform as the standard writes it.
    fn reference(samples: &[u8; 64], u: usize, v: usize) -> f64 {
        let half = |k: usize| if k == 0 { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
        let wave = |n: usize, k: usize| ((2 * n + 1) as f64 * k as f64 * std::f64::consts::PI / 16.0).cos();
        let sum: f64 = (0..64).map(|at| (f64::from(samples[at]) - 128.0) * wave(at % 8, u) * wave(at / 8, v)).sum();
        sum * half(u) * half(v) / 4.0
    }

    #[test]
    fn forward_agrees_with_the_definition() {
        let mut rng = crate::rng::Rng::new(1, 1);
        for _ in 0..20 {
            let samples: [u8; 64] = std::array::from_fn(|_| rng.below(256) as u8);
            let block = forward(&samples, 8);
            for (n, &at) in ZIGZAG.iter().enumerate() {
                let exact = reference(&samples, usize::from(at % 8), usize::from(at / 8));
                assert!((f64::from(block[n]) / 8.0 - exact).abs() < 0.1, "coefficient {n}: {} not {exact}", block[n]);
            }
        }
    }
}
