//! Meeting a file size: which quality makes this picture that many bytes.
//!
//! Coded length falls smoothly with the quantisation scale, roughly as its square root, so a secant in logarithms finds
//! the scale in a few steps. The steps are taken on a sample of the picture (a hundred units or so); the file is then
//! written once, and written a second time only when the sample misled by more than [`TOLERANCE`].

use crate::exact::{exp2, log2};

use super::jpeg::{Quantiser, Spectrum};

/// Units looked at per step of the search.
const SAMPLE: usize = 110;
/// Relative error of the size that is left as it is.
const TOLERANCE: f64 = 0.06;
/// Scales, in percent of Annex K's tables: quality 99.5 to a quality where everything is grey blocks.
const SCALES: (f64, f64) = (1.0, 1200.0);
/// Logarithmic slope of length over scale, typical of photographs near quality 90.
const SLOPE: f64 = -0.55;

/// The scale at which most pictures of `bits_per_pixel` are written: where the search starts.
fn usual_scale(bits_per_pixel: f64) -> f64 {
    (48.0 / (bits_per_pixel * bits_per_pixel).max(0.01)).clamp(SCALES.0, 400.0)
}

/// Writes the picture to `out` in about `target` bytes; returns the scale used, in percent of Annex K's tables.
pub(crate) fn write(spectrum: &Spectrum, pixels: u64, target: u64, out: &mut Vec<u8>) -> f64 {
    let mut scale = search(spectrum, pixels, target);
    out.clear();
    spectrum.write(&Quantiser::new(scale as f32), out);
    let error = out.len() as f64 / target as f64;
    if (error - 1.0).abs() > TOLERANCE {
        let better = clamped(scale * exp2(-log2(error) / local_slope(spectrum, scale)));
        if better != scale {
            scale = better;
            out.clear();
            spectrum.write(&Quantiser::new(scale as f32), out);
        }
    }
    scale
}

/// The scale whose sampled length is nearest to `target` after a few secant steps.
fn search(spectrum: &Spectrum, pixels: u64, target: u64) -> f64 {
    let stride = (spectrum.units() / SAMPLE).max(1);
    // Headers take 623 bytes; stuffing makes coded data about 1/250 longer.
    let wanted = (target.saturating_sub(623).max(16) * 8) as f64 * 0.996;
    let excess = |scale: f64| log2(spectrum.estimate_bits(&Quantiser::new(scale as f32), stride).max(1.0) / wanted);
    let mut scale = usual_scale(8.0 * target as f64 / pixels as f64);
    let (mut slope, mut miss) = (SLOPE, excess(scale));
    for _ in 0..3 {
        if miss.abs() < 0.02 {
            break;
        }
        let next = clamped(scale * exp2(-miss / slope));
        if next == scale {
            break;
        }
        let miss_there = excess(next);
        let rise = (miss_there - miss) / log2(next / scale);
        slope = rise.clamp(-1.5, -0.15);
        (scale, miss) = (next, miss_there);
    }
    scale
}

fn local_slope(spectrum: &Spectrum, scale: f64) -> f64 {
    let stride = (spectrum.units() / SAMPLE).max(1);
    let bits = |scale: f64| spectrum.estimate_bits(&Quantiser::new(scale as f32), stride).max(1.0);
    let rise = log2(bits(scale * 1.25) / bits(scale)) / log2(1.25);
    rise.clamp(-1.5, -0.15)
}

fn clamped(scale: f64) -> f64 {
    scale.clamp(SCALES.0, SCALES.1)
}
