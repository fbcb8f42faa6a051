//! Bilinear resize with half-pixel centres, as `tf.image.resize(method="bilinear", antialias=False)` does it.
//!
//! An output pixel is a weighted mean of the four source pixels around its centre, first along the row, then between the
//! rows, in 32-bit floats. The horizontal weights and source places are the same for every row and for every image of one
//! width, so they are laid out once in the order the vector code consumes them ([`Columns`]) and kept until an image of
//! another width arrives.
//!
//! Against TensorFlow the results differ by rounding only, below 1e-4 grey levels: the vector code fuses multiplication and
//! addition and so rounds less often.

mod columns;
mod taps;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use super::convert::{Planes, Store, deinterleave, round, round_nchw, u8_to_f32, u8_to_f32_nchw};
use super::render::Finish;
use super::{Dtype, ImageSpec, Layout, Pixels};
use crate::Error;
use columns::Columns;
use taps::{Tap, taps};

/// Resizes images of any size to one size.
#[derive(Debug)]
pub(super) struct Resizer {
    spec: ImageSpec,
    columns: Columns,
    /// One output row, where it cannot be written in place.
    row: Vec<f32>,
    /// Writes 16-bit values.
    finish: Finish,
}

impl Resizer {
    pub(super) fn new(spec: ImageSpec) -> Self {
        let row = vec![0.0; spec.width as usize * 3];
        Self { spec, columns: Columns::default(), row, finish: Finish::new(spec, None) }
    }

    pub(super) fn resize(&mut self, src: Pixels<'_>, out: &mut [u8]) -> Result<(), Error> {
        let expected = self.spec.sample_bytes();
        if out.len() != expected {
            let found = format!("{} bytes", out.len());
            return Err(Error::Slot { expected: format!("{expected} bytes"), found });
        }
        let same_size = (src.width, src.height) == (self.spec.width, self.spec.height);
        match (self.spec.dtype, self.spec.layout) {
            (Dtype::F32, Layout::Nhwc) if same_size => u8_to_f32(src.rgb, floats(out)?),
            (Dtype::F32, Layout::Nchw) if same_size => u8_to_f32_nchw(src.rgb, floats(out)?),
            (Dtype::U8, Layout::Nhwc) if same_size => out.copy_from_slice(src.rgb),
            (Dtype::F32, Layout::Nhwc) => self.resize_in_place(src, floats(out)?),
            (Dtype::F32, Layout::Nchw) => self.resize_planes(src, floats(out)?, deinterleave),
            (Dtype::U8, Layout::Nchw) => self.resize_planes(src, out, round_nchw),
            (Dtype::U8, Layout::Nhwc) => self.resize_bytes(src, out),
            (Dtype::F16 | Dtype::Bf16, _) => {
                self.finish.check(out)?;
                self.resize_halves(src, out);
            }
        }
        Ok(())
    }

    fn resize_halves(&mut self, src: Pixels<'_>, out: &mut [u8]) {
        self.columns.prepare(src.width, self.spec.width);
        for (y, tap) in taps(src.height, self.spec.height).enumerate() {
            self.columns.resize_row(src, tap, &mut self.row, Store::Cached);
            self.finish.put(y, &mut self.row, out);
        }
    }

    fn resize_in_place(&mut self, src: Pixels<'_>, out: &mut [f32]) {
        self.columns.prepare(src.width, self.spec.width);
        let store = Store::for_slot(out);
        let rows = out.chunks_exact_mut(self.spec.width as usize * 3);
        for (out, tap) in rows.zip(taps(src.height, self.spec.height)) {
            self.columns.resize_row(src, tap, out, store);
        }
        store.complete();
    }

    fn resize_bytes(&mut self, src: Pixels<'_>, out: &mut [u8]) {
        self.columns.prepare(src.width, self.spec.width);
        let rows = out.chunks_exact_mut(self.row.len());
        for (out, tap) in rows.zip(taps(src.height, self.spec.height)) {
            self.columns.resize_row(src, tap, &mut self.row, Store::Cached);
            round(&self.row, out);
        }
    }

    fn resize_planes<T>(&mut self, src: Pixels<'_>, out: &mut [T], split: impl Fn(&[f32], Planes<'_, T>)) {
        self.columns.prepare(src.width, self.spec.width);
        let width = self.spec.width as usize;
        let mut planes = Planes::of(out);
        for (y, tap) in taps(src.height, self.spec.height).enumerate() {
            self.columns.resize_row(src, tap, &mut self.row, Store::Cached);
            split(&self.row, planes.row(y * width, width));
        }
    }
}

fn floats(out: &mut [u8]) -> Result<&mut [f32], Error> {
    let address = out.as_ptr().addr();
    // SAFETY: any bytes are valid floats, and any floats valid bytes.
    let (before, floats, after) = unsafe { out.align_to_mut::<f32>() };
    if before.is_empty() && after.is_empty() {
        return Ok(floats);
    }
    let found = format!("the address {address:#x}");
    Err(Error::Slot { expected: "alignment to 4 bytes".to_owned(), found })
}

#[cfg(test)]
mod tests;
