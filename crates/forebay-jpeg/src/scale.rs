//! Reduced inverse transforms, which compute a smaller image from the low frequencies of each block.
//!
//! The 4x4 and 2x2 transforms are the 8-point one, computing only the outputs of the smaller grid, as in libjpeg.
//! Coefficients that do not contribute to them (the fourth, and for 2x2 all even ones) are not read.

use crate::idct::{Job, descale, saturate, saturate_16};
use crate::simd::Level;

#[cfg(target_arch = "x86_64")]
mod avx2;

const CONST_BITS: u32 = 13;
const PASS1_BITS: u32 = 2;

/// Reconstructs two blocks of `edge` by `edge` samples; `edge` is 4, 2 or 1.
#[inline(always)]
pub(crate) fn pair(level: Level, edge: usize, jobs: [Job<'_>; 2], samples: &mut [u8]) {
    match (level, edge) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level guarantees that the CPU has AVX2.
        (Level::Avx2, 4) => unsafe { avx2::four(jobs, samples) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx2, 2) => unsafe { avx2::two(jobs, samples) },
        _ => {
            one(edge, &jobs[0], samples);
            one(edge, &jobs[1], samples);
        }
    }
}

/// Reconstructs a block of `edge` by `edge` samples; `edge` is 4, 2 or 1.
pub(crate) fn one(edge: usize, job: &Job<'_>, samples: &mut [u8]) {
    match edge {
        4 => separable::<4>(job, samples, four, 1),
        2 => separable::<2>(job, samples, two, 2),
        _ => samples[job.at] = saturate(descale(coefficient(job, 0), 3)),
    }
}

fn coefficient(job: &Job<'_>, i: usize) -> i32 {
    job.coefficients[i].wrapping_mul(job.quant[i]).into()
}

/// Columns, then rows, with `gain` more bits in the products than in the full transform.
#[inline(always)]
fn separable<const N: usize>(job: &Job<'_>, samples: &mut [u8], transform: impl Fn([i32; 8]) -> [i32; N], gain: u32) {
    let mut columns = [[0; N]; 8];
    for (x, output) in columns.iter_mut().enumerate() {
        // The columns that are multiples of the edge (4, or 2, 4 and 6) contribute nothing to the rows.
        if x == 0 || !x.is_multiple_of(N) {
            let column = std::array::from_fn(|y| coefficient(job, 8 * y + x));
            *output = transform(column).map(|v| saturate_16(descale(v, CONST_BITS - PASS1_BITS + gain)).into());
        }
    }
    for y in 0..N {
        let row = transform(columns.map(|column| column[y]));
        let row = row.map(|v| saturate(descale(v, CONST_BITS + PASS1_BITS + 3 + gain)));
        samples[job.at + y * job.stride..][..N].copy_from_slice(&row);
    }
}

fn four(c: [i32; 8]) -> [i32; 4] {
    let e0 = c[0].wrapping_shl(CONST_BITS + 1);
    let e2 = sum([(c[2], 15137), (c[6], -6270)]);
    let inner = sum([(c[7], -1730), (c[5], 11893), (c[3], -17799), (c[1], 8697)]);
    let outer = sum([(c[7], -4176), (c[5], -4926), (c[3], 7373), (c[1], 20995)]);
    let (p, q) = (e0.wrapping_add(e2), e0.wrapping_sub(e2));
    [p.wrapping_add(outer), q.wrapping_add(inner), q.wrapping_sub(inner), p.wrapping_sub(outer)]
}

fn two(c: [i32; 8]) -> [i32; 2] {
    let even = c[0].wrapping_shl(CONST_BITS + 2);
    let odd = sum([(c[7], -5906), (c[5], 6967), (c[3], -10426), (c[1], 29692)]);
    [even.wrapping_add(odd), even.wrapping_sub(odd)]
}

fn sum<const N: usize>(products: [(i32, i32); N]) -> i32 {
    products.into_iter().fold(0, |total, (a, b)| total.wrapping_add(a.wrapping_mul(b)))
}

#[cfg(test)]
mod tests {
    use super::pair;
    use crate::idct::Job;
    use crate::simd::Level;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_level_reduces_alike(
            a in prop::collection::vec(-1024i16..=1024, 64),
            b in prop::collection::vec(any::<i16>(), 64),
            quant in prop::collection::vec(-300i16..300, 64),
            edge in prop::sample::select(vec![1, 2, 4]),
        ) {
            let quant: &[i16; 64] = quant.first_chunk().unwrap();
            let jobs = [(&a, 3), (&b, 100)]
                .map(|(c, at)| Job { coefficients: c.first_chunk().unwrap(), quant, at, stride: 11 });
            let (mut portable, mut vector) = ([0; 200], [0; 200]);
            pair(Level::Portable, edge, jobs, &mut portable);
            pair(Level::detect(), edge, jobs, &mut vector);
            prop_assert_eq!(portable, vector);
        }
    }
}
