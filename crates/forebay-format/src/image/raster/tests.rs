//! Images that the `image` crate writes, cut and damaged, and one that libwebp wrote.

use image::codecs::bmp::BmpEncoder;
use image::codecs::gif::GifEncoder;
use image::codecs::tiff::TiffEncoder;
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, Frame, ImageEncoder, RgbaImage};

use super::super::{ImageDecoder, ImageKind, ImageSpec, info, sniff};
use crate::Error;

const WIDTH: u32 = 9;
const HEIGHT: u32 = 7;

/// Few colours, so that a palette holds them all.
fn pixels() -> Vec<u8> {
    (0..WIDTH * HEIGHT).flat_map(|n| [(n % 5 * 60) as u8, (n % 3 * 100) as u8, (n / WIDTH * 30) as u8]).collect()
}

fn with_alpha() -> Vec<u8> {
    pixels().as_chunks::<3>().0.iter().zip(0_u8..).flat_map(|([r, g, b], n)| [*r, *g, *b, n * 4]).collect()
}

fn encode(kind: ImageKind, data: &[u8], colour: ExtendedColorType) -> Vec<u8> {
    let mut out = std::io::Cursor::new(Vec::new());
    match kind {
        ImageKind::Webp => WebPEncoder::new_lossless(&mut out).write_image(data, WIDTH, HEIGHT, colour),
        ImageKind::Bmp => BmpEncoder::new(&mut out).write_image(data, WIDTH, HEIGHT, colour),
        ImageKind::Tiff => TiffEncoder::new(&mut out).write_image(data, WIDTH, HEIGHT, colour),
        _ => GifEncoder::new(&mut out).encode(data, WIDTH, HEIGHT, colour),
    }
    .unwrap();
    out.into_inner()
}

fn one_of_each() -> Vec<(ImageKind, Vec<u8>)> {
    [ImageKind::Webp, ImageKind::Gif, ImageKind::Bmp, ImageKind::Tiff]
        .map(|kind| (kind, encode(kind, &pixels(), ExtendedColorType::Rgb8)))
        .to_vec()
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    ImageDecoder::new(ImageSpec::default()).decode(bytes).map(|pixels| pixels.rgb.to_vec())
}

#[test]
fn every_format_has_the_pixels_it_was_made_from() {
    for (kind, bytes) in one_of_each() {
        assert_eq!(sniff(&bytes), Some(kind));
        assert_eq!(decode(&bytes).unwrap(), pixels(), "{kind:?}");
        let info = info(&bytes).unwrap();
        assert_eq!((info.kind, info.width, info.height, info.channels), (kind, WIDTH, HEIGHT, 3));
        let expected = if kind == ImageKind::Gif { "palette" } else { "RGB" };
        assert_eq!((info.colour, info.orientation, info.progressive), (expected, None, false), "{kind:?}");
    }
}

#[test]
fn alpha_is_dropped_and_grey_is_replicated() {
    for kind in [ImageKind::Webp, ImageKind::Bmp, ImageKind::Tiff] {
        let bytes = encode(kind, &with_alpha(), ExtendedColorType::Rgba8);
        assert_eq!(decode(&bytes).unwrap(), pixels(), "{kind:?}");
    }
    let grey: Vec<u8> = (0..(WIDTH * HEIGHT) as u8).collect();
    let expected: Vec<u8> = grey.iter().flat_map(|value| [*value; 3]).collect();
    for kind in [ImageKind::Bmp, ImageKind::Tiff] {
        let bytes = encode(kind, &grey, ExtendedColorType::L8);
        assert_eq!(decode(&bytes).unwrap(), expected, "{kind:?}");
    }
}

#[test]
fn sixteen_bits_are_cut_to_their_upper_byte() {
    let wide: Vec<u8> = pixels().iter().flat_map(|&value| (u16::from(value) << 8 | 0x00ff).to_ne_bytes()).collect();
    let bytes = encode(ImageKind::Tiff, &wide, ExtendedColorType::Rgb16);
    assert_eq!(decode(&bytes).unwrap(), pixels());
    assert_eq!(info(&bytes).unwrap().bits_per_channel, 16);
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for (kind, bytes) in one_of_each() {
        // The pixels of a bitmap are its last bytes; those of a TIFF file need not be, but everything before them counts.
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "{kind:?} cut at {cut} of {}", bytes.len());
        }
    }
}

