//! Finds the holder of a folder's lock without taking the lock, which would block other processes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use forebay_checkpoint::lock_holder;
use forebay_storage::{bucket, is_url};

/// The name that the holder wrote into the lock; `None` if no process holds it. Of a folder, only processes on this
/// machine are seen.
pub(super) fn holder(lock: &Path) -> forebay_checkpoint::Result<Option<String>> {
    if is_url(lock) { lock_holder(bucket().as_ref(), lock) } else { Ok(holder_of_file(lock)) }
}

fn holder_of_file(lock: &Path) -> Option<String> {
    let inode = fs::metadata(lock).ok()?.ino();
    let written = fs::read_to_string(lock).ok()?.trim().to_owned();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = written.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    locks.lines().any(|line| is_held(line, inode, pid)).then_some(written)
}

/// Whether a line of `/proc/locks` is a lock of this file held by this process. Device numbers are not compared:
/// on some file systems, files have other device numbers than the kernel lists.
fn is_held(line: &str, inode: u64, pid: Option<u64>) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", held_by, place, ..] = words[..] else { return false };
    let found: Option<u64> = place.rsplit(':').next().and_then(|number| number.parse().ok());
    found == Some(inode) && held_by.parse().ok() == pid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exclusive_lock_of_that_file_by_that_process_counts() {
        let line = "3: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF";
        assert!(is_held(line, 1234, Some(4711)));
        assert!(!is_held(line, 1235, Some(4711)) && !is_held(line, 1234, Some(1)) && !is_held(line, 1234, None));
        assert!(!is_held("3: -> FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", 1234, Some(4711)), "one that waits");
        assert!(!is_held("3: POSIX  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", 1234, Some(4711)));
        assert!(!is_held("", 1234, Some(4711)));
    }
}
