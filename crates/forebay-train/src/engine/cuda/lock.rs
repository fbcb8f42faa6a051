//! Host memory pages that the device can access directly (DMA).
//!
//! A copy from other memory goes through the driver's staging buffer and blocks the caller meanwhile. Code that stages
//! a lent batch therefore checks here first.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaContext, CudaStream, sys as driver};
use forebay_units::Bytes;

use super::device::words;
use crate::error::{Error, Result};
use crate::lent::HostMemory;

/// How bytes are copied from or to the pages.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
}

/// The address ranges that are locked.
#[derive(Clone, Default)]
pub(super) struct Locks(Arc<Mutex<Vec<Range<usize>>>>);

impl Locks {
    /// Locks the pages of `memory` until the guard is dropped.
    pub(super) fn lock(&self, way: Way, memory: Arc<dyn HostMemory>) -> Result<Locked> {
        let (start, n_bytes) = (memory.address() as usize, memory.n_bytes());
        way.context.bind_to_thread()?;
        // SAFETY: by the law of `HostMemory` the range is mapped as long as the guard keeps it.
        let status = unsafe { driver::cuMemHostRegister_v2(start as *mut c_void, n_bytes, 0) };
        status.result().map_err(|error| Error::Device {
            what: format!("page-locking {} of host memory", Bytes(n_bytes as u64)),
            why: words(&error),
        })?;
        let range = start..start + n_bytes;
        self.ranges().push(range.clone());
        Ok(Locked { way, locks: self.clone(), range, _memory: memory })
    }

    /// Whether the whole slice is locked.
    pub(super) fn cover(&self, floats: &[f32]) -> bool {
        let Range { start, end } = floats.as_ptr_range();
        self.ranges().iter().any(|range| range.start <= start as usize && end as usize <= range.end)
    }

    fn ranges(&self) -> MutexGuard<'_, Vec<Range<usize>>> {
        // Ranges are pushed and removed whole, so a panic elsewhere leaves a consistent list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps pages locked and the memory alive.
pub(super) struct Locked {
    way: Way,
    locks: Locks,
    range: Range<usize>,
    _memory: Arc<dyn HostMemory>,
}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut ranges = self.locks.ranges();
        if let Some(i) = ranges.iter().position(|range| *range == self.range) {
            ranges.swap_remove(i);
        }
        drop(ranges);
        // Copies in progress must end first. A failure of the device at this point cannot be handled.
        let _ = self.way.context.bind_to_thread();
        let _ = self.way.stream.synchronize();
        // SAFETY: the range was registered when this was made, and nothing reads it any more.
        let _ = unsafe { driver::cuMemHostUnregister(self.range.start as *mut c_void) };
    }
}
