//! Files that are far larger than memory: foreign ones are never read, and samples over the limit fail by themselves.
//!
//! They are sparse: they take no room on the disk, and every byte that is not written is zero.

use std::fs::File;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use forebay_format::tfrecord;
use serde_json::Value;

use crate::dir::{Dir, Ran};
use crate::process;

const SIZE: u64 = 60 << 30;
const TOO_LARGE: &str = "64.42 GB exceeds the sample size limit of 268.4 MB; raise it with --max-sample-size";
const QUICK: &str = "--threads 1 --repeats 1 --warmups 0";

/// Writes a file of so many bytes that begins with these.
fn write_sparse(dir: &Dir, name: &str, head: &[u8], size: u64) {
    dir.write(name, head);
    File::options().write(true).open(dir.path(name)).unwrap().set_len(size).unwrap();
}

/// Gives a tar header another size, as a number of base 256, and its checksum anew.
fn set_size(header: &mut [u8], size: u64) {
    header[124..136].copy_from_slice(&[[0x80, 0, 0, 0].as_slice(), &size.to_be_bytes()].concat());
    header[148..156].fill(b' ');
    let sum: u32 = header[..512].iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Runs what must not take much memory.
fn run_small(dir: &Dir, line: &str) -> Ran {
    let (ran, peak) = process::peak_bytes(dir, line);
    assert!(peak < 1 << 30, "{line} had {peak} bytes of memory");
    ran
}

/// A folder with one image of a set.
fn with_image() -> Dir {
    let dir = Dir::with_set();
    dir.write("one/a.jpg", dir.read("set/class_003/class_003_000003.jpg"));
    dir
}

#[test]
fn a_foreign_file_beside_an_image_is_not_read_and_said_to_be_left_out() {
    let dir = with_image();
    write_sparse(&dir, "one/archive.zip", b"PK\x03\x04", SIZE);
    let note = "1 file left out: 1 other file (archive.zip)";
    for line in [
        "data verify one",
        "data inspect one",
        "data pack one records --to tfrecord",
        "data pack one archive --to tar",
        "data pack one pixels --to tensor --size 8",
        "data decode one --to one.npy --size 8",
        &format!("ingest one {QUICK}"),
        "train one --accelerator emulated:1ms --batch 1 --steps 1",
    ] {
        let ran = run_small(&dir, line);
        assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(note), "{line}: {ran:?}");
    }
    assert!(run_small(&dir, "data verify records").stdout.starts_with("records: 1 sample good, 0 bad"));
}

#[test]
fn an_image_over_the_limit_fails_by_its_name_and_the_others_are_used() {
    let dir = with_image();
    write_sparse(&dir, "one/z.jpg", b"\xff\xd8\xff\xe0", SIZE);
    let fault = format!("one/z.jpg: {TOO_LARGE}");
    let ran = run_small(&dir, "data verify one");
    assert_eq!((ran.code, ran.stdout.contains(&fault)), (Some(1), true), "{ran:?}");
    let ran = run_small(&dir, "data inspect one");
    assert_eq!((ran.code, ran.stdout.contains(&fault)), (Some(0), true), "{ran:?}");
    for to in ["tfrecord", "tar", "tensor"] {
        let ran = run_small(&dir, &format!("data pack one {to} --to {to}"));
        assert_eq!((ran.code, ran.stderr.contains(&fault)), (Some(1), true), "{ran:?}");
        assert!(ran.stdout.starts_with(&format!("{to}: 1 sample in 1 {to} shard")), "{ran:?}");
    }
    for io in ["buffered", "uring", "auto"] {
        let ran = run_small(&dir, &format!("ingest one {QUICK} --io {io}"));
        assert_eq!((ran.code, ran.stdout.contains(&fault)), (Some(0), true), "{ran:?}");
    }
    let ran = run_small(&dir, "data decode one --to one.npy");
    assert_eq!((ran.code, ran.stderr), (Some(2), format!("forebay: sample {fault}\n")));
}

#[test]
fn the_limit_is_what_the_flag_says() {
    let dir = with_image();
    let size = dir.read("one/a.jpg").len();
    dir.met(&format!("data verify one --max-sample-size {size}"));
    for line in ["data verify one", "data pack one tar --to tar"] {
        let ran = dir.missed(&format!("{line} --max-sample-size {}", size - 1));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("one/a.jpg: ") && said.contains("raise it with --max-sample-size"), "{said}");
    }
    let said = dir.refused(&format!("ingest one {QUICK} --max-sample-size {}", size - 1));
    assert!(said.contains("the only sample could not be used: one/a.jpg: "), "{said}");
    for line in
        ["data inspect one", "train one --accelerator emulated:1ms --batch 1 --steps 1", "data decode one --to a.npy"]
    {
        let ran = dir.run(&format!("{line} --max-sample-size {}", size - 1));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("raise it with --max-sample-size"), "{line}: {said}");
    }
    let said = dir.refused("train --synthetic --max-sample-size 1MB");
    assert!(said.contains("cannot be used with"), "{said}");
    assert!(dir.refused("ingest one --max-sample-size 0").contains("give a size from 1 B to "));
    dir.met("data pack set shards --to tfrecord");
    let ran = dir.missed("data pack shards back --to files --max-sample-size 1KB");
    assert!(ran.stderr.contains("exceeds the sample size limit of 1.0 KB"), "{}", ran.stderr);
}

