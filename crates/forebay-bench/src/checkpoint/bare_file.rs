//! One file written and read past the page cache as fast as the device allows: the upper bound for saves and restores.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{RwLock, mpsc};
use std::thread;
use std::time::Instant;

use forebay_checkpoint::Region;
use forebay_measure::{Context, Scratch, random, stamp};

use super::Error;

/// Bytes per request.
const BLOCK: u64 = 4 << 20;
/// As many requests as a save keeps in flight; ready bytes need no more.
const DEPTH: usize = 8;
/// Alignment of direct requests.
const PAGE: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pass {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl Pass {
    /// Megabytes (10^6 bytes) per second.
    pub(super) fn mb_per_s(self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }
}

/// Writes a durable file, rounded up to whole pages: allocates, writes, syncs. `run` changes its content.
pub(super) fn write(scratch: &Scratch, name: &str, size: u64, run: u64, cancel: &AtomicBool) -> Result<Pass, Error> {
    let size = size.next_multiple_of(PAGE);
    let start = Instant::now();
    let path = scratch.fresh(name, size)?;
    let allocating = start.elapsed();
    let (mut workers, file) = (workers(&path, true)?, File::open(&path).context("opening", &path)?);
    let (start, bytes) = each_block(&mut workers, size, cancel, |file, memory, offset| {
        stamp(memory, offset, run);
        file.write_all_at(memory, offset)
    })
    .context("writing", &path)?;
    // A cancelled file is dropped, and a sync may take long.
    if !cancel.load(Ordering::Relaxed) {
        file.sync_all().context("syncing", &path)?;
    }
    Ok(Pass { bytes, seconds: (allocating + start.elapsed()).as_secs_f64() })
}

pub(super) fn read(scratch: &Scratch, name: &str, size: u64, cancel: &AtomicBool) -> Result<Pass, Error> {
    let path = scratch.path().join(name);
    let mut workers = workers(&path, false)?;
    let size = size.next_multiple_of(PAGE);
    let (start, bytes) =
        each_block(&mut workers, size, cancel, |file, memory, offset| file.read_exact_at(memory, offset))
            .context("reading", &path)?;
    Ok(Pass { bytes, seconds: start.elapsed().as_secs_f64() })
}

/// One descriptor and one buffer in huge pages per worker. Huge pages leave the kernel a thousand times fewer pages to
/// manage, and saves and restores use them too.
fn workers(path: &Path, write: bool) -> Result<Vec<(File, Region)>, Error> {
    let worker = |number: usize| {
        let file = open(path, write).context("opening", path)?;
        let mut memory = Region::new(BLOCK as usize)?;
        random(0, number as u64).fill(&mut memory);
        Ok((file, memory))
    };
    (0..DEPTH).map(worker).collect()
}

/// Opens the file, with direct I/O if the file system supports it.
fn open(path: &Path, write: bool) -> io::Result<File> {
    let with = |flags| OpenOptions::new().read(!write).write(write).custom_flags(flags).open(path);
    with(libc::O_DIRECT).or_else(|_| {
        let file = with(0)?;
        // SAFETY: a valid descriptor and plain integers. Advice has no effect if it is not taken.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_SEQUENTIAL) };
        Ok(file)
    })
}

/// Workers take the next block until all are done, one fails or `cancel` is set. Returns when they began and the bytes
/// moved. Files and memory stay with the caller, which closes and frees them untimed.
fn each_block(
    workers: &mut [(File, Region)],
    size: u64,
    cancel: &AtomicBool,
    act: impl Fn(&File, &mut [u8], u64) -> io::Result<()> + Sync,
) -> io::Result<(Instant, u64)> {
    let (next, moved, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = |file: &File, memory: &mut [u8]| -> io::Result<()> {
        while !cancel.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
            let offset = next.fetch_add(BLOCK, Ordering::Relaxed);
            if offset >= size {
                break;
            }
            let len = BLOCK.min(size - offset);
            act(file, &mut memory[..len as usize], offset).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            moved.fetch_add(len, Ordering::Relaxed);
        }
        Ok(())
    };
    let (start, ended) = together(workers.iter_mut().map(|(file, memory)| || work(file, memory)));
    ended.into_iter().try_for_each(|ended| ended?)?;
    Ok((start, moved.into_inner()))
}

/// Starts one thread per item and releases all at once. Returns when that was, and each result or why its thread did
/// not start. Starting threads takes longer than a fast device needs for many blocks, so no clock runs meanwhile.
pub(super) fn together<T: Send, W: FnOnce() -> T + Send>(
    works: impl IntoIterator<Item = W>,
) -> (Instant, Vec<io::Result<T>>) {
    let gate = RwLock::new(());
    thread::scope(|scope| {
        let closed = gate.write();
        let (ready, arrivals) = mpsc::channel();
        let spawn = |(number, work): (usize, W)| {
            let (ready, gate) = (ready.clone(), &gate);
            thread::Builder::new().name(format!("forebay:bare-{number}")).spawn_scoped(scope, move || {
                // The receiver waits for as many messages as threads were started.
                let _ = ready.send(());
                drop(gate.read());
                work()
            })
        };
        let threads: Vec<_> = works.into_iter().enumerate().map(spawn).collect();
        arrivals.iter().take(threads.iter().flatten().count()).for_each(drop);
        let start = Instant::now();
        drop(closed);
        let ended = |thread: thread::ScopedJoinHandle<'_, T>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (start, threads.into_iter().map(|thread| thread.map(ended)).collect())
    })
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
        assert_eq!(wrote.bytes, 9_000_001_u64.next_multiple_of(PAGE));
        let found = read(&scratch, "data", 9_000_001, &cancel).unwrap();
        assert_eq!(found.bytes, wrote.bytes);
        assert!(wrote.seconds > 0.0 && found.mb_per_s() > 0.0);
        let first = std::fs::read(scratch.path().join("data")).unwrap();
        write(&scratch, "data", 9_000_001, 2, &cancel).unwrap();
        assert_ne!(
            std::fs::read(scratch.path().join("data")).unwrap(),
            first,
            "no block equals an earlier one, so no device can deduplicate it"
        );
    }
}
