//! Running the plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use forebay_format::image::ImageSpec;
use forebay_pipeline::{Batched, Dataset, DecodeImage, Mapped, ReadOnly, Source, Stats, TakePixels, Threads};
use forebay_record::{CacheState, DatasetNote, Environment, Failure, IngestCell, IngestRepeat, Record};
use forebay_storage::{Local, Mode, Null, Shaped, Storage, choose_mode};
use forebay_units::Summary;

use super::cache;
use super::plan::{Cache, Io, Plan, ThreadCount};
use crate::usage::cpu_seconds;

/// Samples of the floor measurement: enough for a stable rate, a few milliseconds of time.
const FLOOR_SAMPLES: usize = 50_000;
/// Files read per mode when the mode is chosen by measurement.
const CHOICE_FILES: usize = 256;
const CHOICE_THREADS: usize = 8;

/// A run that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data cannot be used, or the pipeline not be built.
    #[error(transparent)]
    Pipeline(#[from] forebay_pipeline::Error),
    /// The storage failed outside the pipeline.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// Not a single sample could be made.
    #[error("not one of {n_failed} samples could be used; the first: {name}: {reason}")]
    AllFailed {
        /// How many failed.
        n_failed: u64,
        /// The first of them.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Before the first round: how many images all rounds will take, if nothing fails.
    Started {
        /// Images over all rounds and thread counts.
        images: u64,
    },
    /// A repeat begins.
    Repeat {
        /// What is being measured, in words: "4 threads, repeat 2 of 5".
        what: String,
    },
    /// Images delivered since the last time.
    Advanced {
        /// How many.
        images: u64,
    },
}

/// Runs the plan. When `cancel` is set it stops at the next batch and yields what it has.
///
/// # Errors
/// When the data cannot be used, or not a single sample can.
pub fn run(
    plan: &Plan,
    environment: Environment,
    command_line: Vec<String>,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Record<IngestCell>, Error> {
    let source = Source::discover(Arc::new(Local::default()), &plan.data)?;
    let mut record = Record::new(command_line, environment);
    record.dataset = note_of(plan, &source);
    record.notes.extend(damage_notes(&source));
    let bench = Bench::new(plan, source, &mut record.notes)?;
    let n_rounds = plan.warmups + plan.repeats;
    let images = bench.images_a_repeat() * (n_rounds * plan.threads.len()) as u64;
    observe(Event::Started { images });
    let mut measured: Vec<Vec<(IngestRepeat, Stats)>> = vec![Vec::new(); plan.threads.len()];
    'rounds: for round in 0..n_rounds {
        for (level, threads) in plan.threads.iter().enumerate() {
            observe(Event::Repeat { what: describe(plan, *threads, round) });
            let repeat = bench.repeat(*threads, observe, cancel)?;
            if cancel.load(Ordering::Relaxed) {
                record.notes.push("interrupted: the repeats finished before that are kept".to_owned());
                break 'rounds;
            }
            if round >= plan.warmups {
                measured[level].push(repeat);
            }
        }
    }
    for (threads, repeats) in plan.threads.iter().zip(measured) {
        if let Some(cell) = bench.cell(*threads, repeats)? {
            record.cells.push(cell);
        }
    }
    warn_of_cache(plan, &record.cells, &mut record.notes);
    Ok(record)
}

fn describe(plan: &Plan, threads: ThreadCount, round: usize) -> String {
    let threads = match threads {
        ThreadCount::Fixed(1) => "1 thread".to_owned(),
        ThreadCount::Fixed(n) => format!("{n} threads"),
        ThreadCount::Auto => "auto".to_owned(),
    };
    match round.checked_sub(plan.warmups) {
        None => format!("{threads}, warm-up"),
        Some(n) => format!("{threads}, repeat {} of {}", n + 1, plan.repeats),
    }
}

fn note_of(plan: &Plan, source: &Source) -> DatasetNote {
    DatasetNote {
        path: plan.data.display().to_string(),
        packing: source.packing().to_owned(),
        n_samples: source.n_samples() as u64,
        n_files: source.files().len() as u64,
    }
}

fn damage_notes(source: &Source) -> impl Iterator<Item = String> {
    source.damaged().iter().map(|damaged| {
        let (path, n) = (damaged.path.display(), damaged.n_samples_before);
        format!("{path} is damaged after {n} samples, which were used: {}", damaged.error)
    })
}

fn warn_of_cache(plan: &Plan, cells: &[IngestCell], notes: &mut Vec<String>) {
    let wanted = match plan.cache {
        Cache::Cold => CacheState::Cold,
        Cache::Warm => CacheState::Warm,
    };
    let other: Vec<String> = cells.iter().filter(|cell| cell.cache != wanted).map(|c| c.threads.to_string()).collect();
    if other.is_empty() {
        return;
    }
    let threads = other.join(", ");
    notes.push(match plan.cache {
        Cache::Cold => format!(
            "a cold cache was asked for, but with {threads} threads more than 5 % of the bytes came from memory: the \
             files may lie on a file system in memory, or somebody else reads them too"
        ),
        Cache::Warm => format!(
            "a warm cache was asked for, but with {threads} threads more than 5 % of the bytes came from the device: \
             the data may not fit into memory, or direct I/O bypasses the cache"
        ),
    });
}

/// A plan made ready to be measured.
struct Bench<'a> {
    plan: &'a Plan,
    /// The samples, through the storage that is measured.
    source: Source,
    storage_description: String,
}

