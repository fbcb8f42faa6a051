//! A plan made ready: its baseline, and one run of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_pipeline::{Stats, Threads};
use forebay_record::{Baseline, Reads, TrainTotals, Validation};
use forebay_train::PageLock;
use forebay_units::Clock;

use super::drive::{Driven, Orders, drive};
use super::feeder::{Feeder, MadeBatch};
use super::laps::Laps;
use super::plan::{Plan, Validate};
use super::reads::Watcher;
use super::run::{Error, Event};
use super::stall::{Charges, Work};
use super::stock::Stock;
use super::taker::{Kind, Taker};
use super::totals::{self, Around};
use crate::ingest::Cache;
use crate::usage::cpu_seconds;
use crate::{cold, supply};

/// Steps of the baseline that are not counted: the first ones plan, allocate and warm up.
const WARM_UP: u64 = 2;

/// A plan made ready to be run.
pub(super) struct Trial<'a> {
    pub(super) plan: &'a Plan,
    /// What is learnt from; `None` for batches in memory.
    pub(super) stock: Option<Stock>,
    /// Other data that is judged.
    pub(super) judges: Option<Stock>,
    pub(super) kind: Kind,
    pub(super) n_steps: u64,
    pub(super) steps_per_epoch: u64,
    /// Threads that make samples; 0 for batches in memory.
    pub(super) threads: usize,
    pub(super) clock: Arc<dyn Clock>,
}

/// One run.
pub(super) struct Trained {
    pub(super) driven: Driven,
    pub(super) totals: TrainTotals,
    pub(super) work: Work,
    pub(super) stats: Option<Stats>,
    pub(super) validations: Vec<Validation>,
    pub(super) reads: Option<Reads>,
    pub(super) device: String,
    /// What a reader must know.
    pub(super) note: Option<String>,
}

/// Batches about to come.
struct Opened {
    feeder: Feeder,
    lock: Result<Option<PageLock>, Error>,
    laps: Laps,
    /// Processor time when they started.
    cpu_s: f64,
}

