//! Images of a pipeline decoded on a GPU, in groups, with everything else left to the CPU.

use std::sync::{Arc, Mutex};

use forebay_format::image::{Dtype, ImageKind, ImageSpec, Layout, MAX_PIXELS, Normalize, View as Part, sniff};
use forebay_jpeg::Limits;
use forebay_jpeg::device::{self, Batch, Division, Prepared, Target, View};
use forebay_pipeline::{
    Activity, Augment, AugmentImage, DecodeImage, Job, Map, MapWorker, Sample, SampleError, Stopwatch, Wants,
};

use crate::device::Device;
use crate::error::Result;

/// Images that a worker decodes together. Enough to pay for the launches (some 40, of a few microseconds each), few enough
/// for all workers of a batch of 64 to have some.
const GROUP: usize = 16;
/// Memory on the device per worker; an image that needs more is decoded on the CPU.
const MAX_BYTES: usize = 1 << 30;

/// Decodes, resizes and augments images on a GPU, to the values of [`DecodeImage`] or [`AugmentImage`] without
/// antialiasing.
///
/// Files that the device does not decode (other formats, progressive, four components, too large) and files that it marks
/// go through the CPU's map, one by one, which also gives their errors.
#[derive(Clone)]
pub struct GpuImages {
    spec: ImageSpec,
    augment: Option<Augment>,
    /// Workers get siblings of it.
    gpu: Arc<Mutex<Box<dyn Device>>>,
    totals: Arc<Mutex<Totals>>,
}

/// What the workers of a map, and of those made from it, did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    pub n_on_gpu: u64,
    /// Images that went through the CPU's map, damaged ones included.
    pub n_on_cpu: u64,
    /// Time of copies to the device, kernels, and copies back, summed over workers.
    pub upload_s: f64,
    pub kernels_s: f64,
    pub download_s: f64,
}

impl Totals {
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            n_on_gpu: self.n_on_gpu + more.n_on_gpu,
            n_on_cpu: self.n_on_cpu + more.n_on_cpu,
            upload_s: self.upload_s + more.upload_s,
            kernels_s: self.kernels_s + more.kernels_s,
            download_s: self.download_s + more.download_s,
        }
    }

    /// What was done since earlier totals.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            n_on_gpu: self.n_on_gpu - earlier.n_on_gpu,
            n_on_cpu: self.n_on_cpu - earlier.n_on_cpu,
            upload_s: self.upload_s - earlier.upload_s,
            kernels_s: self.kernels_s - earlier.kernels_s,
            download_s: self.download_s - earlier.download_s,
        }
    }
}

impl GpuImages {
    /// # Errors
    /// The reason why a device cannot make such samples.
    pub fn new(gpu: Box<dyn Device>, spec: ImageSpec, augment: Option<Augment>) -> Result<Self, String> {
        check(spec, augment)?;
        Ok(Self { spec, augment, gpu: Arc::new(Mutex::new(gpu)), totals: Arc::default() })
    }

    /// Other samples on the same device, counted in the same totals.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with(&self, spec: ImageSpec, augment: Option<Augment>) -> Result<Self, String> {
        check(spec, augment)?;
        Ok(Self { spec, augment, ..self.clone() })
    }

    /// The name of the device.
    pub fn device(&self) -> String {
        self.gpu.lock().expect("no holder of this lock panics").describe()
    }

    pub fn totals(&self) -> Totals {
        *self.totals.lock().expect("no holder of this lock panics")
    }

    /// The same samples, made on the CPU.
    fn on_cpu(&self) -> Box<dyn Map> {
        match self.augment {
            Some(augment) => Box::new(AugmentImage { spec: self.spec, augment, pixels: None }),
            None => Box::new(DecodeImage(self.spec)),
        }
    }

    fn target(&self) -> Target {
        let dtype = match self.spec.dtype {
            Dtype::U8 => device::Dtype::U8,
            Dtype::F32 => device::Dtype::F32,
            Dtype::F16 => device::Dtype::F16,
            Dtype::Bf16 => device::Dtype::Bf16,
        };
        let mut target = Target { is_planar: self.spec.layout == Layout::Nchw, ..Target::plain(dtype) };
        if let Some(Normalize { mean, std }) = self.augment.and_then(|augment| augment.normalize) {
            target.factors = std.map(|std| 1.0 / (255.0 * std));
            target.summands = [0, 1, 2].map(|c| -mean[c] / std[c]);
        }
        target
    }

    fn view(&self, image: (u32, u32), sample: &Sample<'_>) -> View {
        let size = (self.spec.width, self.spec.height);
        let Some(augment) = self.augment else { return View::whole(image.into(), size.into()) };
        let Part { crop, resized, offset, mirrored } = augment.view(image, size, sample.epoch, sample.index);
        View {
            crop: [crop.left, crop.top, crop.width, crop.height],
            resized: resized.into(),
            offset: offset.into(),
            is_mirrored: mirrored,
            is_precise: true,
            sample: size.into(),
        }
    }
}

