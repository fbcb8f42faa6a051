//! One file written and read past the page cache as fast as the device takes it: what others set their own rates beside.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use forebay_checkpoint::Region;
use forebay_record::Engine;

use super::crew::{self, Shared, Worker};
use super::error::{Context, Error};
use super::random::{random, stamp};
use super::requests::{GRAIN, Requests};
use super::scratch::Scratch;
use super::threads;

/// Bytes a request.
const BLOCK: u64 = 4 << 20;
/// As many as a save keeps in flight; bytes that lie ready need no more.
const DEPTH: usize = 8;

/// Bytes that went one way, and how long that took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pass {
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

impl Pass {
    /// Megabytes (10^6 bytes) a second.
    pub(crate) fn mb_per_s(self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }
}

/// Makes a file of so many bytes, rounded up to whole pages, and makes it durable: its space allocated, its blocks
/// written, synced. `run` makes its content another one than before.
pub(crate) fn write(scratch: &Scratch, name: &str, size: u64, run: u64, cancel: &AtomicBool) -> Result<Pass, Error> {
    let size = size.next_multiple_of(GRAIN);
    let start = Instant::now();
    let path = scratch.fresh(name, size)?;
    let allocating_s = start.elapsed().as_secs_f64();
    let workers = workers(&path, true, size, |file, memory, offset| {
        stamp(memory, offset, run);
        file.write_all_at(memory, offset).context("writing", &path)
    })?;
    let file = File::open(&path).context("opening", &path)?;
    let sync = || file.sync_all().context("syncing", &path);
    let done = crew::run(workers, Shared::new(cancel, None), sync, &mut |_| ())?;
    Ok(Pass { bytes: done.bytes, seconds: allocating_s + done.wall_s })
}

/// Reads a file that [`write`] made, from end to end.
pub(crate) fn read(scratch: &Scratch, name: &str, size: u64, cancel: &AtomicBool) -> Result<Pass, Error> {
    let path = scratch.path().join(name);
    let workers = workers(&path, false, size.next_multiple_of(GRAIN), |file, memory, offset| {
        file.read_exact_at(memory, offset).context("reading", &path)
    })?;
    let done = crew::run(workers, Shared::new(cancel, None), || Ok(()), &mut |_| ())?;
    Ok(Pass { bytes: done.bytes, seconds: done.wall_s })
}

/// Workers that take the blocks of a file as they come, each with memory of its own in huge pages: the kernel has a
/// thousand times fewer of them to look after, and a save and a restore of ours have the same.
fn workers<'a>(
    path: &'a Path,
    write: bool,
    size: u64,
    act: impl Fn(&File, &mut [u8], u64) -> Result<(), Error> + Clone + Send + 'a,
) -> Result<Vec<Worker<'a>>, Error> {
    let requests = Requests::Sequential { block: BLOCK, size };
    let (engine, next) = (engine_for(path), Arc::new(AtomicU64::new(0)));
    let worker = |number: usize| -> Result<Worker<'a>, Error> {
        let file = threads::open(path, engine, write, &requests)?;
        let mut memory = Region::new(BLOCK as usize).map_err(|error| Error::senseless(error.to_string()))?;
        random(0, number as u64).fill(&mut memory);
        let (next, act) = (Arc::clone(&next), act.clone());
        Ok(Box::new(move |tally| {
            while !tally.is_over() {
                let offset = next.fetch_add(BLOCK, Ordering::Relaxed);
                if offset >= size {
                    break;
                }
                let (start, len) = (Instant::now(), BLOCK.min(size - offset));
                act(&file, &mut memory[..len as usize], offset)?;
                tally.count(start, len);
            }
            Ok(())
        }))
    };
    (0..DEPTH).map(worker).collect()
}

/// Past the page cache where the file system can.
fn engine_for(path: &Path) -> Engine {
    match OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path) {
        Ok(_) => Engine::Direct,
        Err(_) => Engine::Sync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_every_byte_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(dir.path(), ".forebay-bare-").unwrap();
        let cancel = AtomicBool::new(false);
        let wrote = write(&scratch, "data", 9_000_001, 1, &cancel).unwrap();
        assert_eq!(wrote.bytes, 9_000_001_u64.next_multiple_of(GRAIN));
        let found = read(&scratch, "data", 9_000_001, &cancel).unwrap();
        assert_eq!(found.bytes, wrote.bytes);
        assert!(wrote.seconds > 0.0 && found.mb_per_s() > 0.0);
        let first = std::fs::read(scratch.path().join("data")).unwrap();
        write(&scratch, "data", 9_000_001, 2, &cancel).unwrap();
        assert_ne!(
            std::fs::read(scratch.path().join("data")).unwrap(),
            first,
            "no device can tell it was there before"
        );
    }
}
