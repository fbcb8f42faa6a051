//! A plan ready to run: its baseline, and one run of it.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_measure::cold::{self, Before};
use forebay_measure::laps::{Laps, Part};
use forebay_measure::reads::Watcher;
use forebay_measure::stall::{Charges, Split, Work};
use forebay_measure::usage::{cores, cpu_seconds};
use forebay_measure::{Cache, Done, Event, Observer};
use forebay_pipeline::{State, Stats, Threads};
use forebay_record::{
    Baseline, CacheEvidence, Failure, Reads, TrainCheckpoints, TrainRank, TrainStep, TrainTotals, Validation,
};
use forebay_train::PageLock;
use forebay_units::{Clock, chain, count};

use super::consumer::{Consumer, Kind};
use super::data::TrainingData;
use super::drive::{Driven, Judged, Orders, Reached, StepHooks, drive};
use super::feeder::{Feeder, MadeBatch};
use super::plan::Plan;
use super::run::Error;
use super::saving::{self, Saver, Start};
use super::settings::TrainSettings;
use super::shared::{self, Report, Site};
use super::totals::{self, Around};
use crate::decoder::Decoder;
use crate::supply;

/// Initial steps of the baseline, which plan, allocate and warm up.
const WARM_UP: u64 = 2;

pub(super) struct Trial<'a> {
    pub(super) plan: &'a Plan,
    /// `None` for synthetic batches.
    pub(super) data: Option<TrainingData>,
    /// Separate validation data.
    pub(super) judges: Option<TrainingData>,
    pub(super) kind: Kind,
    pub(super) n_steps: u64,
    pub(super) steps_per_epoch: u64,
    /// 0 for synthetic batches.
    pub(super) threads: usize,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) site: Site<'a>,
}

pub(super) struct Trained {
    pub(super) driven: Driven,
    pub(super) totals: TrainTotals,
    /// `None` if nothing was read.
    pub(super) evidence: Option<CacheEvidence>,
    pub(super) work: Work,
    pub(super) stats: Option<Stats>,
    /// One entry per finished epoch; `None` if its validation failed.
    pub(super) validations: Vec<Option<Validation>>,
    pub(super) reads: Option<Reads>,
    pub(super) checkpoints: Option<TrainCheckpoints>,
    /// Steps of the run that this one resumes.
    pub(super) first: u64,
    pub(super) device: String,
    pub(super) notes: Vec<String>,
    /// Steps for the record; of several ranks the mean over them.
    pub(super) steps: Vec<TrainStep>,
    pub(super) failures: Vec<Failure>,
    /// Empty for one process, and on other ranks than the first.
    pub(super) ranks: Vec<TrainRank>,
}

pub(super) struct Machine {
    consumer: Box<dyn Consumer>,
    is_used: bool,
}

impl Machine {
    /// Resets the consumer to its initial state if it has been used.
    fn fresh(&mut self) -> Result<&mut dyn Consumer, Error> {
        if std::mem::replace(&mut self.is_used, true) {
            self.consumer.reset()?;
        }
        Ok(self.consumer.as_mut())
    }
}

pub(super) struct Runs<'a> {
    pub(super) trial: &'a Trial<'a>,
    pub(super) machine: Machine,
    /// Checkpoint to resume from, until it is used.
    pub(super) found: Option<Start>,
    /// Of the next run.
    pub(super) start: Start,
    /// Why the last run ended early.
    pub(super) failure: Option<Error>,
}

