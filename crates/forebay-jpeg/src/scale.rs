//! Reduced inverse transforms, which give a smaller image from the low frequencies of each block.
//!
//! The 4x4 and 2x2 transforms are the 8-point one with only the outputs computed that the smaller grid has, as in
//! libjpeg: the coefficients that contribute nothing to them (the fourth, and for 2x2 all even ones) are not read.

use crate::idct::{Job, descale, saturate};

const CONST_BITS: u32 = 13;
const PASS1_BITS: u32 = 2;

/// Reconstructs a block to `edge` by `edge` samples, `edge` being 4, 2 or 1.
pub(crate) fn reduced(edge: usize, job: &Job<'_>, samples: &mut [u8]) {
    match edge {
        4 => separable::<4>(job, samples, four, 1),
        2 => separable::<2>(job, samples, two, 2),
        _ => samples[job.at] = saturate(descale(coefficient(job, 0), 3)),
    }
}

fn coefficient(job: &Job<'_>, i: usize) -> i32 {
    job.coefficients[i].wrapping_mul(job.quant[i]).into()
}

/// Columns, then rows, with `gain` more bits in the products than the full transform has.
fn separable<const N: usize>(job: &Job<'_>, samples: &mut [u8], transform: fn([i32; 8]) -> [i32; N], gain: u32) {
    let columns: [[i32; N]; 8] = std::array::from_fn(|x| {
        let column = std::array::from_fn(|y| coefficient(job, 8 * y + x));
        transform(column).map(|v| descale(v, CONST_BITS - PASS1_BITS + gain))
    });
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
