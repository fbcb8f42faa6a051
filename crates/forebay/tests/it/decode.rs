//! `forebay data decode`: an array of the shape, type and order that was asked for.

use crate::dir::Dir;

/// A NumPy array of format version 1: the header's text and the data.
struct Npy {
    header: String,
    data: Vec<u8>,
}

impl Npy {
    fn read(dir: &Dir, name: &str) -> Self {
        let bytes = dir.read(name);
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert_eq!((10 + len) % 64, 0, "the data is aligned");
        let header = String::from_utf8(bytes[10..10 + len].to_vec()).unwrap();
        Self { header, data: bytes[10 + len..].to_vec() }
    }

    fn floats(&self) -> Vec<f32> {
        self.data.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    }
}

#[test]
fn the_default_is_224_by_224_floats_with_the_channels_last() {
    let dir = Dir::with_set();
    assert_eq!(dir.met("data decode set --to a.npy"), "a.npy: 24 images\n");
    let array = Npy::read(&dir, "a.npy");
    assert!(array.header.contains("'descr': '<f4', 'fortran_order': False, 'shape': (24, 224, 224, 3"));
    let floats = array.floats();
    assert_eq!(floats.len(), 24 * 224 * 224 * 3);
    assert!(floats.iter().all(|value| (0.0..=255.0).contains(value)));
    assert!(floats.iter().any(|value| *value > 128.0));
}

#[test]
fn size_is_width_by_height() {
    let dir = Dir::with_set();
    dir.met("data decode set --to a.npy --size 40x20");
    let array = Npy::read(&dir, "a.npy");
    assert!(array.header.contains("'shape': (24, 20, 40, 3"), "{}", array.header);
    assert_eq!(array.data.len(), 24 * 20 * 40 * 3 * 4);
}

#[test]
fn bytes_are_the_floats_rounded() {
    let dir = Dir::with_set();
    dir.met("data decode set --to f.npy --size 16");
    dir.met("data decode set --to b.npy --size 16 --dtype u8");
    let (floats, bytes) = (Npy::read(&dir, "f.npy"), Npy::read(&dir, "b.npy"));
    assert!(bytes.header.contains("'descr': '|u1'"), "{}", bytes.header);
    let floats = floats.floats();
    assert_eq!(bytes.data.len(), floats.len());
    assert!(bytes.data.iter().zip(&floats).all(|(byte, float)| (f32::from(*byte) - float).abs() <= 0.5));
}

#[test]
fn the_other_layout_has_the_same_values_with_the_channels_first() {
    let dir = Dir::with_set();
    dir.met("data decode set --to last.npy --size 6x5 --dtype u8");
    dir.met("data decode set --to first.npy --size 6x5 --dtype u8 --layout nchw");
    let (last, first) = (Npy::read(&dir, "last.npy"), Npy::read(&dir, "first.npy"));
    assert!(first.header.contains("'shape': (24, 3, 5, 6"), "{}", first.header);
    let turned: Vec<u8> = last
        .data
        .chunks_exact(5 * 6 * 3)
        .flat_map(|image| (0..3).flat_map(|channel| image.iter().skip(channel).step_by(3).copied()))
        .collect();
    assert_eq!(first.data, turned);
}

#[test]
fn scaled_decoding_gives_other_pixels_of_the_same_picture() {
    let dir = Dir::new();
    dir.met("data make imagenet set --count 2 --dimensions 256 --median-size 8KB");
    dir.met("data decode set --to whole.npy --size 16");
    dir.met("data decode set --to scaled.npy --size 16 --scaled");
    let (whole, scaled) = (Npy::read(&dir, "whole.npy"), Npy::read(&dir, "scaled.npy"));
    assert_eq!(whole.header, scaled.header);
    let (whole, scaled) = (whole.floats(), scaled.floats());
    assert_ne!(whole, scaled);
    // Bilinear sampling looks at four pixels of the 256 that a scaled one is the mean of: alike, not equal.
    let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
    assert!((mean(&whole) - mean(&scaled)).abs() < 8.0, "{} and {}", mean(&whole), mean(&scaled));
}

#[test]
fn crops_and_mirrored_images_are_parts_of_the_picture() {
    let dir = Dir::with_set();
    let mut n = 0;
    let mut decode = |flags: &str| {
        n += 1;
        dir.met(&format!("data decode set --to {n}.npy --size 24x20 {flags}"));
        Npy::read(&dir, &format!("{n}.npy")).floats()
    };
    let whole = decode("");
    let [center, random, flipped, antialiased] =
        ["--crop center", "--crop random", "--flip --seed 1", "--antialias"].map(&mut decode);
    let all = [&whole, &center, &random, &flipped, &antialiased];
    assert!((0..5).all(|a| (a + 1..5).all(|b| all[a] != all[b])), "every flag changes the pixels");
    assert_eq!(decode("--crop random"), random);
    assert_ne!(decode("--crop random --seed 1"), random);
    // Every image is as it was or mirrored, to the rounding of the other code.
    let row = 24 * 3;
    let mirrored = |image: &[f32]| -> Vec<f32> {
        image.chunks(row).flat_map(|row| row.chunks(3).rev().flatten().copied().collect::<Vec<_>>()).collect()
    };
    let alike = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.01);
    let kinds: Vec<(bool, bool)> = whole
        .chunks(20 * row)
        .zip(flipped.chunks(20 * row))
        .map(|(whole, flipped)| (alike(whole, flipped), alike(&mirrored(whole), flipped)))
        .collect();
    assert!(kinds.iter().all(|(same, mirrored)| same != mirrored), "{kinds:?}");
    assert!(kinds.iter().any(|(same, _)| *same) && kinds.iter().any(|(_, mirrored)| *mirrored), "{kinds:?}");
}

#[test]
fn shards_give_the_pixels_of_their_files() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tfrecord --keep-order");
    dir.met("data decode set --to files.npy --size 8");
    dir.met("data decode shards --to shards.npy --size 8");
    assert_eq!(dir.read("files.npy"), dir.read("shards.npy"));
}

#[test]
fn tensor_shards_are_refused_because_nothing_is_left_to_decode() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tensor --size 8");
    assert_eq!(dir.refused("data decode shards --to a.npy"), "forebay: shards already contains decoded images\n");
}

#[test]
fn a_bad_image_is_named_and_no_array_is_left_that_looks_whole() {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "");
    let said = dir.refused("data decode set --to a.npy --size 8");
    assert!(said.starts_with("forebay: sample set/class_004/class_004_000004.jpg: "), "{said}");
    assert!(!dir.path("a.npy").exists(), "an array whose header promises more rows than it has");
}
