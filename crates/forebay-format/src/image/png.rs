//! PNG through the `png` crate, brought to 8-bit RGB.

use std::io::Cursor;

use png::{ColorType, Decoder, Reader, Transformations};

use super::sniff::ImageKind;
use super::{ImageInfo, MAX_PIXELS, exif};
use crate::Error;

pub(super) fn info(bytes: &[u8]) -> Result<ImageInfo, Error> {
    let reader = Decoder::new(Cursor::new(bytes)).read_info()?;
    let info = reader.info();
    let alpha = u8::from(info.trns.is_some());
    let (channels, colour) = match info.color_type {
        ColorType::Grayscale => (1 + alpha, "greyscale"),
        ColorType::GrayscaleAlpha => (2, "greyscale and alpha"),
        ColorType::Rgb => (3 + alpha, "RGB"),
        ColorType::Rgba => (4, "RGB and alpha"),
        ColorType::Indexed => (3 + alpha, "palette"),
    };
    Ok(ImageInfo {
        kind: ImageKind::Png,
        width: info.width,
        height: info.height,
        channels,
        bits_per_channel: info.bit_depth as u8,
        orientation: info.exif_metadata.as_deref().and_then(exif::orientation),
        progressive: info.interlaced,
        colour,
    })
}

/// Decodes to RGB and returns width and height. `raw` is scratch space for images with other channels.
pub(super) fn decode_rgb(bytes: &[u8], raw: &mut Vec<u8>, rgb: &mut Vec<u8>) -> Result<(u32, u32), Error> {
    let mut decoder = Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info()?;
    let (width, height) = (header.width, header.height);
    check_pixels(width, height)?;
    let mut reader = decoder.read_info()?;
    let n_pixels = width as usize * height as usize;
    match reader.output_color_type().0 {
        ColorType::Rgb => read_frame(&mut reader, rgb)?,
        color => {
            read_frame(&mut reader, raw)?;
            rgb.resize(n_pixels * 3, 0);
            to_rgb(color, raw, rgb);
        }
    }
    Ok((width, height))
}

pub(super) fn check_pixels(width: u32, height: u32) -> Result<(), Error> {
    let found = u64::from(width) * u64::from(height);
    if found > MAX_PIXELS {
        return Err(Error::TooLarge { what: format!("image of {width}x{height} pixels"), limit: MAX_PIXELS, found });
    }
    Ok(())
}

fn read_frame(reader: &mut Reader<Cursor<&[u8]>>, out: &mut Vec<u8>) -> Result<(), Error> {
    let size = reader.output_buffer_size().ok_or(png::DecodingError::LimitsExceeded)?;
    out.resize(size, 0);
    let (width, height) = (reader.info().width, reader.info().height);
    let frame = reader.next_frame(out)?;
    if (frame.width, frame.height) != (width, height) {
        let found = format!("{}x{}", frame.width, frame.height);
        return Err(Error::invalid("png: first frame", 0, format!("the image's {width}x{height} pixels"), found));
    }
    // Reads to the end to notice a file cut after its image data. Later frames are not decoded.
    reader.finish()?;
    Ok(())
}

fn to_rgb(color: ColorType, raw: &[u8], rgb: &mut [u8]) {
    let pixels = rgb.as_chunks_mut::<3>().0.iter_mut();
    match color {
        ColorType::Grayscale => pixels.zip(raw).for_each(|(out, &grey)| *out = [grey; 3]),
        ColorType::GrayscaleAlpha => {
            pixels.zip(raw.as_chunks::<2>().0).for_each(|(out, &[grey, _])| *out = [grey; 3]);
        }
        ColorType::Rgba => pixels.zip(raw.as_chunks::<4>().0).for_each(|(out, &[r, g, b, _])| *out = [r, g, b]),
        ColorType::Rgb | ColorType::Indexed => {
            unreachable!("an expanded image has no palette, and RGB was read in place")
        }
    }
}
