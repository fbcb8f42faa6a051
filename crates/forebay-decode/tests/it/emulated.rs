//! The kernels compiled for this CPU in the place of a GPU. Tests of `forebay-bench` use this file too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_decode::{Decoded, Device, Error, Result, Samples, Times};
use forebay_jpeg::device::Batch;

use crate::shim::{MANNERS, Shim};

/// The kernels on this CPU as a device, which fails after a number of batches.
pub(crate) struct Emulated {
    shim: &'static Shim,
    samples: Vec<u8>,
    n_left: Arc<AtomicUsize>,
}

impl Emulated {
    /// `None` without a C compiler.
    pub(crate) fn new(n_batches: usize) -> Option<Self> {
        let n_left = Arc::new(AtomicUsize::new(n_batches));
        Shim::get().map(|shim| Self { shim, samples: Vec::new(), n_left })
    }
}

impl Device for Emulated {
    fn sibling(&self) -> Result<Box<dyn Device>> {
        Ok(Box::new(Self { shim: self.shim, samples: Vec::new(), n_left: Arc::clone(&self.n_left) }))
    }

    fn describe(&self) -> String {
        "the kernels on the CPU".to_owned()
    }

    fn decode(&mut self, batch: &Batch<'_>) -> Result<Decoded> {
        if self.n_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err() {
            return Err(Error::MissingLibrary("the emulated device"));
        }
        let (is_marked, samples) = self.shim.run(batch, MANNERS[1]);
        self.samples = samples;
        Ok(Decoded { is_marked, times: Times { upload_ms: 1.0, kernels_ms: 2.0 } })
    }

    fn samples(&mut self) -> Result<Samples<'_>> {
        Ok(Samples { bytes: &self.samples, download_ms: 4.0 })
    }
}
