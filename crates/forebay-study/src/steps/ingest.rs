//! The ingest step: a cell of it is one ingest run with one thread count.

use std::path::PathBuf;

use forebay_bench::ingest::{self, Plan};
use forebay_format::example::KeyNames;
use forebay_format::image::{Dtype, ImageSpec, Layout};
use forebay_measure::{Cache, Io, Observer, ThreadCount};
use forebay_record::Level;
use forebay_units::Bytes;

use super::value::{self, Refused};
use super::{Failed, Stage, StepResult, record};

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &[
    "batch",
    "batches",
    "cold",
    "dataset",
    "io",
    "prefetch",
    "read_only",
    "readers",
    "seed",
    "size",
    "threads",
    "tier",
];

/// The most images of one repeat: years of them.
const MAX_IMAGES: u64 = 1_000_000_000_000;

/// An ingest cell's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct IngestSettings {
    /// The dataset's name.
    pub dataset: Option<String>,
    /// The tier's name; without one the data is read where it lies.
    pub tier: Option<String>,
    /// Threads that make samples.
    pub threads: ThreadCount,
    /// Threads that only read.
    pub readers: u64,
    /// Samples a batch.
    pub batch: u64,
    /// Batches a repeat; one pass over the data without it.
    pub batches: Option<u64>,
    /// Batches made ahead.
    pub prefetch: u64,
    /// Read without decoding.
    pub read_only: bool,
    /// Evict before each repeat.
    pub cold: bool,
    /// How files are read.
    pub io: Io,
    /// Width and height of an image; 224 each without it, and tensor shards keep their own.
    pub size: Option<(u32, u32)>,
    /// Seed of the shuffle.
    pub seed: u64,
}

impl IngestSettings {
    /// The defaults of `forebay ingest`, and the study's seed.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            dataset: None,
            tier: None,
            threads: ThreadCount::Auto,
            readers: 0,
            batch: 64,
            batches: None,
            prefetch: 1,
            read_only: false,
            cold: false,
            io: Io::Fixed(forebay_storage::Mode::Buffered),
            size: None,
            seed,
        }
    }

    /// Sets one of [`NAMES`].
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "batch" => self.batch = value::integer(level, 1..=1_000_000)?,
            "batches" => self.batches = Some(value::integer(level, 1..=1_000_000_000)?),
            "cold" => self.cold = value::flag(level)?,
            "dataset" => self.dataset = Some(value::text(level)?.to_owned()),
            "io" => self.io = value::io(level)?,
            "prefetch" => self.prefetch = value::integer(level, 0..=10_000)?,
            "read_only" => self.read_only = value::flag(level)?,
            "readers" => self.readers = value::integer(level, 0..=1_024)?,
            "seed" => self.seed = value::integer(level, 0..=i64::MAX as u64)?,
            "size" => self.size = Some(value::pixels(level)?),
            "threads" => self.threads = value::threads(level)?,
            "tier" => self.tier = Some(value::text(level)?.to_owned()),
            _ => return Err("not a setting of ingest".to_owned()),
        }
        Ok(())
    }

    /// What cannot be counted.
    pub(super) fn check(&self) -> Result<(), Refused> {
        if self.images_a_repeat(0) > MAX_IMAGES {
            let most = forebay_units::group_digits(MAX_IMAGES);
            return Err(format!("a repeat has more than {most} images: give fewer batches"));
        }
        Ok(())
    }

    /// Images of one repeat of a dataset with so many.
    pub(crate) fn images_a_repeat(&self, n_samples: u64) -> u64 {
        self.batches.map_or(n_samples, |n| n.saturating_mul(self.batch))
    }

    fn plan(&self, data: PathBuf, on: Stage) -> Plan {
        let (width, height) = self.size.unwrap_or((224, 224));
        Plan {
            data,
            keys: KeyNames::default(),
            threads: vec![self.threads],
            readers: self.readers as usize,
            batch: self.batch as usize,
            batches: self.batches,
            prefetch: self.prefetch as usize,
            read_only: self.read_only,
            image: ImageSpec { width, height, dtype: Dtype::F32, layout: Layout::Nhwc, scaled_dct: false },
            resize_pixels: self.size.is_some(),
            cache: if self.cold { Cache::Cold } else { Cache::Warm },
            io: self.io,
            max_sample: Bytes(forebay_format::MAX_SAMPLE_SIZE),
            tier: on.shaped,
            kernel_tier: on.kernel,
            map_shards: false,
            warmups: on.warmups,
            repeats: on.repeats,
            seed: self.seed,
            first_come: false,
        }
    }
}

/// Runs a cell.
pub(super) fn run(
    settings: &IngestSettings,
    data: PathBuf,
    on: Stage,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let plan = settings.plan(data, on);
    let record = ingest::run(&plan, record(), observer)?;
    let notes = record.notes;
    match record.cells.into_iter().next() {
        Some(cell) if cell.empty_repeats > 0 => {
            let why = cell.failures.first().map(|first| format!(": {}: {}", first.name, first.reason));
            let n_repeats = cell.empty_repeats + cell.samples.len() as u64;
            Err(format!(
                "{} of {} delivered no image{}",
                cell.empty_repeats,
                forebay_units::count(n_repeats, "repeat"),
                why.unwrap_or_default()
            )
            .into())
        }
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes }),
        None => Err("no repeat was finished".into()),
    }
}
