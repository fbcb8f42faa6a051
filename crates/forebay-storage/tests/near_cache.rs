//! A cache of objects on a near disk: what is still requested from the store.
#![cfg(feature = "object")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::ops::Range;
use std::path::{Path, PathBuf};

use forebay_storage::{Access, Buffer, CachePlace, NextRead, Objects, Reading, Reads, Storage};
use forebay_testing::S3Server;
use forebay_units::Bytes;

/// Bytes of an object; with its trailer, one block of a disk.
const LEN: usize = 4_000;

fn content(n: usize) -> Vec<u8> {
    (0..LEN).map(|at| (at * 7 + n) as u8).collect()
}

fn store(n_objects: usize) -> S3Server {
    let server = S3Server::start().unwrap();
    (0..n_objects).for_each(|n| server.put(&format!("b/set/{n}"), content(n)));
    server
}

/// A program of its own: it lists the objects.
fn objects(server: &S3Server, dir: &Path, n_blocks: u64) -> Objects {
    let cache = CachePlace { dir: dir.to_owned(), size: Some(Bytes(n_blocks * 4096)) };
    let reading = Reading { readahead: 40_000, cache: Some(cache), ..Reading::default() };
    let objects = Objects::with_access(Access::of_variables(server.variables()), reading).unwrap();
    objects.list(Path::new("s3://b/set")).unwrap();
    objects
}

fn url(n: usize) -> PathBuf {
    format!("s3://b/set/{n}").into()
}

fn n_gets(server: &S3Server) -> usize {
    server.log().iter().filter(|line| line.starts_with("GET /b/set/")).count()
}

/// Random epochs, each a permutation.
fn epochs(n_objects: usize, n_epochs: usize) -> Vec<usize> {
    let mut state = 5_u64;
    let mut all = Vec::new();
    for _ in 0..n_epochs {
        let mut epoch: Vec<usize> = (0..n_objects).collect();
        for at in (1..n_objects).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            epoch.swap(at, (state >> 33) as usize % (at + 1));
        }
        all.extend(epoch);
    }
    all
}

/// Reads whole objects in this order; returns the requests for objects per so many reads.
fn read(server: &S3Server, objects: &Objects, order: &[usize], per: usize) -> Vec<usize> {
    let owned = order.to_vec();
    let reads = || -> Reads { Box::new(owned.clone().into_iter().map(|n| NextRead { path: url(n), range: None })) };
    let (mut buffer, mut before, mut found) = (Buffer::default(), n_gets(server), Vec::new());
    let ahead = objects.read_ahead(&reads, u64::MAX, 4).unwrap();
    for part in order.chunks(per) {
        for n in part {
            ahead.storage.open(&url(*n)).unwrap().read_all(&mut buffer).unwrap();
            assert!(buffer.as_slice() == content(*n), "object {n}");
        }
        let now = n_gets(server);
        found.push(now - before);
        before = now;
    }
    (ahead.stop)();
    found
}

