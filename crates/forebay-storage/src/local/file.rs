//! One open local file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::window::{self, Window};
use crate::buffer::PAGE;
use crate::error::Context;
use crate::{Buffer, Error, Mode, Object, Operation, Result};

/// A first read asks for this much; nearly every image file fits, so one `read` call is the whole file.
pub(super) const FIRST_READ: usize = 256 * 1024;

pub(super) struct LocalObject {
    file: File,
    path: PathBuf,
    direct: bool,
    window: Window,
}

impl LocalObject {
    pub(super) fn open(path: &Path, mode: Mode) -> Result<Self> {
        // Without this, opening a pipe would wait for its writer; a regular file ignores it.
        let flags = libc::O_NONBLOCK | if mode.is_direct() { libc::O_DIRECT } else { 0 };
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|source| {
            if mode.is_direct() && source.raw_os_error() == Some(libc::EINVAL) {
                let what = "this file system does not support O_DIRECT; use --io buffered".to_owned();
                return Error::Unsupported { operation: Operation::Open, path: path.to_owned(), what };
            }
            Error::from_io(Operation::Open, path, source)
        })?;
        Ok(Self { file, path: path.to_owned(), direct: mode.is_direct(), window: Window::default() })
    }

    /// Rejects pipes and devices: they have no end, or none worth waiting for.
    fn regular_len(&self) -> Result<u64> {
        let metadata = self.file.metadata().context(Operation::Size, &self.path)?;
        if !metadata.is_file() {
            return Err(super::not_a_file(Operation::Read, &self.path, metadata.is_dir()));
        }
        Ok(metadata.len())
    }

    /// Reads until the end of the file, growing the buffer up to the limit; returns the total. The file type is checked only
    /// if the first read leaves doubt, because `stat` costs a system call.
    fn read_to_end(&self, limit: u64, into: &mut Buffer) -> Result<usize> {
        let mut filled = 0;
        loop {
            if filled == into.capacity() {
                let len = self.regular_len()?;
                // A file that is being appended to may have grown past what it was.
                Error::check_size(&self.path, len.max(filled as u64), limit)?;
                let wanted = len as usize + 1;
                into.resize(filled);
                into.reserve(wanted.max(filled + PAGE));
            }
            let outcome = read_retrying(&self.file, &mut into.whole_mut()[filled..], filled as u64);
            if outcome.as_ref().map_or(true, |n| *n == 0) {
                self.regular_len()?;
            }
            let n = outcome.context(Operation::Read, &self.path)?;
            filled += n;
            // A regular file gives fewer bytes than asked for only at its end; a direct read that stopped at an
            // unaligned place can only have stopped there for the same reason.
            let at_end = n == 0 || filled < into.capacity();
            if at_end {
                return Ok(filled);
            }
        }
    }
}

impl Object for LocalObject {
    fn len(&self) -> Result<u64> {
        self.regular_len()
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        into.resize(0);
        into.reserve(FIRST_READ);
        let n = self.read_to_end(limit, into)?;
        into.resize(n);
        Error::check_size(&self.path, n as u64, limit)
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        if !self.direct {
            into.resize(len);
            let n = fill(&self.file, into.as_mut_slice(), offset, false).context(Operation::Read, &self.path)?;
            return check_len(&self.path, offset, len, n);
        }
        let start = offset - offset % PAGE as u64;
        let lead = (offset - start) as usize;
        into.resize((lead + len).next_multiple_of(PAGE));
        let n = fill(&self.file, into.as_mut_slice(), start, true).context(Operation::Read, &self.path)?;
        check_len(&self.path, offset, len, n.saturating_sub(lead).min(len))?;
        into.as_mut_slice().copy_within(lead..lead + len, 0);
        into.resize(len);
        Ok(())
    }

    fn lend<'a>(&'a self, offset: u64, len: usize, buffer: &'a mut Buffer) -> Result<&'a [u8]> {
        if !self.direct && len >= window::SMALLEST {
            let lent = self.window.lend(&self.file, offset, len).context(Operation::Read, &self.path)?;
            if let Some(bytes) = lent {
                return Ok(bytes);
            }
        }
        self.read_at(offset, len, buffer)?;
        Ok(buffer.as_slice())
    }

    fn moved_for(&self, offset: u64, len: u64) -> u64 {
        if !self.direct || len == 0 {
            return len;
        }
        let page = PAGE as u64;
        (offset + len).next_multiple_of(page) - offset / page * page
    }

    fn map(&self) -> Result<Option<memmap2::Mmap>> {
        // SAFETY: the mapping is read-only. A file truncated by somebody else while mapped raises SIGBUS, which the
        // caller accepts by asking for a map; datasets are not rewritten while they are read.
        let map = unsafe { memmap2::Mmap::map(self.file.as_raw_fd()) }.context(Operation::Map, &self.path)?;
        Ok(Some(map))
    }
}

fn check_len(path: &Path, offset: u64, wanted: usize, found: usize) -> Result<()> {
    if found < wanted {
        let (wanted, found) = (wanted as u64, found as u64);
        return Err(Error::Truncated { path: path.to_owned(), offset, wanted, found });
    }
    Ok(())
}

/// Reads until the slice is full or the file ends; returns the number of bytes read.
fn fill(file: &File, into: &mut [u8], offset: u64, direct: bool) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        let n = read_retrying(file, &mut into[filled..], offset + filled as u64)?;
        if n == 0 {
            break;
        }
        filled += n;
        if direct && filled % PAGE != 0 {
            break; // Only the end of the file stops a direct read at an unaligned place, and no aligned read can follow.
        }
    }
    Ok(filled)
}

fn read_retrying(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(into, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
