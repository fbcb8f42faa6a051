//! Who decodes images: the cores, or a GPU.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use forebay_decode::{Device, Gpu, GpuImages, Totals};
use forebay_format::image::ImageSpec;
use forebay_measure::Refused;
use forebay_measure::usage::cores;
use forebay_pipeline::{Dataset, Mapped, Source, Threads};
use forebay_record::DecodedOnGpu;
use forebay_units::{count, group_digits};

use crate::supply::{self, ImageChange, Order};

/// Samples of the data that both decode when the faster is looked for, and their bytes at the most.
const N_TRIED: u64 = 128;
const MOST_TRIED_BYTES: usize = 256 << 20;
/// Each decodes them again and again for so long.
const TRIAL: Duration = Duration::from_millis(400);
const TRIAL_BATCH: usize = 32;

/// As the user requests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecodeOn {
    #[default]
    Cpu,
    Gpu,
    /// The faster of the two.
    Auto,
}

impl DecodeOn {
    pub(crate) fn name(self) -> &'static str {
        DECODERS.iter().find(|(_, of)| *of == self).map_or("cpu", |(name, _)| name)
    }
}

/// The choices by name.
pub(crate) const DECODERS: [(&str, DecodeOn); 3] =
    [("cpu", DecodeOn::Cpu), ("gpu", DecodeOn::Gpu), ("auto", DecodeOn::Auto)];

/// Refuses settings that a GPU does not support; each with whether it is given.
pub(crate) fn check(decode: DecodeOn, others: &[(&'static str, bool)]) -> Result<(), Refused> {
    match others.iter().find(|(_, is_given)| decode == DecodeOn::Gpu && *is_given) {
        Some((name, _)) => {
            Err(format!("a GPU that decodes does not support `{name}`: omit it, or give auto or cpu as `decode`"))
        }
        None => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecoderError {
    #[error("no GPU to decode on: {why}")]
    NoGpu { why: String },
    /// A device opens, but does not make such samples.
    #[error("{why}")]
    Unsuitable { why: String },
    #[error("the images are already decoded, so a GPU would have nothing to decode")]
    NothingToDecode,
}

type Open = dyn Fn(usize) -> Result<Box<dyn Device>, String> + Send + Sync;

/// How to open the GPUs of this machine.
#[derive(Clone)]
pub struct Gpus(Arc<Open>);

impl Gpus {
    /// CUDA devices; libraries that the system does not find are searched in these folders.
    pub fn cuda(folders: Vec<PathBuf>) -> Self {
        Self::of(move |ordinal| {
            // The driver and NVRTC come first; the kernels need no other.
            for library in forebay_train::cuda_libraries(&folders).take(2) {
                if let Some(remedy) = library.remedy {
                    return Err(format!("cannot load {}: {remedy}", library.name));
                }
            }
            let gpu = Gpu::open(ordinal).map_err(|error| error.to_string())?;
            Ok(Box::new(gpu))
        })
    }

    /// Whether there is one.
    pub(crate) fn has_any(&self) -> bool {
        (self.0)(0).is_ok()
    }

    /// Devices of another kind, for tests.
    pub fn of(open: impl Fn(usize) -> Result<Box<dyn Device>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }
}

impl fmt::Debug for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gpus")
    }
}

/// What turns files into samples.
#[derive(Clone, Default)]
pub(crate) enum Decoder {
    #[default]
    Cpu,
    Gpu(Box<GpuImages>),
}

/// What a decoder is for.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) spec: ImageSpec,
    pub(crate) change: ImageChange,
}

/// A choice that was left to a measurement.
pub(crate) struct Question<'a> {
    pub(crate) source: &'a Source,
    pub(crate) order: Order,
    pub(crate) output: Output,
    /// Samples per second that the consumer takes, if it is known.
    pub(crate) takes_per_s: Option<f64>,
    /// Whether the consumer computes on the same GPU, where decoding delays it.
    pub(crate) shares_gpu: bool,
    pub(crate) cancel: &'a AtomicBool,
}

