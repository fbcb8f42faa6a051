//! Memory owned by the caller: batches lent until they have left the host, and pages locked so that a device can copy
//! from them directly.

use std::any::Any;
use std::sync::Arc;

/// Holds the pixels of a batch until they have been copied.
///
/// Law: until it is dropped, `floats` returns the same slice and nothing writes to it. A device may read it at any time
/// until then.
pub trait Lent: Send {
    /// The pixels, NHWC.
    fn floats(&self) -> &[f32];
}

impl Lent for Vec<f32> {
    fn floats(&self) -> &[f32] {
        self
    }
}

impl Lent for Arc<Vec<f32>> {
    fn floats(&self) -> &[f32] {
        self
    }
}

/// Host memory that does not move until it is dropped.
///
/// Law: `address` and `n_bytes` never change, and the range stays mapped, readable and writable, while this value
/// lives.
pub trait HostMemory: Send + Sync {
    fn address(&self) -> *const u8;
    fn n_bytes(&self) -> usize;
}

impl HostMemory for Vec<f32> {
    fn address(&self) -> *const u8 {
        self.as_ptr().cast()
    }

    fn n_bytes(&self) -> usize {
        size_of_val(self.as_slice())
    }
}

/// Keeps pages accessible to a device. Dropping it waits for copies in progress, then unlocks them.
#[must_use = "the pages are locked as long as this lives"]
pub struct PageLock {
    _guard: Option<Box<dyn Any + Send>>,
}

impl PageLock {
    /// For an engine that reads host memory anyway.
    pub(crate) fn unneeded() -> Self {
        Self { _guard: None }
    }

    pub(crate) fn of(guard: impl Any + Send) -> Self {
        Self { _guard: Some(Box::new(guard)) }
    }
}
