//! An image's properties from its headers, without decoding it.

use forebay_jpeg::ColorModel;

use super::sniff::{ImageKind, recognise};
use super::{png, raster};
use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    pub kind: ImageKind,
    /// As stored: an EXIF orientation is not applied to width and height.
    pub width: u32,
    pub height: u32,
    /// Channels per pixel, including alpha; a palette counts as three.
    pub channels: u8,
    /// Bits per channel, or per palette index.
    pub bits_per_channel: u8,
    /// The EXIF orientation, 1 to 8, if present.
    pub orientation: Option<u8>,
    /// Whether the image is stored in passes: a progressive JPEG, an interlaced PNG or GIF.
    pub progressive: bool,
    /// The colour model, as text for display.
    pub colour: &'static str,
}

/// Reads the headers of an image. `bytes` may end where the image data begin, except for WebP and TIFF files, whose
/// headers may be anywhere.
///
/// # Errors
/// When `bytes` are not an image of a supported format, or the headers are damaged or incomplete.
pub fn info(bytes: &[u8]) -> Result<ImageInfo, Error> {
    match recognise(bytes)? {
        ImageKind::Png => png::info(bytes),
        kind @ (ImageKind::Webp | ImageKind::Gif | ImageKind::Bmp | ImageKind::Tiff) => raster::info(kind, bytes),
        ImageKind::Jpeg => {
            let info = forebay_jpeg::Decoder::info(bytes)?;
            Ok(ImageInfo {
                kind: ImageKind::Jpeg,
                width: info.width,
                height: info.height,
                channels: info.components,
                bits_per_channel: 8,
                orientation: info.orientation,
                progressive: info.progressive,
                colour: match info.color {
                    ColorModel::Grayscale => "greyscale",
                    ColorModel::YCbCr => "YCbCr",
                    ColorModel::Rgb => "RGB",
                    ColorModel::Cmyk => "CMYK",
                    ColorModel::Ycck => "YCCK",
                },
            })
        }
    }
}
