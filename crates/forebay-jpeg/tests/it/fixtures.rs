//! Files made by libjpeg-turbo and others, with the checksums of libjpeg-turbo's pixels.

use std::path::{Path, PathBuf};

use forebay_jpeg::{ColorModel, Decoder, Scale};

pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = folder().join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = rows().into_iter().map(|row| row.name).collect();
    names.dedup();
    names
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

struct Row {
    name: String,
    scale: Scale,
    size: (u32, u32),
    crc: u32,
}

fn rows() -> Vec<Row> {
    let table = std::fs::read_to_string(folder().join("expected.tsv")).unwrap();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let scale = match fields[1] {
            "1" => Scale::Full,
            "2" => Scale::Half,
            "4" => Scale::Quarter,
            "8" => Scale::Eighth,
            other => panic!("scale {other}"),
        };
        let size = (fields[2].parse().unwrap(), fields[3].parse().unwrap());
        Row { name: fields[0].into(), scale, size, crc: u32::from_str_radix(fields[4], 16).unwrap() }
    };
    table.lines().skip(1).map(row).collect()
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

fn check_all(mut decoder: Decoder) {
    let mut out = Vec::new();
    let rows = rows();
    assert!(rows.len() > 3 * names().len());
    for row in rows {
        let info = decoder.decode_rgb(&read(&row.name), row.scale, &mut out);
        let info = info.unwrap_or_else(|e| panic!("{} at {:?}: {e}", row.name, row.scale));
        assert_eq!((info.output_width, info.output_height), row.size, "{} at {:?}", row.name, row.scale);
        assert_eq!(out.len(), 3 * (row.size.0 * row.size.1) as usize);
        assert_eq!(crc32(&out), row.crc, "pixels of {} at {:?}", row.name, row.scale);
    }
}

#[test]
fn every_fixture_has_the_pixels_of_libjpeg_turbo() {
    check_all(Decoder::new());
}

#[test]
fn portable_code_gives_the_same_pixels() {
    check_all(Decoder::new().portable());
}

#[test]
fn info_tells_size_colour_process_and_orientation() {
    let info = |name: &str| Decoder::info(&read(name)).unwrap();
    let exif = info("exif-orientation-6.jpg");
    assert_eq!((exif.width, exif.height, exif.orientation), (20, 12, Some(6)));
    assert_eq!((exif.output_width, exif.output_height, exif.components), (20, 12, 3));
    let models = ["gray", "420-16x16", "rgb", "cmyk-plain"].map(|name| info(&format!("{name}.jpg")).color);
    assert_eq!(models, [ColorModel::Grayscale, ColorModel::YCbCr, ColorModel::Rgb, ColorModel::Cmyk]);
    assert!(info("progressive-17x33.jpg").progressive && !info("420-17x33.jpg").progressive);
}

#[test]
fn output_memory_is_reused() {
    let (mut decoder, mut out) = (Decoder::new(), Vec::new());
    decoder.decode_rgb(&read("photo-420.jpg"), Scale::Full, &mut out).unwrap();
    let (pointer, capacity) = (out.as_ptr(), out.capacity());
    decoder.decode_rgb(&read("420-7x9.jpg"), Scale::Full, &mut out).unwrap();
    assert_eq!((out.as_ptr(), out.capacity(), out.len()), (pointer, capacity, 3 * 7 * 9));
}

#[test]
fn decoder_can_be_sent_to_another_thread() {
    let mut decoder = Decoder::new();
    let data = read("420-16x16.jpg");
    let n_bytes = std::thread::spawn(move || {
        let mut out = Vec::new();
        decoder.decode_rgb(&data, Scale::Full, &mut out).unwrap();
        out.len()
    });
    assert_eq!(n_bytes.join().unwrap(), 3 * 16 * 16);
}
