//! Code shared by experiments on a pipeline: storage, order, output and threads.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_format::image::{Dtype, ImageSpec, Layout};
use forebay_measure::usage::cores;
use forebay_measure::{Interleave, Io, Refused, Shuffle};
use forebay_pipeline::{Batched, Dataset, DecodeImage, Mapped, Source, Stats, TakePixels, Tuning};
use forebay_record::{DatasetNote, Failure, TriedThreads};
use forebay_storage::{CHOICE_LIMIT, Mode, Profile, Storage, choose_mode};
use forebay_units::{Bytes, PathText};

/// Files per mode if the mode is chosen by measurement.
const CHOICE_FILES: usize = 256;
const CHOICE_THREADS: usize = 8;
/// Bytes of a shard that are read at once where it is read in order.
const BLOCK: u64 = 1 << 20;
const USUAL_WINDOW: usize = 1024;
const USUAL_INTERLEAVE: Interleave = Interleave { cycle: 4, block: 16 };
/// The tuner settles within a second or two if batches are fast; with slow storage it would take too long.
const TUNING_LIMIT: Duration = Duration::from_secs(30);

/// Opens the storage; notes a mode chosen by measurement.
pub(crate) fn storage(
    io: Io,
    tier: Option<&Profile>,
    source: &Source,
    notes: &mut Vec<String>,
) -> forebay_storage::Result<Arc<dyn Storage>> {
    let mode = match io {
        Io::Fixed(mode) => mode,
        Io::Auto => chosen_mode(source, notes)?,
    };
    Ok(forebay_storage::files(mode, tier))
}

/// The order of the samples, as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) shuffle: Option<Shuffle>,
    pub(crate) interleave: Option<Interleave>,
    pub(crate) seed: u64,
}

