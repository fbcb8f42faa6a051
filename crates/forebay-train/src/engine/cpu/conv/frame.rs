//! An image with a margin of zeros.

use crate::shape::Shape;

/// Numbers of channels at whose multiples neighbouring pixels map to the same set of the L1 cache.
const CLASHING: usize = 512;
/// How far conflicting pixels are moved apart: one cache line.
const APART: usize = 16;

/// How an image is laid out for a sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    image: Shape,
    top: usize,
    left: usize,
    height: usize,
    pub(super) width: usize,
    pub(super) pixel: usize,
}

impl Frame {
    /// A frame of `height` × `width` with the image at (`top`, `left`). `lone` pixels, which no run crosses, may be
    /// moved apart.
    pub(super) fn new(image: Shape, (top, left): (usize, usize), (height, width): (usize, usize), lone: bool) -> Self {
        let clash = lone && image.channels.is_multiple_of(CLASHING);
        Self { image, top, left, height, width, pixel: image.channels + if clash { APART } else { 0 } }
    }

    pub(super) fn row(&self) -> usize {
        self.width * self.pixel
    }

    fn is_bare(&self) -> bool {
        let same = self.height == self.image.height && self.width == self.image.width;
        same && self.pixel == self.image.channels
    }

    pub(super) fn scratch_len(&self) -> usize {
        if self.is_bare() { 0 } else { self.height * self.row() }
    }

    /// The framed image: the image itself, or a copy in scratch memory.
    pub(super) fn fill<'a>(&self, image: &'a [f32], scratch: &'a mut [f32]) -> &'a [f32] {
        if self.is_bare() {
            return image;
        }
        let line = self.image.width * self.image.channels;
        for (y, row) in scratch.chunks_exact_mut(self.row()).enumerate() {
            let Some(from) = y.checked_sub(self.top).filter(|y| *y < self.image.height) else {
                row.fill(0.0);
                continue;
            };
            self.fill_row(&image[from * line..][..line], row);
        }
        scratch
    }

    fn fill_row(&self, from: &[f32], row: &mut [f32]) {
        let start = self.left * self.pixel;
        let end = start + self.image.width.min(self.width - self.left) * self.pixel;
        row[..start].fill(0.0);
        row[end..].fill(0.0);
        if self.pixel == self.image.channels {
            row[start..end].copy_from_slice(&from[..end - start]);
            return;
        }
        for (to, from) in row[start..end].chunks_exact_mut(self.pixel).zip(from.chunks_exact(self.image.channels)) {
            to[..self.image.channels].copy_from_slice(from);
        }
    }
}
