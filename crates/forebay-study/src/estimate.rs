//! Estimates the time of cells before any has run.
//!
//! I/O time comes from the tier's profile, CPU time from generating and decoding a few images. The time of real devices
//! and the pauses between repeats are unknown and not counted. Once cells are done, their times correct the estimate.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use forebay_bench::checkpoint::CheckpointSettings;
use forebay_bench::ingest::IngestSettings;
use forebay_bench::train::TrainSettings;
use forebay_checkpoint::Mode;
use forebay_dataset::synth::Camera;
use forebay_dataset::{MakePlan, MakeSpec, Packing};
use forebay_format::image::{Dtype, ImageDecoder, ImageSpec, Layout};
use forebay_measure::ThreadCount;
use forebay_pipeline::Source;
use forebay_probe::ProbeSettings;
use forebay_storage::{Local, Profile};
use forebay_units::Bytes;

use super::dataset::DatasetSource;
use super::places::{Making, Places, ToMake};
use super::plan::{CellPlan, Plan};
use super::records;
use super::steps::{Route, Task, Work, train};

/// Images that calibration generates and decodes, in a few hundredths of a second.
const CALIBRATION_IMAGES: u64 = 6;

/// The sum over all rounds, warm-ups included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    pub images: u64,
    pub read: Bytes,
    pub written: Bytes,
    /// `None` if nothing is known about the storage or the data.
    pub seconds: Option<f64>,
}

/// All zero if the dataset cannot be read.
#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    n: u64,
    bytes: f64,
    /// Fraction of the samples that is decoded.
    encoded: f64,
}

pub struct Estimator<'a> {
    plan: &'a Plan,
    /// By the name of the dataset.
    samples: HashMap<String, Samples>,
    cores: f64,
    make_s_per_byte: f64,
    decode_s_per_byte: f64,
}

impl<'a> Estimator<'a> {
    /// Inspects the data and calibrates on this CPU, which takes a moment.
    pub fn new(plan: &'a Plan, places: &Places<'_>) -> Self {
        let (make_s_per_byte, decode_s_per_byte) = calibrate();
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let mut samples = HashMap::new();
        for cell in &plan.cells {
            if let (Some(name), Some(path)) = (cell.work.dataset(), places.data_of(cell)) {
                samples.entry(name.to_owned()).or_insert_with(|| samples_of(plan, name, &path));
            }
        }
        Self { plan, samples, cores, make_s_per_byte, decode_s_per_byte }
    }

    pub fn cell(&self, cell: &CellPlan) -> Estimate {
        let rounds = (cell.warmups + cell.repeats) as u64;
        let (profile, work) = (self.plan.profile_of(cell), &cell.work);
        match &cell.work.task {
            Task::Ingest(settings) => self.ingest(settings, self.samples(work), profile.as_ref(), rounds),
            Task::Probe(settings) => probe(settings, profile.as_ref(), rounds),
            Task::Train(settings) => self.train(settings, work, profile.as_ref(), rounds),
            Task::Checkpoint(settings) => self.checkpoint(settings, work, rounds),
            // Inspection reads the first and last bytes of files, and all of shards; not counted.
            Task::Inspect => Estimate::default(),
            Task::Workload(_) if cell.left_out.is_some() => Estimate::default(),
            Task::Workload(task) => records::estimate(task, profile.as_ref(), rounds),
        }
    }

    /// Seconds to generate the data on all cores; `None` for packing, which depends more on the storage than on the CPU.
    pub fn making_s(&self, wanted: &ToMake<'_>) -> Option<f64> {
        match &wanted.making {
            Making::Make(plan) => Some(plan.expected_bytes().0 as f64 * self.make_s_per_byte / self.cores),
            Making::Pack { .. } | Making::Records(_) => None,
        }
    }

    /// Seconds to decode an image of 112 KB, ImageNet's median, on one core.
    pub fn decode_s(&self) -> f64 {
        self.decode_s_per_byte * 112_000.0
    }

    fn samples(&self, work: &Work) -> Samples {
        work.dataset().and_then(|name| self.samples.get(name)).copied().unwrap_or_default()
    }

    fn ingest(&self, settings: &IngestSettings, samples: Samples, profile: Option<&Profile>, rounds: u64) -> Estimate {
        if samples.n == 0 {
            return Estimate::default();
        }
        let images = settings.images_per_repeat(samples.n).saturating_mul(rounds);
        let threads = settings.threads.first().copied().unwrap_or(ThreadCount::Auto);
        let rate = self.rate(samples, threads, profile, !settings.read_only);
        let known = profile.is_some() || !settings.read_only;
        Estimate {
            images,
            read: Bytes((images as f64 * samples.bytes) as u64),
            written: Bytes(0),
            seconds: known.then(|| images as f64 / rate),
        }
    }

