//! Code shared by experiments on a pipeline: storage, order, output and threads.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_format::image::{ImageSpec, Layout};
use forebay_measure::usage::cores;
use forebay_measure::{Interleave, Io, Refused, Shuffle, ThreadCount};
use forebay_pipeline::{
    Augment, AugmentImage, Batched, Crop, Dataset, DecodeImage, Mapped, Source, Stats, TakePixels, Tuning,
};
use forebay_record::{DatasetNote, Failure, TriedThreads};
use forebay_storage::{
    CHOICE_LIMIT, CacheCounts, CachePlace, Device, Mode, Reading, Requests, Storage, choose_mode, is_url,
};
use forebay_units::{Bytes, PathText, count, group_digits};

/// Files per mode if the mode is chosen by measurement.
const CHOICE_FILES: usize = 256;
const CHOICE_THREADS: usize = 8;
/// Bytes of a shard that are read at once where it is read in order.
const BLOCK: u64 = 1 << 20;
const USUAL_WINDOW: usize = 1024;
const USUAL_INTERLEAVE: Interleave = Interleave { cycle: 4, block: 16 };
/// The tuner settles within a second or two if batches are fast; with slow storage it would take too long.
const TUNING_LIMIT: Duration = Duration::from_secs(30);

/// The settings that depend on where the data is.
#[derive(Debug, Clone)]
pub(crate) struct ReadingSettings {
    pub(crate) cold: bool,
    pub(crate) io: Io,
    pub(crate) inflight: Option<ThreadCount>,
    pub(crate) readahead: Option<Bytes>,
    pub(crate) cache: Option<CachePlace>,
}

impl ReadingSettings {
    /// Refuses settings that mean nothing where the data is.
    fn check(&self, source: &Source, is_emulated: bool) -> Result<(), forebay_measure::Error> {
        let of_files = [
            ("cold", self.cold, "evicts files from the page cache"),
            ("io", self.io != Io::Fixed(Mode::Buffered), "is how files are read"),
            ("tier", is_emulated, "emulates a device below files"),
        ];
        let of_objects = [
            ("inflight", self.inflight.is_some(), "is for data on an object store"),
            ("readahead", self.readahead.is_some(), "is for data on an object store"),
            ("cache", self.cache.is_some(), "is for data on an object store"),
        ];
        let is_compressed = !Dataset::new(source.clone()).packing_is_seekable();
        let (all, is) = match is_remote(source) {
            true if is_compressed && self.cache.is_some() => {
                let why = "keeps files and samples of other shards";
                (vec![("cache", true, why)], "compressed shards on an object store")
            }
            true => (of_files.to_vec(), "on an object store"),
            false => (of_objects.to_vec(), "local"),
        };
        let Some((setting, _, why)) = all.into_iter().find(|(_, is_given, _)| *is_given) else { return Ok(()) };
        let path = source.files().first().cloned().unwrap_or_default();
        Err(forebay_measure::Error::Misplaced { setting, why, path, is })
    }

    fn reading(&self) -> Reading {
        let usual = Reading::default();
        let inflight = match self.inflight {
            Some(ThreadCount::Fixed(n)) => Some(n),
            Some(ThreadCount::Auto) | None => usual.inflight,
        };
        let readahead = self.readahead.map_or(usual.readahead, |size| size.0);
        Reading { inflight, readahead, cache: self.cache.clone() }
    }
}

