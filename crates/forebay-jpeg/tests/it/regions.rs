//! Parts of images: the pixels of the whole, and the errors of the whole.

use forebay_jpeg::{Decoder, Error, Region, Scale};
use proptest::prelude::*;

use crate::fixtures;
use crate::generated::{case, encode};

const SCALES: [Scale; 4] = [Scale::Full, Scale::Half, Scale::Quarter, Scale::Eighth];

/// The part between these shares of the sides, at least a pixel.
fn region((width, height): (u32, u32), shares: [f64; 4]) -> Region {
    let range = |side: u32, a: f64, b: f64| {
        let at = |share: f64| (share * f64::from(side)) as u32;
        let start = at(a.min(b)).min(side - 1);
        (start, at(a.max(b)).max(start + 1) - start)
    };
    let ((left, width), (top, height)) = (range(width, shares[0], shares[1]), range(height, shares[2], shares[3]));
    Region { left, top, width, height }
}

fn cut(whole: &[u8], width: u32, part: Region) -> Vec<u8> {
    let row = |y: u32| {
        let start = 3 * (y * width + part.left) as usize;
        &whole[start..start + 3 * part.width as usize]
    };
    (part.top..part.top + part.height).flat_map(row).copied().collect()
}

fn check(data: &[u8], scale: Scale, shares: [f64; 4]) -> Result<(), TestCaseError> {
    let (mut whole, mut part) = (Vec::new(), Vec::new());
    let info = Decoder::new().decode_rgb(data, scale, &mut whole).unwrap();
    let wanted = region((info.output_width, info.output_height), shares);
    let expected = cut(&whole, info.output_width, wanted);
    for mut decoder in [Decoder::new(), Decoder::new().portable()] {
        // What was decoded before must not show.
        decoder.decode_rgb(&fixtures::read("photo-420.jpg"), Scale::Full, &mut part).unwrap();
        let found = decoder.decode_rgb_region(data, scale, |_| wanted, &mut part).unwrap();
        prop_assert_eq!(found, info);
        prop_assert!(part == expected, "{:?} of {:?} at {:?}", wanted, info, scale);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_part_has_the_pixels_of_the_whole(case in case(), shares in prop::array::uniform4(0.0..=1.0f64)) {
        let data = encode(&case);
        for scale in SCALES {
            check(&data, scale, shares)?;
        }
    }
}

#[test]
fn parts_of_every_fixture_have_its_pixels() {
    for name in fixtures::names() {
        let data = fixtures::read(&name);
        for scale in SCALES {
            for shares in [[0.0, 0.4, 0.0, 0.4], [0.3, 0.6, 0.2, 0.9], [0.7, 1.0, 0.7, 1.0], [0.5, 0.5, 0.0, 1.0]] {
                check(&data, scale, shares).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}

#[test]
fn damage_outside_the_part_is_an_error_too() {
    let data = fixtures::read("photo-420.jpg");
    let corner = Region { left: 0, top: 0, width: 8, height: 8 };
    let mut out = Vec::new();
    for n_bytes in [data.len() / 2, data.len() * 9 / 10] {
        let part = Decoder::new().decode_rgb_region(&data[..n_bytes], Scale::Full, |_| corner, &mut out);
        let whole = Decoder::new().decode_rgb(&data[..n_bytes], Scale::Full, &mut out);
        assert_eq!(part, whole);
        assert!(matches!(part, Err(Error::Truncated { .. })) && out.is_empty());
    }
}

#[test]
fn a_part_outside_the_image_is_refused() {
    let data = fixtures::read("420-17x33.jpg");
    let beyond = Region { left: 16, top: 0, width: 2, height: 1 };
    let mut out = Vec::new();
    let refused = Decoder::new().decode_rgb_region(&data, Scale::Full, |_| beyond, &mut out).unwrap_err();
    assert_eq!(refused, Error::NoSuchRegion { region: beyond, width: 17, height: 33 });
    assert!(refused.to_string().starts_with("no part of 17x33 pixels"));
}
