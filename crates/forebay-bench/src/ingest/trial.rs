//! A plan ready to measure: its pipeline, one repeat, and its floor.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use forebay_format::image::ImageSpec;
use forebay_measure::cold::{self, Before};
use forebay_measure::usage::{cores, cpu_seconds};
use forebay_measure::{Done, Event, Observer, ThreadCount};
use forebay_pipeline::{Batched, Dataset, Mapped, ReadOnly, Source, Stats, Threads, Tuning};
use forebay_record::{CacheEvidence, IngestRepeat};
use forebay_storage::{Device, Null, Requests, Storage};
use forebay_units::count;

use super::plan::Plan;
use super::run::{Error, GPU};
use crate::decoder::{DecodeOn, Decoder, Output, Question};
use crate::supply;

/// Enough for a stable rate within a few milliseconds.
const FLOOR_SAMPLES: usize = 50_000;
const TUNING_EPOCHS: u64 = 100;

#[derive(Clone, Copy)]
enum Length {
    /// As many samples as a repeat has.
    Repeat,
    /// Long enough for the tuner to settle, but finite, because all samples may be unusable.
    Tuning,
}

/// One thread count of the sweep.
pub(super) struct Level<'a> {
    trial: &'a Trial<'a>,
    pub(super) threads: usize,
    /// The tuner found the count.
    pub(super) auto: bool,
    /// What the tuner tried, if it found the count.
    pub(super) tuning: Option<Tuning>,
}

pub(super) struct Trial<'a> {
    pub(super) plan: &'a Plan,
    /// Reads through the storage under test.
    source: Source,
    storage: Arc<dyn Storage>,
    pub(super) storage_description: String,
    decoder: Decoder,
}

pub(super) struct Repeated {
    pub(super) repeat: IngestRepeat,
    pub(super) evidence: CacheEvidence,
    pub(super) stats: Stats,
}

impl<'a> Trial<'a> {
    pub(super) fn new(plan: &'a Plan, source: Source, notes: &mut Vec<String>) -> Result<Self, Error> {
        let device = plan.tier.clone().map(Device::of);
        let storage = supply::storage(plan.settings.reading(), device.as_ref(), &source, notes)?;
        Self::over(plan, source, storage)
    }

    pub(super) fn over(plan: &'a Plan, source: Source, storage: Arc<dyn Storage>) -> Result<Self, Error> {
        match source.pixels() {
            None if plan.settings.mmap => return Err(Error::NotMappable { path: plan.data.clone() }),
            Some(_) if plan.settings.scaled => return Err(Error::NotEncoded { path: plan.data.clone() }),
            _ => {}
        }
        // A map bypasses the storage's read mode.
        let described = || supply::describe_storage(storage.as_ref(), &source);
        let storage_description = if plan.settings.mmap { "local, mapped".to_owned() } else { described() };
        let source = source.with_storage(Arc::clone(&storage));
        Ok(Self { plan, source, storage, storage_description, decoder: Decoder::Cpu })
    }

    /// Opens the GPU that was asked for; with `auto`, notes what was chosen and why.
    pub(super) fn choose_decoder(&mut self, observer: Observer<'_>, notes: &mut Vec<String>) -> Result<(), Error> {
        let (settings, gpus) = (&self.plan.settings, &self.plan.gpus);
        self.decoder = match settings.decode {
            DecodeOn::Cpu => Decoder::Cpu,
            DecodeOn::Gpu => Decoder::on_gpu(gpus, GPU, &self.source, settings.output())?,
            DecodeOn::Auto => {
                observer.tell(Event::phase("finding the faster decoder"));
                let question = Question {
                    source: &self.source,
                    order: settings.order(),
                    output: settings.output(),
                    takes_per_s: None,
                    shares_gpu: false,
                    cancel: observer.cancel,
                };
                let (decoder, why) = Decoder::faster(gpus, GPU, &question);
                notes.push(why);
                decoder
            }
        };
        Ok(())
    }

    /// Where images are decoded, if that was a question.
    pub(super) fn decoded_where(&self) -> Option<String> {
        let is_asked = self.plan.settings.decode != DecodeOn::Cpu;
        is_asked.then(|| self.decoder.name().unwrap_or_else(|| "cpu".to_owned()))
    }

    /// Requests sent so far, if the data is on an object store.
    pub(super) fn requests(&self) -> Option<Requests> {
        self.storage.requests().filter(|_| self.is_remote())
    }

    pub(super) fn is_remote(&self) -> bool {
        supply::is_remote(&self.source)
    }

    pub(super) fn images_per_repeat(&self) -> u64 {
        self.plan.settings.images_per_repeat(self.source.n_samples() as u64)
    }

