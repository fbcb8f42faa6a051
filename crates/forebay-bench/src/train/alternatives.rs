//! Changes beyond threads and prefetch, with what samples would cost after them: each measured for a moment, not assumed.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use forebay_format::image::{ImageDecoder, ImageSpec, Pixels};
use forebay_measure::{Cache, Io};
use forebay_plan::{Alternative, Case, Curve, Effort, Point, Server};
use forebay_record::{Change, Level};
use forebay_storage::Mode;

use super::advice::Observed;
use super::data::TrainingData;
use super::plan::Plan;
use crate::decoder::{DecodeOn, Decoder};
use crate::explore::{self, Costs};
use crate::supply::Order;

/// The format of images decoded beforehand.
pub(crate) const TENSOR: &str = "tensor";
/// Conversions of pixels are timed for so long.
const CONVERSIONS: Duration = Duration::from_millis(5);
/// Samples that a GPU decodes again and again, to know what that costs.
const LEAST_ON_GPU: u64 = 32;
const MOST_ON_GPU: u64 = 512;

pub(super) fn alternatives(
    observed: &Observed<'_>,
    data: &TrainingData,
    case: &Case,
    decode_share: f64,
    cancel: &AtomicBool,
) -> Vec<Alternative> {
    let all = [
        direct(observed, data, case, cancel),
        streamed(observed, data, case, cancel),
        decoded(observed, data, case, decode_share),
        on_gpu(observed, data, case, cancel),
    ];
    all.into_iter().flatten().collect()
}

/// Reads past the page cache, for cold files on a real device; `None` where the file system does not have them.
fn direct(observed: &Observed<'_>, data: &TrainingData, case: &Case, cancel: &AtomicBool) -> Option<Alternative> {
    if !may_read_directly(observed.trial.plan) || case.storage.is_none() || !observed.waits() {
        return None;
    }
    let source = data.source.clone().with_storage(forebay_storage::files(Mode::Direct, None));
    // Direct reads go past the page cache, whatever it holds; evicting files would change it for the user's next run.
    let order = observed.trial.plan.settings.order();
    let storage = explore::measure(&source, order, false, f64::INFINITY, cancel)?;
    Some(Alternative {
        name: "io",
        advice: "--io direct: read past the page cache".to_owned(),
        effort: Effort::Flag,
        setting: Change { setting: "io".to_owned(), value: Level::Text(Mode::Direct.name().to_owned()) },
        storage: Some(storage),
        served_by: Server::Storage,
        cpu_s: case.cpu_s,
        delays_step_s: 0.0,
        is_bound: false,
    })
}

/// Whether reads past the page cache may help: of cold files on a real device that are read through it.
pub(crate) fn may_read_directly(plan: &Plan) -> bool {
    let is_buffered = plan.settings.io == Io::Fixed(Mode::Buffered);
    is_buffered && plan.settings.cache() == Cache::Cold && plan.tier.is_none()
}

/// Shards read in order in large blocks, for shards that are read sample by sample.
fn streamed(observed: &Observed<'_>, data: &TrainingData, case: &Case, cancel: &AtomicBool) -> Option<Alternative> {
    let plan = observed.trial.plan;
    if !may_stream(plan, data.source.packing()) || data.is_remote() || case.storage.is_none() || !observed.waits() {
        return None;
    }
    let order = Order { shuffle: Some(Order::WINDOW), ..plan.settings.order() };
    let is_cold = plan.settings.cache() == Cache::Cold;
    let storage = explore::measure(&data.source, order, is_cold, f64::INFINITY, cancel)?;
    let shuffle = Order::WINDOW.to_string();
    Some(Alternative {
        name: "shuffle",
        advice: format!("--shuffle {shuffle}: read shards in order, in large requests, and shuffle within a window"),
        effort: Effort::Order,
        setting: Change { setting: Change::SHUFFLE.to_owned(), value: Level::Text(shuffle) },
        storage: Some(storage),
        served_by: Server::Storage,
        cpu_s: case.cpu_s,
        delays_step_s: 0.0,
        is_bound: false,
    })
}

/// Whether data of this packing is read sample by sample and can be read in order. Compressed shards are read in order anyway.
pub fn may_stream(plan: &Plan, packing: &str) -> bool {
    ["tfrecord", "tar", TENSOR].contains(&packing) && !plan.settings.order().is_streamed()
}