impl forebay_measure::Trial for Runs<'_> {
    type Repeat = Trained;
    type Error = Error;

    fn name(&self) -> String {
        "training".to_owned()
    }

    fn rate(trained: &Trained) -> Option<(f64, f64)> {
        let totals = &trained.totals;
        let rate = totals.steady_images_per_s().unwrap_or_else(|| totals.images_per_s());
        (totals.images > 0).then_some((totals.wall_s, rate))
    }

    fn files(&self) -> (Cow<'_, [PathBuf]>, bool) {
        let files = self.trial.data.as_ref().map(|data| data.source.files()).unwrap_or_default();
        (Cow::Borrowed(files), self.trial.plan.settings.cache() == Cache::Cold)
    }

    /// False for a single run, which may take days and whose checkpoints are meant to stay.
    fn may_run_again(&self) -> bool {
        self.trial.plan.warmups + self.trial.plan.repeats > 1
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.start = saving::for_round(self.trial, &mut self.found)?;
        let consumer = self.machine.fresh()?;
        let loaded = self.start.load(consumer);
        let Some(site) = self.trial.site.several() else { return loaded };
        site.together(loaded)?;
        if self.start.step > 0 { site.share_state(self.start.step, consumer) } else { Ok(()) }
    }

    fn repeat(&mut self, round: u64, before: &Before, observer: Observer<'_>) -> Result<Done<Trained>, Error> {
        let start = std::mem::take(&mut self.start);
        let mut trained = self.trial.run(self.machine.consumer.as_mut(), (round, start), before, observer)?;
        self.failure = trained.driven.failure.take();
        let said = |error: &Error| format!("ended after {}: {}", count(trained.totals.n_steps, "step"), chain(error));
        trained.notes.extend(self.failure.as_ref().map(said));
        if self.failure.is_none() && !observer.is_cancelled() {
            return Ok(Done::Whole(trained));
        }
        // One of several runs is not comparable if it was cut short; a single run is kept.
        let is_kept = self.trial.plan.repeats == 1 && !trained.driven.steps.is_empty();
        Ok(Done::Cut(is_kept.then_some(trained)))
    }
}

struct Opened {
    feeder: Feeder,
    watcher: Option<Watcher>,
    lock: Result<Option<PageLock>, Error>,
    laps: Laps,
    /// CPU time at the start of the pipeline.
    cpu_s: f64,
}

