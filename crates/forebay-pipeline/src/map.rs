//! What is done to a sample: from its bytes to its place in the batch.
//!
//! A [`Map`] is shared and describes the work; each thread gets a [`MapWorker`] of its own with the buffers it reuses.

use forebay_format::image::{Dtype, ImageDecoder, ImageSpec, Layout, Pixels};

use crate::error::SampleError;
use crate::exec::activity::{Activity, Stopwatch};
use crate::source::PixelShape;

/// A sample on its way into a batch.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    pub index: u32,
    pub label: i64,
    /// Its content: an encoded image, a record's payload, pixels.
    pub bytes: &'a [u8],
}

/// The work done on every sample. Shared by all threads; mutable state belongs into the [`MapWorker`].
pub trait Map: Send + Sync {
    /// How many bytes a sample takes in a batch; all of a slot's, where they share slots.
    fn sample_bytes(&self) -> usize;

    fn worker(&self) -> Box<dyn MapWorker>;

    /// Whether it can do nothing with a record that has no image. Such records then fail with what they have instead;
    /// otherwise they are passed on whole.
    fn wants_images(&self) -> bool {
        false
    }

    /// What it does, as text by which finished samples in a file are recognised again; `None` when there is none, and
    /// finished samples are then not kept in files.
    fn description(&self) -> Option<String>;
}

pub trait MapWorker: Send {
    /// Writes the sample into its slot.
    ///
    /// # Errors
    /// Anything that makes this sample unusable. A panic counts as an error of this sample.
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError>;

    /// Bytes that it moved from storage itself since it was last asked.
    fn take_moved(&mut self) -> u64 {
        0
    }
}

#[derive(Debug, Clone)]
pub struct DecodeImage(pub ImageSpec);

impl Map for DecodeImage {
    fn sample_bytes(&self) -> usize {
        self.0.sample_bytes()
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(ImageDecoder::new(self.0))
    }

    fn wants_images(&self) -> bool {
        true
    }

    fn description(&self) -> Option<String> {
        Some(format!("decode {:?}", self.0))
    }
}

impl MapWorker for ImageDecoder {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        watch.enter(Activity::Decoding);
        self.decode(sample.bytes)?;
        watch.enter(Activity::Resizing);
        self.resize_into(slot)?;
        Ok(())
    }
}

/// Takes pixels that were decoded before, and resizes and converts them where that is asked for.
#[derive(Debug, Clone)]
pub struct TakePixels {
    pub shape: PixelShape,
    pub spec: ImageSpec,
}

impl Map for TakePixels {
    fn sample_bytes(&self) -> usize {
        self.spec.sample_bytes()
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(TakePixelsWorker { shape: self.shape, decoder: ImageDecoder::new(self.spec) })
    }

    fn description(&self) -> Option<String> {
        Some(format!("pixels {:?} to {:?}", self.shape, self.spec))
    }
}

struct TakePixelsWorker {
    shape: PixelShape,
    decoder: ImageDecoder,
}

impl MapWorker for TakePixelsWorker {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        watch.enter(Activity::Resizing);
        let spec = self.decoder.spec();
        let as_is = (self.shape.width, self.shape.height) == (spec.width, spec.height);
        if as_is && spec.dtype == Dtype::U8 && spec.layout == Layout::Nhwc {
            slot.copy_from_slice(sample.bytes);
            return Ok(());
        }
        let pixels = Pixels { width: self.shape.width, height: self.shape.height, rgb: sample.bytes };
        self.decoder.resize_pixels_into(pixels, slot)?;
        Ok(())
    }
}

/// Reads and does nothing else: what is left is the cost of I/O. A sample is its length, as eight bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOnly;

impl Map for ReadOnly {
    fn sample_bytes(&self) -> usize {
        size_of::<u64>()
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(*self)
    }

    fn description(&self) -> Option<String> {
        Some("read only".to_owned())
    }
}

impl MapWorker for ReadOnly {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], _watch: &mut Stopwatch) -> Result<(), SampleError> {
        slot.copy_from_slice(&(sample.bytes.len() as u64).to_le_bytes());
        Ok(())
    }
}

/// A user's function that writes a sample of a fixed size into its slot.
pub(crate) struct MapFn<F> {
    pub(crate) sample_bytes: usize,
    pub(crate) function: F,
}

impl<F> Map for MapFn<F>
where
    F: Fn(Sample<'_>, &mut [u8]) -> Result<(), String> + Clone + Send + Sync + 'static,
{
    fn sample_bytes(&self) -> usize {
        self.sample_bytes
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(MapFn { sample_bytes: self.sample_bytes, function: self.function.clone() })
    }

    fn description(&self) -> Option<String> {
        None // Two functions of the same type may do different things.
    }
}

impl<F> MapWorker for MapFn<F>
where
    F: Fn(Sample<'_>, &mut [u8]) -> Result<(), String> + Send,
{
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        watch.enter(Activity::Decoding);
        (self.function)(sample, slot).map_err(SampleError::Refused)
    }
}
