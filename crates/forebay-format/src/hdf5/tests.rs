//! Files laid out here, filled, and read again: by ranges, and by the library itself.

use std::path::Path;

use super::*;
use crate::{Element, Error};

fn value(place: u64) -> u8 {
    (place * 7 + place / 251) as u8
}

fn fill(place: u64, out: &mut [u8]) {
    for (at, byte) in (place..).zip(out) {
        *byte = value(at);
    }
}

fn spec(shape: &[u64], element: Element, chunk: Option<&[u64]>) -> Spec {
    let (shape, chunk) = (shape.to_vec(), chunk.map(<[u64]>::to_vec));
    Spec { shape, n_sets: 1, element, chunk, max_shape: None, gzip: None }
}

/// A file as whoever writes files would put it together.
fn made(spec: &Spec) -> Vec<u8> {
    let mut file = Vec::new();
    if spec.gzip.is_some() {
        let mut out = |bytes: &[u8]| -> Result<(), Error> {
            file.extend_from_slice(bytes);
            Ok(())
        };
        compressed(spec, &mut fill, &mut out).unwrap();
        return file;
    }
    let skeleton = Skeleton::new(spec).unwrap();
    for (offset, segment) in &skeleton.segments {
        assert_eq!(*offset, file.len() as u64, "segments are one behind the other");
        match segment {
            Segment::Bytes(bytes) => file.extend_from_slice(bytes),
            Segment::Values(range) => {
                let start = file.len();
                file.resize(start + (range.end - range.start) as usize, 0);
                fill(range.start, &mut file[start..]);
            }
        }
    }
    assert_eq!(file.len() as u64, skeleton.len);
    file
}

/// A sample by ranges of bytes alone.
fn sample_of(file: &[u8], index: &Index, sample: u64) -> Vec<u8> {
    let cut = |offset: u64, len: u64| &file[offset as usize..(offset + len) as usize];
    let mut all = Vec::new();
    for set in &index.sets {
        let mut out = vec![0; set.sample_bytes() as usize];
        match &set.lies {
            Lies::Contiguous(offset) => {
                out.copy_from_slice(cut(offset + sample * set.sample_bytes(), set.sample_bytes()));
            }
            Lies::Chunked(chunks) => {
                let mut values = Vec::new();
                for chunk in chunks.of_sample(sample) {
                    chunks.unfilter(chunk, cut(chunk.offset, chunk.len), &mut values).unwrap();
                    chunks.place(chunk, &values, sample, &mut out);
                }
            }
            Lies::Nowhere => {}
        }
        all.extend(out);
    }
    all
}

/// All values of a dataset as the library reads them.
fn by_library(path: &Path, name: &str) -> Vec<u8> {
    let file = hdf5_metno::File::open(path).unwrap();
    file.dataset(name).unwrap().read_raw::<u8>().unwrap()
}

fn folder(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("forebay-hdf5-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn ranges_of_bytes_give_what_the_library_reads() {
    let dir = folder("ranges");
    let gzip = |spec: Spec| Spec { gzip: Some(3), ..spec };
    let cases = [
        spec(&[3, 20, 30], Element::U8, None),
        spec(&[5, 17, 23], Element::U8, Some(&[1, 8, 8])),
        spec(&[5, 17, 23], Element::U8, Some(&[2, 17, 5])),
        spec(&[4], Element::U8, Some(&[3])),
        gzip(spec(&[5, 17, 23], Element::U8, Some(&[2, 8, 23]))),
    ];
    for (i, spec) in cases.into_iter().enumerate() {
        let path = dir.join(format!("{i}.hdf5"));
        let file = made(&spec);
        std::fs::write(&path, &file).unwrap();
        let index = Index::of_file(&path, spec.shape[0]).unwrap();
        let samples: Vec<u8> = (0..spec.shape[0]).flat_map(|sample| sample_of(&file, &index, sample)).collect();
        assert_eq!(samples, by_library(&path, "records"), "case {i}");
        assert_eq!(by_library(&path, "records_0"), samples, "the other name");
        let labels = hdf5_metno::File::open(&path).unwrap().dataset("labels").unwrap().read_raw::<i64>().unwrap();
        assert_eq!(labels, vec![0; spec.shape[0] as usize]);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn contiguous_values_are_those_of_their_places_and_begin_with_a_page() {
    let spec = spec(&[2, 300, 200], Element::F32, None);
    let skeleton = Skeleton::new(&spec).unwrap();
    assert_eq!(skeleton.value_bytes(), 2 * 300 * 200 * 4);
    let values: Vec<u64> = skeleton
        .segments
        .iter()
        .filter(|(_, segment)| matches!(segment, Segment::Values(_)))
        .map(|(offset, _)| *offset)
        .collect();
    assert_eq!(values.len(), 1);
    assert_eq!(values[0] % 4096, 0);
    assert_eq!(Skeleton::new(&spec).unwrap(), skeleton, "the same bytes every time");
}

#[test]
fn a_sample_is_spread_over_several_datasets_and_may_grow() {
    let dir = folder("several");
    let path = dir.join("a.hdf5");
    let spec = Spec { n_sets: 3, max_shape: Some(vec![0, 8, 9]), ..spec(&[2, 4, 9], Element::U8, Some(&[1, 4, 9])) };
    let file = made(&spec);
    std::fs::write(&path, &file).unwrap();
    let index = Index::of_file(&path, 2).unwrap();
    assert_eq!(index.sample_bytes(), 3 * 36);
    let whole: Vec<u8> = (0..3).flat_map(|i| by_library(&path, &format!("records_{i}"))[36..].to_vec()).collect();
    assert_eq!(sample_of(&file, &index, 1), whole);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn another_number_of_samples_and_other_files_are_refused() {
    let dir = folder("refused");
    let path = dir.join("a.hdf5");
    std::fs::write(&path, made(&spec(&[3, 4, 5], Element::U8, None))).unwrap();
    let error = Index::of_file(&path, 4).unwrap_err();
    assert!(error.to_string().contains("expected 4 samples"), "{error}");
    let whole = std::fs::read(&path).unwrap();
    for len in [0, 1, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).unwrap();
        let error = Index::of_file(&path, 3).unwrap_err();
        assert!(matches!(error, Error::Library { .. }), "cut to {len}: {error}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_damaged_chunk_is_an_error() {
    let dir = folder("damaged");
    let path = dir.join("a.hdf5");
    let spec = Spec { gzip: Some(6), ..spec(&[1, 40, 40], Element::U8, Some(&[1, 40, 40])) };
    let file = made(&spec);
    std::fs::write(&path, &file).unwrap();
    let index = Index::of_file(&path, 1).unwrap();
    let Lies::Chunked(chunks) = &index.sets[0].lies else { panic!("chunked") };
    let chunk = chunks.of_sample(0).next().unwrap();
    let bytes = &file[chunk.offset as usize..(chunk.offset + chunk.len) as usize];
    let mut out = Vec::new();
    assert!(chunks.unfilter(chunk, bytes, &mut out).is_ok());
    assert!(chunks.unfilter(chunk, &bytes[..bytes.len() - 5], &mut out).is_err());
    for bit in (0..bytes.len() * 8).step_by(97) {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(chunks.unfilter(chunk, &flipped, &mut out).is_err(), "bit {bit}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