    fn train(&self, settings: &TrainSettings, work: &Work, profile: Option<&Profile>, rounds: u64) -> Estimate {
        let samples = self.samples(work);
        if samples.n == 0 && !settings.synthetic {
            return Estimate::default();
        }
        let images = settings.images_per_run(samples.n).saturating_mul(rounds);
        let step = settings.images_per_step();
        let (steps, batch) = ((images / step) as f64, step as f64);
        let make_s = match settings.synthetic {
            true => 0.0,
            false => batch / self.rate(samples, settings.threads, profile, true),
        };
        let baseline = settings.baseline_steps() as f64;
        let saving = self.saving(settings, work, train::n_saves(settings, samples.n), rounds);
        // The step time of a network is unknown before it is trained.
        let seconds = settings.accelerator.map(|emulation| {
            let step_s = emulation.law.mean().as_secs_f64();
            let both = if settings.prefetch > 0 { step_s.max(make_s) } else { step_s + make_s };
            steps * both + baseline * step_s + saving.seconds.unwrap_or(0.0)
        });
        let read = Bytes(((images as f64 * samples.bytes) as u64).saturating_add(saving.read.0));
        Estimate { images, read, written: saving.written, seconds }
    }

    /// The stalls of all saves, and the drain of the last one after training ends.
    fn saving(&self, settings: &TrainSettings, work: &Work, n_saves: u64, rounds: u64) -> Estimate {
        let Some(route) = work.route() else { return Estimate::default() };
        // The size saved by an emulated accelerator takes precedence, as its step time does.
        let emulated = settings.accelerator.and(settings.checkpoint_size);
        let bytes = emulated.map_or_else(|| train::state_bytes(settings), |size| size.0);
        let (first_s, behind_s) = self.save_s(&route, bytes);
        let (read, written) = moved(&route, bytes.saturating_mul(n_saves).saturating_mul(rounds));
        let (stall_s, after_s) = match settings.checkpoint_mode {
            Some(Mode::Async) => (0.0, first_s + behind_s),
            _ => (first_s, behind_s),
        };
        let seconds = (n_saves as f64 * stall_s + after_s) * rounds as f64;
        Estimate { images: 0, read, written, seconds: Some(seconds) }
    }

    /// Every save is drained, then restored from the nearest tier.
    fn checkpoint(&self, settings: &CheckpointSettings, work: &Work, rounds: u64) -> Estimate {
        let Some(route) = work.route() else { return Estimate::default() };
        let bytes = settings.state_bytes();
        let (first_s, behind_s) = self.save_s(&route, bytes);
        // Each copy is read back at the same rate.
        let drain_s = settings.drain_rate.map_or(0.0, |rate| 2.0 * bytes as f64 / rate.0 as f64);
        let nearest = route.tiers().next().and_then(|tier| self.plan.profile(tier));
        let restore_s = nearest.as_ref().map(|profile| bytes as f64 / profile.read_bytes_per_s as f64);
        let all = bytes.saturating_mul(rounds);
        let (read, written) = moved(&route, all);
        let seconds = restore_s.map(|restore_s| rounds as f64 * (first_s + behind_s.max(drain_s) + restore_s));
        Estimate { images: 0, read: Bytes(read.0.saturating_add(all)), written, seconds }
    }

    /// Seconds until a state is durable on the first tier, and then to copy it to the last one and read it back. Tiers
    /// without a profile count as 0.
    fn save_s(&self, route: &Route, bytes: u64) -> (f64, f64) {
        let s = |bytes_per_s: u64| bytes as f64 / bytes_per_s as f64;
        let profile = |name: &str| self.plan.profile(name);
        let first_s = route.tiers().next().and_then(profile).map_or(0.0, |fast| s(fast.write_bytes_per_s));
        let drain_s = |slow: Profile| s(slow.write_bytes_per_s) + s(slow.read_bytes_per_s);
        let behind_s = route.fast.as_ref().and_then(|_| profile(&route.slow)).map_or(0.0, drain_s);
        (first_s, behind_s)
    }

    /// Images per second with `threads` threads.
    fn rate(&self, samples: Samples, threads: ThreadCount, profile: Option<&Profile>, decode: bool) -> f64 {
        let decode_s = if decode { self.decode_s_per_byte * samples.encoded } else { 0.0 };
        let threads = match threads {
            ThreadCount::Fixed(n) => n as f64,
            ThreadCount::Auto => self.cores,
        };
        let (read_s, device) = profile.map_or((0.0, f64::INFINITY), |profile| device(profile, threads, samples.bytes));
        // Each thread reads, then decodes; the cores and the device limit the total.
        (threads / (read_s + decode_s)).min(self.cores / decode_s).min(device)
    }
}

