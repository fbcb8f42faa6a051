//! WebP, GIF, BMP and TIFF through the `image` crate, brought to 8-bit RGB.

use std::io::Cursor;

use image::codecs::bmp::BmpDecoder;
use image::codecs::gif::GifDecoder;
use image::codecs::tiff::TiffDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, ExtendedColorType, ImageDecoder, ImageError, Limits};

use super::sniff::{ImageKind, declared_len};
use super::{ImageInfo, MAX_PIXELS, gif, png, tiff};
use crate::{Error, Kind};

/// Allocation limit of a decoder: the largest image at 8 bytes per pixel, plus some memory for tables.
const MAX_ALLOC: u64 = MAX_PIXELS * 8 + (64 << 20);

/// Reads the headers. `bytes` may end where the image data begin; for some files this is not enough and is an error.
pub(super) fn info(kind: ImageKind, bytes: &[u8]) -> Result<ImageInfo, Error> {
    if kind == ImageKind::Gif {
        return gif_info(bytes);
    }
    with_decoder(kind, bytes, |mut decoder| {
        let (width, height) = decoder.dimensions();
        let colour = decoder.original_color_type();
        let channels = colour.channel_count();
        let palette_bits = (kind == ImageKind::Bmp).then(|| bitmap_bits(bytes)).filter(|bits| *bits <= 8);
        let orientation = decoder.orientation().ok().filter(|found| *found != Orientation::NoTransforms);
        Ok(ImageInfo {
            kind,
            width,
            height,
            channels,
            bits_per_channel: palette_bits.unwrap_or((colour.bits_per_pixel() / u16::from(channels.max(1))) as u8),
            orientation: orientation.map(Orientation::to_exif),
            progressive: false,
            colour: if palette_bits.is_some() { "palette" } else { name_of(colour) },
        })
    })
}

fn gif_info(bytes: &[u8]) -> Result<ImageInfo, Error> {
    let screen = gif::screen(bytes)?;
    Ok(ImageInfo {
        kind: ImageKind::Gif,
        width: screen.width,
        height: screen.height,
        channels: 3,
        bits_per_channel: screen.bits,
        orientation: None,
        progressive: screen.interlaced.unwrap_or(false),
        colour: "palette",
    })
}

/// Decodes to RGB and returns width and height. `raw` is scratch space for images with other channels.
pub(super) fn decode_rgb(
    kind: ImageKind,
    bytes: &[u8],
    raw: &mut Vec<u8>,
    rgb: &mut Vec<u8>,
) -> Result<(u32, u32), Error> {
    check_whole(kind, bytes)?;
    with_decoder(kind, bytes, |mut decoder| {
        let (width, height) = decoder.dimensions();
        png::check_pixels(width, height)?;
        if width == 0 || height == 0 {
            return Err(Error::invalid("image size", 0, "at least one pixel", format!("{width}x{height}")));
        }
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_ALLOC);
        decoder.set_limits(limits).map_err(|error| undecodable(kind, error))?;
        let (colour, n_pixels) = (decoder.color_type(), width as usize * height as usize);
        let into = if colour == ColorType::Rgb8 { &mut *rgb } else { &mut *raw };
        into.resize(n_pixels * usize::from(colour.bytes_per_pixel()), 0);
        decoder.read_image_boxed(into).map_err(|error| undecodable(kind, error))?;
        if colour != ColorType::Rgb8 {
            rgb.resize(n_pixels * 3, 0);
            to_rgb(colour, raw, rgb)?;
        }
        Ok((width, height))
    })
}

fn with_decoder<T>(
    kind: ImageKind,
    bytes: &[u8],
    work: impl FnOnce(Box<dyn ImageDecoder + '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let reader = Cursor::new(bytes);
    if kind == ImageKind::Tiff {
        tiff::check_directory(bytes)?;
    }
    let opened: Result<Box<dyn ImageDecoder + '_>, ImageError> = match kind {
        ImageKind::Webp => WebPDecoder::new(reader).map(|decoder| Box::new(decoder) as _),
        ImageKind::Gif => GifDecoder::new(reader).map(|decoder| Box::new(decoder) as _),
        ImageKind::Bmp => BmpDecoder::new(reader).map(|decoder| Box::new(decoder) as _),
        ImageKind::Tiff => TiffDecoder::new(reader).map(|decoder| Box::new(decoder) as _),
        // Decoded elsewhere.
        ImageKind::Jpeg | ImageKind::Png => return Err(Error::unsupported(format!("{} here", kind.name()))),
    };
    work(opened.map_err(|error| undecodable(kind, error))?)
}

fn undecodable(kind: ImageKind, source: ImageError) -> Error {
    Error::Image { format: Kind::Image(kind).name(), source }
}

/// Checks the length of containers that state it: their decoders stop after the first image.
fn check_whole(kind: ImageKind, bytes: &[u8]) -> Result<(), Error> {
    let found = bytes.len() as u64;
    match declared_len(bytes) {
        Some(needed) if found < needed => Err(Error::truncated("webp image", 0, needed, found)),
        _ if kind == ImageKind::Gif => gif::check_whole(bytes),
        _ => Ok(()),
    }
}

/// Bits of a pixel, or of an index into the palette.
fn bitmap_bits(bytes: &[u8]) -> u8 {
    // The oldest header has sizes of two bytes.
    let at = if bytes.get(14) == Some(&12) { 24 } else { 28 };
    bytes.get(at).copied().unwrap_or(u8::MAX)
}

fn name_of(colour: ExtendedColorType) -> &'static str {
    match colour.channel_count() {
        1 => "greyscale",
        2 => "greyscale and alpha",
        4 if matches!(colour, ExtendedColorType::Cmyk8 | ExtendedColorType::Cmyk16) => "CMYK",
        4 => "RGB and alpha",
        _ => "RGB",
    }
}

/// Replicates grey, drops alpha, and cuts 16 bits to the upper 8.
fn to_rgb(colour: ColorType, raw: &[u8], rgb: &mut [u8]) -> Result<(), Error> {
    fn spread<const N: usize>(raw: &[u8], rgb: &mut [u8], pixel: impl Fn(&[u8; N]) -> [u8; 3]) {
        rgb.as_chunks_mut::<3>().0.iter_mut().zip(raw.as_chunks::<N>().0).for_each(|(out, from)| *out = pixel(from));
    }
    /// The upper byte of the `n`-th value, in the machine's byte order.
    fn upper(values: &[u8], n: usize) -> u8 {
        (u16::from_ne_bytes([values[2 * n], values[2 * n + 1]]) >> 8) as u8
    }
    match colour {
        ColorType::L8 => spread(raw, rgb, |&[grey]| [grey; 3]),
        ColorType::La8 => spread(raw, rgb, |&[grey, _]| [grey; 3]),
        ColorType::Rgba8 => spread(raw, rgb, |&[r, g, b, _]| [r, g, b]),
        ColorType::L16 => spread(raw, rgb, |from: &[u8; 2]| [upper(from, 0); 3]),
        ColorType::La16 => spread(raw, rgb, |from: &[u8; 4]| [upper(from, 0); 3]),
        ColorType::Rgb16 => spread(raw, rgb, |from: &[u8; 6]| [0, 1, 2].map(|n| upper(from, n))),
        ColorType::Rgba16 => spread(raw, rgb, |from: &[u8; 8]| [0, 1, 2].map(|n| upper(from, n))),
        other => return Err(Error::unsupported(format!("pixels of type {other:?}"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
