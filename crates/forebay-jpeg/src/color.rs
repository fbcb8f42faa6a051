//! Conversion from lines of components to lines of RGB.
//!
//! YCbCr is converted as JFIF defines it, in 16-bit fixed point with libjpeg's rounding: the two terms of green are
//! rounded together, those of red and blue separately.

use std::mem::MaybeUninit;

use crate::ColorModel;
use crate::simd::Level;

#[cfg(target_arch = "x86_64")]
mod avx2;

/// Number of bytes beyond the end of a line that a conversion may overwrite.
pub(crate) const SLACK: usize = 128;

/// Converts the first `n_pixels` of `lines`; the model determines how many lines are used.
///
/// May write up to [`SLACK`] bytes beyond the end of the line, so lines must be converted from top to bottom.
#[inline]
pub(crate) fn line(level: Level, model: Conversion, lines: [&[u8]; 4], n_pixels: usize, out: &mut [MaybeUninit<u8>]) {
    match (level, model) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level guarantees that the CPU has AVX2.
        (Level::Avx2, Conversion::Rgb) => unsafe { avx2::interleave([lines[0], lines[1], lines[2]], n_pixels, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx2, Conversion::Gray) => unsafe { avx2::interleave([lines[0]; 3], n_pixels, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx2, Conversion::YCbCr) => unsafe { avx2::ycbcr([lines[0], lines[1], lines[2]], n_pixels, out) },
        _ => portable(model, lines, n_pixels, out),
    }
}

/// A colour model with the details of its conversion to RGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    Gray,
    YCbCr,
    Rgb,
    /// Four inks; with `is_inverted`, 255 means no ink.
    Cmyk {
        is_inverted: bool,
    },
    /// The same, with the first three transformed like YCbCr.
    Ycck {
        is_inverted: bool,
    },
}

impl Conversion {
    /// The conversion for `model`; Adobe files store inks inverted.
    pub(crate) fn new(model: ColorModel, is_adobe: bool) -> Self {
        match model {
            ColorModel::Grayscale => Conversion::Gray,
            ColorModel::YCbCr => Conversion::YCbCr,
            ColorModel::Rgb => Conversion::Rgb,
            ColorModel::Cmyk => Conversion::Cmyk { is_inverted: is_adobe },
            ColorModel::Ycck => Conversion::Ycck { is_inverted: is_adobe },
        }
    }

    fn pixel(self, [a, b, c, d]: [u8; 4]) -> [u8; 3] {
        match self {
            Conversion::Gray => [a; 3],
            Conversion::YCbCr => ycbcr(a, b, c),
            Conversion::Rgb => [a, b, c],
            Conversion::Cmyk { is_inverted } => inks([a, b, c], d, is_inverted),
            Conversion::Ycck { is_inverted } => inks(ycbcr(a, b, c).map(|v| 255 - v), d, is_inverted),
        }
    }
}

fn portable(model: Conversion, lines: [&[u8]; 4], n_pixels: usize, out: &mut [MaybeUninit<u8>]) {
    for (x, pixel) in out.chunks_exact_mut(3).take(n_pixels).enumerate() {
        let rgb = model.pixel(lines.map(|line| line.get(x).copied().unwrap_or(0)));
        for (byte, value) in pixel.iter_mut().zip(rgb) {
            byte.write(value);
        }
    }
}

fn ycbcr(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let r = y + ((91881 * cr + HALF) >> 16);
    let g = y + ((-22554 * cb - 46802 * cr + HALF) >> 16);
    let b = y + ((116130 * cb + HALF) >> 16);
    [r, g, b].map(|v| v.clamp(0, 255) as u8)
}

/// Converts three inks and black as TensorFlow does.
fn inks(colors: [u8; 3], black: u8, is_inverted: bool) -> [u8; 3] {
    let light = |ink: u8| u32::from(if is_inverted { ink } else { 255 - ink });
    colors.map(|ink| (light(ink) * light(black) / 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::{Conversion, SLACK, line};
    use crate::simd::Level;
    use std::mem::MaybeUninit;

    fn run(level: Level, model: Conversion, lines: [&[u8]; 4], n: usize) -> Vec<u8> {
        let mut out = vec![MaybeUninit::new(0); 3 * n + SLACK];
        line(level, model, lines, n, &mut out);
        // SAFETY: the vector was initialised.
        out[..3 * n].iter().map(|b| unsafe { b.assume_init() }).collect()
    }

    #[test]
    fn every_level_converts_every_colour_alike() {
        let cb: Vec<u8> = (0..=255).collect();
        for y in (0..=255).step_by(17) {
            for cr in 0..=255 {
                let (y, cr) = ([y; 256], [cr; 256]);
                for model in [Conversion::YCbCr, Conversion::Rgb, Conversion::Gray] {
                    let lines = [&y[..], &cb, &cr, &[]];
                    assert_eq!(run(Level::Portable, model, lines, 250), run(Level::detect(), model, lines, 250));
                }
            }
        }
    }

    #[test]
    fn inks_darken() {
        let lines: [&[u8]; 4] = [&[255], &[0], &[100], &[51]];
        assert_eq!(run(Level::Portable, Conversion::Cmyk { is_inverted: true }, lines, 1), [51, 0, 20]);
        assert_eq!(run(Level::Portable, Conversion::Cmyk { is_inverted: false }, lines, 1), [0, 204, 124]);
    }
}
