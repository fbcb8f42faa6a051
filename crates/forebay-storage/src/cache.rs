//! The page cache: emptying it, and proving that it is empty.
//!
//! A cold measurement is proven twice: before it, the kernel reports how many of the files' pages it holds; after it,
//! the bytes that the block layer fetched for this process are compared with the bytes read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Context;
use crate::{Error, Operation, Result};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// How much of a set of files the page cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Residency {
    /// Bytes of the files, in whole pages.
    pub total_bytes: u64,
    pub cached_bytes: u64,
}

impl Residency {
    /// The share in memory, 0 to 1; `None` for no bytes at all.
    pub fn share(&self) -> Option<f64> {
        (self.total_bytes > 0).then(|| self.cached_bytes as f64 / self.total_bytes as f64)
    }
}

/// Asks the kernel to drop the files' pages; dirty ones are written first.
///
/// Affects only these files and needs no privileges. The kernel may keep pages that a process maps: check with
/// [`residency`].
///
/// # Errors
/// When a file cannot be opened or synced.
pub fn evict<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    for path in paths {
        let (file, len) = open_regular(path)?;
        // Each sync makes the device flush its cache. If the kernel reports dirty pages, only files that have some are synced.
        let held = held(&file, len).ok();
        if held.is_some_and(|held| held.cached == 0) {
            continue;
        }
        if held.is_none_or(|held| held.dirty + held.writeback > 0) {
            // Dirty pages cannot be dropped. A read-only mount has none, and rejects the sync.
            match file.sync_data() {
                Err(error) if error.kind() != io::ErrorKind::ReadOnlyFilesystem => {
                    return Err(Error::from_io(Operation::Cache, path, error));
                }
                _ => {}
            }
        }
        // SAFETY: a valid descriptor and plain integers.
        let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if code != 0 {
            return Err(Error::from_io(Operation::Cache, path, io::Error::from_raw_os_error(code)));
        }
    }
    Ok(())
}

/// Drops the whole machine's clean page cache; needs root. Returns whether this was allowed.
pub fn drop_all() -> bool {
    // SAFETY: no arguments, no memory.
    unsafe { libc::sync() };
    fs::write(DROP_CACHES, "3").is_ok()
}

/// Whether [`drop_all`] would be allowed; drops nothing.
///
/// # Errors
/// The reason. In a container the file is often read-only even for root.
pub fn may_drop_all() -> io::Result<()> {
    OpenOptions::new().write(true).open(DROP_CACHES).map(drop)
}

/// How much of the files is in memory now, by `cachestat`, or by `mincore` if that is missing or forbidden.
///
/// # Errors
/// When a file cannot be opened or neither system call works.
pub fn residency<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<Residency> {
    let mut sum = Residency::default();
    for path in paths {
        let (file, len) = open_regular(path)?;
        if len == 0 {
            continue;
        }
        let cached = cachestat(&file, len).or_else(|_| mincore(&file, len)).context(Operation::Cache, path)?;
        sum.total_bytes += len.next_multiple_of(page_bytes());
        sum.cached_bytes += cached;
    }
    Ok(sum)
}

/// Opens a file that can have pages, without waiting for the writer of a pipe.
fn open_regular(path: &Path) -> Result<(File, u64)> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.context(Operation::Cache, path)?;
    let metadata = file.metadata().context(Operation::Cache, path)?;
    if !metadata.is_file() {
        let what = "only regular files have cached pages".to_owned();
        return Err(Error::Unsupported { operation: Operation::Cache, path: path.to_owned(), what });
    }
    Ok((file, metadata.len()))
}

fn page_bytes() -> u64 {
    // SAFETY: no memory is passed.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Bytes of the file in memory, by the `cachestat` system call (Linux 6.5).
pub(crate) fn cachestat(file: &File, len: u64) -> io::Result<u64> {
    Ok(held(file, len)?.cached * page_bytes())
}

/// Pages of a file, as `cachestat` counts them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn held(file: &File, len: u64) -> io::Result<Held> {
    #[repr(C)]
    struct Range {
        offset: u64,
        len: u64,
    }
    const SYS_CACHESTAT: libc::c_long = 451;
    let range = Range { offset: 0, len };
    let mut held = Held::default();
    // SAFETY: the two structures have the kernel's layout and live through the call.
    let code = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut held, 0u32) };
    if code == 0 { Ok(held) } else { Err(io::Error::last_os_error()) }
}

fn mincore(file: &File, len: u64) -> io::Result<u64> {
    // SAFETY: a read-only mapping that is dropped below; its bytes are never looked at.
    let map = unsafe { memmap2::Mmap::map(file) }?;
    let mut pages = vec![0u8; len.div_ceil(page_bytes()) as usize];
    // SAFETY: the mapping covers `len` bytes and the vector has one byte a page of it.
    let code = unsafe { libc::mincore(map.as_ptr() as *mut libc::c_void, len as usize, pages.as_mut_ptr()) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() as u64 * page_bytes())
}

/// Bytes the block layer has fetched for this process since it started; `None` if the kernel does not report it.
///
/// Unlike a device's statistics, it excludes other processes and covers all devices at once.
pub fn block_bytes_read() -> Option<u64> {
    io_counter("read_bytes:")
}

/// Bytes this process has caused to be written to devices since it started; `None` if the kernel does not report it.
///
/// Pages are counted when they become dirty; pages of an in-memory file system are never counted.
pub fn block_bytes_written() -> Option<u64> {
    io_counter("write_bytes:")
}

fn io_counter(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with_content() -> tempfile::NamedTempFile {
        // The temporary folder may be in memory; the source tree is on a disk.
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = tempfile::NamedTempFile::new_in(dir).unwrap();
        fs::write(file.path(), vec![1u8; 300_000]).unwrap();
        file
    }

    #[test]
    fn an_evicted_file_is_cold_and_a_read_one_is_warm() {
        let file = file_with_content();
        fs::read(file.path()).unwrap();
        let warm = residency([file.path()]).unwrap();
        assert_eq!(warm.total_bytes, 303_104);
        assert_eq!(warm.share(), Some(1.0));
        evict([file.path()]).unwrap();
        let cold = residency([file.path()]).unwrap();
        assert_eq!(cold.cached_bytes, 0, "on a disk file system the pages go");
    }

    #[test]
    fn cachestat_and_mincore_agree() {
        let file = file_with_content();
        let open = File::open(file.path()).unwrap();
        if let Ok(cached) = cachestat(&open, 300_000) {
            assert_eq!(cached, mincore(&open, 300_000).unwrap());
        }
    }

    #[test]
    fn cold_reads_show_up_at_the_block_layer() {
        let file = file_with_content();
        evict([file.path()]).unwrap();
        let before = block_bytes_read().unwrap();
        fs::read(file.path()).unwrap();
        assert!(block_bytes_read().unwrap() - before >= 300_000);
    }

    #[test]
    fn writes_show_up_at_the_block_layer() {
        let before = block_bytes_written().unwrap();
        file_with_content().as_file().sync_data().unwrap();
        assert!(block_bytes_written().unwrap() - before >= 300_000);
    }
}
