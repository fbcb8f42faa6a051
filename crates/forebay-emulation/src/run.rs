//! Runs a workload on this rank, and combines the ranks' reports on the first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use forebay_dataset::MadeRecords;
use forebay_measure::cold::Before;
use forebay_measure::reads::Watcher;
use forebay_measure::{Event, Observer, usage};
use forebay_record::{CacheEvidence, Record, WorkloadCell, WorkloadRank};
use forebay_storage::cache;
use forebay_units::chain;
use forebay_units::{Bytes, Clock, PathText, SystemClock};

use super::accelerator_group::{Ran, RunContext, drive};
use super::access::AccessLog;
use super::batch_source::{BatchSource, Deal};
use super::cell::{self, Known};
use super::feed::{Feed, Supply};
use super::host::{Host, Watch};
use super::place::Folder;
use super::plan::Plan;
use super::prepare::{self, together};
use super::rank_report::RankReport;
use super::read::Seeds;
use super::results::{self, Setting};
use super::saving::{self, Saver};
use forebay_ranks::{Failed, Ranks};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Shared(forebay_measure::Error),
    #[error(transparent)]
    Dataset(#[from] forebay_dataset::Error),
    /// All ranks end if one fails.
    #[error(transparent)]
    Rank(#[from] Failed),
    #[error(transparent)]
    Plan(#[from] forebay_workload::Problem),
    #[error("the plan of rank {rank} differs from that of the first rank: {what}")]
    OtherPlan { rank: u64, what: String },
    #[error("{}: checkpoints need {needed}, but only {free} are free", path.escaped())]
    TooLittleSpace { path: PathBuf, needed: Bytes, free: Bytes },
    #[error("{}: found {n} of the {wanted} checkpoints to restore", path.escaped())]
    NothingSaved {
        /// Of one rank.
        path: PathBuf,
        n: u64,
        wanted: u64,
    },
    #[error("{}: found {found} of the {wanted} that the job read", path.escaped())]
    TooFewFiles { path: PathBuf, found: u64, wanted: String },
    /// A file that was not made for this workload.
    #[error("{}: {what}", path.escaped())]
    OtherFile { path: PathBuf, what: String },
    #[error("cannot create a scratch folder for checkpoints in {}", path.escaped())]
    Scratch { path: PathBuf, source: Box<forebay_measure::Error> },
}

forebay_measure::share_errors!(Error);

/// Runs the workload. The first rank returns the record, the others `None`.
///
/// # Errors
/// If any rank fails: all end with the same reason. A stopped run returns what was measured, with a note.
pub fn run(
    plan: &Plan,
    ranks: &dyn Ranks,
    record: Record<WorkloadCell>,
    observer: Observer<'_>,
) -> Result<Option<Record<WorkloadCell>>, Error> {
    let totals = forebay_workload::Plan::new(&plan.workload, plan.settings.all_accelerators() * ranks.size());
    let totals = together(ranks, totals.map_err(Error::Plan))?;
    let seeds = prepare::agree(plan, ranks)?;
    let workflow = plan.workload.workflow;
    let made = match workflow.generate_data {
        true => Some(together(ranks, prepare::generate(plan, ranks, observer))?),
        false => None,
    };
    if !workflow.train && !workflow.checkpoint {
        return Ok((ranks.rank() == 0).then(|| only_made(made.as_ref(), record)));
    }
    if workflow.checkpoint {
        saving::check_room(plan, ranks, totals.checkpoints)?;
    }
    let saves_in = workflow.checkpoint.then(|| Folder::open(plan, ranks)).transpose()?;
    let neighbours = forebay_ranks::on_host(ranks)?;
    let mut part = together(ranks, Part::open(plan, ranks, &totals, seeds, saves_in.as_ref(), observer))?;
    // Only now has every rank finished reading headers and indices.
    part.before = together(ranks, part.caches(neighbours))?;
    let mut report = part.run(&totals, record.environment.memory_bytes)?;
    report.notes.extend(made.as_ref().map(prepare::made_note));
    // All ranks are past their last save and restore.
    part.saver = None;
    drop(saves_in);
    if workflow.train && !plan.workload.dataset.keep_files {
        let removed = prepare::remove_made(plan, ranks, made.as_ref());
        report.notes.extend(together(ranks, removed)?.filter(|_| ranks.rank() == 0));
    }
    let known = Known { plan, totals, seeds, storage: part.storage() };
    finish(&known, ranks, &part, report, record)
}

fn finish(
    known: &Known<'_>,
    ranks: &dyn Ranks,
    part: &Part<'_>,
    report: RankReport,
    record: Record<WorkloadCell>,
) -> Result<Option<Record<WorkloadCell>>, Error> {
    let all = gather(ranks, &report)?;
    let whole = results::Whole::agree(ranks, all.as_deref())?;
    let mut record = all.map(|all| (cell::record(known, &all, record), all));
    let written = known.plan.out.as_ref().map_or(Ok(()), |out| {
        let all = record.as_ref().map(|(record, all)| (record, all.as_slice()));
        results::write(out, known, Setting { started_at: part.started_at, whole }, &report, all)
    });
    // An error in DLIO's result files must not lose the measurement.
    let unwritten = written.err().map(|error| chain(&error).replace('\n', " ")).unwrap_or_default();
    let unwritten = forebay_ranks::everybody(ranks, &unwritten)?.into_iter().find(|reason| !reason.is_empty());
    if let (Some((record, _)), Some(reason)) = (&mut record, unwritten) {
        record.notes.push(format!("DLIO's result files are incomplete: {reason}"));
    }
    Ok(record.map(|(record, _)| record))
}

/// On the first rank; a single process needs no serialization.
fn gather(ranks: &dyn Ranks, report: &RankReport) -> Result<Option<Vec<RankReport>>, Error> {
    if ranks.size() == 1 {
        return Ok(Some(vec![report.clone()]));
    }
    let bytes = serde_json::to_vec(report).expect("plain numbers and texts are JSON");
    let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).expect("ranks of one version write the same JSON");
    Ok(ranks.gather(bytes)?.map(|all| all.iter().map(read).collect()))
}

/// For a workload that only generates data.
fn only_made(made: Option<&MadeRecords>, mut record: Record<WorkloadCell>) -> Record<WorkloadCell> {
    record.notes.extend(made.map(prepare::made_note));
    record.notes.push("the workload neither trains nor saves; nothing was measured".to_owned());
    record
}

struct Part<'a> {
    plan: &'a Plan,
    ranks: &'a dyn Ranks,
    observer: Observer<'a>,
    clock: Arc<dyn Clock>,
    origin_ns: u64,
    age_s: Option<f64>,
    started_at: std::time::SystemTime,
    deal: Deal,
    source: Option<BatchSource>,
    saver: Option<Saver>,
    before: Option<Before>,
    log: Option<Arc<AccessLog>>,
}

