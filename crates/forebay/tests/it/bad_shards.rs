//! Damaged shards: what is wrong and where is said, and what is sound is used where it can be told apart.

use crate::dir::Dir;
use crate::record::{self, failures};

/// Where the last record but one of a TFRecord shard starts, by its frame lengths.
fn frames(shard: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    loop {
        let at = *starts.last().unwrap();
        let len = u64::from_le_bytes(shard[at..at + 8].try_into().unwrap()) as usize;
        match at + 12 + len + 4 {
            end if end == shard.len() => return starts,
            next => starts.push(next),
        }
    }
}

#[test]
fn a_flipped_byte_in_a_tfrecord_is_named_with_its_offset() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tfrecord");
    let shard = "shards/set-00000-of-00001.tfrecord";
    let start = frames(&dir.read(shard))[5];
    dir.edit(shard, |bytes| bytes[start + 500] ^= 1);
    let place = format!("{shard} at offset {start}: record at offset {start}: payload checksum: expected 0x");
    let ran = dir.missed("data verify shards");
    assert!(ran.stdout.contains(&place) && ran.stdout.contains("\nshards: 23 samples good, 2 bad"), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!("  {shard}: checksum: expected 0x")), "the manifest's too: {}", ran.stdout);
    let record = record::of(&dir, "shards --threads 1 --repeats 1 --warmups 0");
    let cell = &record["cells"][0];
    assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&23.into(), &1.into()));
    let (name, reason) = &failures(cell)[0];
    assert_eq!(*name, format!("{shard} at offset {start}"));
    assert!(reason.contains("payload checksum"), "{reason}");
    let ran = dir.missed("data pack shards back --to files");
    assert!(ran.stderr.starts_with(&format!("forebay: left out 1 bad input:\n  {place}")), "{}", ran.stderr);
    assert_eq!(dir.images("back").len(), 23);
    let said = dir.refused("data pack shards strict --to files --strict");
    assert!(said.starts_with(&format!("forebay: bad input: {place}")), "{said}");
}

#[test]
fn a_flipped_length_in_a_tfrecord_ends_the_shard_there() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tfrecord");
    let shard = "shards/set-00000-of-00001.tfrecord";
    let start = frames(&dir.read(shard))[5];
    dir.edit(shard, |bytes| bytes[start + 1] ^= 1);
    let ran = dir.missed("data verify shards");
    let place = format!("  {shard} at offset {start}: record 5 at offset {start}: length checksum: expected 0x");
    assert!(ran.stdout.contains(&place) && ran.stdout.contains("\nshards: 5 samples good, 2 bad"), "{}", ran.stdout);
    let record = record::of(&dir, "shards --threads 1 --repeats 1 --warmups 0");
    assert_eq!(record["cells"][0]["samples"][0]["images"], 5);
    let note = record["notes"][0].as_str().unwrap();
    assert!(
        note.starts_with(&format!(
            "{shard} is damaged after 5 samples; only these were used: record 5 at offset {start}"
        ))
    );
}

#[test]
fn a_truncated_tar_shard_is_used_up_to_the_damage() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tar");
    let shard = "shards/set-00000-of-00001.tar";
    let whole = dir.read(shard).len();
    dir.edit(shard, |bytes| bytes.truncate(30_000));
    let ran = dir.missed("data verify shards");
    let length = format!("2 bad:\n  {shard}: length: expected {whole} (from manifest.json), found 30000\n");
    assert!(ran.stdout.starts_with(&length), "{}", ran.stdout);
    assert!(ran.stdout.contains("truncated: 5120 bytes needed, 4400 found"), "{}", ran.stdout);
    let record = record::of(&dir, "shards --threads 1 --repeats 1 --warmups 0");
    let note = record["notes"][0].as_str().unwrap();
    let images = &record["cells"][0]["samples"][0]["images"];
    assert!(
        note.starts_with(&format!("{shard} is damaged after {images} samples; only these were used: tar entry at "))
    );
}

#[test]
fn a_flipped_pixel_in_a_tensor_shard_is_found() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tensor --size 16");
    let shard = "shards/set-00000-of-00001.fbt";
    dir.edit(shard, |bytes| bytes[4096 + 3 * 768 + 10] ^= 1);
    let ran = dir.missed("data verify shards");
    assert!(ran.stdout.contains(&format!("  {shard} at offset {}: ", 4096 + 3 * 768)), "{}", ran.stdout);
    assert!(ran.stdout.contains("shards: 23 samples good, 2 bad"), "{}", ran.stdout);
}

#[test]
fn a_truncated_tensor_shard_is_refused_by_name() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tensor --size 16");
    let shard = "shards/set-00000-of-00001.fbt";
    dir.edit(shard, |bytes| bytes.truncate(5_000));
    for flags in ["", "--mmap"] {
        let said = dir.refused(&format!("ingest shards --threads 1 --repeats 1 {flags}"));
        assert!(
            said.starts_with(&format!("forebay: {shard} cannot be read: ")) && said.contains("truncated"),
            "{said}"
        );
    }
    let ran = dir.missed("data verify shards");
    assert!(ran.stdout.contains("truncated") && ran.stdout.contains("shards: 0 samples good, 2 bad"), "{}", ran.stdout);
}
