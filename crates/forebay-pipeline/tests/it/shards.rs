//! TFRecord, tar and tensor shards as sources.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_format::example::ImageExample;
use forebay_format::tfrecord::{self, Compression};
use forebay_format::{tar, tensor};
use forebay_pipeline::{Dataset, PixelShape, Source, TakePixels, Threads};
use forebay_storage::{Counted, Memory};

use crate::{content, copied, run};

/// Samples `first..last` as TFRecord frames.
fn records(first: u32, last: u32) -> Vec<u8> {
    let mut shard = Vec::new();
    for i in first..last {
        let encoded = i.to_le_bytes();
        let example = ImageExample { encoded: &encoded, label: Some(i64::from(i % 10)), ..Default::default() };
        tfrecord::append(&mut shard, &example.to_bytes());
    }
    shard
}

fn archive(first: u32, last: u32) -> Vec<u8> {
    let mut shard = Vec::new();
    for i in first..last {
        tar::append_file(&mut shard, format!("{i:04}.jpg"), &i.to_le_bytes()).unwrap();
        tar::append_file(&mut shard, format!("{i:04}.cls"), (i % 10).to_string().as_bytes()).unwrap();
    }
    tar::finish(&mut shard);
    shard
}

fn in_memory(shards: &[Vec<u8>], extension: &str) -> (Memory, PathBuf) {
    let memory = Memory::default();
    for (i, shard) in shards.iter().enumerate() {
        memory.insert(format!("data/{i}.{extension}"), shard.clone());
    }
    (memory, PathBuf::from("data"))
}

fn source(shards: &[Vec<u8>], extension: &str) -> Source {
    let (memory, path) = in_memory(shards, extension);
    Source::discover(Arc::new(memory), &path).unwrap()
}

#[test]
fn records_and_tar_samples_come_in_file_order_with_their_labels() {
    for source in
        [source(&[records(0, 30), records(30, 50)], "tfrecord"), source(&[archive(0, 30), archive(30, 50)], "tar")]
    {
        assert_eq!(source.n_samples(), 50);
        let pipeline = copied(Dataset::new(source)).threads(Threads::Fixed(3)).batch(16).prefetch(1);
        assert_eq!(run(&pipeline).concat(), (0..50).collect::<Vec<_>>());
    }
}

/// A window over interleaved shards, read in blocks.
fn streamed(source: Source, block: u64) -> forebay_pipeline::Mapped {
    let dataset = Dataset::new(source).shuffle_groups(3).interleave(3, 2).shuffle_buffer(10, 1);
    copied(dataset).read_blocks(block)
}

#[test]
fn a_window_over_shards_reads_every_block_once_whoever_reads_it() {
    let shards: Vec<Vec<u8>> = (0..5).map(|i| records(i * 40, (i + 1) * 40)).collect();
    let (memory, path) = in_memory(&shards, "tfrecord");
    let counted = Counted::new(memory.clone());
    let source = Source::discover(Arc::new(memory), &path).unwrap().with_storage(Arc::new(counted.clone()));
    let block = shards[0].len() as u64 / 4;
    for (threads, readers) in [(1, 0), (4, 0), (2, 3)] {
        let before = (counted.counters().read.n(), counted.counters().read.bytes());
        let pipeline = streamed(source.clone(), block).threads(Threads::Fixed(threads)).readers(readers);
        let mut all = run(&pipeline.batch(7).prefetch(2)).concat();
        assert_ne!(all, (0..200).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..200).collect::<Vec<_>>());
        let n = counted.counters().read.n() - before.0;
        assert!((20..=25).contains(&n), "{n} reads of 20 blocks or a few more, as records are cut by none");
        let bytes: usize = shards.iter().map(Vec::len).sum();
        assert_eq!(counted.counters().read.bytes() - before.1, bytes as u64, "every byte once");
    }
}

