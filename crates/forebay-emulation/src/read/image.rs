//! Images, a file each: read whole and decoded whole.

use std::ops::Range;
use std::sync::Arc;

use forebay_format::image::{ImageDecoder, ImageSpec};
use forebay_pipeline::{Activity, SampleError};
use forebay_storage::Buffer;

use super::files::Files;
use super::reader::{Layout, Reader, Sink, Tools};

/// JPEG or PNG files.
pub(super) struct Images(pub(super) Arc<Files>);

impl Layout for Images {
    fn reader(&self) -> Box<dyn Reader> {
        let decoder = ImageDecoder::new(ImageSpec::default());
        Box::new(ImageReader { files: Arc::clone(&self.0), buffer: Buffer::default(), decoder })
    }

    fn decodes(&self) -> bool {
        true
    }
}

struct ImageReader {
    files: Arc<Files>,
    buffer: Buffer,
    decoder: ImageDecoder,
}

impl Reader for ImageReader {
    fn read(&mut self, file: u32, _: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), SampleError> {
        let object = tools.open(&self.files, file)?;
        tools.read_all(object.as_ref(), &mut self.buffer)?;
        tools.enter(Activity::Decoding);
        let pixels = self.decoder.decode(self.buffer.as_slice())?;
        Sink::put(out, pixels.rgb);
        Ok(())
    }
}