/// For runs that only save.
struct NoSupply;

impl Supply for NoSupply {
    fn open(&self, _: forebay_workload::Part, accelerator: u64, _: u64) -> Result<Box<dyn Feed>, Error> {
        unreachable!("accelerator {accelerator} of a run that only saves requests no data")
    }
}

impl<'a> Part<'a> {
    fn open(
        plan: &'a Plan,
        ranks: &'a dyn Ranks,
        totals: &forebay_workload::Plan,
        seeds: Seeds,
        saves_in: Option<&Folder>,
        observer: Observer<'a>,
    ) -> Result<Self, Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let (origin_ns, age_s, started_at) = (clock.now_ns(), usage::age_s(), std::time::SystemTime::now());
        let deal = Deal {
            first: ranks.rank() * plan.settings.all_accelerators(),
            n: plan.settings.all_accelerators(),
            of: totals.accelerators,
            n_steps: totals.steps_per_epoch,
            n_steps_eval: totals.steps_eval,
            seeds,
        };
        let workflow = plan.workload.workflow;
        let log = plan.access_log.as_ref().filter(|_| workflow.train);
        let log = log.map(|dir| AccessLog::create(dir, ranks.rank(), Arc::clone(&clock), origin_ns)).transpose()?;
        observer.tell(Event::phase("inspecting the data"));
        let source = workflow.train.then(|| BatchSource::open(plan, deal, log.as_ref())).transpose()?;
        let range = deal.first..deal.first + deal.n;
        let saver =
            saves_in.map(|folder| Saver::open(&plan.workload, (&folder.dir, plan.checkpoints.fs()), range, deal.of));
        let saver = saver.transpose()?;
        let before = None;
        Ok(Self { plan, ranks, observer, clock, origin_ns, age_s, started_at, deal, source, saver, before, log })
    }

    fn caches(&self, neighbours: (u64, u64)) -> Result<Option<Before>, Error> {
        self.source.as_ref().map(|source| prepare::caches(self.plan, neighbours, source)).transpose()
    }

    fn storage(&self) -> String {
        self.source.as_ref().map(BatchSource::storage).unwrap_or_default()
    }

    fn run(&self, totals: &forebay_workload::Plan, memory_bytes: Option<u64>) -> Result<RankReport, Error> {
        let (device, restores) = (Spans::default(), Spans::default());
        let watcher = self.watcher()?;
        let workload = &self.plan.workload;
        let (cpu_s, host) = (usage::cpu_seconds(), Watch::start());
        // With several ranks, each would count the others' CPU time as disturbance.
        let is_watched = self.observer.extra_repeats.is_some() && self.ranks.size() == 1;
        let others = is_watched.then(|| forebay_measure::Watch::start(Some(&self.plan.data)));
        let context = RunContext {
            workload,
            accelerators: self.deal.first..self.deal.first + self.deal.n,
            n_steps: totals.steps_per_epoch,
            n_steps_eval: totals.steps_eval,
            evaluations: if super::batch_source::evaluates(workload) { &totals.evaluations } else { &[] },
            n_readers: (self.deal.n * workload.reader.read_threads.max(1)) as usize,
            n_cores: usage::cores(),
            supply: self.source.as_ref().map_or(&NoSupply as &dyn Supply, |source| source),
            ranks: self.ranks,
            saver: self.saver.as_ref(),
            clock: Arc::clone(&self.clock),
            origin_ns: self.origin_ns,
            begin_epoch: &|| {
                host.epoch();
                device.begin();
            },
            end_epoch: &|| device.end(),
            begin_restore: &|| restores.begin(),
            end_restore: &|| restores.end(),
            observer: self.observer,
        };
        let ran = together(self.ranks, accelerate(&context));
        let disturbed = others.and_then(|others| others.finish().judge());
        let reads = watcher.map(Watcher::finish);
        let ran = ran?;
        together(self.ranks, self.log.as_ref().map_or(Ok(()), |log| log.finish()))?;
        let report = self.report(ran, device.total(), restores.total());
        let cpu_s = usage::cpu_seconds() - cpu_s;
        Ok(RankReport { cpu_s, host: host.host(), disturbed, reads, memory_bytes, ..report })
    }

    /// Only the first process samples its reads.
    fn watcher(&self) -> Result<Option<Watcher>, Error> {
        let source = self.source.as_ref().filter(|_| self.ranks.rank() == 0);
        let tally = source.map(|source| Arc::clone(source.tally()));
        tally
            .map(|tally| Watcher::start(move || tally.bytes()))
            .transpose()
            .map_err(|source| forebay_measure::Error::Thread(source).into())
    }

    fn report(&self, ran: Vec<Ran>, device: Option<u64>, restored: Option<u64>) -> RankReport {
        let cores = usage::allowed_cores();
        let is_stopped = ran.iter().any(|ran| ran.is_stopped);
        let residents = ran.iter().flat_map(|ran| &ran.residents).copied().collect::<Option<Vec<f64>>>();
        let resident = residents.filter(|all| !all.is_empty()).map(|all| all.into_iter().fold(0.0, f64::max));
        let (epochs, saves): (Vec<_>, Vec<_>) = ran.into_iter().map(|ran| (ran.epochs, ran.saves)).unzip();
        let (epochs, saves) = (epochs.concat(), saves.concat());
        let bytes_moved = epochs.iter().map(|epoch| epoch.bytes).sum();
        let resident_before = self.before.as_ref().and_then(Before::resident);
        let read_back: u64 = saves.iter().filter(|saved| saved.is_restore).map(|saved| saved.bytes).sum();
        let restored = (read_back > 0).then_some(CacheEvidence {
            resident_before: resident,
            block_bytes: restored,
            bytes_read: read_back,
        });
        RankReport {
            process: WorkloadRank {
                rank: self.ranks.rank(),
                host: self.ranks.host(),
                n_cores: cores.len().max(1) as u64,
                accelerators: self.deal.n,
                bytes_moved,
                bytes_device: device,
                peak_rss_bytes: usage::peak_resident_bytes(),
            },
            cores,
            n_online: usage::online_cores(),
            memory_bytes: None,
            host: Host::default(),
            evidence: CacheEvidence { resident_before, block_bytes: device, bytes_read: bytes_moved },
            epochs,
            saves,
            is_stopped,
            restored,
            cpu_s: 0.0,
            age_s: self.age_s,
            disturbed: None,
            reads: None,
            otherwise: self.source.as_ref().map_or_else(Vec::new, |_| prepare::otherwise(self.plan)),
            notes: Vec::new(),
        }
    }
}