/// Bytes read and written for saves of `bytes`: a second tier doubles the writes and adds a read.
fn moved(route: &Route, bytes: u64) -> (Bytes, Bytes) {
    match route.fast {
        Some(_) => (Bytes(bytes.saturating_mul(2)), Bytes(bytes.saturating_mul(2))),
        None => (Bytes(0), Bytes(bytes)),
    }
}

/// Seconds per request of one thread, and the maximum images per second of the device.
fn device(profile: &Profile, threads: f64, bytes: f64) -> (f64, f64) {
    let latency_s = profile.latency_at(threads as usize) as f64 / 1e9;
    let read_s = latency_s + bytes / profile.stream_bytes_per_s as f64;
    (read_s, (profile.servers as f64 / read_s).min(profile.read_bytes_per_s as f64 / bytes))
}

fn probe(settings: &ProbeSettings, profile: Option<&Profile>, rounds: u64) -> Estimate {
    if !settings.is_sequential() {
        // Random reads are bounded by the probe's own time limit.
        return Estimate::default();
    }
    let (n_blocks, n_engines) = (settings.block.len().max(1), settings.engine.len().max(1));
    let n_settings = (n_blocks * settings.depth.len() * n_engines) as u64;
    let bytes = Bytes(settings.file_size().0.saturating_mul(rounds).saturating_mul(n_settings));
    let seconds = profile.map(|profile| {
        let s = |bytes_per_s: u64| bytes.0 as f64 / bytes_per_s as f64;
        s(profile.read_bytes_per_s) + s(profile.write_bytes_per_s)
    });
    Estimate { images: 0, read: bytes, written: bytes, seconds }
}

fn samples_of(plan: &Plan, name: &str, path: &Path) -> Samples {
    let made = |plan: &MakePlan| {
        let bytes = plan.expected_bytes().0 as f64 / plan.count() as f64;
        Samples { n: plan.count(), bytes, encoded: bytes }
    };
    match plan.dataset(name).map(|dataset| &dataset.source) {
        Some(DatasetSource::Make(plan)) => made(plan),
        Some(DatasetSource::Pack { packing, of }) => {
            let files = match plan.dataset(of).map(|origin| &origin.source) {
                Some(DatasetSource::Make(plan)) => made(plan),
                Some(DatasetSource::Path(path)) => scan(path).unwrap_or_default(),
                _ => Samples::default(),
            };
            let encoded = if matches!(packing.packing, Packing::Tensor { .. }) { 0.0 } else { files.encoded };
            Samples { bytes: packing.sample_bytes(files.bytes as u64) as f64, encoded, ..files }
        }
        _ => scan(path).unwrap_or_default(),
    }
}

fn scan(path: &Path) -> Option<Samples> {
    let source = Source::discover(Arc::new(Local::default()), path).ok()?;
    let length = |path: &PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let total: u64 = source.files().iter().map(length).sum();
    let n = source.n_samples() as u64;
    let bytes = total as f64 / n as f64;
    (n > 0).then_some(Samples { n, bytes, encoded: bytes })
}

/// Seconds per byte to generate and to decode images, on one core.
fn calibrate() -> (f64, f64) {
    let plan =
        MakePlan::new(&MakeSpec::new(forebay_dataset::Profile::Imagenet)).expect("the unchanged profile is valid");
    let spec = ImageSpec { width: 224, height: 224, dtype: Dtype::F32, layout: Layout::Nhwc, scaled_dct: false };
    let (mut camera, mut decoder) = (Camera::new(), ImageDecoder::new(spec));
    let (mut file, mut pixels) = (Vec::new(), vec![0; spec.sample_bytes()]);
    let (mut made_s, mut decoded_s, mut bytes) = (0.0, 0.0, 0.0);
    for index in 0..=CALIBRATION_IMAGES {
        let start = Instant::now();
        camera.take(&plan.picture(index).shot, &mut file);
        let made = start.elapsed();
        decoder.decode_into(&file, &mut pixels).expect("a generated image decodes");
        // The first image includes one-time allocations and tables.
        if index > 0 {
            made_s += made.as_secs_f64();
            decoded_s += (start.elapsed() - made).as_secs_f64();
            bytes += file.len() as f64;
        }
    }
    (made_s / bytes, decoded_s / bytes)
}