#[test]
fn blocks_change_neither_order_nor_state() {
    let shards: Vec<Vec<u8>> = (0..4).map(|i| records(i * 20, (i + 1) * 20)).collect();
    for block in [1, 300, 1 << 20] {
        let source = source(&shards, "tfrecord");
        let with = streamed(source.clone(), block).threads(Threads::Fixed(3)).batch(7).prefetch(1);
        let without = copied(Dataset::new(source).shuffle_groups(3).interleave(3, 2).shuffle_buffer(10, 1)).batch(7);
        let whole = run(&without).concat();
        assert_eq!(run(&with).concat(), whole);
        for steps in 0..=12 {
            let mut batches = with.iter().unwrap();
            let mut got: Vec<u32> = batches.by_ref().take(steps).flat_map(|batch| content(&batch.unwrap())).collect();
            let rest = with.iter_from(&batches.state().unwrap()).unwrap();
            got.extend(rest.flat_map(|batch| content(&batch.unwrap())));
            assert_eq!(got, whole, "after {steps} batches, blocks of {block}");
        }
    }
}

#[test]
fn epochs_and_parts_of_a_dataset_are_whole_with_blocks() {
    let shards: Vec<Vec<u8>> = (0..4).map(|i| records(i * 20, (i + 1) * 20)).collect();
    let part = Dataset::new(source(&shards, "tfrecord")).hold_out(15, 7).shuffle_groups(3).interleave(2, 3);
    let dataset = part.shuffle_buffer(4, 1).repeat(3);
    let order: Vec<u32> = dataset.order().collect();
    let pipeline = copied(dataset).read_blocks(400).threads(Threads::Fixed(3)).batch(8).prefetch(1);
    assert_eq!(run(&pipeline).concat(), order);
    let tar: Vec<Vec<u8>> = (0..2).map(|i| archive(i * 20, (i + 1) * 20)).collect();
    assert_eq!(run(&streamed(source(&tar, "tar"), 4096).batch(8)).concat().len(), 40, "tar shards too");
}

#[test]
fn neighbouring_records_are_read_together_and_shuffled_ones_are_not() {
    let (memory, path) = in_memory(&[records(0, 64)], "tfrecord");
    let counted = Counted::new(memory.clone());
    let source = Source::discover(Arc::new(memory), &path).unwrap().with_storage(Arc::new(counted.clone()));
    run(&copied(Dataset::new(source.clone())).batch(64));
    let in_order = counted.counters().read.n();
    assert!(in_order <= 2, "{in_order} reads");
    run(&copied(Dataset::new(source).shuffle(1)).batch(64));
    assert!(counted.counters().read.n() - in_order > 30);
}

#[test]
fn compressed_shards_are_read_as_a_whole_and_not_shuffled_through() {
    for how in [Compression::Gzip, Compression::Zlib] {
        let shards = [records(0, 20), records(20, 45)].map(|shard| tfrecord::compress(&shard, how).unwrap());
        let (memory, path) = in_memory(&shards, "tfrecord.gz");
        let counted = Counted::new(memory.clone());
        let source = Source::discover(Arc::new(memory), &path).unwrap().with_storage(Arc::new(counted.clone()));
        let pipeline = copied(Dataset::new(source.clone()).interleave(2, 3)).threads(Threads::Fixed(2)).batch(8);
        let mut got = run(&pipeline).concat();
        assert_eq!(got[..6], [0, 1, 2, 20, 21, 22]);
        got.sort_unstable();
        assert_eq!(got, (0..45).collect::<Vec<_>>());
        assert_eq!(counted.counters().read.n(), 2, "each shard once");
        let error = copied(Dataset::new(source).shuffle(1)).batch(8).iter().err().unwrap().to_string();
        assert!(error.starts_with("shuffle: a compressed shard can only be read as a whole"), "{error}");
    }
}

#[test]
fn a_cut_off_shard_gives_what_lies_before_the_cut_and_says_so() {
    for (whole, extension) in [(records(0, 30), "tfrecord"), (archive(0, 30), "tar")] {
        let cut = whole[..whole.len() * 2 / 3 + 5].to_vec();
        let source = source(&[cut], extension);
        let n = source.n_samples();
        assert!((10..30).contains(&n), "{n} samples");
        assert_eq!(source.damaged().len(), 1);
        assert_eq!(source.damaged()[0].n_samples_before, n);
        let got = run(&copied(Dataset::new(source)).batch(8)).concat();
        assert_eq!(got, (0..n as u32).collect::<Vec<_>>());
    }
}

