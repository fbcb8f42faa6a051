//! Tensor memory: zeroed, and aligned so that no vector load straddles two cache lines.

use std::alloc::{Layout, LayoutError, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::error::{Error, Result};

/// A cache line, and the widest vector register.
const ALIGN: usize = 64;

#[derive(Debug)]
pub struct Memory {
    start: NonNull<f32>,
    len: usize,
}

// SAFETY: it owns its memory, as a `Vec` does.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives shared access to plain floats alone.
unsafe impl Sync for Memory {}

impl Memory {
    pub(super) const fn empty() -> Self {
        Self { start: NonNull::dangling(), len: 0 }
    }

    /// `len` floats, or an error if the memory is not available.
    pub(super) fn zeroed(len: usize) -> Result<Self> {
        if len == 0 {
            return Ok(Self::empty());
        }
        let none = || Error::memory::<f32>(len);
        let layout = Self::layout(len).map_err(|_| none())?;
        // SAFETY: the layout is not of size 0.
        let start = unsafe { alloc_zeroed(layout) }.cast::<f32>();
        Ok(Self { start: NonNull::new(start).ok_or_else(none)?, len })
    }

    /// The first `len` floats with arbitrary content; the memory grows if it is too small.
    pub(super) fn room(&mut self, len: usize) -> Result<&mut [f32]> {
        if self.len < len {
            *self = Self::zeroed(len)?;
        }
        Ok(&mut self[..len])
    }

    fn layout(len: usize) -> std::result::Result<Layout, LayoutError> {
        Layout::array::<f32>(len)?.align_to(ALIGN)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.len > 0 {
            let layout = Self::layout(self.len).expect("it was allocated with this layout");
            // SAFETY: as above.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl Deref for Memory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `len` floats were allocated and zeroed; none need be.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zeroed_and_grows_and_may_be_none() {
        let mut memory = Memory::empty();
        assert!(memory.is_empty());
        assert_eq!(memory.room(100).unwrap(), [0.0; 100]);
        assert!(memory.as_ptr().addr().is_multiple_of(ALIGN));
        memory[99] = 1.0;
        assert_eq!(memory.room(50).unwrap().len(), 50);
        assert_eq!(memory[99], 1.0, "a smaller room is the same memory");
    }

    #[test]
    fn what_no_memory_holds_is_an_error_with_its_size() {
        for len in [1 << 50, usize::MAX] {
            let error = Memory::zeroed(len).unwrap_err().to_string();
            let bytes = 4 * len as u128;
            assert_eq!(error, format!("out of memory: cannot allocate {bytes} bytes; use a smaller batch or model"));
            assert!(matches!(crate::room::filled(len, 0.0f32), Err(Error::Memory { bytes: found }) if found == bytes));
        }
    }
}
