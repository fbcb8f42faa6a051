//! From the samples of a component to one value per pixel.
//!
//! If a component has half the samples in one or both directions, libjpeg's "fancy" upsampling weights the nearer
//! sample by 3 and the farther one by 1. At the borders, the missing neighbour is the border sample itself, which the
//! planes provide as a margin, so no special case is needed. Everything else is replication.

use crate::frame::Component;
use crate::simd::Level;

#[cfg(target_arch = "x86_64")]
mod avx2;

/// Maximum number of samples computed at a time: rows and lines are readable and writable up to the next multiple of
/// it.
pub(crate) const CHUNK: usize = 32;

/// How the rows of a component become lines of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Copy,
    /// Triangle filter along the row.
    FancyH2V1,
    /// Triangle filter across two rows.
    FancyH1V2,
    /// Triangle filter in both directions.
    FancyH2V2,
    /// Each sample becomes a rectangle of pixels.
    Replicate,
}

impl Method {
    /// libjpeg's method for `component` if the most densely sampled component has blocks of `min_edge` samples.
    pub(crate) fn of(component: &Component, min_edge: usize) -> Self {
        let is_wide = component.samples.0 > 2;
        match component.expand {
            (1, 1) => Method::Copy,
            _ if min_edge == 1 => Method::Replicate,
            (2, 1) if is_wide => Method::FancyH2V1,
            (1, 2) => Method::FancyH1V2,
            (2, 2) if is_wide => Method::FancyH2V2,
            _ => Method::Replicate,
        }
    }

    /// Whether a line depends on two rows.
    pub(crate) fn needs_context(self) -> bool {
        matches!(self, Method::FancyH1V2 | Method::FancyH2V2)
    }
}

/// The rows that a line is computed from, each starting one sample left of the image.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) near: &'a [u8],
    /// The neighbouring row on the side of the line; used only by methods with context.
    pub(crate) far: &'a [u8],
    /// Whether the line is in the lower half of its row.
    pub(crate) is_lower: bool,
    pub(crate) n_samples: usize,
}

/// Computes a line by a method other than [`Method::Copy`]; `factor` is the horizontal expansion.
#[inline]
pub(crate) fn line(level: Level, method: Method, factor: usize, source: Source<'_>, out: &mut [u8]) {
    match (level, method) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level guarantees that the CPU has AVX2.
        (Level::Avx2, Method::FancyH2V2) => unsafe { avx2::fancy_h2v2(source, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx2, Method::FancyH2V1) => unsafe { avx2::fancy_h2v1(source, out) },
        (_, Method::FancyH2V2) => fancy_h2v2(source, out),
        (_, Method::FancyH2V1) => fancy_h2v1(source, out),
        (_, Method::FancyH1V2) => fancy_h1v2(source, out),
        (_, Method::Copy | Method::Replicate) => replicate(factor, source, out),
    }
}

fn fancy_h2v2(s: Source<'_>, out: &mut [u8]) {
    let sums = s
        .near
        .windows(3)
        .zip(s.far.windows(3))
        .map(|(near, far)| weigh([near[0], near[1], near[2]], [far[0], far[1], far[2]]));
    for (pixels, [left, here, right]) in out.chunks_exact_mut(2).zip(sums).take(s.n_samples) {
        pixels[0] = ((3 * here + left + 8) >> 4) as u8;
        pixels[1] = ((3 * here + right + 7) >> 4) as u8;
    }
}

fn weigh(near: [u8; 3], far: [u8; 3]) -> [u16; 3] {
    std::array::from_fn(|i| 3 * u16::from(near[i]) + u16::from(far[i]))
}

fn fancy_h2v1(s: Source<'_>, out: &mut [u8]) {
    for (pixels, near) in out.chunks_exact_mut(2).zip(s.near.windows(3)).take(s.n_samples) {
        let [left, here, right] = [near[0], near[1], near[2]].map(u16::from);
        pixels[0] = ((3 * here + left + 1) >> 2) as u8;
        pixels[1] = ((3 * here + right + 2) >> 2) as u8;
    }
}

fn fancy_h1v2(s: Source<'_>, out: &mut [u8]) {
    let bias = if s.is_lower { 2 } else { 1 };
    for ((pixel, &near), &far) in out.iter_mut().zip(&s.near[1..]).zip(&s.far[1..]).take(s.n_samples) {
        *pixel = ((3 * u16::from(near) + u16::from(far) + bias) >> 2) as u8;
    }
}

fn replicate(factor: usize, s: Source<'_>, out: &mut [u8]) {
    for (pixels, &sample) in out.chunks_exact_mut(factor).zip(&s.near[1..]).take(s.n_samples) {
        pixels.fill(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::{Method, Source, line};
    use crate::simd::Level;
    use proptest::prelude::*;

    fn run(level: Level, method: Method, near: &[u8], far: &[u8], n_samples: usize) -> Vec<u8> {
        let mut out = vec![0; 256];
        line(level, method, 2, Source { near, far, is_lower: true, n_samples }, &mut out);
        out.truncate(2 * n_samples);
        out
    }

    #[test]
    fn triangle_filter_keeps_the_border_samples() {
        let mut near = [0; 66];
        near[..5].copy_from_slice(&[10, 10, 20, 40, 40]);
        let out = run(Level::Portable, Method::FancyH2V1, &near, &near, 3);
        assert_eq!(out, [10, 13, 17, 25, 35, 40]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_level_upsamples_alike(
            near in prop::collection::vec(any::<u8>(), 130),
            far in prop::collection::vec(any::<u8>(), 130),
            n in 1usize..=128,
        ) {
            for method in [Method::FancyH2V1, Method::FancyH2V2] {
                prop_assert_eq!(
                    run(Level::Portable, method, &near, &far, n),
                    run(Level::detect(), method, &near, &far, n)
                );
            }
        }
    }
}
