//! From coefficients to samples: the inverse cosine transform, as in libjpeg's accurate integer method.
//!
//! The algorithm is that of Loeffler, Ligtenberg and Moschytz in fixed point with 13 fractional bits: first the
//! columns, whose results have 2 bits more than the samples, then the rows. Rounding is part of the result, so rounding
//! operations are in libjpeg's order; sums of products between them are exact and may be grouped freely. If corrupt
//! data overflows 16 bits, all levels wrap and saturate alike.

use crate::simd::Level;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::dequantise as dequantise_avx2;

/// Fractional bits of the constants, as in libjpeg: rounding is part of the result.
const CONST_BITS: u32 = 13;
/// Additional bits of the first pass.
const PASS1_BITS: u32 = 2;
const SHIFT_1: u32 = CONST_BITS - PASS1_BITS;
/// Shift after the second pass; the 3 is the transform's gain of 8.
const SHIFT_2: u32 = CONST_BITS + PASS1_BITS + 3;

/// The constants of the rotations, as sums if two multiplications share an operand.
mod rotation {
    pub(super) const EVEN: [[i16; 2]; 2] = [[4433, 4433 - 15137], [4433 + 6270, 4433]];
    pub(super) const MIX: [[i16; 2]; 2] = [[9633 - 16069, 9633], [9633, 9633 - 3196]];
    pub(super) const ODD_71: [[i16; 2]; 2] = [[2446 - 7373, -7373], [-7373, 12299 - 7373]];
    pub(super) const ODD_53: [[i16; 2]; 2] = [[16819 - 20995, -20995], [-20995, 25172 - 20995]];
}

/// A block to reconstruct, and the destination of its samples.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Coefficients in natural order.
    pub(crate) coefficients: &'a [i16; 64],
    /// Quantisation table in natural order.
    pub(crate) quant: &'a [i16; 64],
    /// Index of the block's first sample in the plane.
    pub(crate) at: usize,
    /// Samples from one row to the next.
    pub(crate) stride: usize,
}

impl Job<'_> {
    fn fits(&self, n_samples: usize) -> bool {
        self.at + 7 * self.stride + 8 <= n_samples
    }
}

/// Reconstructs two blocks of 8x8 samples; vector units do two in the time of one.
#[inline(always)]
pub(crate) fn pair(level: Level, jobs: [Job<'_>; 2], samples: &mut [u8]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level guarantees that the CPU has AVX2.
        Level::Avx2 => unsafe { avx2::pair(jobs, samples) },
        Level::Portable => {
            one(&jobs[0], samples);
            one(&jobs[1], samples);
        }
    }
}

/// Reconstructs a block whose samples are all equal.
#[inline(always)]
pub(crate) fn flat(job: &Job<'_>, samples: &mut [u8]) {
    let dc = i32::from(job.coefficients[0].wrapping_mul(job.quant[0]));
    let row = saturate(descale(i32::from(saturate_16(dc << PASS1_BITS)), PASS1_BITS + 3));
    for y in 0..8 {
        samples[job.at + y * job.stride..][..8].fill(row);
    }
}

pub(crate) fn one(job: &Job<'_>, samples: &mut [u8]) {
    let mut columns = [[0i16; 8]; 8];
    for (x, column) in columns.iter_mut().enumerate() {
        let input = std::array::from_fn(|y| job.coefficients[8 * y + x].wrapping_mul(job.quant[8 * y + x]));
        *column = transform(input).map(|v| saturate_16(descale(v, SHIFT_1)));
    }
    for y in 0..8 {
        let row = transform(columns.map(|column| column[y])).map(|v| saturate(descale(v, SHIFT_2)));
        samples[job.at + y * job.stride..][..8].copy_from_slice(&row);
    }
}

/// Transforms one dimension; the result has [`CONST_BITS`] more bits than the input.
fn transform(c: [i16; 8]) -> [i32; 8] {
    let [e2, e3] = rotate(rotation::EVEN, c[2], c[6]);
    let e0 = i32::from(c[0].wrapping_add(c[4])) << CONST_BITS;
    let e1 = i32::from(c[0].wrapping_sub(c[4])) << CONST_BITS;
    let even = [e0.wrapping_add(e3), e1.wrapping_add(e2), e1.wrapping_sub(e2), e0.wrapping_sub(e3)];

    let [m3, m4] = rotate(rotation::MIX, c[7].wrapping_add(c[3]), c[5].wrapping_add(c[1]));
    let [o0, o3] = rotate(rotation::ODD_71, c[7], c[1]);
    let [o1, o2] = rotate(rotation::ODD_53, c[5], c[3]);
    let odd = [o3.wrapping_add(m4), o2.wrapping_add(m3), o1.wrapping_add(m4), o0.wrapping_add(m3)];

    std::array::from_fn(|i| match i {
        0..4 => even[i].wrapping_add(odd[i]),
        _ => even[7 - i].wrapping_sub(odd[7 - i]),
    })
}

fn rotate(by: [[i16; 2]; 2], a: i16, b: i16) -> [i32; 2] {
    by.map(|[p, q]| (i32::from(a) * i32::from(p)).wrapping_add(i32::from(b) * i32::from(q)))
}

pub(crate) fn descale(value: i32, n_bits: u32) -> i32 {
    value.wrapping_add(1 << (n_bits - 1)) >> n_bits
}

/// The sample of a value centred on 0.
pub(crate) fn saturate(value: i32) -> u8 {
    (value.clamp(-128, 127) + 128) as u8
}

pub(crate) fn saturate_16(value: i32) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

#[cfg(test)]
mod tests {
    use super::{Job, flat, one, pair};
    use crate::simd::Level;
    use proptest::prelude::*;

    fn block(range: std::ops::RangeInclusive<i16>) -> impl Strategy<Value = [i16; 64]> {
        prop::collection::vec(prop_oneof![2 => Just(0), 1 => range], 64).prop_map(|v| v.try_into().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_level_reconstructs_alike(
            a in block(-1024..=1024),
            b in block(i16::MIN..=i16::MAX),
            quant in block(-300..=300),
        ) {
            let jobs = [(&a, 3), (&b, 100)]
                .map(|(coefficients, at)| Job { coefficients, quant: &quant, at, stride: 11 });
            let (mut portable, mut vector) = ([0; 200], [0; 200]);
            pair(Level::Portable, jobs, &mut portable);
            pair(Level::detect(), jobs, &mut vector);
            prop_assert_eq!(portable, vector);
        }

        #[test]
        fn flat_block_is_what_the_transform_makes_of_it(dc in any::<i16>(), q in 1i16..256) {
            let (mut coefficients, mut quant) = ([0; 64], [1; 64]);
            (coefficients[0], quant[0]) = (dc, q);
            let job = Job { coefficients: &coefficients, quant: &quant, at: 0, stride: 8 };
            let (mut a, mut b) = ([0; 64], [0; 64]);
            flat(&job, &mut a);
            one(&job, &mut b);
            prop_assert_eq!(a, b);
        }
    }
}