impl Decoder {
    /// The GPU that was asked for.
    ///
    /// # Errors
    /// If there is none, or it does not make such samples.
    pub(crate) fn on_gpu(gpus: &Gpus, ordinal: usize, source: &Source, output: Output) -> Result<Self, DecoderError> {
        if source.pixels().is_some() {
            return Err(DecoderError::NothingToDecode);
        }
        let device = (gpus.0)(ordinal).map_err(|why| DecoderError::NoGpu { why })?;
        let images = GpuImages::new(device, output.spec, output.change.augment(output.spec));
        images.map(|images| Self::Gpu(Box::new(images))).map_err(|why| DecoderError::Unsuitable { why })
    }

    /// The faster of the two on a few samples of the data, with the reason in words.
    pub(crate) fn faster(gpus: &Gpus, ordinal: usize, question: &Question<'_>) -> (Self, String) {
        let gpu = match Self::on_gpu(gpus, ordinal, question.source, question.output) {
            Ok(gpu) => gpu,
            Err(why) => return (Self::Cpu, format!("decoding on the CPU: {why}")),
        };
        let Some(samples) = samples(question) else {
            return (
                Self::Cpu,
                "decoding on the CPU: no sample could be decoded to compare it with the GPU".to_owned(),
            );
        };
        let n_threads = cores();
        let rate = |decoder: &Self| decoder.rate(&samples, question.output, n_threads, question.cancel);
        let (Some(on_cpu), Some(on_gpu)) = (rate(&Self::Cpu), rate(&gpu)) else {
            return (Self::Cpu, "decoding on the CPU: the GPU failed on the samples tried".to_owned());
        };
        let kernels_s = gpu.totals().map_or(0.0, |totals| totals.kernels_s / totals.n_on_gpu.max(1) as f64);
        let choice = Choice { on_cpu, on_gpu, kernels_s };
        let is_gpu = choice.is_gpu(question);
        let why = choice.describe(is_gpu, question, n_threads, &gpu.name().unwrap_or_default());
        (if is_gpu { gpu } else { Self::Cpu }, why)
    }

    /// Tensor shards already hold pixels.
    pub(crate) fn decoded(&self, dataset: Dataset, source: &Source, output: Output) -> Mapped {
        let Output { spec, change } = output;
        let images = match self {
            Self::Gpu(images) if source.pixels().is_none() => images.with(spec, change.augment(spec)).ok(),
            Self::Gpu(_) | Self::Cpu => None,
        };
        match images {
            Some(images) => dataset.map(images),
            None => supply::decoded(dataset, source, spec, change),
        }
    }

    /// The name of the GPU.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Gpu(images) => Some(images.device()),
            Self::Cpu => None,
        }
    }

    /// What the GPU did so far.
    pub(crate) fn totals(&self) -> Option<Totals> {
        match self {
            Self::Gpu(images) => Some(images.totals()),
            Self::Cpu => None,
        }
    }

    /// What the GPU did since earlier totals.
    pub(crate) fn since(&self, earlier: Option<Totals>) -> Option<DecodedOnGpu> {
        let Totals { n_on_gpu, n_on_cpu, upload_s, kernels_s, download_s } =
            self.totals()?.since(earlier.unwrap_or_default());
        Some(DecodedOnGpu { images: n_on_gpu, on_cpu: n_on_cpu, upload_s, kernels_s, download_s })
    }

    /// Samples per second from memory; `None` where all fail.
    fn rate(&self, samples: &[(Vec<u8>, i64)], output: Output, n_threads: usize, cancel: &AtomicBool) -> Option<f64> {
        let source = Source::memory(samples.to_vec());
        let mapped = self.decoded(Dataset::new(source.clone()).repeat_forever(), &source, output);
        let pipeline = mapped.threads(Threads::Fixed(n_threads)).batch(TRIAL_BATCH).prefetch(2 * n_threads);
        let mut batches = pipeline.iter().ok()?;
        let mut first = 0;
        // The first pass allocates.
        while first < samples.len() {
            first += batches.next_unless(cancel)?.ok()?.len();
        }
        let (start, mut n) = (Instant::now(), 0);
        while start.elapsed() < TRIAL {
            n += batches.next_unless(cancel)?.ok()?.len();
        }
        Some(n as f64 / start.elapsed().as_secs_f64())
    }
}

