//! Encoded images into tensors.
//!
//! An image file becomes a `height × width × 3` array of one size for the whole dataset, exactly as
//! `tf.image.resize(tf.io.decode_image(file, channels=3), [height, width])` makes it: bilinear with half-pixel centres and
//! no antialiasing, values from 0 to 255, not normalised. Grey is replicated, a palette expanded, alpha dropped (not
//! blended), 16-bit samples cut to their upper byte. As in TensorFlow an EXIF orientation is not applied; [`info`]
//! reports it. Of an animation the first image counts, of a TIFF file the first page.
//!
//! JPEG and PNG have decoders of their own; WebP, GIF, BMP and TIFF come from the `image` crate, with the same rules: what is
//! cut off or damaged is an error, never made-up pixels. Where the first image of a GIF does not fill its screen, the rest
//! is black, as in TensorFlow. AVIF, HEIC, JPEG XL and JPEG 2000 are recognised and refused by name.
//!
//! [`ImageDecoder`] writes straight into the batch slot and keeps its buffers, so that a worker thread allocates
//! nothing once it has seen its largest image.

mod convert;
mod decoder;
mod exif;
mod gif;
mod info;
mod png;
mod raster;
mod resize;
mod sniff;
mod tiff;

pub use convert::{u8_to_f32, u8_to_f32_nchw};
pub use decoder::{ImageDecoder, Pixels};
pub use info::{ImageInfo, info};
pub(crate) use sniff::unsupported_extension;
pub use sniff::{ImageKind, declared_len, describe, sniff, sniff_unsupported};

/// The most pixels an image may have. A header that asks for more is taken as damaged or hostile.
pub const MAX_PIXELS: u64 = 1 << 27;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dtype {
    /// A byte: the float result rounded to nearest, ties to even.
    U8,
    /// A 32-bit float from 0 to 255, in the machine's byte order.
    #[default]
    F32,
}

impl Dtype {
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F32 => 4,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Row by row, the three channels of a pixel together.
    #[default]
    Nhwc,
    /// One plane per channel.
    Nchw,
}

/// What every image becomes. The default is what an ImageNet model takes: 224 × 224, float, channels last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageSpec {
    pub width: u32,
    pub height: u32,
    pub dtype: Dtype,
    pub layout: Layout,
    /// Whether a JPEG may be decoded at a half, a quarter or an eighth of its size where that is still no smaller than
    /// the target. Faster, but the pixels differ from those of a full decode.
    pub scaled_dct: bool,
}

impl Default for ImageSpec {
    fn default() -> Self {
        Self { width: 224, height: 224, dtype: Dtype::F32, layout: Layout::Nhwc, scaled_dct: false }
    }
}

impl ImageSpec {
    /// The size of one sample: three channels of every pixel.
    pub fn sample_bytes(&self) -> usize {
        (self.width as usize * self.height as usize).saturating_mul(3 * self.dtype.bytes())
    }
}

#[cfg(test)]
mod tests;
