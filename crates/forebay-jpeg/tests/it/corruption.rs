//! Data that is truncated, modified or not JPEG gives an error with a position, never a panic and never invented
//! pixels.

use forebay_jpeg::{Decoder, Error, Limits, Scale};
use proptest::prelude::*;

use crate::fixtures::{names, read};

fn decode(data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = vec![1, 2, 3];
    let result = Decoder::new().decode_rgb(data, Scale::Full, &mut out);
    if result.is_err() {
        assert!(out.is_empty(), "an error leaves no pixels");
    }
    result.map(|_| out)
}

/// Offset of the first marker `ff code`.
fn marker(data: &[u8], code: u8) -> usize {
    data.windows(2).position(|w| w == [0xFF, code]).unwrap()
}

/// Offset of the first byte of entropy-coded data.
fn scan_data(data: &[u8]) -> usize {
    let sos = marker(data, 0xDA);
    sos + 2 + usize::from(u16::from_be_bytes([data[sos + 2], data[sos + 3]]))
}

#[test]
fn other_formats_are_not_jpeg() {
    for data in [&b""[..], b"\xff", b"\xff\xd8", b"GIF89a", b"\x89PNG\r\n\x1a\n"] {
        assert_eq!(decode(data), Err(Error::NotJpeg));
        assert_eq!(Decoder::info(data), Err(Error::NotJpeg));
    }
}

#[test]
fn every_cut_before_the_last_mcu_is_an_error() {
    for name in ["420-17x33.jpg", "restart-1.jpg", "gray.jpg", "scans-noninterleaved.jpg", "progressive-17x33.jpg"] {
        let data = read(name);
        for n in (0..data.len() - 4).rev().step_by(7) {
            assert!(decode(&data[..n]).is_err(), "{name} truncated to {n} of {} bytes", data.len());
        }
    }
}

#[test]
fn cut_scan_is_truncated_at_the_length_of_the_data() {
    let data = read("420-40x25.jpg");
    let n = scan_data(&data) + 20;
    assert_eq!(decode(&data[..n]), Err(Error::Truncated { offset: n }));
}

#[test]
fn wrong_restart_marker_is_reported_with_its_offset() {
    let mut data = read("restart-1.jpg");
    let at = marker(&data, 0xD1);
    data[at + 1] = 0xD5;
    let Err(Error::Corrupt { offset, found, .. }) = decode(&data) else { panic!("{:?}", decode(&data)) };
    assert_eq!((offset, found.as_str()), (at, "marker ff d5"));
}

#[test]
fn missing_restart_marker_is_an_error() {
    let mut data = read("restart-1.jpg");
    let at = marker(&data, 0xD0);
    data.drain(at..at + 2);
    assert!(matches!(decode(&data), Err(Error::Corrupt { .. })));
}

#[test]
fn unsupported_processes_are_refused_by_name() {
    let data = read("420-16x16.jpg");
    let frame = marker(&data, 0xC0);
    for (code, name) in [(0xC3, "lossless"), (0xC5, "hierarchical"), (0xC9, "arithmetic"), (0xCA, "arithmetic")] {
        let mut data = data.clone();
        data[frame + 1] = code;
        let Err(Error::Unsupported { what }) = decode(&data) else { panic!("{name}") };
        assert!(what.contains(name), "{what}");
    }
    let mut deep = data.clone();
    deep[frame + 4] = 12;
    assert_eq!(decode(&deep), Err(Error::Unsupported { what: "12-bit samples".into() }));
    let mut two = data.clone();
    two[frame + 9] = 2;
    assert_eq!(decode(&two), Err(Error::Unsupported { what: "2 components".into() }));
}

#[test]
fn image_beyond_the_limit_or_the_data_is_refused_before_memory_is_taken() {
    let mut data = read("420-16x16.jpg");
    let frame = marker(&data, 0xC0);
    let limits = Limits { max_pixels: 255, ..Limits::default() };
    let mut out = Vec::new();
    let result = Decoder::with_limits(limits).decode_rgb(&data, Scale::Full, &mut out);
    assert_eq!(result, Err(Error::TooLarge { width: 16, height: 16, max_pixels: 255 }));
    data[frame + 5..frame + 9].copy_from_slice(&[0x20, 0, 0x20, 0]);
    let result = Decoder::new().decode_rgb(&data, Scale::Full, &mut out);
    assert_eq!((result, out.capacity()), (Err(Error::Truncated { offset: data.len() }), 0));
}

#[test]
fn scans_beyond_the_limit_are_refused() {
    let data = read("progressive-40x25.jpg");
    let limits = Limits { max_scans: 3, ..Limits::default() };
    let result = Decoder::with_limits(limits).decode_rgb(&data, Scale::Full, &mut Vec::new());
    assert!(matches!(result, Err(Error::TooManyScans { max_scans: 3, .. })), "{result:?}");
}

#[test]
fn progressive_file_without_its_last_scan_is_an_error_even_with_an_end_marker() {
    let data = read("progressive-40x25.jpg");
    let last = data.windows(2).rposition(|w| w == [0xFF, 0xDA]).unwrap();
    let mut cut = data[..last].to_vec();
    assert_eq!(decode(&cut), Err(Error::Truncated { offset: last }));
    cut.extend([0xFF, 0xD9]);
    assert!(decode(&cut).unwrap_err().to_string().contains("complete every coefficient"));
}

#[test]
fn scan_with_data_left_over_is_an_error_unless_it_is_the_last() {
    let data = read("scans-noninterleaved.jpg");
    let start = scan_data(&data);
    let end_of_first = start + data[start..].windows(2).position(|w| w[0] == 0xFF && w[1] != 0).unwrap();
    let mut extra = data.clone();
    extra.splice(end_of_first..end_of_first, [0x55, 0x55]);
    assert!(decode(&extra).is_err());
    let mut extra = data.clone();
    let end = data.len() - 2;
    extra.splice(end..end, [0x55, 0x55]);
    assert_eq!(decode(&extra), decode(&data));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn changed_bytes_never_panic_and_levels_agree(
        fixture in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        scale in prop::sample::select(vec![Scale::Full, Scale::Half, Scale::Quarter, Scale::Eighth]),
    ) {
        let names = names();
        let mut data = read(&names[fixture.index(names.len())]);
        for (at, value) in changes {
            let n = data.len();
            data[at.index(n)] = value;
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len()));
        }
        let limits = Limits { max_pixels: 1 << 20, ..Limits::default() };
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let vector = Decoder::with_limits(limits).decode_rgb(&data, scale, &mut a);
        let portable = Decoder::with_limits(limits).portable().decode_rgb(&data, scale, &mut b);
        prop_assert_eq!(vector, portable);
        prop_assert_eq!(a, b);
    }
}