/// Images decoded and resized beforehand.
fn decoded(observed: &Observed<'_>, data: &TrainingData, case: &Case, decode_share: f64) -> Option<Alternative> {
    let is_files = data.source.packing() == "files";
    let bytes = observed.run.totals.bytes as f64 / observed.n_samples();
    if !is_files || bytes <= 0.0 || !observed.waits() {
        return None;
    }
    // A crop needs the whole image, and packing does not filter.
    if !data.change().is_empty() {
        return None;
    }
    let spec = data.spec();
    let decoded_bytes = f64::from(spec.width) * f64::from(spec.height) * 3.0;
    let growth = decoded_bytes / bytes;
    let storage = match (&case.storage, &observed.trial.plan.tier) {
        (None, _) => None,
        (Some(_), Some(profile)) => Some(explore::of_profile(profile, decoded_bytes)?),
        // What samples of another size cost on this device was not measured.
        (Some(_), None) => return None,
    };
    let reading_s = case.cpu_s * (1.0 - decode_share.clamp(0.0, 1.0)) * growth.max(1.0);
    Some(Alternative {
        name: "pack",
        advice: format!(
            "forebay data pack --to {TENSOR} --size {}x{}: images decoded beforehand",
            spec.width, spec.height
        ),
        effort: Effort::Reformat,
        setting: Change { setting: Change::DATASET.to_owned(), value: Level::Text(TENSOR.to_owned()) },
        storage,
        served_by: Server::Storage,
        cpu_s: reading_s + conversion_s(spec)?,
        delays_step_s: 0.0,
        is_bound: false,
    })
}

/// Images decoded on a GPU, where there is one, for samples that come from memory. What cold files and a GPU cost together was not
/// measured.
fn on_gpu(observed: &Observed<'_>, data: &TrainingData, case: &Case, cancel: &AtomicBool) -> Option<Alternative> {
    let (plan, trial) = (observed.trial.plan, observed.trial);
    if plan.settings.decode == DecodeOn::Gpu || case.storage.is_some() || data.is_remote() || !observed.waits() {
        return None;
    }
    let ordinal = trial.kind.ordinal();
    let gpu = Decoder::on_gpu(&plan.gpus, ordinal.unwrap_or(0), &data.source, data.output()).ok()?;
    let n_samples = (2 * plan.settings.batch as u64).clamp(LEAST_ON_GPU, MOST_ON_GPU).min(data.n_learnt());
    let costs = |threads| explore::costs(&data.again_with(&gpu, threads, n_samples), n_samples, cancel);
    let one = costs(1)?;
    // Kernels of several threads run at the same time, so that their times overlap.
    let work = gpu.totals().filter(|totals| totals.n_on_gpu > 0)?;
    let kernels_s = work.kernels_s / work.n_on_gpu as f64;
    let now = if trial.threads > 1 { costs(trial.threads)? } else { one };
    let point = |threads: usize, costs: Costs| Point {
        in_flight: threads as f64,
        per_s: threads as f64 / costs.gpu_s,
        error: 0.1,
    };
    Some(Alternative {
        name: "gpu",
        advice: format!("--decode gpu: decode on the GPU ({})", gpu.name()?),
        effort: Effort::Flag,
        setting: Change { setting: "decode".to_owned(), value: Level::Text(DecodeOn::Gpu.name().to_owned()) },
        storage: Curve::new([point(1, one), point(trial.threads, now)]),
        served_by: Server::Gpu,
        cpu_s: now.cpu_s,
        delays_step_s: if ordinal.is_some() { kernels_s * plan.settings.batch as f64 } else { 0.0 },
        is_bound: false,
    })
}

/// Seconds on a core to turn the pixels of a decoded image into a sample.
fn conversion_s(spec: ImageSpec) -> Option<f64> {
    let mut decoder = ImageDecoder::new(spec);
    let rgb = vec![127; spec.width as usize * spec.height as usize * 3];
    let mut sample = vec![0; spec.sample_bytes()];
    let mut convert = || {
        let pixels = Pixels { width: spec.width, height: spec.height, rgb: &rgb };
        decoder.resize_pixels_into(pixels, &mut sample).ok()
    };
    // The first touches the memory.
    convert()?;
    let (start, mut n) = (Instant::now(), 0_u32);
    while start.elapsed() < CONVERSIONS {
        convert()?;
        n += 1;
    }
    Some(start.elapsed().as_secs_f64() / f64::from(n))
}
