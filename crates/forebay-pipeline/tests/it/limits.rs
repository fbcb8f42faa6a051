//! Samples over the size limit: never read, each a failure of its own.

use std::path::Path;
use std::sync::Arc;

use forebay_format::tfrecord::{self, Compression};
use forebay_format::{list, tar};
use forebay_pipeline::{Dataset, ReadOnly, Source};
use forebay_storage::{Counted, Memory};
use forebay_units::Bytes;

const SMALL: usize = 100;
const LARGE: usize = 1_000_000;
const LIMIT: Bytes = Bytes(200_000);

/// The delivered samples, the failed ones with their reasons, and the number of bytes read.
fn read(files: &[(&str, Vec<u8>)]) -> (Vec<u32>, Vec<(u32, String)>, u64) {
    let memory = Memory::default();
    files.iter().for_each(|(path, bytes)| memory.insert(*path, bytes.clone()));
    let source = Source::discover(Arc::new(memory.clone()), Path::new("d")).unwrap();
    let counted = Counted::new(memory);
    let source = source.with_storage(Arc::new(counted.clone())).with_max_sample_size(LIMIT);
    let mut batches = Dataset::new(source).map(ReadOnly).ignore_errors().batch(2).iter().unwrap();
    let samples = batches.by_ref().flat_map(|batch| batch.unwrap().samples().to_vec()).collect();
    let failed = batches.stats().failures.iter().map(|failed| (failed.index, failed.reason())).collect();
    (samples, failed, counted.counters().read.snapshot().bytes)
}

fn too_large(size: u64) -> String {
    format!("{} exceeds the sample size limit of {LIMIT}; raise it with --max-sample-size", Bytes(size))
}

#[test]
fn a_file_is_refused_and_the_others_are_read() {
    let files = [SMALL, LARGE, SMALL].map(|len| vec![7; len]);
    let files: Vec<_> = ["d/1.jpg", "d/2.jpg", "d/3.jpg"].into_iter().zip(files).collect();
    let (samples, failed, bytes) = read(&files);
    assert_eq!((samples, bytes), (vec![0, 2], 2 * SMALL as u64));
    assert_eq!(failed, [(1, too_large(LARGE as u64))]);
}

#[test]
fn a_record_is_refused_by_its_length_and_not_read() {
    let mut shard = Vec::new();
    for len in [SMALL, LARGE, SMALL] {
        tfrecord::append(&mut shard, &vec![7; len]);
    }
    let (samples, failed, bytes) = read(&[("d/a.tfrecord", shard.clone())]);
    assert_eq!((samples, bytes), (vec![0, 2], 2 * (SMALL as u64 + 16)));
    assert_eq!(failed, [(1, too_large(LARGE as u64 + 16))]);
    for how in [Compression::Gzip, Compression::Zlib] {
        let packed = tfrecord::compress(&shard, how).unwrap();
        let (samples, failed, _) = read(&[("d/a.tfrecord.gz", packed)]);
        assert_eq!((samples, failed), (vec![0, 2], vec![(1, too_large(LARGE as u64 + 16))]), "{how:?}");
    }
}

#[test]
fn a_tar_sample_is_refused_by_the_length_of_all_its_parts() {
    let mut shard = Vec::new();
    for (n, len) in [SMALL, LARGE, SMALL].into_iter().enumerate() {
        tar::append_file(&mut shard, format!("{n}.jpg"), &vec![7; len]).unwrap();
    }
    tar::finish(&mut shard);
    let (samples, failed, bytes) = read(&[("d/a.tar", shard.clone())]);
    assert_eq!((samples, bytes), (vec![0, 2], 2 * 1024));
    assert_eq!(failed, [(1, too_large(512 + 1_000_448))]);
    let packed = tfrecord::compress(&shard, Compression::Gzip).unwrap();
    let (samples, failed, _) = read(&[("d/a.tar.gz", packed)]);
    assert_eq!((samples, failed), (vec![0, 2], vec![(1, too_large(512 + 1_000_448))]));
}

#[test]
fn a_gzip_bomb_is_refused_without_being_expanded() {
    // A shard whose header claims a single record of 2^60 bytes, and a megabyte of zeros that are no record.
    let mut huge = tfrecord::frame_header(1 << 60).to_vec();
    huge.extend(vec![0; 1 << 20]);
    for bomb in [huge, vec![0; 1 << 20]] {
        let memory = Memory::default();
        memory.insert("d/a.tfrecord.gz", tfrecord::compress(&bomb, Compression::Gzip).unwrap());
        let error = Source::discover(Arc::new(memory), Path::new("d")).err().unwrap();
        assert_eq!(error.to_string(), "d/a.tfrecord.gz cannot be read");
    }
}

#[test]
fn a_compressed_archive_whose_entry_has_2_to_the_60_bytes_is_refused_with_the_limit() {
    let mut bomb = Vec::new();
    tar::append_file(&mut bomb, "a.jpg", &[7; SMALL]).unwrap();
    // The size as a base-256 number, and a new checksum of the header.
    bomb[124..136].copy_from_slice(&[[0x80, 0, 0, 0].as_slice(), &(1_u64 << 60).to_be_bytes()].concat());
    bomb[148..156].fill(b' ');
    let sum: u32 = bomb[..512].iter().map(|byte| u32::from(*byte)).sum();
    bomb[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let memory = Memory::default();
    memory.insert("d/a.tar.gz", tfrecord::compress(&bomb, Compression::Gzip).unwrap());
    let error = Source::discover(Arc::new(memory), Path::new("d")).err().unwrap();
    assert_eq!(error.to_string(), "d/a.tar.gz cannot be read");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.starts_with("expanded shard"), "{cause}");
}

#[test]
fn a_length_of_2_to_the_60_in_a_plain_shard_takes_no_memory() {
    let mut shard = Vec::new();
    tfrecord::append(&mut shard, &[7; SMALL]);
    shard.extend(tfrecord::frame_header(1 << 60));
    shard.extend([0; 100]);
    let (samples, failed, _) = read(&[("d/a.tfrecord", shard)]);
    assert_eq!((samples, failed), (vec![0], vec![]), "the record before it is used");
}

#[test]
fn a_text_too_large_for_a_list_is_refused_unread() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    std::fs::write(&path, "a.jpg 1\n".repeat(100)).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(60 << 30).unwrap();
    let error = Source::discover(Arc::new(forebay_storage::Local::default()), &path).err().unwrap().to_string();
    let wanted = format!("list: too large for a list: {}, limit {}", Bytes(60 << 30), Bytes(list::MAX_LEN));
    assert!(error.ends_with(&wanted), "{error}");
}
