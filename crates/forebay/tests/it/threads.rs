//! `--threads` of every command: so many threads are seen at work.
//!
//! All workers of a command start together and stay until the work is done, which is long enough to be counted.

use crate::dir::Dir;
use crate::process::{Running, more_threads_than_cores};

/// Whether `n` threads of that name are seen while the command runs.
fn sees(dir: &Dir, n: usize, line: &str, name: &str) {
    let mut running = Running::start(dir, &format!("{line} --threads {n}"));
    running.wait_until(&format!("{n} threads of {line}"), |running| running.threads(name).len() == n);
    running.signal(libc::SIGKILL);
    running.finish();
}

#[test]
fn inspecting_verifying_and_packing_have_so_many_threads() {
    let n = more_threads_than_cores();
    let dir = Dir::with_set();
    dir.write("list", "set/class_001/class_001_000000.jpg\n".repeat(20_000));
    sees(&dir, n, "data inspect list", "forebay:inspect");
    sees(&dir, n, "data verify list", "forebay:verify");
    sees(&dir, n, "data pack set packed --to tensor --size 1024 --shard-size 4MiB", "forebay:pack");
}

#[test]
fn making_and_unpacking_have_so_many_threads() {
    let n = more_threads_than_cores();
    let dir = Dir::new();
    sees(&dir, n, "data make imagenet made --count 5000", "forebay:make");
    dir.met("data make caltech101 set --count 2000 --median-size 4KB");
    dir.met("data pack set shards --to tar --shard-size 64KiB");
    sees(&dir, n, "data pack shards files --to files", "forebay:unpack");
}

#[test]
fn ingest_has_so_many_threads_that_decode_and_so_many_that_read() {
    let n = more_threads_than_cores();
    let dir = Dir::with_set();
    let line = "ingest set --readers 7 --tier hdd --batches 100000";
    sees(&dir, n, line, "forebay:map");
    let mut running = Running::start(&dir, &format!("{line} --threads 1"));
    running.wait_until("seven readers", |running| running.threads("forebay:read").len() == 7);
    running.signal(libc::SIGKILL);
    running.finish();
}
