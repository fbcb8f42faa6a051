//! From a row of floats to its place in a sample: normalised, converted, in the sample's layout.

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};

use super::super::convert::{Planes, deinterleave, round, round_nchw};
use super::super::{Dtype, ImageSpec, Layout};
use super::Normalize;
use crate::Error;

#[derive(Debug)]
pub(in super::super) struct Finish {
    spec: ImageSpec,
    /// Factor and summand of each value of a row; empty if values stay as they are.
    factors: Vec<f32>,
    summands: Vec<f32>,
    /// A row with its channels apart.
    planes: Vec<f32>,
}

impl Finish {
    pub(in super::super) fn new(spec: ImageSpec, normalize: Option<Normalize>) -> Self {
        let width = spec.width as usize;
        let (mut factors, mut summands) = (Vec::new(), Vec::new());
        if let Some(Normalize { mean, std }) = normalize {
            factors = std.map(|std| 1.0 / (255.0 * std)).repeat(width);
            summands = [0, 1, 2].map(|c| -mean[c] / std[c]).repeat(width);
        }
        Self { spec, factors, summands, planes: vec![0.0; width * 3] }
    }

    /// Checks size and alignment of a slot.
    pub(in super::super) fn check(&self, out: &[u8]) -> Result<(), Error> {
        let (expected, align) = (self.spec.sample_bytes(), self.spec.dtype.bytes());
        if out.len() != expected {
            let found = format!("{} bytes", out.len());
            return Err(Error::Slot { expected: format!("{expected} bytes"), found });
        }
        let address = out.as_ptr().addr();
        if !address.is_multiple_of(align) {
            let found = format!("the address {address:#x}");
            return Err(Error::Slot { expected: format!("alignment to {align} bytes"), found });
        }
        Ok(())
    }

    /// Writes row `y`, interleaved values from 0 to 255, into a slot that was [checked](Self::check).
    pub(in super::super) fn put(&mut self, y: usize, row: &mut [f32], out: &mut [u8]) {
        for ((value, factor), summand) in row.iter_mut().zip(&self.factors).zip(&self.summands) {
            *value = *value * factor + summand;
        }
        let (width, height) = (self.spec.width as usize, self.spec.height as usize);
        match (self.spec.dtype, self.spec.layout) {
            (Dtype::U8, Layout::Nhwc) => round(row, &mut out[y * row.len()..(y + 1) * row.len()]),
            (Dtype::U8, Layout::Nchw) => round_nchw(row, Planes::of(out).row(y * width, width)),
            (Dtype::F32, Layout::Nhwc) => values::<f32>(out)[y * row.len()..(y + 1) * row.len()].copy_from_slice(row),
            (Dtype::F32, Layout::Nchw) => deinterleave(row, Planes::of(values::<f32>(out)).row(y * width, width)),
            (half, layout) => {
                let (from, places) = match layout {
                    Layout::Nhwc => (&*row, vec![(0, row.len(), y * row.len())]),
                    Layout::Nchw => {
                        deinterleave(row, Planes::of(&mut self.planes));
                        let plane = |c: usize| (c * width, width, (c * height + y) * width);
                        (&self.planes[..], vec![plane(0), plane(1), plane(2)])
                    }
                };
                for (start, len, at) in places {
                    convert(half, &from[start..start + len], &mut values::<u16>(out)[at..at + len]);
                }
            }
        }
    }
}

fn convert(dtype: Dtype, from: &[f32], into: &mut [u16]) {
    match dtype {
        Dtype::Bf16 => into.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(from),
        _ => into.reinterpret_cast_mut::<f16>().convert_from_f32_slice(from),
    }
}

/// A number that any bytes are.
trait Plain {}
impl Plain for f32 {}
impl Plain for u16 {}

/// The slot as numbers; its alignment was checked.
fn values<T: Plain>(out: &mut [u8]) -> &mut [T] {
    // SAFETY: any bytes are valid values of these types, and any values valid bytes.
    let (before, values, after) = unsafe { out.align_to_mut::<T>() };
    assert!(before.is_empty() && after.is_empty(), "the slot was checked");
    values
}