impl<'a> Bench<'a> {
    fn new(plan: &'a Plan, source: Source, notes: &mut Vec<String>) -> Result<Self, Error> {
        let mode = match plan.io {
            Io::Fixed(mode) => mode,
            Io::Auto => chosen_mode(&source, notes)?,
        };
        let local = Local::new(mode);
        let storage: Arc<dyn Storage> = match &plan.tier {
            Some(profile) => Arc::new(Shaped::new(local, profile.clone())),
            None => Arc::new(local),
        };
        let storage_description = storage.description();
        Ok(Self { plan, source: source.with_storage(storage), storage_description })
    }

    fn images_a_repeat(&self) -> u64 {
        let all = self.source.n_samples() as u64;
        self.plan.batches.map_or(all, |n| n * self.plan.batch as u64)
    }

    fn pipeline(&self, source: Source, threads: ThreadCount) -> Batched {
        let plan = self.plan;
        let n_samples = source.n_samples() as u64;
        let wanted = plan.batches.map_or(n_samples, |n| n * plan.batch as u64);
        let dataset = Dataset::new(source);
        // A compressed shard can only be read as a whole; tf.data's usual order serves there.
        let dataset = match dataset.packing_is_seekable() {
            true => dataset.shuffle(plan.seed),
            false => dataset.shuffle_groups(plan.seed).interleave(4, 16).shuffle_buffer(1024, plan.seed),
        };
        let dataset = dataset.repeat(wanted.div_ceil(n_samples.max(1)).max(1)).take(wanted);
        let mut mapped = self.mapped(dataset).threads(match threads {
            ThreadCount::Fixed(n) => Threads::Fixed(n),
            ThreadCount::Auto => Threads::Auto,
        });
        if plan.first_come {
            mapped = mapped.first_come();
        }
        if plan.map_shards {
            mapped = mapped.map_shards();
        }
        mapped.readers(plan.readers).ignore_errors().batch(plan.batch).prefetch(plan.prefetch)
    }

    fn mapped(&self, dataset: Dataset) -> Mapped {
        if self.plan.read_only {
            return dataset.map(ReadOnly);
        }
        let spec = self.plan.image;
        match self.source.pixels() {
            None => dataset.map(DecodeImage(spec)),
            Some(shape) if self.plan.resize_pixels => dataset.map(TakePixels { shape, spec }),
            Some(shape) => {
                let spec = ImageSpec { width: shape.width, height: shape.height, ..spec };
                dataset.map(TakePixels { shape, spec })
            }
        }
    }

    fn repeat(
        &self,
        threads: ThreadCount,
        observe: &mut dyn FnMut(Event),
        cancel: &AtomicBool,
    ) -> Result<(IngestRepeat, Stats), Error> {
        let before = cache::prepare(self.plan.cache, &self.source)?;
        let pipeline = self.pipeline(self.source.clone(), threads);
        let (cpu, start) = (cpu_seconds(), Instant::now());
        let mut batches = pipeline.iter()?;
        for batch in batches.by_ref() {
            let images = batch?.len() as u64;
            observe(Event::Advanced { images });
            if cancel.load(Ordering::Relaxed) {
                break;
            }
        }
        let (wall_s, cpu_s) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let stats = batches.stats();
        let evidence = cache::conclude(&before, stats.bytes_read);
        let repeat = IngestRepeat {
            images: stats.n_samples,
            failed: stats.n_failed,
            bytes: stats.bytes_read,
            wall_s,
            cpu_s,
            wait_s: stats.wait_ns as f64 / 1e9,
            first_batch_s: stats.first_batch_ns.map(|ns| ns as f64 / 1e9),
            worker_time: stats.worker_time.seconds(),
            stall_time: stats.stall_time.seconds(),
            cache: evidence.state(),
            evidence,
        };
        Ok((repeat, stats))
    }

