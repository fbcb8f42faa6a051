//! The order of samples, as the order of those that fail shows it.

use crate::dir::Dir;
use crate::record::{cell_of, failures};

/// A set with twenty bad files and one good one.
fn set_of_bad_files() -> Dir {
    let dir = Dir::with_set();
    for (number, name) in dir.images("set").keys().enumerate().skip(1) {
        dir.write(format!("set/{name}"), format!("bad {number}"));
    }
    dir
}

fn order(dir: &Dir, flags: &str) -> Vec<String> {
    let cell = cell_of(dir, &format!("set --repeats 1 --warmups 0 --batch 4 {flags}"));
    failures(&cell).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn the_seed_decides_the_order_whatever_the_number_of_threads() {
    let dir = set_of_bad_files();
    let one = order(&dir, "--threads 1 --seed 3");
    assert_eq!(one.len(), 23);
    for flags in ["--threads 5", "--threads 2 --readers 3", "--threads 3 --prefetch 4"] {
        assert_eq!(order(&dir, &format!("{flags} --seed 3")), one, "{flags}");
    }
    let other = order(&dir, "--threads 1 --seed 4");
    assert_ne!(other, one);
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(other), sorted(one));
}

#[test]
fn first_come_does_not_wait_for_a_slow_sample() {
    let dir = set_of_bad_files();
    let usual = order(&dir, "--threads 4");
    // The first in the order becomes a file of holes that takes the emulated device 100 ms; the others take 4 ms.
    let slow = std::fs::File::create(dir.path(&usual[0])).unwrap();
    slow.set_len(60_000_000).unwrap();
    let flags = "--threads 4 --tier lustre --prefetch 16";
    assert_eq!(order(&dir, flags), usual, "by default it is waited for");
    let came = order(&dir, &format!("{flags} --first-come"));
    let place = came.iter().position(|name| *name == usual[0]).unwrap();
    assert!(place > 3, "the slow one came as number {place} of 23");
}

/// Requests and bytes of a pass over the 24 images in shards of 16 KiB.
fn requests(dir: &Dir, flags: &str) -> (u64, u64) {
    let cell = cell_of(dir, &format!("shards --threads 3 --read-only --repeats 1 --warmups 0 --batch 4 {flags}"));
    let one = &cell["samples"][0];
    assert_eq!(one["images"], 24, "{one}");
    (one["requests"].as_u64().unwrap(), one["bytes"].as_u64().unwrap())
}

#[test]
fn a_full_shuffle_reads_records_one_by_one_and_a_window_reads_each_shard_at_once() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tfrecord --shard-size 64KiB");
    let n_shards = dir.names("shards").iter().filter(|name| name.contains("tfrecord")).count() as u64;
    assert!(n_shards > 1);
    let (singly, bytes) = requests(&dir, "");
    assert!(singly >= 20, "{singly} requests");
    assert_eq!(requests(&dir, "--shuffle full"), (singly, bytes));
    // Shards are shorter than a block.
    for order in ["window:8", "window:1000", "shards", "none", "none --interleave 2:1", "shards --interleave 8"] {
        assert_eq!(requests(&dir, &format!("--shuffle {order}")), (n_shards, bytes), "{order}");
    }
    let readers = requests(&dir, "--shuffle window:8 --readers 2 --prefetch 3");
    assert_eq!(readers, (n_shards, bytes), "with readers of its own");
}

#[test]
fn shuffle_and_interleave_decide_the_order() {
    let dir = set_of_bad_files();
    let usual = order(&dir, "--threads 2 --seed 3");
    assert_eq!(order(&dir, "--threads 2 --seed 3 --shuffle full"), usual);
    let stored = order(&dir, "--threads 2 --seed 3 --shuffle none");
    assert_eq!(order(&dir, "--threads 3 --seed 4 --shuffle none"), stored, "no seed");
    let window = |n: u32| order(&dir, &format!("--threads 2 --seed 3 --shuffle window:{n} --interleave 1"));
    assert_ne!(window(8), stored);
    assert_ne!(window(8), window(4));
    let shards = order(&dir, "--threads 2 --seed 3 --shuffle shards");
    assert_eq!(window(1), shards, "a window of one sample keeps the order of the shards");
    let by_two = order(&dir, "--threads 2 --seed 3 --shuffle shards --interleave 2:1");
    assert_ne!(by_two, shards);
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(by_two), sorted(usual));
}

#[test]
fn an_order_that_cannot_be_is_refused_before_the_first_byte() {
    let dir = Dir::with_set();
    let said = dir.refused("ingest set --interleave 4");
    assert!(
        said.contains("--interleave needs an order of shards: give --shuffle as window:N, shards or none"),
        "{said}"
    );
    let said = dir.refused("ingest set --shuffle window:0");
    assert!(said.contains("give full, shards, none or window:N"), "{said}");
    dir.met("data pack set packed --to tfrecord --compression gzip");
    let said = dir.refused("ingest packed --shuffle full --repeats 1 --threads 1");
    assert!(said.contains("a compressed shard can only be read as a whole"), "{said}");
    let record = crate::record::of(&dir, "packed --shuffle window:8 --repeats 1 --warmups 0 --threads 2");
    assert_eq!(record["cells"][0]["shuffle"], "window:8", "{record}");
}