#[test]
fn a_flipped_bit_is_one_failed_sample_with_its_offset() {
    let mut shard = records(0, 10);
    let at = shard.len() / 2 + 20; // Within the payload of record 5.
    shard[at] ^= 1;
    let pipeline = copied(Dataset::new(source(&[shard], "tfrecord"))).ignore_errors().batch(10);
    let mut batches = pipeline.iter().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().len(), 9);
    let failure = &batches.stats().failures[0];
    assert!(failure.name.starts_with("data/0.tfrecord at offset "), "{}", failure.name);
    assert!(failure.reason().contains("checksum"), "{}", failure.reason());
}

#[test]
fn tensor_shards_are_read_or_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let shape = tensor::Shape { height: 1, width: 4, channels: 3 };
    let mut writer = tensor::ShardWriter::new(shape).unwrap();
    for i in 0..20u8 {
        writer.append(&[i; 12], i64::from(i), u64::from(i)).unwrap();
    }
    std::fs::write(folder.path().join("a.fbt"), writer.finish().unwrap()).unwrap();
    let storage = Arc::new(forebay_storage::Local::default());
    let source = Source::discover(storage, folder.path()).unwrap();
    let shape = PixelShape { height: 1, width: 4, channels: 3 };
    assert_eq!(source.pixels(), Some(shape));
    let spec = forebay_format::image::ImageSpec { width: 4, height: 1, ..Default::default() };
    for mapped in [false, true] {
        let mut stage = Dataset::new(source.clone()).shuffle(2).map(TakePixels { shape, spec });
        if mapped {
            stage = stage.map_shards();
        }
        let mut n = 0;
        for batch in stage.batch(6).iter().unwrap() {
            let batch = batch.unwrap();
            for (pixels, label) in batch.as_f32().chunks(12).zip(batch.labels()) {
                assert!(pixels.iter().all(|value| *value == *label as f32));
                n += 1;
            }
        }
        assert_eq!(n, 20);
    }
}

#[test]
fn a_cut_off_tensor_shard_is_left_out_and_named() {
    let shape = tensor::Shape { height: 1, width: 4, channels: 3 };
    let shard = |first: u8| {
        let mut writer = tensor::ShardWriter::new(shape).unwrap();
        (first..first + 5).for_each(|i| writer.append(&[i; 12], i64::from(i), u64::from(i)).unwrap());
        writer.finish().unwrap()
    };
    let cut = shard(0)[..5_000].to_vec();
    let source = source(&[cut.clone(), shard(5)], "fbt");
    assert_eq!((source.n_samples(), source.damaged().len(), source.damaged()[0].n_samples_before), (5, 1, 0));
    let pixels = source.pixels().unwrap();
    let spec = forebay_format::image::ImageSpec { width: 4, height: 1, ..Default::default() };
    let mut batches = Dataset::new(source).map(TakePixels { shape: pixels, spec }).batch(5).iter().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().labels(), [5, 6, 7, 8, 9]);
    let (memory, path) = in_memory(&[cut], "fbt");
    let error = Source::discover(Arc::new(memory), &path).err().unwrap().to_string();
    assert_eq!(error, "data/0.fbt cannot be read");
}

#[test]
fn several_kinds_at_once_and_nothing_at_all_are_refused() {
    let memory = Memory::default();
    memory.insert("data/a.tfrecord", records(0, 2));
    memory.insert("data/b.tar", archive(0, 2));
    let error = Source::discover(Arc::new(memory.clone()), Path::new("data")).err().unwrap().to_string();
    assert_eq!(error, "data mixes several kinds of data (1 TFRecord shards, 1 tar shards); pass one of its folders");
    memory.insert("text/readme.txt", b"hello".to_vec());
    let error = Source::discover(Arc::new(memory.clone()), Path::new("text")).err().unwrap().to_string();
    assert_eq!(error, "no samples in text: no images or shards found");
    assert!(Source::discover(Arc::new(memory), Path::new("missing")).is_err());
}