/// Rates of decoding alone, and the seconds of kernels per image.
#[derive(Debug, Clone, Copy)]
struct Choice {
    on_cpu: f64,
    on_gpu: f64,
    kernels_s: f64,
}

impl Choice {
    /// Rates at which the consumer gets samples. A GPU that also computes decodes and computes in turns at worst.
    fn rates(&self, question: &Question<'_>) -> (f64, f64) {
        let takes = question.takes_per_s.unwrap_or(f64::INFINITY);
        let shared = if question.shares_gpu { 1.0 / (1.0 / takes + self.kernels_s) } else { takes };
        (self.on_cpu.min(takes), self.on_gpu.min(shared))
    }

    fn is_gpu(&self, question: &Question<'_>) -> bool {
        let (cpu, gpu) = self.rates(question);
        gpu > cpu
    }

    fn describe(&self, is_gpu: bool, question: &Question<'_>, n_threads: usize, gpu: &str) -> String {
        let rate = |rate: f64| group_digits(rate.round() as u64);
        let takes = question.takes_per_s.map(|takes| format!("; the network takes {} images/s", rate(takes)));
        let shared = if question.shares_gpu { " and shares that GPU" } else { "" };
        format!(
            "decoding on {}, measured on up to {} in memory: {} images/s on {gpu}, {} on the CPU with {}{}{}",
            if is_gpu { gpu } else { "the CPU" },
            count(N_TRIED, "sample"),
            rate(self.on_gpu),
            rate(self.on_cpu),
            count(n_threads as u64, "thread"),
            takes.as_deref().unwrap_or_default(),
            if takes.is_some() { shared } else { "" },
        )
    }
}

/// The bytes of samples with their labels.
type Samples = Vec<(Vec<u8>, i64)>;

/// The first samples of an epoch that can be read, with their bytes.
fn samples(question: &Question<'_>) -> Option<Samples> {
    let kept: Arc<Mutex<Samples>> = Arc::default();
    let to = Arc::clone(&kept);
    let dataset = question.order.of(Dataset::new(question.source.clone())).take(N_TRIED);
    let mapped = dataset.map_fn(1, move |sample, _: &mut [u8]| {
        let mut kept = to.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().map(|(bytes, _)| bytes.len()).sum::<usize>() < MOST_TRIED_BYTES {
            kept.push((sample.bytes.to_vec(), sample.label));
        }
        Ok(())
    });
    let pipeline = question.order.read(mapped).threads(Threads::Fixed(cores())).ignore_errors().batch(TRIAL_BATCH);
    let mut batches = pipeline.iter().ok()?;
    while let Some(batch) = batches.next_unless(question.cancel) {
        batch.ok()?;
    }
    drop(batches);
    let kept = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    sound(kept, question)
}

/// Those that can be decoded: failing is faster than decoding.
fn sound(samples: Samples, question: &Question<'_>) -> Option<Samples> {
    let source = Source::memory(samples.clone());
    let mapped = Decoder::Cpu.decoded(Dataset::new(source.clone()), &source, question.output);
    let pipeline = mapped.threads(Threads::Fixed(cores())).ignore_errors().batch(TRIAL_BATCH);
    let (mut batches, mut is_sound) = (pipeline.iter().ok()?, vec![false; samples.len()]);
    while let Some(batch) = batches.next_unless(question.cancel) {
        batch.ok()?.samples().iter().for_each(|index| is_sound[*index as usize] = true);
    }
    let sound: Vec<_> = samples.into_iter().zip(is_sound).filter(|(_, is)| *is).map(|(sample, _)| sample).collect();
    (!sound.is_empty()).then_some(sound)
}