    /// The rate of the same pipeline with nothing to read and nothing to do.
    fn floor(&self, threads: u64) -> Result<f64, Error> {
        let n = FLOOR_SAMPLES.max(self.plan.batch);
        let source = Source::null(Null::new(n, 112_000), n);
        let pipeline = Dataset::new(source)
            .shuffle(self.plan.seed)
            .map(ReadOnly)
            .threads(Threads::Fixed(threads as usize))
            .readers(self.plan.readers)
            .ignore_errors()
            .batch(self.plan.batch)
            .prefetch(self.plan.prefetch);
        let start = Instant::now();
        for batch in pipeline.iter()? {
            batch?;
        }
        Ok(n as f64 / start.elapsed().as_secs_f64())
    }

    fn cell(&self, threads: ThreadCount, measured: Vec<(IngestRepeat, Stats)>) -> Result<Option<IngestCell>, Error> {
        let Some((_, last)) = measured.last() else { return Ok(None) };
        let stats = last.clone();
        let samples: Vec<IngestRepeat> = measured.into_iter().map(|(repeat, _)| repeat).collect();
        if samples.iter().all(|repeat| repeat.images == 0) {
            let first = stats.failures.first();
            return Err(Error::AllFailed {
                n_failed: stats.n_failed,
                name: first.map(|f| f.name.clone()).unwrap_or_default(),
                reason: first.map(|f| f.reason()).unwrap_or_default(),
            });
        }
        let n_threads = match threads {
            ThreadCount::Fixed(n) => n as u64,
            ThreadCount::Auto => stats.tuning.as_ref().map_or(1, |tuning| tuning.threads as u64),
        };
        let summary = |value: fn(&IngestRepeat) -> f64| {
            let values: Vec<f64> = samples.iter().map(value).collect();
            Summary::of(&values).expect("at least one repeat, and no rate of it is NaN: its wall time is not zero")
        };
        let rate = summary(IngestRepeat::images_per_s);
        let typical = nearest(&samples, rate.median);
        Ok(Some(IngestCell {
            threads: n_threads,
            threads_auto: threads == ThreadCount::Auto,
            readers: self.plan.readers as u64,
            batch: self.plan.batch as u64,
            prefetch: self.plan.prefetch as u64,
            read_only: self.plan.read_only,
            storage: self.storage_description.clone(),
            tier: self.plan.tier.as_ref().map(|profile| profile.name.clone()),
            cache: cache_of(&samples),
            images_per_s: rate.median,
            mb_per_s: summary(IngestRepeat::mb_per_s).median,
            spread: rate.relative_spread(),
            cpu_s_per_1000: summary(|repeat| repeat.cpu_s / repeat.images as f64 * 1000.0).median,
            failed_samples: samples.iter().map(|repeat| repeat.failed).max().unwrap_or(0),
            failures: failures_of(&stats),
            worker_time: typical.worker_time.clone(),
            wait_s: typical.wait_s,
            wall_s: typical.wall_s,
            floor_images_per_s: Some(self.floor(n_threads)?),
            ceiling_mb_per_s: self.plan.tier.as_ref().map(|profile| profile.read_bytes_per_s as f64 / 1e6),
            samples,
        }))
    }
}

fn chosen_mode(source: &Source, notes: &mut Vec<String>) -> Result<Mode, Error> {
    let files = source.files();
    let step = files.len().div_ceil(CHOICE_FILES).max(1);
    let sample: Vec<_> = files.iter().step_by(step).filter(|path| path.exists()).cloned().collect();
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

fn nearest(samples: &[IngestRepeat], rate: f64) -> &IngestRepeat {
    let distance = |repeat: &&IngestRepeat| (repeat.images_per_s() - rate).abs();
    samples.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("a cell has at least one repeat")
}

fn cache_of(samples: &[IngestRepeat]) -> CacheState {
    let first = samples[0].cache;
    if samples.iter().all(|repeat| repeat.cache == first) { first } else { CacheState::Mixed }
}

fn failures_of(stats: &Stats) -> Vec<Failure> {
    stats.failures.iter().map(|failed| Failure { name: failed.name.clone(), reason: failed.reason() }).collect()
}
