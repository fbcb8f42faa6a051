//! No data at all: samples are made of nothing, so that what is left is the cost of everything else.

use std::ops::Range;

use forebay_pipeline::SampleError;

use super::reader::{Layout, Reader, Tools};

/// Samples of zeros, without files.
pub(super) struct Synthetic;

impl Layout for Synthetic {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Self)
    }
}

impl Reader for Synthetic {
    fn read(&mut self, _: u32, _: Range<u32>, out: &mut [u8], _: &mut Tools<'_>) -> Result<(), SampleError> {
        out.fill(0);
        Ok(())
    }
}
