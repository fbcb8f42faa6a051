//! Decoding images into tensors.
//!
//! An image file becomes a `height × width × 3` array of one size for the whole dataset, exactly as
//! `tf.image.resize(tf.io.decode_image(file, channels=3), [height, width])` makes it: bilinear with half-pixel centres and
//! no antialiasing, values from 0 to 255, not normalised. Grey is replicated, a palette expanded, alpha dropped (not
//! blended), 16-bit samples cut to their upper byte. As in TensorFlow an EXIF orientation is not applied; [`info`]
//! reports it. Only the first image of an animation and the first page of a TIFF file are decoded.
//!
//! JPEG is decoded by `forebay-jpeg`, PNG by the `png` crate, and WebP, GIF, BMP and TIFF by the `image` crate. The same
//! rules apply to all: a truncated or damaged file is an error, never made-up pixels. If the first image of a GIF does not
//! fill its screen, the rest is black, as in TensorFlow. AVIF, HEIC, JPEG XL and JPEG 2000 are recognised and refused by
//! name.
//!
//! [`ImageDecoder`] writes straight into the batch slot and keeps its buffers: a worker thread stops allocating once it
//! has seen its largest image. A [`Renderer`] makes other samples of decoded images: cropped, mirrored, antialiased,
//! normalised.

mod convert;
mod decoder;
mod exif;
mod gif;
mod info;
mod png;
mod raster;
mod render;
mod resize;
mod sniff;
mod tiff;
mod tint;

pub use convert::{u8_to_f32, u8_to_f32_nchw};
pub use decoder::{ImageDecoder, Part, Pixels};
pub use info::{ImageInfo, info};
pub use render::{Normalize, Rect, Renderer, View};
pub(crate) use sniff::unsupported_extension;
pub use sniff::{ImageKind, declared_len, describe, sniff, sniff_unsupported};
pub use tint::Tint;

/// The maximum number of pixels. A header with more is treated as damaged or hostile.
pub const MAX_PIXELS: u64 = 1 << 27;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dtype {
    /// A byte: the float result rounded to nearest, ties to even.
    U8,
    /// A 32-bit float from 0 to 255, in the machine's byte order.
    #[default]
    F32,
    /// A 16-bit float of IEEE 754, rounded to nearest.
    F16,
    /// The upper half of a 32-bit float, rounded to nearest.
    Bf16,
}

impl Dtype {
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
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

/// The size, type and layout of decoded samples. The default suits ImageNet models: 224 × 224, float, channels last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageSpec {
    pub width: u32,
    pub height: u32,
    pub dtype: Dtype,
    pub layout: Layout,
    /// Whether a JPEG may be decoded at a half, a quarter or an eighth of its size, if that is not smaller than the
    /// target. Faster, but the pixels differ from a full decode.
    pub scaled_dct: bool,
}

impl Default for ImageSpec {
    fn default() -> Self {
        Self { width: 224, height: 224, dtype: Dtype::F32, layout: Layout::Nhwc, scaled_dct: false }
    }
}

impl ImageSpec {
    /// The size of one sample in bytes.
    pub fn sample_bytes(&self) -> usize {
        (self.width as usize * self.height as usize).saturating_mul(3 * self.dtype.bytes())
    }
}

#[cfg(test)]
mod tests;