    fn pipeline(&self, threads: Threads, length: Length) -> Batched {
        let settings = &self.plan.settings;
        let n_samples = self.source.n_samples() as u64;
        let wanted = self.images_per_repeat();
        let dataset = settings.order().of(Dataset::new(self.source.clone()));
        let dataset = match length {
            Length::Repeat => dataset.repeat(wanted.div_ceil(n_samples.max(1)).max(1)).take(wanted),
            Length::Tuning => dataset.repeat(TUNING_EPOCHS),
        };
        let mut mapped = self.mapped(dataset).threads(threads);
        if settings.first_come {
            mapped = mapped.first_come();
        }
        if settings.mmap {
            mapped = mapped.map_shards();
        }
        let mapped = settings.order().read(mapped);
        mapped.readers(settings.readers).ignore_errors().batch(settings.batch).prefetch(settings.prefetch)
    }

    fn mapped(&self, dataset: Dataset) -> Mapped {
        match self.output() {
            None => dataset.map(ReadOnly),
            Some(spec) => {
                self.decoder.decoded(dataset, &self.source, Output { spec, change: self.plan.settings.change() })
            }
        }
    }

    /// `None` if samples are only read.
    pub(super) fn output(&self) -> Option<ImageSpec> {
        let (settings, spec) = (&self.plan.settings, self.plan.settings.image());
        match self.source.pixels() {
            _ if settings.read_only => None,
            Some(shape) if settings.size.is_none() => {
                Some(ImageSpec { width: shape.width, height: shape.height, ..spec })
            }
            _ => Some(spec),
        }
    }

    /// A thread count as given, or found by the tuner before any measurement.
    pub(super) fn level(&self, threads: ThreadCount, cancel: &AtomicBool) -> Result<Level<'_>, Error> {
        let level = |threads, auto, tuning| Level { trial: self, threads, auto, tuning };
        if let ThreadCount::Fixed(threads) = threads {
            return Ok(level(threads, false, None));
        }
        if self.plan.settings.readers > 0 {
            // Behind separate readers, decoding needs one thread per core.
            return Ok(level(cores(), true, None));
        }
        cold::prepare(self.source.files(), self.plan.settings.cold)?;
        // After one pass cold data is warm, so a cold tuner has one pass to settle.
        let length = if self.plan.settings.cold { Length::Repeat } else { Length::Tuning };
        let (threads, tuning) = supply::tune(&self.pipeline(Threads::Auto, length), cancel)?;
        Ok(level(threads, true, tuning))
    }

    /// Images per second of the same pipeline without reads or decoding.
    pub(super) fn floor(&self, threads: usize) -> Result<f64, Error> {
        let settings = &self.plan.settings;
        let n = FLOOR_SAMPLES.max(settings.batch);
        let source = Source::null(Null::new(n, 112_000), n);
        let pipeline = Dataset::new(source)
            .shuffle(settings.seed)
            .map(ReadOnly)
            .threads(Threads::Fixed(threads))
            .readers(settings.readers)
            .ignore_errors()
            .batch(settings.batch)
            .prefetch(settings.prefetch);
        let start = Instant::now();
        for batch in pipeline.iter()? {
            batch?;
        }
        Ok(n as f64 / start.elapsed().as_secs_f64())
    }
}

impl forebay_measure::Trial for Level<'_> {
    type Repeat = Repeated;
    type Error = Error;

    fn name(&self) -> String {
        count(self.threads as u64, "thread")
    }

    fn rate(repeated: &Repeated) -> Option<(f64, f64)> {
        let repeat = &repeated.repeat;
        (repeat.images > 0).then(|| (repeat.wall_s, repeat.images_per_s()))
    }

    fn files(&self) -> (Cow<'_, [PathBuf]>, bool) {
        (Cow::Borrowed(self.trial.source.files()), self.trial.plan.settings.cold)
    }

    fn repeat(&mut self, _: u64, before: &Before, observer: Observer<'_>) -> Result<Done<Self::Repeat>, Error> {
        let pipeline = self.trial.pipeline(Threads::Fixed(self.threads), Length::Repeat);
        let decoder = &self.trial.decoder;
        let decoded_before = decoder.totals();
        let (cpu, start) = (cpu_seconds(), Instant::now());
        let mut batches = pipeline.iter()?;
        let mut told = 0;
        while let Some(batch) = batches.next_unless(observer.cancel) {
            let (images, so_far) = (batch?.len() as u64, batches.bytes_read());
            observer.tell(Event::Moved { images, bytes: so_far - told });
            told = so_far;
            if observer.is_cancelled() {
                break;
            }
        }
        // Read the ledgers before the clock: no worker may account for more than the wall clock.
        let stats = batches.stats();
        let (wall_s, cpu_s) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let evidence = cold::conclude(before, stats.bytes_read);
        let repeat = IngestRepeat {
            images: stats.n_samples,
            failed: stats.n_failed,
            bytes: stats.bytes_read,
            requests: Some(stats.n_requests),
            wall_s,
            cpu_s,
            wait_s: stats.wait_ns as f64 / 1e9,
            first_batch_s: stats.first_batch_ns.map(|ns| ns as f64 / 1e9),
            worker_time: stats.worker_time.seconds(),
            stall_time: stats.stall_time.seconds(),
            decoded_on_gpu: decoder.since(decoded_before),
        };
        Ok(Done::Whole(Repeated { repeat, evidence, stats }))
    }
}
