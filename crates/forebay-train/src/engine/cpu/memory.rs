//! Memory for tensors: zeroed, and aligned so that no vector load straddles two cache lines.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache line, and the widest vector register.
const ALIGN: usize = 64;

/// A fixed number of floats.
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
    pub(super) fn zeroed(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout is never of size 0.
        let start = unsafe { alloc_zeroed(layout) }.cast::<f32>();
        Self { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), len }
    }

    fn layout(len: usize) -> Layout {
        Layout::array::<f32>(len.max(1))
            .and_then(|layout| layout.align_to(ALIGN))
            .expect("a tensor fits the address space")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated in `zeroed` with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) };
    }
}

impl Deref for Memory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `len` floats were allocated and zeroed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}
