//! Array files.

use std::ops::Range;
use std::sync::Arc;

use forebay_pipeline::SampleError;
use forebay_storage::Buffer;

use super::array::ArraySink;
use super::files::Files;
use super::reader::{Layout, Reader, Tools, Unit};

/// One array a file, its last side the samples.
pub(super) struct Npy(pub(super) Arc<Files>);

impl Layout for Npy {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(NpyReader { files: Arc::clone(&self.0), buffer: Buffer::default() })
    }

    fn unit(&self) -> Unit {
        Unit::File
    }
}

struct NpyReader {
    files: Arc<Files>,
    buffer: Buffer,
}

impl Reader for NpyReader {
    fn read(
        &mut self,
        file: u32,
        samples: Range<u32>,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), SampleError> {
        let object = tools.open(&self.files, file)?;
        let len = object.len()?;
        let mut sink = ArraySink::new(self.files.dataset.n_samples_per_file, samples, out);
        tools.stream(object.as_ref(), 0..len, (self.files.piece, false), &mut self.buffer, |bytes| {
            Ok(sink.take(bytes)?)
        })?;
        Ok(sink.finish()?)
    }
}