/// The accelerators' thread has its own wake-up precision.
fn accelerate(context: &RunContext<'_>) -> Result<Vec<Ran>, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("forebay:acc".to_owned());
        match thread.spawn_scoped(scope, || guarded(context)) {
            Ok(thread) => Ok(thread.join().expect("a panic was caught in the thread")?),
            Err(error) => Ok(context.fail(format!("cannot start a thread: {error}"))?),
        }
    })
}

/// Turns a panic into a failure of all ranks; otherwise the others would wait forever.
pub(super) fn guarded(context: &RunContext<'_>) -> Result<Vec<Ran>, Failed> {
    catch_unwind(AssertUnwindSafe(|| drive(context))).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        context.fail(format!("the accelerators panicked: {what}"))
    })
}

/// Bytes read from block devices during some spans of time.
#[derive(Default)]
struct Spans(Mutex<Span>);

#[derive(Default)]
struct Span {
    begun: Option<u64>,
    sum: Option<u64>,
}

impl Spans {
    fn begin(&self) {
        self.0.lock().expect("no holder of this lock panics").begun = cache::block_bytes_read();
    }

    fn end(&self) {
        let mut span = self.0.lock().expect("no holder of this lock panics");
        if let Some((begun, now)) = span.begun.take().zip(cache::block_bytes_read()) {
            *span.sum.get_or_insert(0) += now.saturating_sub(begun);
        }
    }

    /// Includes the unfinished span of a stopped run.
    fn total(&self) -> Option<u64> {
        self.end();
        self.0.lock().expect("no holder of this lock panics").sum
    }
}