impl Trial<'_> {
    pub(super) fn sent_ahead(&self) -> usize {
        self.plan.settings.sent_ahead(self.kind.has_memory())
    }

    fn places(&self) -> usize {
        1 + self.sent_ahead()
    }

    fn in_memory(&self, n_steps: u64) -> Feeder {
        // An emulated accelerator does not read pixels.
        let image_len = if self.kind.emulation().is_some() { 0 } else { self.kind.image().len() };
        let TrainSettings { batch, seed, .. } = self.plan.settings;
        let classes = self.kind.classes().unwrap_or(1) as usize;
        Feeder::Memory { batch: Arc::new(MadeBatch::new(batch, image_len, classes, seed)), left: n_steps }
    }

    fn orders<'a>(&self, first: u64, n_steps: u64, observer: Observer<'a>) -> Orders<'a> {
        Orders {
            first,
            n_steps,
            device_prefetch: self.sent_ahead(),
            no_prefetch: self.plan.settings.made_ahead() == 0 && self.sent_ahead() == 0,
            charges: Charges::new(self.threads.max(1), cores()),
            observer,
            site: None,
        }
    }

    /// Runs on a synthetic batch before any data is touched. An emulated accelerator needs no baseline: its steps do
    /// not depend on waits.
    pub(super) fn baseline(&self, machine: &mut Machine, observer: Observer<'_>) -> Result<Option<Baseline>, Error> {
        let wanted = self.plan.settings.baseline_steps();
        if wanted == 0 || self.data.is_none() || self.kind.emulation().is_some() {
            return Ok(None);
        }
        let n_steps = wanted + WARM_UP;
        observer.tell(Event::phase("baseline on a batch in memory"));
        observer.tell(Event::Steps { epoch: None, first: 0, n_steps });
        let (consumer, mut feeder) = (machine.fresh()?, self.in_memory(n_steps));
        let _lock = consumer.lock_pages(feeder.memory()).ok().flatten();
        let laps = Laps::start(Arc::clone(&self.clock));
        let orders = self.orders(0, n_steps, observer);
        let driven = drive(consumer, &mut feeder, laps, orders, &mut ())?;
        let counted = driven.steps.get(WARM_UP as usize..).unwrap_or_default();
        let baseline = |step_s| Baseline { n_steps: counted.len() as u64, step_s, is_mean: false };
        Ok(totals::step_s(counted).map(baseline))
    }

    /// Built once for all runs.
    pub(super) fn build(&self, observer: Observer<'_>) -> Result<Machine, Error> {
        observer.tell(Event::phase(format!("building {}", self.kind.name())));
        let TrainSettings { batch, seed, .. } = self.plan.settings;
        let portion = self.site.several().map(|site| site.ranks.rank());
        Ok(Machine { consumer: self.kind.build(batch, self.places(), seed, portion)?, is_used: false })
    }

    fn run(
        &self,
        consumer: &mut dyn Consumer,
        (round, mut start): (u64, Start),
        before: &Before,
        observer: Observer<'_>,
    ) -> Result<Trained, Error> {
        let (first, position) = (start.step, start.positions.get(self.site.ranks.rank() as usize).copied());
        let decoder = self.data.as_ref().map(TrainingData::decoder);
        let decoded_before = decoder.and_then(Decoder::totals);
        // No rank reads while another evicts.
        self.site.several().map_or(Ok(()), |site| site.together(Ok(())))?;
        let Opened { mut feeder, watcher, lock, laps, cpu_s: cpu } = self.open(consumer, first, position, || {
            observer.tell(Event::Steps { epoch: None, first, n_steps: self.n_steps });
        })?;
        if let Some(saver) = &mut start.saver {
            saver.begin(laps.started_ns(), round)?;
        }
        let note = lock.as_ref().err().map(|error| format!("batches were copied twice on the host: {error}"));
        let cancel = observer.cancel;
        let mut hooks =
            ValidateAndSave { trial: self, saver: start.saver, cancel, validations: Vec::new(), faults: Vec::new() };
        let orders = Orders { site: self.site.several(), ..self.orders(first, self.n_steps - first, observer) };
        let driven = drive(consumer, &mut feeder, laps, orders, &mut hooks);
        let ValidateAndSave { saver, validations, faults, .. } = hooks;
        let (mut driven, saver) = match driven {
            Ok(driven) => (driven, saver),
            Err(error) => return Err(abandoned(saver, error, observer)),
        };
        let (stats, cpu_s) = (feeder.stats(), cpu_seconds() - cpu);
        let reads = watcher.map(Watcher::finish);
        if let (Some(stats), true) = (&stats, driven.steps.is_empty() && !observer.is_cancelled()) {
            let error =
                all_failed(stats, self.data.as_ref().map_or(0, TrainingData::n_learnt), self.plan.settings.batch);
            return Err(abandoned(saver, error, observer));
        }
        if !observer.is_cancelled() {
            let ran_out = stats.as_ref().and_then(|stats| ran_out(stats, &driven, self.n_steps - first));
            driven.failure = driven.failure.or(ran_out);
        }
        // Objects pass no page cache of this machine: they are neither cold nor warm.
        let is_local = !self.data.as_ref().is_some_and(TrainingData::is_remote);
        let evidence = stats.as_ref().filter(|_| is_local).map(|stats| cold::conclude(before, stats.bytes_read));
        let (evidence, doubt) = of_data_alone(evidence, saver.as_ref());
        drop(feeder);
        let is_cut = driven.failure.is_some() || observer.is_cancelled();
        let saved = saver.map(|saver| saver.finish(is_cut, observer));
        let (checkpoints, saving_notes) = match saved {
            Some(saved) => {
                driven.failure = driven.failure.or(saved.error);
                (Some(saved.checkpoints), saved.notes)
            }
            None => (None, Vec::new()),
        };
        let decoded_on_gpu = decoder.and_then(|decoder| decoder.since(decoded_before));
        let around = Around { stats, cpu_s, steps_per_epoch: self.steps_per_epoch, first, decoded_on_gpu };
        let (driven, work) = charged(driven, around.stats.as_ref());
        let totals = totals::totals(&driven, &around);
        let notes = note.into_iter().chain(doubt).chain(faults.into_iter().next()).chain(saving_notes).collect();
        let (device, stats) = (consumer.device(), around.stats);
        let steps = totals::steps(&driven.steps);
        let failures = stats.as_ref().map(supply::failures).unwrap_or_default();
        let trained = Trained {
            driven,
            totals,
            evidence,
            work,
            stats,
            validations,
            reads,
            checkpoints,
            first,
            device,
            notes,
            steps,
            failures,
            ranks: Vec::new(),
        };
        match self.site.several() {
            Some(site) => self.of_all_ranks(&site, consumer, trained),
            None => Ok(trained),
        }
    }

    /// On the first rank, the results of all of them.
    fn of_all_ranks(&self, site: &Site<'_>, consumer: &dyn Consumer, mine: Trained) -> Result<Trained, Error> {
        site.check_equal(consumer)?;
        let rank = TrainRank {
            rank: site.ranks.rank(),
            host: site.ranks.host(),
            device: mine.device.clone(),
            threads: self.threads as u64,
            totals: mine.totals.clone(),
        };
        let stalled_s = mine.stats.as_ref().map_or(0.0, |stats| Work::of(&stats.stall_time).busy_s());
        let busy = (mine.work.busy_s(), stalled_s);
        let report: Report = (rank, mine.steps.clone(), mine.evidence.clone(), mine.failures.clone(), busy);
        let Some(reports) = site.reports(&report)? else { return Ok(mine) };
        let in_one_process = self.plan.settings.ranks > 1;
        let (totals, steps) = shared::combined(&reports, (mine.first, self.steps_per_epoch), in_one_process);
        let evidence = shared::evidence_of(&reports, in_one_process);
        let failures = reports.iter().flat_map(|report| report.3.clone()).collect();
        let ranks = reports.into_iter().map(|report| report.0).collect();
        // The bytes over time are of one rank alone.
        Ok(Trained { totals, steps, evidence, failures, ranks, reads: None, ..mine })
    }

    /// A synthetic batch is made before the stopwatch starts; a pipeline starts on it.
    fn open(
        &self,
        consumer: &dyn Consumer,
        first: u64,
        position: Option<u64>,
        tell: impl FnOnce(),
    ) -> Result<Opened, Error> {
        let Some(data) = &self.data else {
            let feeder = self.in_memory(self.n_steps - first);
            let lock = consumer.lock_pages(feeder.memory());
            tell();
            let laps = Laps::start(Arc::clone(&self.clock));
            return Ok(Opened { feeder, watcher: None, lock, laps, cpu_s: cpu_seconds() });
        };
        tell();
        let (mut laps, cpu_s) = (Laps::start(Arc::clone(&self.clock)), cpu_seconds());
        // Batches return when they have left the host, so one more is needed than can be in transfer.
        let pipeline = data
            .training(Threads::Fixed(self.threads), self.n_steps)
            .at_most(self.n_steps - first)
            .prefetch(self.plan.settings.made_ahead())
            .hold(self.places() + 1);
        // The length of the run changes the pipeline but not its order, which was compared when the state was read.
        let (version, fingerprint) = (State::VERSION, pipeline.fingerprint());
        let state = State { version, fingerprint, position: position.unwrap_or(0) };
        let feeder = Feeder::Pipeline(Box::new(pipeline.iter_from(&state)?));
        let watcher = feeder.meter().map(|meter| Watcher::start(move || meter.bytes_read())).transpose();
        let watcher = watcher.map_err(forebay_measure::Error::Thread)?;
        laps.lap(Part::Wait);
        // The workers are already busy; the time to lock the pages of their ring is not a wait for them.
        let lock = consumer.lock_pages(feeder.memory());
        laps.lap(Part::Other);
        Ok(Opened { feeder, watcher, lock, laps, cpu_s })
    }
}

