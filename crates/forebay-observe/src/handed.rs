//! The I/O of a child, from the increase of its parent's counters when the parent waits for it.
//!
//! Only root can read the I/O of a process that has ended: the kernel gives its files to root as soon as its memory is
//! freed. A process can always read its own counters, though. They are the sum over its threads plus what it inherited
//! from threads that ended and from children it waited for. The inherited part, compared before and after the wait, is
//! the I/O of the child and of the children that the child itself had waited for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::source::process::{Io, parse_io};

/// Limit on retries because another thread was reading or writing meanwhile.
const MAX_TRIES: usize = 1_000;

/// What a process has inherited so far.
#[derive(Debug)]
struct Handed {
    io: Io,
    /// Its threads except the calling one.
    threads: BTreeMap<u32, Io>,
}

/// Waits for a child of this process; `process` is this process's folder in `/proc`. Returns the child's I/O, or `None`
/// if it cannot be determined.
pub(crate) fn by_waiting(process: &Path, wait: impl FnOnce()) -> Option<Io> {
    let before = handed(process);
    wait();
    let (before, after) = before.zip(handed(process))?;
    // A thread that ended meanwhile has also passed on its counters.
    let all_there = before.threads.keys().all(|thread| after.threads.contains_key(thread));
    all_there.then(|| after.io.with(before.io, u64::saturating_sub))
}

fn handed(process: &Path) -> Option<Handed> {
    // SAFETY: no arguments, no memory.
    let this = unsafe { libc::gettid() } as u32;
    for _ in 0..MAX_TRIES {
        let threads = others(process, this);
        // The read is itself one more call of this thread.
        let read_own = || read(&process.join(format!("task/{this}/io")));
        let after_reading =
            |(io, n_bytes): (Io, u64)| Io { rchar: io.rchar + n_bytes, read_calls: io.read_calls + 1, ..io };
        let own = read_own().map(after_reading);
        let (all, n_bytes) = read(&process.join("io"))?;
        let own_later = own.map(|own| after_reading((own, n_bytes)));
        // A signal handler may have written in this thread as well.
        if read_own().map(|(io, _)| io) == own_later && others(process, this) == threads {
            let by_threads =
                threads.values().copied().chain(own).fold(Io::default(), |sum, io| sum.with(io, u64::saturating_add));
            return Some(Handed { io: all.with(by_threads, u64::saturating_sub), threads });
        }
        std::thread::yield_now();
    }
    None
}

fn others(process: &Path, this: u32) -> BTreeMap<u32, Io> {
    let tasks = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).filter(|id| *id != this);
    ids.filter_map(|id| Some((id, read(&process.join(format!("task/{id}/io")))?.0))).collect()
}

/// Reads the counters with exactly one call; also returns the number of bytes of text.
fn read(path: &Path) -> Option<(Io, u64)> {
    let mut text = [0; 1024];
    let n_bytes = File::open(path).ok()?.read(&mut text).ok()?;
    Some((parse_io(std::str::from_utf8(&text[..n_bytes]).ok()?)?, n_bytes as u64))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_a_child_did_is_told_by_waiting_for_it() {
        let mut command = Command::new("dd");
        command.args(["if=/dev/zero", "of=/dev/null", "bs=64k", "count=16"]).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Other tests of this process may end threads at the same moment; the result is then unknown.
        let io = by_waiting(Path::new("/proc/self"), || assert!(child.wait().unwrap().success()));
        if let Some(io) = io {
            assert!(io.rchar >= 1 << 20 && io.wchar >= 1 << 20, "{io:?}");
            assert!(io.read_calls >= 16 && io.write_calls >= 16, "{io:?}");
        }
    }

    #[test]
    fn nothing_is_known_when_a_thread_ends_meanwhile_or_there_are_no_numbers() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(by_waiting(dir.path(), || ()), None);
        let put = |name: &str, wchar: u64| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = format!("rchar: 0\nwchar: {wchar}\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n");
            std::fs::write(path, text).unwrap();
        };
        put("io", 100);
        put("task/1/io", 40);
        // The child wrote 7, and the thread 20.
        let io = by_waiting(dir.path(), || (put("task/1/io", 60), put("io", 127)).0);
        assert_eq!(io, Some(Io { wchar: 7, ..Io::default() }));
        assert_eq!(by_waiting(dir.path(), || std::fs::remove_dir_all(dir.path().join("task/1")).unwrap()), None);
    }
}
