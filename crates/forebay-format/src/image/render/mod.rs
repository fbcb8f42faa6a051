//! From a decoded image to a training sample: crop, resize, mirror, normalise.
//!
//! A [`View`] says which part of an image a sample shows, in the terms of torchvision's transforms: a crop in whole
//! pixels, resized as if nothing were around it, of which the sample is a window, perhaps mirrored. Only the pixels of the
//! sample are computed, from the pixels that they depend on: the rest of the image need not be there.
//!
//! With antialiasing, the filter is Pillow's bilinear one, which torchvision uses: a triangle as wide as the reduction. Pillow
//! rounds to bytes between its two passes and this code does not; the results differ by at most one grey level. Without
//! antialiasing, the filter is that of `tf.image.resize`.

mod filter;
mod finish;
mod rows;

use super::convert::{round, u8_to_f32};
use super::{Dtype, ImageSpec, Part, Tint};
use crate::Error;
use filter::Filter;
pub(super) use finish::Finish;
use rows::Rows;

/// A part of an image, in pixels from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl Rect {
    /// All of an image.
    pub fn whole((width, height): (u32, u32)) -> Self {
        Self { left: 0, top: 0, width, height }
    }

    /// Whether `other` lies in this rectangle.
    fn holds(&self, other: &Self) -> bool {
        let within = |start: u32, len: u32, own: u32, of: u32| {
            start.checked_sub(own).and_then(|start| start.checked_add(len)).is_some_and(|end| end <= of)
        };
        within(other.left, other.width, self.left, self.width) && within(other.top, other.height, self.top, self.height)
    }
}

/// Which part of an image becomes a sample, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub crop: Rect,
    /// Width and height that the crop is resized to.
    pub resized: (u32, u32),
    /// The upper left corner of the sample in the resized crop.
    pub offset: (u32, u32),
    /// Whether left and right are exchanged.
    pub mirrored: bool,
}

impl View {
    /// The whole image, resized to the size of a sample.
    pub fn whole(image: (u32, u32), sample: (u32, u32)) -> Self {
        Self { crop: Rect::whole(image), resized: sample, offset: (0, 0), mirrored: false }
    }

    /// Whether the crop lies within the image and the sample within the resized crop.
    fn fits(&self, image: (u32, u32), sample: (u32, u32)) -> bool {
        let within = |start: u32, len: u32, of: u32| len > 0 && start.checked_add(len).is_some_and(|end| end <= of);
        within(self.crop.left, self.crop.width, image.0)
            && within(self.crop.top, self.crop.height, image.1)
            && within(self.offset.0, sample.0, self.resized.0)
            && within(self.offset.1, sample.1, self.resized.1)
    }
}

/// Mean and standard deviation per channel (red, green, blue), of values from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalize {
    pub mean: [f32; 3],
    pub std: [f32; 3],
}

impl Normalize {
    /// Values from 0 to 1, as torchvision's `ToTensor` makes them.
    pub const UNIT: Self = Self { mean: [0.0; 3], std: [1.0; 3] };
    /// The mean and deviation of ImageNet that pretrained models expect.
    pub const IMAGENET: Self = Self { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
}

/// Renders samples of one kind. One per thread; it keeps its buffers.
#[derive(Debug)]
pub struct Renderer {
    spec: ImageSpec,
    is_antialiased: bool,
    columns: Filter,
    lines: Filter,
    rows: Rows,
    finish: Finish,
    /// The sample as bytes, where its colours are changed before it is finished.
    bytes: Vec<u8>,
}

impl Renderer {
    /// # Errors
    /// When the values are bytes and are to be normalised, or a deviation is not a positive number.
    pub fn new(spec: ImageSpec, is_antialiased: bool, normalize: Option<Normalize>) -> Result<Self, Error> {
        if let Some(wanted) = normalize {
            if spec.dtype == Dtype::U8 {
                return Err(Error::unsupported("normalised values of type u8: choose a float type"));
            }
            if !wanted.mean.iter().all(|mean| mean.is_finite())
                || !wanted.std.iter().all(|std| std.is_normal() && *std > 0.0)
            {
                return Err(Error::unsupported(
                    "normalising by a deviation that is not above 0, or a mean that is not a number",
                ));
            }
        }
        Ok(Self {
            spec,
            is_antialiased,
            columns: Filter::default(),
            lines: Filter::default(),
            rows: Rows::new(spec.width as usize),
            finish: Finish::new(spec, normalize),
            bytes: Vec::new(),
        })
    }

    /// The pixels of an image that a view depends on. Within the image if the view is.
    pub fn needs(&mut self, view: &View) -> Rect {
        let crop = view.crop;
        self.columns.prepare(crop.width, view.resized.0, view.offset.0, self.spec.width, self.is_antialiased);
        self.lines.prepare(crop.height, view.resized.1, view.offset.1, self.spec.height, self.is_antialiased);
        let (columns, lines) = (self.columns.span(), self.lines.span());
        Rect {
            left: crop.left + columns.start,
            top: crop.top + lines.start,
            width: columns.end - columns.start,
            height: lines.end - lines.start,
        }
    }

    /// Writes the view of an image into a slot of [`ImageSpec::sample_bytes`] bytes, with its colours changed by `tints` in
    /// their order, after the resize.
    ///
    /// # Errors
    /// When the pixels are not `width * height * 3` bytes of the part, the part lacks pixels that the view
    /// [`needs`](Self::needs), the view does not fit the image or the sample, or the slot has the wrong size or alignment.
    pub fn render(&mut self, src: Part<'_>, view: &View, tints: &[Tint], out: &mut [u8]) -> Result<(), Error> {
        let n_bytes = u64::from(src.at.width) * u64::from(src.at.height) * 3;
        if n_bytes == 0 || src.rgb.len() as u64 != n_bytes {
            return Err(Error::truncated("pixels", 0, n_bytes, src.rgb.len() as u64));
        }
        let sample = (self.spec.width, self.spec.height);
        if !view.fits(src.image, sample) {
            let (width, height) = src.image;
            let expected = format!("a view of {}x{} pixels within {width}x{height}", sample.0, sample.1);
            return Err(Error::invalid("view", 0, expected, format!("{view:?}")));
        }
        self.finish.check(out)?;
        let needed = self.needs(view);
        if !src.at.holds(&needed) {
            return Err(Error::invalid("part of an image", 0, format!("{needed:?}"), format!("{:?}", src.at)));
        }
        if view.mirrored {
            self.columns.reverse();
        }
        let line = |y: u32| {
            let row = (view.crop.top + y - src.at.top) as usize;
            let start = (row * src.at.width as usize + (needed.left - src.at.left) as usize) * 3;
            &src.rgb[start..start + needed.width as usize * 3]
        };
        let row_bytes = sample.0 as usize * 3;
        if !tints.is_empty() {
            self.bytes.resize(sample.1 as usize * row_bytes, 0);
        }
        for y in 0..sample.1 as usize {
            let row = self.rows.make(line, self.lines.tap(y), &self.columns);
            match tints {
                [] => self.finish.put(y, row, out),
                _ => round(row, &mut self.bytes[y * row_bytes..(y + 1) * row_bytes]),
            }
        }
        if !tints.is_empty() {
            tints.iter().for_each(|tint| tint.apply(&mut self.bytes));
            let mut row = vec![0.0; row_bytes];
            for (y, bytes) in self.bytes.chunks_exact(row_bytes).enumerate() {
                u8_to_f32(bytes, &mut row);
                self.finish.put(y, &mut row, out);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
