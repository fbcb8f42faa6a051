//! `--threads` of every command: so many threads are seen at work.
//!
//! A worker that opens a pipe nobody writes to stays there, so that all of them can be counted without a race.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use crate::dir::Dir;
use crate::process::{Running, more_threads_than_cores};

/// Makes a list of one image and `n` pipes.
fn list_of_pipes(dir: &Dir, n: usize) {
    let mut list = "set/class_001/class_001_000000.jpg\n".to_owned();
    for number in 0..n {
        let name = format!("pipe-{number}.jpg");
        let path = CString::new(dir.path(&name).as_os_str().as_bytes()).unwrap();
        // SAFETY: a valid path that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        list.push_str(&format!("{name}\n"));
    }
    dir.write("list", list);
}

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
    list_of_pipes(&dir, n);
    sees(&dir, n, "data inspect list", "forebay:inspect");
    sees(&dir, n, "data verify list", "forebay:verify");
    sees(&dir, n, "data pack list packed --to tensor --keep-order --shard-size 64KiB", "forebay:pack");
}

#[test]
fn making_and_unpacking_have_so_many_threads() {
    let n = more_threads_than_cores();
    let dir = Dir::new();
    sees(&dir, n, "data make imagenet made --count 5000", "forebay:make");
    dir.met("data make caltech101 set --count 400 --median-size 4KB");
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
