//! Caches change what is read, never the output.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_pipeline::{CacheAt, Dataset, Source, Threads};
use forebay_storage::{Counted, Local, Memory};

use crate::{content, copied};

struct Files {
    folder: tempfile::TempDir,
    storage: Counted<Local>,
}

fn files(n: u32) -> Files {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..n {
        let class = folder.path().join(format!("{}", i % 10));
        std::fs::create_dir_all(&class).unwrap();
        std::fs::write(class.join(format!("{i:04}.jpg")), i.to_le_bytes()).unwrap();
    }
    Files { folder, storage: Counted::new(Local::default()) }
}

fn dataset(files: &Files) -> Dataset {
    let source = Source::folder(Arc::new(Local::default()), files.folder.path()).unwrap();
    Dataset::new(source).storage(Arc::new(files.storage.clone())).shuffle(1).repeat(3)
}

fn stream(pipeline: &forebay_pipeline::Batched) -> Vec<Vec<u8>> {
    pipeline.iter().unwrap().map(|batch| batch.unwrap().data().to_vec()).collect()
}

#[test]
fn raw_and_made_caches_in_memory_read_every_file_once() {
    let files = files(40);
    let plain = stream(&copied(dataset(&files)).batch(8));
    assert_eq!(files.storage.counters().read.n(), 120);
    for cached in [copied(dataset(&files).cache(CacheAt::Memory)), copied(dataset(&files)).cache(CacheAt::Memory)] {
        let before = files.storage.counters().read.n();
        assert_eq!(stream(&cached.batch(8)), plain);
        assert_eq!(files.storage.counters().read.n() - before, 40);
    }
}

#[test]
fn a_file_cache_on_another_tier_serves_later_epochs_and_runs() {
    let files = files(40);
    let tier = Memory::default();
    let at = || CacheAt::File { storage: Arc::new(tier.clone()), path: PathBuf::from("tier/cache") };
    let plain = stream(&copied(dataset(&files)).batch(8));
    let read = || files.storage.counters().read.n();
    let before = read();
    assert_eq!(stream(&copied(dataset(&files).cache(at())).threads(Threads::Fixed(2)).batch(8)), plain);
    let first_run = read() - before;
    assert!((40..60).contains(&first_run), "about one epoch is read from the source: {first_run}");
    let before = read();
    assert_eq!(stream(&copied(dataset(&files).cache(at())).batch(8)), plain);
    assert!(read() - before <= 60 - first_run + 40, "the second run is served by the tier");
}

#[test]
fn a_cache_keeps_labels() {
    let files = files(20);
    let pipeline = copied(dataset(&files)).cache(CacheAt::Memory).batch(5);
    for batch in pipeline.iter().unwrap() {
        let batch = batch.unwrap();
        let labels: Vec<i64> = batch.data().chunks(4).map(|bytes| i64::from(bytes[0] % 10)).collect();
        assert_eq!(batch.labels(), labels);
    }
    let memory = Dataset::new(crate::numbers(20)).repeat(2);
    for batch in copied(memory).cache(CacheAt::Memory).batch(5).iter().unwrap() {
        content(&batch.unwrap());
    }
}