#[test]
fn a_record_or_an_entry_over_the_limit_fails_by_its_offset() {
    let dir = with_image();
    dir.met("data pack one shard --to tfrecord");
    let record = dir.tree("shard").into_iter().find(|(name, _)| name.ends_with(".tfrecord")).unwrap().1;
    let large = [&record[..], &tfrecord::frame_header(SIZE)].concat();
    write_sparse(&dir, "records/a.tfrecord", &large, SIZE + record.len() as u64 + 16);
    let mut header = Vec::new();
    forebay_format::tar::append_file(&mut header, "a.jpg", b"").unwrap();
    set_size(&mut header, SIZE);
    write_sparse(&dir, "archive/a.tar", &header, SIZE + 512 + 1024);
    for (line, good) in [("data verify records", 1), ("data verify archive", 0)] {
        let ran = run_small(&dir, line);
        assert!(ran.stdout.contains(" 64.42 GB exceeds the sample size limit of 268.4 MB"), "{ran:?}");
        assert!(ran.stdout.contains(&format!(": {good} sample")), "{ran:?}");
    }
    let ran = run_small(&dir, &format!("ingest records {QUICK} --json -"));
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let cell = &found["cells"][0];
    assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&1.into(), &1.into()));
    assert!(run_small(&dir, &format!("ingest archive {QUICK}")).stderr.contains("64.42 GB exceeds"));
}

#[test]
fn a_compressed_shard_that_expands_without_end_takes_no_memory() {
    let dir = with_image();
    dir.met("data pack one shard --to tfrecord");
    let record = dir.tree("shard").into_iter().find(|(name, _)| name.ends_with(".tfrecord")).unwrap().1;
    // A good record, then one of 2 GiB of zeros, whose length is right and whose checksum is not.
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    bomb.write_all(&[&record[..], &tfrecord::frame_header(2 << 30), &[0; 4]].concat()).unwrap();
    (0..2 << 10).for_each(|_| bomb.write_all(&[0; 1 << 20]).unwrap());
    dir.write("bomb/a.tfrecord.gz", bomb.finish().unwrap());
    let ran = run_small(&dir, "data verify bomb");
    assert!(ran.stdout.contains("2.15 GB exceeds the sample size limit"), "{ran:?}");
    assert!(ran.stdout.contains("bomb: 1 sample good, 1 bad"), "{ran:?}");
    let ran = run_small(&dir, &format!("ingest bomb {QUICK}"));
    assert!(ran.stdout.contains("2.15 GB exceeds the sample size limit"), "{ran:?}");
}

#[test]
fn a_compressed_archive_that_expands_without_end_takes_no_memory() {
    let dir = with_image();
    let mut archive = Vec::new();
    forebay_format::tar::append_file(&mut archive, "a.jpg", &dir.read("one/a.jpg")).unwrap();
    let at = archive.len();
    forebay_format::tar::append_file(&mut archive, "z.jpg", b"").unwrap();
    set_size(&mut archive[at..], 2 << 30);
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    bomb.write_all(&archive).unwrap();
    (0..2 << 10).for_each(|_| bomb.write_all(&[0; 1 << 20]).unwrap());
    bomb.write_all(&[0; 1024]).unwrap();
    dir.write("bomb/a.tar.gz", bomb.finish().unwrap());
    let ran = run_small(&dir, "data verify bomb");
    assert!(ran.stdout.contains("2.15 GB exceeds the sample size limit"), "{ran:?}");
    assert!(ran.stdout.contains("bomb: 1 sample good, 1 bad"), "{ran:?}");
    let ran = run_small(&dir, &format!("ingest bomb {QUICK}"));
    assert!(ran.stdout.contains("2.15 GB exceeds the sample size limit"), "{ran:?}");
    set_size(&mut archive[at..], 1 << 60);
    let packed = tfrecord::compress(&archive, tfrecord::Compression::Gzip).unwrap();
    dir.write("endless/a.tar.gz", packed);
    let wanted = "expanded shard too large: 1152921504606";
    for (line, code) in [("data verify endless", 1), (&format!("ingest endless {QUICK}"), 2)] {
        let ran = run_small(&dir, line);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(wanted), "{ran:?}");
    }
}

#[test]
fn a_text_too_large_for_a_list_is_refused() {
    let dir = Dir::new();
    write_sparse(&dir, "list", &b"a.jpg 1\n".repeat(100), SIZE);
    for line in ["ingest list", "data verify list", "data inspect list", "data pack list out --to tar"] {
        let ran = run_small(&dir, line);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("too large for a list: 64.42 GB, limit 1.07 GB"), "{ran:?}");
    }
}