#[test]
fn with_half_the_data_in_the_cache_at_most_55_percent_of_an_epoch_are_fetched() {
    const N: usize = 200;
    let (server, folder) = (store(N), tempfile::tempdir().unwrap());
    let objects = objects(&server, folder.path(), N as u64 / 2);
    let fetched = read(&server, &objects, &epochs(N, 5), N);
    assert!(fetched[0] >= N, "{fetched:?}");
    // Requests run at most ten objects ahead of the reads of an epoch.
    assert!(fetched[1..].iter().all(|n| *n <= N * 55 / 100), "{fetched:?}");
    let counts = objects.requests().unwrap().cache;
    assert_eq!(counts.read + fetched.iter().sum::<usize>() as u64, 5 * N as u64);
    assert!(counts.kept - counts.evicted <= N as u64 / 2 && counts.damaged + counts.unwritten == 0, "{counts:?}");
    let size: u64 =
        walk(folder.path()).iter().map(|file| std::fs::metadata(file).unwrap().len().next_multiple_of(4096)).sum();
    assert!(size <= N as u64 / 2 * 4096 + 2 * 4096, "{size}");
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_cache_of_everything_leaves_nothing_to_request_for_the_next_run() {
    let (server, folder) = (store(50), tempfile::tempdir().unwrap());
    assert_eq!(read(&server, &objects(&server, folder.path(), 100), &epochs(50, 2), 50), [50, 0]);
    let again = objects(&server, folder.path(), 100);
    assert_eq!(read(&server, &again, &epochs(50, 1), 50), [0]);
    assert_eq!(again.requests().unwrap().cache.read, 50);
    assert!(again.description_of(Path::new("s3://b/set")).ends_with(&format!("cached in {}", folder.path().display())));
}

#[test]
fn data_smaller_than_the_memory_for_reads_ahead_is_fetched_once() {
    let (server, folder) = (store(8), tempfile::tempdir().unwrap());
    let objects = objects(&server, folder.path(), 100);
    assert_eq!(read(&server, &objects, &epochs(8, 4), 8), [8, 0, 0, 0], "ten objects may be requested ahead");
}

#[test]
fn an_object_that_was_replaced_is_read_anew() {
    let (server, folder) = (store(20), tempfile::tempdir().unwrap());
    read(&server, &objects(&server, folder.path(), 100), &epochs(20, 1), 20);
    // The same bytes in another version: what counts is that they are fetched.
    server.put("b/set/7", content(7));
    assert_eq!(read(&server, &objects(&server, folder.path(), 100), &epochs(20, 1), 20), [1]);
}

#[test]
fn a_damaged_or_lost_entry_is_read_from_the_store() {
    let (server, folder) = (store(20), tempfile::tempdir().unwrap());
    let objects = objects(&server, folder.path(), 100);
    read(&server, &objects, &epochs(20, 1), 20);
    let files: Vec<_> = walk(folder.path()).into_iter().filter(|file| file.metadata().unwrap().len() > 4_000).collect();
    assert_eq!(files.len(), 20);
    std::fs::write(&files[0], vec![1; LEN + 32]).unwrap();
    std::fs::remove_file(&files[1]).unwrap();
    assert_eq!(read(&server, &objects, &epochs(20, 1), 20), [2]);
    assert_eq!(objects.requests().unwrap().cache.damaged, 1);
}

#[test]
fn parts_of_a_shard_are_kept_by_their_announced_reads_however_they_are_joined() {
    let server = S3Server::start().unwrap();
    let bytes: Vec<u8> = (0..40 * LEN).map(|at| (at % 251) as u8).collect();
    server.put("b/set/shard", bytes.clone());
    let folder = tempfile::tempdir().unwrap();
    let objects = objects(&server, folder.path(), 1_000);
    let shard = Path::new("s3://b/set/shard");
    let part = |n: usize| (n * LEN) as u64..((n + 1) * LEN) as u64;
    let reads = |parts: &[usize]| {
        let parts: Vec<NextRead> =
            parts.iter().map(|n| NextRead { path: shard.to_owned(), range: Some(part(*n)) }).collect();
        objects.read_ahead(&|| Box::new(parts.clone().into_iter()), u64::MAX, 4).unwrap()
    };
    let check = |storage: &dyn Storage, range: Range<u64>| {
        let mut buffer = Buffer::default();
        let len = (range.end - range.start) as usize;
        storage.open(shard).unwrap().read_at(range.start, len, &mut buffer).unwrap();
        assert!(buffer.as_slice() == &bytes[range.start as usize..range.end as usize], "{range:?}");
    };
    let ahead = reads(&[0, 1, 2, 3, 10, 11]);
    (0..2).for_each(|n| check(ahead.storage.as_ref(), part(n)));
    check(ahead.storage.as_ref(), part(2).start..part(3).end);
    check(ahead.storage.as_ref(), part(10).start..part(11).end);
    (ahead.stop)();
    let before = n_gets(&server);
    let ahead = reads(&[1, 2, 3, 4, 10]);
    check(ahead.storage.as_ref(), part(1).start..part(3).start + 100);
    check(ahead.storage.as_ref(), part(3).start + 100..part(4).end);
    check(ahead.storage.as_ref(), part(10));
    (ahead.stop)();
    assert_eq!(n_gets(&server) - before, 1, "{:?}", server.log());
}

#[test]
fn a_full_disk_costs_the_cache_and_not_the_reads() {
    let (server, folder) = (store(20), tempfile::tempdir().unwrap());
    let objects = objects(&server, folder.path(), 100);
    // Nothing can be made where the entries go.
    for folder in
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        std::fs::remove_dir(&folder).unwrap();
        std::fs::write(&folder, b"").unwrap();
    }
    assert_eq!(read(&server, &objects, &epochs(20, 2), 40), [40]);
    let counts = objects.requests().unwrap().cache;
    assert!(counts.kept == 0 && counts.unwritten >= 20, "{counts:?}");
}