impl Trial<'_> {
    fn places(&self) -> usize {
        1 + self.plan.device_prefetch
    }

    fn in_memory(&self, n_steps: u64) -> Feeder {
        let (batch, image) = (self.plan.batch, self.kind.image());
        let classes = self.kind.classes().unwrap_or(1) as usize;
        Feeder::Memory { batch: Arc::new(MadeBatch::new(batch, image.len(), classes, self.plan.seed)), left: n_steps }
    }

    fn orders<'a>(&self, n_steps: u64, cancel: &'a AtomicBool) -> Orders<'a> {
        Orders {
            n_steps,
            device_prefetch: self.plan.device_prefetch,
            no_prefetch: self.plan.prefetch == 0 && self.plan.device_prefetch == 0,
            charges: Charges::new(self.threads.max(1), supply::cores()),
            cancel,
        }
    }

    /// The accelerator on a batch in memory, before any data is touched.
    pub(super) fn baseline(
        &self,
        observe: &mut dyn FnMut(Event),
        cancel: &AtomicBool,
    ) -> Result<Option<Baseline>, Error> {
        let wanted = self.plan.baseline;
        if wanted == 0 || self.stock.is_none() {
            return Ok(None);
        }
        observe(Event::Preparing { what: format!("{wanted} steps on a batch in memory") });
        let n_steps = wanted + WARM_UP;
        let (mut taker, mut feeder) = (self.build()?, self.in_memory(n_steps));
        let _lock = taker.lock_pages(feeder.memory()).ok().flatten();
        let laps = Laps::start(Arc::clone(&self.clock));
        let orders = self.orders(n_steps, cancel);
        let driven = drive(taker.as_mut(), &mut feeder, laps, orders, &mut |_| {}, &mut |_, _| Ok(None))?;
        let counted = driven.steps.get(WARM_UP as usize..).unwrap_or_default();
        Ok(totals::step_s(counted).map(|step_s| Baseline { n_steps: counted.len() as u64, step_s }))
    }

    fn build(&self) -> Result<Box<dyn Taker>, Error> {
        self.kind.build(self.plan.batch, self.places(), self.plan.seed)
    }

    /// One run from fresh weights.
    pub(super) fn repeat(
        &self,
        what: &str,
        threads: Threads,
        observe: &mut dyn FnMut(Event),
        cancel: &AtomicBool,
    ) -> Result<Trained, Error> {
        observe(Event::Preparing { what: format!("{what}: building {}", self.kind.name()) });
        let mut taker = self.build()?;
        let files = self.stock.as_ref().map(|stock| stock.source.files()).unwrap_or_default();
        let before = cold::prepare(files, self.plan.cache == Cache::Cold)?;
        let Opened { mut feeder, lock, laps, cpu_s: cpu } = self.open(taker.as_ref(), threads, || {
            observe(Event::Started { what: what.to_owned(), n_steps: self.n_steps })
        })?;
        let note = lock.as_ref().err().map(|error| format!("batches were copied once more on the host: {error}"));
        let watcher = feeder.meter().map(Watcher::start).transpose()?;
        let mut validations = Vec::new();
        let orders = self.orders(self.n_steps, cancel);
        let driven = drive(taker.as_mut(), &mut feeder, laps, orders, observe, &mut |step, taker| {
            let Some(validation) = self.validate(step, taker, cancel)? else { return Ok(None) };
            validations.push(validation);
            Ok(Some(Event::Validated { epoch: validations.len() as u64, validation }))
        })?;
        // The ledgers are read before the clock, so that no worker accounts for more than the wall clock.
        let (stats, cpu_s) = (feeder.stats(), cpu_seconds() - cpu);
        let reads = watcher.map(Watcher::finish);
        if let (Some(stats), true) = (&stats, driven.steps.is_empty() && !cancel.load(Ordering::Relaxed)) {
            return Err(all_failed(stats, self.stock.as_ref().map_or(0, Stock::n_learnt)));
        }
        let evidence = stats.as_ref().map(|stats| cold::conclude(&before, stats.bytes_read));
        let around = Around { stats, cpu_s, evidence, steps_per_epoch: self.steps_per_epoch };
        let totals = totals::totals(&driven, &around);
        let work = around.stats.as_ref().map(|stats| Work::of(&stats.worker_time)).unwrap_or_default();
        let device = taker.device();
        Ok(Trained { driven, totals, work, stats: around.stats, validations, reads, device, note })
    }

    /// Where batches come from, and the stopwatch: a batch in memory is made before it starts, a pipeline is started on it.
    fn open(&self, taker: &dyn Taker, threads: Threads, tell: impl FnOnce()) -> Result<Opened, Error> {
        let Some(stock) = &self.stock else {
            let feeder = self.in_memory(self.n_steps);
            let lock = taker.lock_pages(feeder.memory());
            tell();
            return Ok(Opened { feeder, lock, laps: Laps::start(Arc::clone(&self.clock)), cpu_s: cpu_seconds() });
        };
        tell();
        let (laps, cpu_s) = (Laps::start(Arc::clone(&self.clock)), cpu_seconds());
        // Lent batches come back when they have left the host: one more than can be on the way.
        let pipeline = stock.training(threads, self.n_steps).prefetch(self.plan.prefetch).hold(self.places() + 1);
        let feeder = Feeder::Pipeline(Box::new(pipeline.iter()?));
        let lock = taker.lock_pages(feeder.memory());
        Ok(Opened { feeder, lock, laps, cpu_s })
    }

    /// Judges the network at the end of an epoch.
    fn validate(&self, step: u64, taker: &mut dyn Taker, cancel: &AtomicBool) -> Result<Option<Validation>, Error> {
        let stock = match (&self.plan.validate, &self.judges) {
            (Some(Validate::Share(_)), _) => self.stock.as_ref(),
            (_, judges) => judges.as_ref(),
        };
        let Some(stock) = stock.filter(|_| step.is_multiple_of(self.steps_per_epoch)) else { return Ok(None) };
        let begin_ns = self.clock.now_ns();
        let mut batches = stock.judged(self.threads, self.plan.batch).iter()?;
        let (mut n_samples, mut n_right, mut loss) = (0_u64, 0_u64, 0.0_f64);
        while let Some(batch) = batches.next_unless(cancel) {
            let batch = batch?;
            if let Some(judgement) = taker.evaluate(&batch)? {
                n_samples += batch.len() as u64;
                n_right += judgement.n_right as u64;
                loss += f64::from(judgement.loss) * batch.len() as f64;
            }
        }
        if n_samples == 0 || cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(Some(Validation {
            n_samples,
            loss: Some((loss / n_samples as f64) as f32).filter(|loss| loss.is_finite()),
            accuracy: n_right as f64 / n_samples as f64,
            seconds: (self.clock.now_ns() - begin_ns) as f64 / 1e9,
        }))
    }
}

fn all_failed(stats: &Stats, n_samples: u64) -> Error {
    let first = stats.failures.first();
    Error::AllFailed {
        n_samples,
        name: first.map(|failed| failed.name.clone()).unwrap_or_default(),
        reason: first.map(|failed| failed.reason()).unwrap_or_default(),
    }
}
