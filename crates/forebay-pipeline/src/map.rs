//! Processing a sample: from its bytes to its slot in the batch.
//!
//! A [`Map`] is shared and describes the work; each thread gets its own [`MapWorker`] with the buffers it reuses.

use forebay_format::image::{Dtype, ImageDecoder, ImageSpec, Layout, Pixels};

use crate::error::SampleError;
use crate::exec::activity::{Activity, Stopwatch};
use crate::source::PixelShape;

/// A sample on its way into a batch.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    pub index: u32,
    /// The pass over the data that it is made for: its position in the order, in lengths of what
    /// [`Dataset::repeat`](crate::Dataset::repeat) repeats. 0 without a repeat.
    pub epoch: u64,
    pub label: i64,
    /// Its content: an encoded image, a record's payload, or pixels.
    pub bytes: &'a [u8],
}

/// What a [`Map`] takes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// The image in it; a record without one fails with an error that lists its contents.
    Image,
    /// The image in it, or else the whole record.
    Any,
    /// The whole record: the payload of a TFRecord frame, all files of a tar sample with their headers.
    Whole,
}

/// A sample that is mapped together with others.
#[derive(Debug)]
pub struct Job<'a> {
    pub sample: Sample<'a>,
    /// Its slot in the batch.
    pub slot: &'a mut [u8],
    /// What became of it; `Ok` at first.
    pub outcome: Result<(), SampleError>,
}

/// The processing of every sample. Shared by all threads; mutable state belongs in the [`MapWorker`].
pub trait Map: Send + Sync {
    /// Bytes per sample in a batch; bytes per slot if samples share slots.
    fn sample_bytes(&self) -> usize;

    fn worker(&self) -> Box<dyn MapWorker>;

    /// What a sample's bytes are to be.
    fn wants(&self) -> Wants {
        Wants::Any
    }

    /// Whether a sample differs between epochs; finished samples must then not be cached.
    fn varies(&self) -> bool {
        false
    }

    /// How many samples a worker maps together at best. More take longer until the first is ready.
    fn group(&self) -> usize {
        1
    }

    /// A text that identifies the processing, to recognise finished samples in a cache file; without one, finished
    /// samples are not kept in files.
    fn description(&self) -> Option<String>;
}

pub trait MapWorker: Send {
    /// Writes the sample into its slot.
    ///
    /// # Errors
    /// Anything that makes the sample unusable. A panic counts as an error of the sample.
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError>;

    /// Maps several samples. Called instead of [`map`](Self::map) if [`Map::group`] is above 1; the number of samples may
    /// then be anything from 1 on. A panic counts as an error of each sample.
    fn map_group(&mut self, jobs: &mut [Job<'_>], watch: &mut Stopwatch) {
        for job in jobs {
            job.outcome = self.map(job.sample, job.slot, watch);
        }
    }

    /// Bytes that the map itself moved from storage since the last call.
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

    fn wants(&self) -> Wants {
        Wants::Image
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

/// Takes samples that are already pixels, and resizes and converts them if requested.
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

/// Only reads, so that only the cost of I/O remains. The sample in the batch is its length, as eight bytes.
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