fn check(spec: ImageSpec, augment: Option<Augment>) -> Result<(), String> {
    if augment.is_some_and(|augment| augment.jitter.is_some()) {
        return Err("colours are not changed on a GPU; omit the jitter".to_owned());
    }
    if augment.is_some_and(|augment| augment.antialias) {
        return Err("images are not antialiased on a GPU".to_owned());
    }
    if spec.scaled_dct {
        return Err("images are not decoded at other sizes on a GPU".to_owned());
    }
    if let Some(augment) = augment {
        augment.check(spec)?;
    }
    Ok(())
}

impl Map for GpuImages {
    fn sample_bytes(&self) -> usize {
        self.spec.sample_bytes()
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        let gpu = self.gpu.lock().expect("no holder of this lock panics").sibling().map_err(|error| error.to_string());
        let prepared = (0..GROUP).map(|_| Prepared::default()).collect();
        Box::new(Worker { map: self.clone(), gpu, prepared, on_cpu: self.on_cpu().worker() })
    }

    fn wants(&self) -> Wants {
        Wants::Image
    }

    fn group(&self) -> usize {
        GROUP
    }

    fn varies(&self) -> bool {
        self.on_cpu().varies()
    }

    fn description(&self) -> Option<String> {
        // Not the CPU's: values differ in the last place.
        self.on_cpu().description().map(|on_cpu| format!("on a GPU: {on_cpu}"))
    }
}

struct Worker {
    map: GpuImages,
    /// A device that failed fails every sample with its reason.
    gpu: Result<Box<dyn Device>, String>,
    prepared: Vec<Prepared>,
    on_cpu: Box<dyn MapWorker>,
}

impl MapWorker for Worker {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        let mut jobs = [Job { sample, slot, outcome: Ok(()) }];
        self.map_group(&mut jobs, watch);
        let [job] = jobs;
        job.outcome
    }

    fn map_group(&mut self, jobs: &mut [Job<'_>], watch: &mut Stopwatch) {
        for jobs in jobs.chunks_mut(GROUP) {
            watch.enter(Activity::Decoding);
            if let Err(reason) = self.decode(jobs, watch) {
                self.gpu = Err(reason);
            }
            if let Err(reason) = &self.gpu {
                jobs.iter_mut().for_each(|job| job.outcome = Err(SampleError::Refused(reason.clone())));
            }
        }
    }
}

impl Worker {
    fn decode(&mut self, jobs: &mut [Job<'_>], watch: &mut Stopwatch) -> Result<(), String> {
        let Ok(gpu) = &mut self.gpu else { return Ok(()) };
        let limits = Limits { max_pixels: MAX_PIXELS, ..Limits::default() };
        let (mut files, mut numbers, mut n_bytes) = (Vec::new(), Vec::new(), 0);
        let mut is_made = vec![false; jobs.len()];
        for ((number, job), file) in jobs.iter().enumerate().zip(&mut self.prepared) {
            if sniff(job.sample.bytes) != Some(ImageKind::Jpeg) {
                continue;
            }
            let Ok(info) = file.read(job.sample.bytes, &limits) else { continue };
            n_bytes += file.n_device_bytes();
            if n_bytes <= MAX_BYTES {
                files.push((&*file, self.map.view((info.width, info.height), &job.sample)));
                numbers.push(number);
            }
        }
        let mut totals = Totals::default();
        if let Some(batch) = Batch::new(files, self.map.target(), Division::default()) {
            watch.enter(Activity::DecodingOnGpu);
            let decoded = gpu.decode(&batch).map_err(|error| error.to_string())?;
            let samples = gpu.samples().map_err(|error| error.to_string())?;
            watch.enter(Activity::Decoding);
            totals.upload_s = f64::from(decoded.times.upload_ms) / 1e3;
            totals.kernels_s = f64::from(decoded.times.kernels_ms) / 1e3;
            totals.download_s = f64::from(samples.download_ms) / 1e3;
            let samples = samples.bytes.chunks_exact(self.map.spec.sample_bytes());
            for ((number, is_marked), sample) in numbers.into_iter().zip(decoded.is_marked).zip(samples) {
                if !is_marked {
                    jobs[number].slot.copy_from_slice(sample);
                    is_made[number] = true;
                    totals.n_on_gpu += 1;
                }
            }
        }
        for (job, _) in jobs.iter_mut().zip(is_made).filter(|(_, is_made)| !*is_made) {
            job.outcome = self.on_cpu.map(job.sample, job.slot, watch);
            totals.n_on_cpu += 1;
        }
        let mut all = self.map.totals.lock().expect("no holder of this lock panics");
        *all = all.plus(totals);
        Ok(())
    }
}
