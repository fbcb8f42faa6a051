//! Memory that belongs to the caller: batches that are lent until they have left the host, and pages that are locked so that a device
//! can fetch from them by itself.

use std::any::Any;
use std::sync::Arc;

/// Something that holds the pixels of a batch, handed over until they have been copied.
///
/// Law: as long as it is not dropped, `floats` gives the same slice, and nothing writes to it. A device may read it at any moment
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

/// Memory of the host that stays where it is until it is dropped.
///
/// Law: `address` and `n_bytes` never change, and the range is mapped, to be read and written, as long as this lives.
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

/// Keeps pages where a device can fetch from them. Dropping it waits for copies under way, then lets them go.
#[must_use = "the pages are locked as long as this lives"]
pub struct PageLock {
    _guard: Option<Box<dyn Any + Send>>,
}

impl PageLock {
    /// For an engine that reads the host's memory anyway.
    pub(crate) fn unneeded() -> Self {
        Self { _guard: None }
    }

    pub(crate) fn of(guard: impl Any + Send) -> Self {
        Self { _guard: Some(Box::new(guard)) }
    }
}