/// # Errors
/// If the order of the reads is not known to a cache.
pub(crate) fn check_cache(cache: Option<&CachePlace>, readahead: Option<Bytes>) -> Result<(), Refused> {
    match (cache, readahead) {
        (Some(_), Some(Bytes(0))) => {
            Err("`cache` keeps what is read ahead, and `readahead` is 0: give only one of them".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether the data is on an object store.
pub(crate) fn is_remote(source: &Source) -> bool {
    source.files().first().is_some_and(|file| is_url(file))
}

/// Opens the storage; notes a mode chosen by measurement.
pub(crate) fn storage(
    settings: ReadingSettings,
    device: Option<&Arc<Device>>,
    source: &Source,
    notes: &mut Vec<String>,
) -> Result<Arc<dyn Storage>, forebay_measure::Error> {
    settings.check(source, device.is_some())?;
    let mode = match settings.io {
        Io::Fixed(mode) => mode,
        Io::Auto => chosen_mode(source, notes)?,
    };
    Ok(forebay_storage::files_and_objects(mode, device, settings.reading())?)
}

/// Describes the storage of the data.
pub(crate) fn describe_storage(storage: &dyn Storage, source: &Source) -> String {
    source.files().first().map_or_else(|| storage.description(), |file| storage.description_of(file))
}

/// The note on the requests that a run sent; `None` if it sent none.
pub(crate) fn note_of_requests(before: Option<Requests>, after: Option<Requests>) -> Option<String> {
    let sent = after?.since(&before.unwrap_or_default());
    let cached = note_of_cache(&sent.cache);
    if sent.sent == 0 {
        return cached.map(|cached| format!("no request sent to the object store; {cached}"));
    }
    let repeated = match (sent.throttled, sent.failed, sent.resumed) {
        (0, 0, 0) => "none was repeated".to_owned(),
        (throttled, failed, resumed) => format!(
            "repeated: {} because the store asked to slow down, {} that failed, {} for the rest of a broken transfer",
            group_digits(throttled),
            group_digits(failed),
            group_digits(resumed)
        ),
    };
    let cached = cached.map(|cached| format!("; {cached}")).unwrap_or_default();
    let hedged = match sent.hedged {
        0 => String::new(),
        n => format!("; {} slow to be answered and sent a second time", group_digits(n)),
    };
    let requests = count(sent.sent, "request");
    Some(format!("{requests} sent to the object store, warm-ups included; {repeated}{hedged}{cached}"))
}

/// What the near cache did; `None` if there is none or it was not used.
fn note_of_cache(counts: &CacheCounts) -> Option<String> {
    let CacheCounts { read, read_bytes, kept, kept_bytes, evicted, damaged, unwritten } = *counts;
    if *counts == CacheCounts::default() {
        return None;
    }
    let served = format!("the near cache served {} of {}", count(read, "read"), Bytes(read_bytes));
    let wrote = format!("{}, {} in all, were written to it", group_digits(kept), Bytes(kept_bytes));
    let more =
        [(evicted, "removed for others that are needed earlier"), (damaged, "damaged"), (unwritten, "not writable")];
    let more = more.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("; {} {what}", group_digits(n)));
    Some(format!("{served}; {wrote}{}", more.collect::<String>()))
}

/// The order of the samples, as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) shuffle: Option<Shuffle>,
    pub(crate) interleave: Option<Interleave>,
    pub(crate) seed: u64,
}

impl Order {
    /// The usual shuffle of shards that are read in order.
    pub(crate) const WINDOW: Shuffle = Shuffle::Window(USUAL_WINDOW);

    /// Whether shards are read in large blocks.
    pub(crate) fn is_streamed(&self) -> bool {
        !matches!(self.shuffle, None | Some(Shuffle::Full))
    }

    /// The same requests without a window, whose first samples would wait for all of it.
    pub(crate) fn without_window(self) -> Self {
        let interleave = self.interleave.or(Some(USUAL_INTERLEAVE));
        match self.shuffle {
            Some(Shuffle::Window(_)) => Self { shuffle: Some(Shuffle::Shards), interleave, ..self },
            _ => self,
        }
    }

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
        if self.is_streamed() { mapped.read_blocks(BLOCK) } else { mapped }
    }
}

/// Which part of each image a sample shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CropKind {
    None,
    Center,
    Random,
}

/// The kinds by name.
pub(crate) const CROPS: [(&str, CropKind); 3] =
    [("none", CropKind::None), ("center", CropKind::Center), ("random", CropKind::Random)];

/// What happens to images beside decoding and resizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageChange {
    pub(crate) crop: CropKind,
    pub(crate) flip: bool,
    pub(crate) antialias: bool,
    pub(crate) seed: u64,
}

impl ImageChange {
    /// `None` if nothing happens.
    pub(crate) fn augment(self, spec: ImageSpec) -> Option<Augment> {
        let crop = match self.crop {
            CropKind::None => Crop::Whole,
            CropKind::Center => Crop::center_of((spec.width, spec.height)),
            CropKind::Random => Crop::RANDOM,
        };
        let flip = if self.flip { 0.5 } else { 0.0 };
        let is_any = self.crop != CropKind::None || self.flip || self.antialias;
        is_any.then_some(Augment {
            crop,
            flip,
            antialias: self.antialias,
            jitter: None,
            normalize: None,
            seed: self.seed,
        })
    }

    /// For samples that are evaluated: the centre, if parts of images are trained on, and nothing random.
    #[must_use]
    pub(crate) fn for_evaluation(self) -> Self {
        let crop = if self.crop == CropKind::None { CropKind::None } else { CropKind::Center };
        Self { crop, flip: false, ..self }
    }

    /// For display and comparison; empty if nothing happens.
    pub(crate) fn describe(self) -> String {
        let crop = CROPS.iter().find(|(_, kind)| *kind == self.crop && self.crop != CropKind::None);
        let crop = crop.map(|(name, _)| format!("{name} crop"));
        let flip = self.flip.then(|| "half mirrored".to_owned());
        let antialias = self.antialias.then(|| "antialiased".to_owned());
        crop.into_iter().chain(flip).chain(antialias).collect::<Vec<_>>().join(", ")
    }
}

/// Tensor shards already hold pixels.
pub(crate) fn decoded(dataset: Dataset, source: &Source, spec: ImageSpec, change: ImageChange) -> Mapped {
    if let Some(augment) = change.augment(spec) {
        return dataset.map(AugmentImage { spec, augment, pixels: source.pixels() });
    }
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
pub(crate) fn describe_output(spec: ImageSpec, change: ImageChange) -> String {
    let dtype = spec.dtype.name();
    let layout = match spec.layout {
        Layout::Nhwc => "nhwc",
        Layout::Nchw => "nchw",
    };
    let scaled = if spec.scaled_dct { ", scaled decoding" } else { "" };
    let change = change.describe();
    let change = if change.is_empty() { change } else { format!(", {change}") };
    format!("{}x{} {dtype} {layout}{scaled}{change}", spec.width, spec.height)
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