#[test]
fn of_an_animation_the_first_image_counts_and_the_rest_must_be_there() {
    let frame = |value: u8| Frame::new(RgbaImage::from_pixel(WIDTH, HEIGHT, image::Rgba([value, 0, value, 255])));
    let mut bytes = Vec::new();
    GifEncoder::new(&mut bytes).encode_frames([frame(200), frame(90)]).unwrap();
    assert_eq!(decode(&bytes).unwrap(), [200, 0, 200].repeat((WIDTH * HEIGHT) as usize));
    for cut in 13..bytes.len() {
        assert!(decode(&bytes[..cut]).is_err(), "cut at {cut} of {}", bytes.len());
    }
}

#[test]
fn an_image_larger_than_the_limit_is_refused() {
    let mut gif = encode(ImageKind::Gif, &pixels(), ExtendedColorType::Rgb8);
    gif[6..10].fill(0xff);
    let mut bmp = encode(ImageKind::Bmp, &pixels(), ExtendedColorType::Rgb8);
    bmp[18..26].copy_from_slice(&[0, 0xf0, 0, 0, 0, 0xf0, 0, 0]);
    for bytes in [gif, bmp] {
        assert!(matches!(decode(&bytes), Err(Error::TooLarge { .. })), "{:?}", decode(&bytes).map(|_| ()));
    }
}

#[test]
fn no_flipped_bit_is_more_than_an_error() {
    for (_, whole) in one_of_each() {
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(rgb) = decode(&bytes) {
                assert!(!rgb.is_empty() && rgb.len() % 3 == 0, "bit {bit}");
            }
        }
    }
}

/// Five by six pixels, lossy, as Pillow 13 with libwebp writes them.
const LOSSY: &[u8] = b"RIFFH\0\0\0WEBPVP8 \x3c\0\0\0\xb0\x01\0\x9d\x01\x2a\x05\0\x06\0\x01\x40\x26\x25\xa8\x02\x74\x01\x0e\xbb\
    \x04\x80\0\xfe\xfb\x27\x30\x63\x0e\x98\x11\x91\x84\x3d\x46\x40\xcb\x6a\xc2\x0e\x75\xdf\xf7\xe0\x85\x77\x4f\x1d\x5f\xa8\
    \x5c\x3f\xf6\x2f\xe5\x96\xef\x80\0\0";

/// The first two rows of what libwebp decodes it to.
const LOSSY_ROWS: [u8; 30] = [
    1, 1, 1, 27, 7, 16, 69, 13, 37, 103, 15, 53, 132, 16, 69, 16, 36, 27, 40, 43, 42, 82, 47, 63, 117, 48, 78, 146, 50,
    94,
];

#[test]
fn lossy_webp_has_libwebps_pixels() {
    assert_eq!(decode(LOSSY).unwrap()[..30], LOSSY_ROWS);
    let info = info(LOSSY).unwrap();
    assert_eq!((info.kind, info.width, info.height, info.colour), (ImageKind::Webp, 5, 6, "RGB"));
}

#[test]
fn a_lossy_webp_whose_data_end_early_is_an_error_even_where_all_lengths_fit() {
    for len in (2..0x38_u8).step_by(2) {
        let mut bytes = LOSSY[..20 + usize::from(len)].to_vec();
        bytes[4] = 12 + len;
        bytes[16] = len;
        assert!(decode(&bytes).is_err(), "{len} bytes of data");
    }
}

#[test]
fn a_gif_whose_data_end_early_is_an_error_even_where_all_blocks_are_there() {
    let whole = encode(ImageKind::Gif, &pixels(), ExtendedColorType::Rgb8);
    let image = whole.windows(5).rposition(|five| five == [0x2c, 0, 0, 0, 0]).unwrap();
    let flags = whole[image + 9];
    let data = image + 10 + if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) } + 1;
    let len = usize::from(whole[data]);
    for kept in 1..len - 2 {
        let bytes = [&whole[..data], &[kept as u8], &whole[data + 1..][..kept], &[0, 0x3b]].concat();
        assert!(decode(&bytes).is_err(), "{kept} of {len} bytes of data");
    }
}
