//! Images of every kind, and what is not an image.

use ::png::{BitDepth, ColorType, Encoder};

use super::*;
use crate::Error;

fn png(color: ColorType, depth: BitDepth, (width, height): (u32, u32), data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        encoder.set_palette(&[1, 2, 3, 40, 50, 60, 7, 8, 9, 100, 110, 120][..]);
        encoder.set_trns(&[0, 128][..]);
    }
    encoder.write_header().unwrap().write_image_data(data).unwrap();
    out
}

fn rgb(width: u32, height: u32) -> Vec<u8> {
    (0..width * height * 3).map(|n| (n * 37 % 251) as u8).collect()
}

fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let (mut out, pixels) = (Vec::new(), rgb(width.into(), height.into()));
    jpeg_encoder::Encoder::new(&mut out, 90).encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
    out
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    ImageDecoder::new(ImageSpec::default()).decode(bytes).map(|pixels| pixels.rgb.to_vec())
}

/// Five by three pixels, two-bit palette with transparency, interlaced. The pixels are those that TensorFlow 2.21's
/// `tf.io.decode_png(channels=3)` makes of it.
const INTERLACED: &[u8] = b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x05\x00\x00\x00\
    \x03\x02\x03\x00\x00\x01\x51\x5f\x1d\xfd\x00\x00\x00\x0c\x50\x4c\x54\x45\x4c\x46\xc1\x68\x2a\xfa\xd1\xa4\x02\x2c\xb2\
    \x8c\x13\x65\xc1\x83\x00\x00\x00\x02\x74\x52\x4e\x53\x00\x80\x9b\x2b\x4e\x18\x00\x00\x00\x17\x49\x44\x41\x54\x78\x9c\
    \x63\x70\x60\x60\x60\x38\xc0\x70\x85\x61\x03\x43\x01\x83\x8d\x03\x00\x18\x47\x03\x71\xbe\xcd\x18\x38\x00\x00\x00\x00\
    \x49\x45\x4e\x44\xae\x42\x60\x82";

#[test]
fn an_interlaced_palette_is_expanded_as_tensorflow_does() {
    let [a, b, c, d] = [[76, 70, 193], [104, 42, 250], [209, 164, 2], [44, 178, 140]];
    let expected = [b, c, d, d, a, a, d, d, a, b, d, b, b, d, b].concat();
    assert_eq!(decode(INTERLACED).unwrap(), expected);
    let info = info(INTERLACED).unwrap();
    assert_eq!((info.width, info.height, info.bits_per_channel, info.channels), (5, 3, 2, 4));
    assert_eq!((info.colour, info.progressive, info.orientation), ("palette", true, None));
}