/// Ends a run that failed before its first step; also reports background failures.
fn abandoned(saver: Option<Saver>, error: Error, observer: Observer<'_>) -> Error {
    let told = saver.map(Saver::abandon).unwrap_or_default();
    told.into_iter().for_each(|text| observer.tell(Event::Remark { text }));
    error
}

/// Subtracts the bytes that the checkpoints' tiers read; with a note if the two cannot be told apart.
fn of_data_alone(evidence: Option<CacheEvidence>, saver: Option<&Saver>) -> (Option<CacheEvidence>, Option<String>) {
    let (Some(all), Some(saver)) = (evidence.clone(), saver) else { return (evidence, None) };
    let was_known = all.block_bytes.is_some();
    let alone = cold::without(all, saver.read_from_devices());
    let doubt = (was_known && alone.block_bytes.is_none()).then(|| {
        "the share of the data that came from memory is unknown: checkpoints were also read meanwhile, and the kernel counts \
         all reads of this process together"
            .to_owned()
    });
    (Some(alone), doubt)
}

struct ValidateAndSave<'a> {
    trial: &'a Trial<'a>,
    saver: Option<Saver>,
    cancel: &'a AtomicBool,
    validations: Vec<Option<Validation>>,
    faults: Vec<String>,
}

impl StepHooks for ValidateAndSave<'_> {
    fn judge(&mut self, step: u64, consumer: &mut dyn Consumer) -> Result<Judged, Error> {
        let Some(examined) = self.trial.validate(step, consumer, self.cancel)? else { return Ok(Judged::Not) };
        self.faults.extend(examined.fault);
        self.validations.push(examined.validation);
        let epoch = step / self.trial.steps_per_epoch;
        Ok(Judged::Validated(examined.validation.map(|validation| Event::Validated { epoch, validation })))
    }

    fn save(&mut self, at: Reached, consumer: &dyn Consumer) -> Result<Option<Vec<Event>>, Error> {
        let plan = &self.trial.plan;
        let is_due = plan.saves.is_some() && (at.is_stopping || at.step.is_multiple_of(plan.settings.every()));
        let Some(site) = self.trial.site.several().filter(|_| is_due) else {
            return self.saver.as_mut().map_or(Ok(None), |saver| saver.save(at, consumer, self.cancel));
        };
        let positions = at.position.map(|position| site.numbers(position)).transpose()?.unwrap_or_default();
        let Some(saver) = &mut self.saver else {
            return site.together(Ok(Some(Vec::new())));
        };
        saver.positions = positions;
        let saved = saver.save(at, consumer, self.cancel);
        site.together(saved).map(|events| Some(events.unwrap_or_default()))
    }

    fn fail(&mut self, reached: u64, is_over: bool, consumer: &mut dyn Consumer) -> Result<Option<u64>, Error> {
        self.saver.as_mut().map_or(Ok(None), |saver| saver.fail(reached, is_over, consumer))
    }
}