impl Order {
    /// # Errors
    /// If the shards are to be interleaved in an order that has none.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        match (self.shuffle, self.interleave) {
            (None | Some(Shuffle::Full), Some(_)) => {
                Err("`interleave` needs an order of shards: give `shuffle` as window:N, shards or none".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn of(&self, dataset: Dataset) -> Dataset {
        let seed = self.seed;
        // A compressed shard can only be read as a whole; tf.data's usual order works there.
        let usual = || if dataset.packing_is_seekable() { Shuffle::Full } else { Shuffle::Window(USUAL_WINDOW) };
        let shuffle = self.shuffle.unwrap_or_else(usual);
        let interleave = self.interleave.or(match shuffle {
            Shuffle::Window(_) => Some(USUAL_INTERLEAVE),
            _ => None,
        });
        let dataset = match shuffle {
            Shuffle::Full => return dataset.shuffle(seed),
            Shuffle::None => dataset,
            Shuffle::Window(_) | Shuffle::Shards => dataset.shuffle_groups(seed),
        };
        let dataset = match interleave {
            Some(Interleave { cycle, block }) => dataset.interleave(cycle, block),
            None => dataset,
        };
        match shuffle {
            Shuffle::Window(n) => dataset.shuffle_buffer(n, seed),
            _ => dataset,
        }
    }

    /// Reads shards in large blocks where the order has neighbours follow each other soon.
    pub(crate) fn read(&self, mapped: Mapped) -> Mapped {
        match self.shuffle {
            None | Some(Shuffle::Full) => mapped,
            Some(_) => mapped.read_blocks(BLOCK),
        }
    }
}

/// Tensor shards already hold pixels.
pub(crate) fn decoded(dataset: Dataset, source: &Source, spec: ImageSpec) -> Mapped {
    match source.pixels() {
        None => dataset.map(DecodeImage(spec)),
        Some(shape) => dataset.map(TakePixels { shape, spec }),
    }
}

/// Lets the tuner settle; returns the thread count it found best.
pub(crate) fn tune(
    pipeline: &Batched,
    cancel: &AtomicBool,
) -> Result<(usize, Option<Tuning>), forebay_pipeline::Error> {
    let start = Instant::now();
    let mut batches = pipeline.iter()?;
    while let Some(batch) = batches.next_unless(cancel) {
        batch?;
        let settled = batches.tuning().is_some_and(|tuning| tuning.settled);
        if settled || cancel.load(Ordering::Relaxed) || start.elapsed() > TUNING_LIMIT {
            break;
        }
    }
    let tuning = batches.tuning().cloned();
    Ok((tuning.as_ref().map_or_else(cores, Tuning::best), tuning))
}

/// In the order in which the tuner tried them.
pub(crate) fn tried(tuning: Option<&Tuning>) -> Vec<TriedThreads> {
    let tried = tuning.into_iter().flat_map(|tuning| &tuning.tried);
    tried.map(|(threads, rate)| TriedThreads { threads: *threads as u64, images_per_s: *rate }).collect()
}

pub(crate) fn note_of(path: &Path, source: &Source) -> DatasetNote {
    DatasetNote {
        path: path.escaped().into_owned(),
        packing: source.packing().to_owned(),
        n_samples: source.n_samples() as u64,
        n_files: source.files().len() as u64,
    }
}

/// Notes for the reader of a record: splits read together, files left out, shards that are only partly usable.
pub(crate) fn notes_of(source: &Source) -> impl Iterator<Item = String> {
    let damaged = source.damaged().iter().map(|damaged| {
        let (path, n) = (damaged.path.escaped(), damaged.n_samples_before);
        format!("{path} is damaged after {n} samples; only these were used: {}", damaged.error)
    });
    source.notes().iter().cloned().chain(source.left_out().note()).chain(damaged)
}

pub(crate) fn failures(stats: &Stats) -> Vec<Failure> {
    stats.failures.iter().map(|failed| Failure { name: failed.name.clone(), reason: failed.reason() }).collect()
}

/// For display.
pub(crate) fn describe_output(spec: ImageSpec) -> String {
    let dtype = match spec.dtype {
        Dtype::U8 => "u8",
        Dtype::F32 => "f32",
    };
    let layout = match spec.layout {
        Layout::Nhwc => "nhwc",
        Layout::Nchw => "nchw",
    };
    let scaled = if spec.scaled_dct { ", scaled decoding" } else { "" };
    format!("{}x{} {dtype} {layout}{scaled}", spec.width, spec.height)
}

/// Prefix to the first failed sample's error, if all samples failed.
pub(crate) fn none_usable(n_samples: u64) -> String {
    match n_samples {
        1 => "the only sample could not be used".to_owned(),
        n => format!("none of {n} samples could be used; the first"),
    }
}

/// Whether a path is a regular file; does not open a pipe to find out.
fn is_measurable(path: &Path) -> bool {
    let is_small = |found: std::fs::Metadata| found.is_file() && found.len() <= CHOICE_LIMIT;
    std::fs::metadata(path).is_ok_and(is_small) && File::open(path).is_ok()
}

fn chosen_mode(source: &Source, notes: &mut Vec<String>) -> forebay_storage::Result<Mode> {
    let files = source.files();
    let step = files.len().div_ceil(CHOICE_FILES).max(1);
    let sample: Vec<_> = files.iter().step_by(step).filter(|path| is_measurable(path)).cloned().collect();
    if sample.is_empty() {
        notes.push(format!("read mode buffered: no file of at most {} to measure the modes with", Bytes(CHOICE_LIMIT)));
        return Ok(Mode::Buffered);
    }
    let choice = choose_mode(&sample, CHOICE_THREADS)?;
    let tried: Vec<String> = choice.mb_per_s.iter().map(|(m, rate)| format!("{} {rate:.0}", m.name())).collect();
    notes.push(format!(
        "read mode chosen by measurement on {} files, cold, {CHOICE_THREADS} threads: {} (MB/s: {})",
        sample.len(),
        choice.mode.name(),
        tried.join(", ")
    ));
    Ok(choice.mode)
}
