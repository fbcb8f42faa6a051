//! The bytes that a cache takes on its disk, counted for all programs that share it.
//!
//! The number is in a file, changed under a lock. Bytes are reserved before they are written, so the limit holds also if
//! a program is killed; what it had reserved is free again when a program next opens the cache alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files take whole blocks on a disk.
const BLOCK: u64 = 4096;

/// The bytes that a file of this length takes.
pub(super) fn on_disk(len: u64) -> u64 {
    len.next_multiple_of(BLOCK)
}

#[derive(Debug)]
pub(super) struct Usage {
    /// The lock of a file does not separate the threads of a program.
    file: Mutex<File>,
    /// The number as this program last saw it.
    seen: AtomicU64,
}

impl Usage {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let usage = Self { file: Mutex::new(file), seen: AtomicU64::new(0) };
        usage.change(Some)?;
        Ok(usage)
    }

    /// Takes a new count of all bytes.
    pub(super) fn set(&self, bytes: u64) -> io::Result<()> {
        self.change(|_| Some(bytes)).map(drop)
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Adds bytes if the limit allows them; returns whether it does.
    pub(super) fn reserve(&self, bytes: u64, limit: u64) -> io::Result<bool> {
        self.change(|used| used.checked_add(bytes).filter(|all| *all <= limit))
    }

    pub(super) fn release(&self, bytes: u64) {
        // If the count cannot be lowered now, the cache keeps less until it is counted again.
        let _ = self.change(|used| Some(used.saturating_sub(bytes)));
    }

    fn change(&self, change: impl FnOnce(u64) -> Option<u64>) -> io::Result<bool> {
        let file = self.file.lock().expect("no holder of this lock panics");
        file.lock()?;
        let changed = (|| {
            let mut bytes = [0; 8];
            // A new file is empty.
            let n = file.read_at(&mut bytes, 0)?;
            let used = if n == bytes.len() { u64::from_le_bytes(bytes) } else { 0 };
            let now = change(used);
            if let Some(now) = now {
                file.write_all_at(&now.to_le_bytes(), 0)?;
            }
            self.seen.store(now.unwrap_or(used), Ordering::Relaxed);
            Ok(now.is_some())
        })();
        let unlocked = file.unlock();
        changed.and_then(|changed| unlocked.map(|()| changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_share_a_cache_stay_within_its_limit_together() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let path = folder.path().join("usage");
            Usage::new(File::options().create(true).truncate(false).read(true).write(true).open(path).unwrap()).unwrap()
        };
        let (one, other) = (open(), open());
        let ask = |usage: &Usage| (0..100).filter(|_| usage.reserve(3, 300).unwrap()).count();
        let granted: usize = std::thread::scope(|scope| {
            let both = [scope.spawn(|| ask(&one)), scope.spawn(|| ask(&other))];
            both.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(granted, 100);
        one.release(3);
        assert!(other.reserve(2, 300).unwrap() && !one.reserve(2, 300).unwrap());
        assert_eq!(one.seen(), 299);
    }
}