#[test]
fn every_kind_of_png_becomes_rgb() {
    for (color, depth, data, expected) in [
        (ColorType::Grayscale, BitDepth::Eight, &[5, 200][..], [5, 5, 5, 200, 200, 200]),
        (ColorType::Grayscale, BitDepth::Four, &[0x1f], [17, 17, 17, 255, 255, 255]),
        (ColorType::Grayscale, BitDepth::Sixteen, &[5, 255, 200, 0], [5, 5, 5, 200, 200, 200]),
        (ColorType::GrayscaleAlpha, BitDepth::Eight, &[5, 0, 200, 9], [5, 5, 5, 200, 200, 200]),
        (ColorType::Rgb, BitDepth::Eight, &[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
        (ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 0, 4, 5, 6, 9], [1, 2, 3, 4, 5, 6]),
        (ColorType::Rgb, BitDepth::Sixteen, &[1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9], [1, 2, 3, 4, 5, 6]),
        (ColorType::Indexed, BitDepth::Two, &[0b0111_0000], [40, 50, 60, 100, 110, 120]),
    ] {
        assert_eq!(decode(&png(color, depth, (2, 1), data)).unwrap(), expected, "{color:?} {depth:?}");
    }
}

#[test]
fn a_png_cut_anywhere_is_an_error() {
    let bytes = png(ColorType::Rgb, BitDepth::Eight, (9, 7), &rgb(9, 7));
    for cut in 0..bytes.len() {
        assert!(decode(&bytes[..cut]).is_err(), "cut at {cut} of {}", bytes.len());
    }
}

#[test]
fn a_bit_flipped_in_the_data_of_a_png_is_detected() {
    let whole = png(ColorType::Rgb, BitDepth::Eight, (9, 7), &rgb(9, 7));
    let data = whole.windows(4).position(|four| four == b"IDAT").unwrap() + 4;
    for bit in data * 8..(whole.len() - 12) * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn an_image_larger_than_the_limit_is_refused_before_it_is_allocated() {
    let mut bytes = png(ColorType::Grayscale, BitDepth::Eight, (1, 1), &[0]);
    bytes[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    let crc = crc32_of(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    assert!(matches!(decode(&bytes), Err(Error::TooLarge { found: 0x1_0000_0000, .. })));
}

fn crc32_of(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn what_cannot_be_decoded_is_named() {
    assert!(decode(b"").unwrap_err().to_string().ends_with("an empty file"));
    assert_eq!(decode(b"\xff\x0a\xfa").unwrap_err().to_string(), "JPEG XL is not supported");
    assert!(matches!(decode(&jpeg(20, 10)[..200]), Err(Error::Jpeg(_))));
}

#[test]
fn a_jpeg_is_decoded_and_resized_into_the_slot() {
    let bytes = jpeg(40, 30);
    let spec = ImageSpec { width: 20, height: 16, dtype: Dtype::U8, ..ImageSpec::default() };
    let mut decoder = ImageDecoder::new(spec);
    let (mut together, mut apart) = (vec![0; spec.sample_bytes()], vec![1; spec.sample_bytes()]);
    decoder.decode_into(&bytes, &mut together).unwrap();
    let pixels = decoder.decode(&bytes).unwrap();
    assert_eq!((pixels.width, pixels.height, pixels.rgb.len()), (40, 30, 3600));
    decoder.resize_into(&mut apart).unwrap();
    assert_eq!(together, apart);
    assert!(together.iter().any(|&value| value != together[0]));
}

#[test]
fn a_part_of_a_jpeg_has_the_pixels_of_the_whole() {
    let (bytes, at) = (jpeg(90, 70), Rect { left: 21, top: 33, width: 30, height: 9 });
    let whole = decode(&bytes).unwrap();
    let mut decoder = ImageDecoder::new(ImageSpec::default());
    let mut image = None;
    let choose = |size| {
        image = Some(size);
        at
    };
    let part = decoder.decode_part(&bytes, choose).unwrap();
    let row = |y: u32| &whole[3 * (y * 90 + at.left) as usize..][..3 * at.width as usize];
    let expected: Vec<u8> = (at.top..at.top + at.height).flat_map(row).copied().collect();
    assert_eq!(part, Part { image: (90, 70), at, rgb: &expected });
    assert_eq!(image, Some((90, 70)));
    let mut slot = vec![0; ImageSpec::default().sample_bytes()];
    assert!(decoder.resize_into(&mut slot).is_err(), "a part is not the image");
    let png = decoder.decode_part(INTERLACED, |_| unreachable!("decoded whole")).unwrap();
    assert_eq!((png.image, png.at), ((5, 3), Rect::whole((5, 3))));
    let beyond = Rect { left: 80, ..at };
    assert!(matches!(decoder.decode_part(&bytes, |_| beyond), Err(Error::Jpeg(_))));
}

#[test]
fn scaled_decoding_takes_the_smallest_size_that_covers_the_target() {
    for (target, expected) in [((20, 10), (20, 10)), ((40, 20), (40, 20)), ((41, 20), (80, 40)), ((200, 9), (160, 80))]
    {
        let spec = ImageSpec { width: target.0, height: target.1, scaled_dct: true, ..ImageSpec::default() };
        let mut decoder = ImageDecoder::new(spec);
        let pixels = decoder.decode(&jpeg(160, 80)).map(|pixels| (pixels.width, pixels.height));
        assert_eq!(pixels.unwrap(), expected, "{target:?}");
    }
}

#[test]
fn after_a_failed_decode_there_is_nothing_to_resize() {
    let spec = ImageSpec { width: 1, height: 1, dtype: Dtype::U8, ..ImageSpec::default() };
    let mut decoder = ImageDecoder::new(spec);
    assert!(decoder.resize_into(&mut [0; 3]).is_err());
    decoder.decode(INTERLACED).unwrap();
    decoder.resize_into(&mut [0; 3]).unwrap();
    assert!(decoder.decode(b"not an image").is_err());
    assert!(decoder.resize_into(&mut [0; 3]).unwrap_err().to_string().contains("a decoded image"));
}

#[test]
fn a_decoder_can_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<ImageDecoder>();
}

#[test]
fn a_sample_has_three_channels_of_every_pixel() {
    assert_eq!(ImageSpec::default().sample_bytes(), 602_112);
    assert_eq!(ImageSpec { dtype: Dtype::U8, ..ImageSpec::default() }.sample_bytes(), 150_528);
}
