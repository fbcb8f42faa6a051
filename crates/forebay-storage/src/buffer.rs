//! A page-aligned buffer that is reused from read to read.
//!
//! Direct I/O needs alignment, and reuse keeps the allocator and its page faults out of the hot path: a fresh 112 KB
//! vector per file costs more system time than the read itself.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of the memory and granularity of its growth: what every Linux file system accepts for direct I/O.
pub(crate) const PAGE: usize = 4096;

/// A growable, page-aligned run of bytes. Its whole capacity is always initialised.
#[derive(Debug)]
pub struct Buffer {
    memory: NonNull<u8>,
    capacity: usize,
    len: usize,
}

// SAFETY: the buffer owns its memory, and only `&mut self` methods write to it.
unsafe impl Send for Buffer {}
// SAFETY: as above; `&self` methods only read.
unsafe impl Sync for Buffer {}

impl Default for Buffer {
    fn default() -> Self {
        Self { memory: NonNull::dangling(), capacity: 0, len: 0 }
    }
}

impl Buffer {
    /// A buffer that holds `capacity` bytes, rounded up to whole pages, before it has to grow.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut buffer = Self::default();
        buffer.reserve(capacity);
        buffer
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len <= capacity`, and the capacity is allocated and initialised; for capacity 0 the pointer is
        // dangling but non-null and the length is 0.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.len) }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn fill_from(&mut self, bytes: &[u8]) {
        self.resize(bytes.len());
        self.as_mut_slice().copy_from_slice(bytes);
    }

    /// Sets the number of content bytes; the content beyond the old length is unspecified.
    pub fn resize(&mut self, len: usize) {
        self.reserve(len);
        self.len = len;
    }

    /// All of the memory, content or not, for a read to go into; follow it with [`resize`](Self::resize).
    pub fn whole_mut(&mut self) -> &mut [u8] {
        // SAFETY: the whole capacity is allocated and initialised, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.capacity) }
    }

    /// Makes room for `capacity` bytes in all, keeping the content.
    pub fn reserve(&mut self, capacity: usize) {
        if capacity <= self.capacity {
            return;
        }
        let rounded = capacity.max(self.capacity + self.capacity / 2).next_multiple_of(PAGE);
        let layout = layout_of(rounded);
        // SAFETY: the layout has a non-zero size.
        let raw = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(raw) else { handle_alloc_error(layout) };
        // SAFETY: both regions hold at least `len` bytes and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.memory.as_ptr(), memory.as_ptr(), self.len) };
        self.release();
        self.memory = memory;
        self.capacity = rounded;
    }

    fn release(&mut self) {
        if self.capacity > 0 {
            // SAFETY: the memory was allocated with this very layout.
            unsafe { dealloc(self.memory.as_ptr(), layout_of(self.capacity)) };
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.release();
    }
}

fn layout_of(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, PAGE).expect("a capacity below isize::MAX with a power-of-two alignment")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_content_and_alignment() {
        let mut buffer = Buffer::default();
        buffer.fill_from(b"abc");
        buffer.reserve(100_000);
        assert_eq!(buffer.as_slice(), b"abc");
        assert_eq!(buffer.capacity() % PAGE, 0);
        assert_eq!(buffer.whole_mut().as_ptr() as usize % PAGE, 0);
    }

    #[test]
    fn shrinking_and_regrowing_reuses_the_memory() {
        let mut buffer = Buffer::with_capacity(10_000);
        let before = buffer.whole_mut().as_ptr();
        buffer.resize(9_000);
        buffer.resize(10);
        buffer.resize(9_000);
        assert_eq!(buffer.whole_mut().as_ptr(), before);
    }
}