/// With the scheduler's counters, only blocked time is charged to the storage.
fn charged(driven: Driven, stats: Option<&Stats>) -> (Driven, Work) {
    let Some(stats) = stats else { return (driven, Work::default()) };
    let work = Work::of(&stats.worker_time);
    let Some(scheduled) = stats.scheduled else { return (driven, work) };
    let blocked = work.split(scheduled).blocked;
    let charges = driven.charges.with_split(Split { blocked, queued: 0.0 });
    (Driven { charges, ..driven }, work.with_blocked(blocked))
}

/// The error if replacements of failed samples did not suffice for all steps.
fn ran_out(stats: &Stats, driven: &Driven, n_steps: u64) -> Option<Error> {
    let n_left = n_steps.saturating_sub(driven.steps.len() as u64);
    let first = stats.failures.first();
    (n_left > 0).then(|| Error::RanOut {
        n_left,
        n_failed: stats.n_failed,
        name: first.map(|failed| failed.name.clone()).unwrap_or_default(),
        reason: first.map(|failed| failed.reason()).unwrap_or_default(),
    })
}

/// The error if no pass over the data gave a batch.
fn all_failed(stats: &Stats, n_samples: u64, batch: usize) -> Error {
    let first = stats.failures.first();
    Error::AllFailed {
        n_samples,
        batch,
        n_failed: stats.n_failed,
        name: first.map(|failed| failed.name.clone()).unwrap_or_default(),
        reason: first.map(|failed| failed.reason()).unwrap_or_default(),
    }
}
