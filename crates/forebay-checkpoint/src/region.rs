//! Page-aligned memory, in huge pages if available, faulted in before use.
//!
//! The first touch of new 4 KiB pages runs at 2 GB/s, slower than the disk; of huge pages, at 8 GB/s. Copying into
//! pages that were touched before runs at memory speed. A pool is therefore allocated once and touched immediately.

use std::any::Any;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::fs::PAGE;
use crate::{Elsewhere, Error, Result};

/// A mapping that lives as long as this value. Its bytes belong to the [`Region`] created from it.
#[derive(Debug)]
pub struct Pages {
    memory: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length; whoever reads or writes the memory does so through the one region that owns it.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    pub fn address(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    /// Its length in bytes, a multiple of the page size.
    pub fn n_bytes(&self) -> usize {
        self.len
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping was made with this address and length, and nothing refers to it any more.
            unsafe { libc::munmap(self.memory.as_ptr().cast(), self.len) };
        }
    }
}

/// An owned buffer, fully readable and writable.
#[derive(Debug)]
pub struct Region {
    /// The device's registration of the pages; dropped before the pages.
    lock: Option<Mutex<Box<dyn Any + Send>>>,
    is_offered: bool,
    pages: Arc<Pages>,
}

impl Region {
    /// Zeroed memory for `len` bytes, rounded up to whole pages.
    ///
    /// # Errors
    /// When the memory is not available.
    pub fn new(len: usize) -> Result<Self> {
        let len = len.next_multiple_of(PAGE);
        if len == 0 {
            return Ok(Self::of(Pages { memory: NonNull::dangling(), len }));
        }
        let memory =
            map_aligned(len).map_err(|source| Error::Memory { wanted: len as u64, source: Arc::new(source) })?;
        // SAFETY: the mapping was just made with this length. Where there are no huge pages, small ones serve.
        unsafe { libc::madvise(memory.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Ok(Self::of(Pages { memory, len }))
    }

    fn of(pages: Pages) -> Self {
        Self { lock: None, is_offered: false, pages: Arc::new(pages) }
    }

    /// Registers the pages with a device, unless already done.
    ///
    /// # Errors
    /// When the device refuses them.
    pub fn lock_for(&mut self, device: &dyn Elsewhere) -> Result<()> {
        if !self.is_offered && self.pages.len > 0 {
            let locked = device.lock(Arc::clone(&self.pages));
            let wanted = self.pages.len as u64;
            self.lock = locked.map_err(|source| Error::PageLock { wanted, source: Arc::new(source) })?.map(Mutex::new);
            self.is_offered = true;
        }
        Ok(())
    }

    /// Touches every page now, to avoid page faults later.
    pub fn fault_in(&mut self) {
        self.fault_in_until(&AtomicBool::new(false));
    }

    /// The same, but stops when a flag is set: touching gigabytes takes seconds.
    pub fn fault_in_until(&mut self, stop: &AtomicBool) {
        for page in self.chunks_mut(PAGE).take_while(|_| !stop.load(Ordering::Relaxed)) {
            // The compiler cannot remove a volatile write.
            // SAFETY: a valid, exclusively borrowed byte.
            unsafe { std::ptr::write_volatile(&mut page[0], 0) };
        }
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has this length, is zeroed or written, and lives as long as `self`; for length 0 the
        // pointer is dangling but not null.
        unsafe { std::slice::from_raw_parts(self.pages.memory.as_ptr(), self.pages.len) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pages.memory.as_ptr(), self.pages.len) }
    }
}

/// Maps whole pages, aligned to a huge page if they fill one. A buffer in huge pages reaches the device as a few
/// segments instead of a thousand, which would take several requests.
fn map_aligned(len: usize) -> io::Result<NonNull<u8>> {
    const HUGE: usize = 2 << 20;
    let slack = if len < HUGE { 0 } else { HUGE - PAGE };
    let total = len.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new private mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), total, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start: *mut u8 = start.cast();
    let head = if slack > 0 { start.align_offset(HUGE) } else { 0 };
    let unmap = |from: usize, n: usize| {
        if n > 0 {
            // SAFETY: whole pages of the mapping that was just made, and that nothing refers to.
            unsafe { libc::munmap(start.add(from).cast(), n) };
        }
    };
    unmap(0, head);
    unmap(head + len, slack - head);
    // SAFETY: `head` is at most the slack, so that `len` bytes of the mapping follow.
    Ok(NonNull::new(unsafe { start.add(head) }).expect("a mapping is never at address 0"))
}

/// Memory kept from one restore to the next, so its pages are faulted in only once.
#[derive(Debug, Default)]
pub struct Memory {
    free: Vec<Region>,
}

impl Memory {
    /// Allocates this many bytes now, faulted in.
    ///
    /// # Errors
    /// When the memory is not available.
    pub fn reserve(&mut self, len: usize) -> Result<()> {
        self.reserve_until(len, &AtomicBool::new(false))
    }

    /// The same, but stops faulting in when a flag is set.
    ///
    /// # Errors
    /// When the memory is not available.
    pub fn reserve_until(&mut self, len: usize, stop: &AtomicBool) -> Result<()> {
        let mut region = Region::new(len)?;
        region.fault_in_until(stop);
        self.free.push(region);
        Ok(())
    }

    /// Bytes kept for the next restore, excluding memory of checkpoints still in use.
    pub fn n_bytes(&self) -> usize {
        self.free.iter().map(|region| region.len()).sum()
    }

    /// The smallest buffer that holds this many bytes, or a new one. A buffer more than twice as long is kept for a
    /// larger file.
    pub(crate) fn take(&mut self, len: usize) -> Result<Region> {
        let span = len.next_multiple_of(PAGE);
        let fits = |region: &Region| region.len() >= span && region.len() / 2 <= span;
        let fitting = self.free.iter().enumerate().filter(|(_, region)| fits(region));
        match fitting.min_by_key(|(_, region)| region.len()).map(|(k, _)| k) {
            Some(k) => Ok(self.free.swap_remove(k)),
            None => Region::new(len),
        }
    }

    /// Takes back memory that is no longer in use.
    pub(crate) fn give(&mut self, region: Region) {
        if !region.is_empty() {
            self.free.push(region);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_whole_pages_and_keeps_what_is_written() {
        let mut region = Region::new(5000).unwrap();
        assert_eq!((region.len(), region.as_ptr() as usize % PAGE), (2 * PAGE, 0));
        region[4999] = 7;
        assert_eq!(region[4999], 7);
        let mut huge = Region::new(5 << 20).unwrap();
        assert_eq!((huge.len(), huge.as_ptr() as usize % (2 << 20)), (5 << 20, 0));
        huge.fill(7);
        assert!(Region::new(0).unwrap().is_empty());
        assert!(matches!(Region::new(usize::MAX / 2), Err(Error::Memory { .. })));
    }
}
