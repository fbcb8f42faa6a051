//! Checks the data against the network, then runs the plan.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_format::image::ImageSpec;
use forebay_measure::{Observer, Rounds, usage};
use forebay_ranks::{Failed, Ranks, Solo, Threads};
use forebay_record::{DatasetNote, Record, TrainCell};
use forebay_storage::Device;
use forebay_train::Model;
use forebay_units::{Clock, PathText, SystemClock};

use super::cell::{Settled, cell};
use super::consumer::{EMULATED_IMAGE, Kind};
use super::data::TrainingData;
use super::decoding::{decoding_gpu, settle_decoder, settle_threads};
use super::device::{self, Accelerator};
use super::plan::{Plan, Validate};
use super::saving::{self, Start};
use super::settings::{Length, TrainSettings};
use super::shared::{self, Site};
use super::trial::{Runs, Trial};
use crate::decoder::{DecodeOn, DecoderError};
use crate::supply;

/// A larger label is more likely an error than a class.
pub(super) const MOST_CLASSES: usize = 1_000_000;
/// Default for synthetic batches: the number of classes of the paper's data.
const CLASSES: usize = 102;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Shared(forebay_measure::Error),
    #[error(transparent)]
    Train(#[from] forebay_train::Error),
    /// A new run must not mix its checkpoints with those of another.
    #[error("{} already contains checkpoints, the newest of step {step}", path.escaped())]
    Occupied {
        path: PathBuf,
        /// Of the newest.
        step: u64,
    },
    #[error("{} belongs to another run: {what}", path.escaped())]
    OtherRun { path: PathBuf, what: String },
    #[error("an emulated accelerator has no state to save, and no checkpoint size is given")]
    NoState,
    #[error("{}: the samples have no labels; a network needs labels, an emulated accelerator does not", path.escaped())]
    NoLabels { path: PathBuf },
    /// The labels are inside the records.
    #[error("{}: class count unknown without a full scan", path.escaped())]
    ClassesUnknown { path: PathBuf },
    #[error("{}: the largest label is {}; at most {MOST_CLASSES} classes are supported", path.escaped(), classes - 1)]
    TooManyClasses {
        path: PathBuf,
        /// One more than the largest label.
        classes: usize,
    },
    /// Validation data whose classes differ from those of the training data.
    #[error(
        "{}: its {n} classes differ from the {expected} of the training data (first difference: \"{name}\"), so labels would have \
         another meaning; assign labels with a list of `path label` lines",
        path.escaped()
    )]
    OtherClasses {
        path: PathBuf,
        n: usize,
        expected: usize,
        /// The first that differs.
        name: String,
    },
    #[error(transparent)]
    Decoder(#[from] DecoderError),
    #[error("{name}: label {label} is out of range 0..={}", classes - 1)]
    Label {
        name: String,
        /// -1 for none.
        label: i64,
        classes: usize,
    },
    #[error(
        "{}: {} {} less than one batch of {batch}",
        path.escaped(),
        forebay_units::count(*n_samples, "sample"),
        if *n_samples == 1 { "is" } else { "are" }
    )]
    TooFewSamples {
        path: PathBuf,
        /// Without held-out samples.
        n_samples: u64,
        /// Of all ranks.
        batch: usize,
        n_ranks: u64,
    },
    #[error("{}: {name}: {reason}", no_batch(*n_samples, *n_failed, *batch))]
    AllFailed {
        n_samples: u64,
        /// Over all passes that were tried.
        n_failed: u64,
        batch: usize,
        /// Of the first failed sample.
        name: String,
        reason: String,
    },
    /// All ranks end if one fails.
    #[error(transparent)]
    Rank(#[from] Failed),
    #[error("the plan of rank {rank} differs from that of the first rank: {what}")]
    OtherPlan { rank: u64, what: String },
    #[error("several ranks: {why}")]
    NotOnRanks { why: &'static str },
    #[error("{}: {n_ranks} ranks read whole shards, and there are only {n_shards}", path.escaped())]
    TooFewShards { path: PathBuf, n_shards: u64, n_ranks: u64 },
    #[error("the network of rank {rank} differs from that of the first rank after the last step")]
    Diverged { rank: u64 },
    #[error("no progress: {n_failures} injected failures in a row without a new checkpoint between them")]
    NoProgress { n_failures: u64 },
    /// The samples ran out after some steps.
    #[error(
        "no samples left for {}: {} failed; the first is {name}: {reason}",
        forebay_units::count(*n_left, "more step"),
        forebay_units::count(*n_failed, "sample")
    )]
    RanOut {
        n_left: u64,
        /// Over all passes.
        n_failed: u64,
        /// Of the first failed sample.
        name: String,
        reason: String,
    },
}

forebay_measure::share_errors!(Error);

/// If every pass failed completely, no sample is usable; otherwise too few are.
fn no_batch(n_samples: u64, n_failed: u64, batch: usize) -> String {
    match n_samples > 0 && n_failed.is_multiple_of(n_samples) {
        true => supply::none_usable(n_samples),
        false => format!("too many of {n_samples} samples failed to fill one batch of {batch}; the first"),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Its path is empty for synthetic batches.
    pub dataset: DatasetNote,
    pub n_steps: u64,
    pub steps_per_epoch: u64,
    /// The network's name, or a description of the emulated accelerator.
    pub taken_by: String,
    /// `None` for an emulated accelerator.
    pub n_parameters: Option<u64>,
    pub classes: Option<u64>,
}

struct Found {
    data: Option<TrainingData>,
    kind: Kind,
    n_steps: u64,
    steps_per_epoch: u64,
    /// On the device, for the reader of the record.
    note: Option<String>,
}

/// As a rank of several sees it.
#[derive(Clone, Copy)]
struct Seen {
    rank: (u64, u64),
    on_host: u64,
    /// They compute the network if no GPU does.
    cores: usize,
}

impl Seen {
    fn alone(cores: usize) -> Self {
        Self { rank: (0, 1), on_host: 0, cores }
    }

    fn of(site: &Site<'_>) -> Self {
        Self { rank: (site.ranks.rank(), site.ranks.size()), on_host: site.on_host, cores: site.cores }
    }
}

fn find(plan: &Plan, seen: Seen) -> Result<Found, Error> {
    let settings = &plan.settings;
    let (accelerator, note) = settings.accelerator(seen.cores, || device::gpu(&plan.cuda_folders));
    let accelerator = accelerator.of_rank(seen.on_host, &plan.cuda_folders);
    let image = match accelerator {
        Accelerator::Emulated(_) => EMULATED_IMAGE,
        Accelerator::Network(_) => Model::named(settings.model(), CLASSES)?.input,
    };
    let data = TrainingData::find(plan, image, seen.rank)?;
    let classes = match (accelerator, settings.classes, &data) {
        (Accelerator::Network(_), None, Some(data)) => data.classes()?,
        _ => CLASSES,
    };
    let kind = Kind::of(plan, accelerator, classes)?;
    let per_epoch = data.as_ref().map(TrainingData::steps_per_epoch);
    let n_steps = match settings.length() {
        Length::Steps(n) => n,
        Length::Epochs(n) => n.saturating_mul(per_epoch.unwrap_or(1)),
    };
    Ok(Found { data, kind, n_steps, steps_per_epoch: per_epoch.unwrap_or(n_steps), note })
}

/// Inspects the data without measuring.
///
/// # Errors
/// If the data or the model cannot be used.
pub fn preview(plan: &Plan) -> Result<Preview, Error> {
    preview_on(plan, &Solo)
}

/// The same for one of several ranks.
///
/// # Errors
/// If the data or the model cannot be used.
pub fn preview_on(plan: &Plan, ranks: &dyn Ranks) -> Result<Preview, Error> {
    let n = ranks.size() * plan.settings.ranks as u64;
    let seen = Seen { rank: (ranks.rank(), n), ..Seen::alone(usage::cores()) };
    let Found { data, kind, n_steps, steps_per_epoch, .. } = find(plan, seen)?;
    Ok(Preview {
        dataset: data.as_ref().map(TrainingData::note).unwrap_or_default(),
        n_steps,
        steps_per_epoch,
        taken_by: kind.name(),
        n_parameters: kind.n_parameters()?,
        classes: kind.classes(),
    })
}

/// Images as the consumer takes them; `None` for synthetic batches.
///
/// # Errors
/// If the data or the model cannot be used.
pub(crate) fn image_spec(plan: &Plan) -> Result<Option<ImageSpec>, Error> {
    Ok(find(plan, Seen::alone(usage::cores()))?.data.map(|data| data.spec()))
}

/// Refuses what a run would refuse: checkpoint folders of another run, and a missing GPU. Changes nothing.
///
/// # Errors
/// [`Error::Occupied`]; the system's error if a folder cannot be read or the GPU cannot be opened.
pub fn check(plan: &Plan) -> Result<(), Error> {
    saving::check(plan)?;
    device::check(plan)?;
    if plan.settings.decode == DecodeOn::Gpu {
        let Found { data, kind, .. } = find(plan, Seen::alone(usage::cores()))?;
        decoding_gpu(plan, &kind, data.as_ref())?;
    }
    Ok(())
}

#[derive(Debug)]
pub struct Ended {
    pub record: Record<TrainCell>,
    /// Why the run ended after the steps that it has.
    pub failure: Option<Error>,
}

/// Runs the plan. If cancelled, it stops after the current step and returns the finished results.
///
/// # Errors
/// If data, model or device cannot be used, or no batch can be made.
pub fn run(plan: &Plan, record: Record<TrainCell>, observer: Observer<'_>) -> Result<Ended, Error> {
    let ended = run_together(plan, &Solo, record, observer)?;
    Ok(ended.expect("the only rank has the record"))
}

/// Runs the plan on several ranks, each with a portion of every batch: `batch` samples. The first rank returns the
/// record, the others `None`.
///
/// # Errors
/// If any rank fails: all end with its reason.
pub fn run_together(
    plan: &Plan,
    ranks: &dyn Ranks,
    record: Record<TrainCell>,
    observer: Observer<'_>,
) -> Result<Option<Ended>, Error> {
    match (ranks.size(), plan.settings.ranks) {
        (1, 1) => run_on(usage::cores(), plan, record, observer).map(Some),
        (1, n) => run_in_threads(n, plan, &record, observer).map(Some),
        (_, 1) => run_as(ranks, None, plan, record, observer),
        _ => Err(Error::NotOnRanks { why: "`ranks` is for one process" }),
    }
}

fn run_as(
    ranks: &dyn Ranks,
    device: Option<&Arc<Device>>,
    plan: &Plan,
    record: Record<TrainCell>,
    observer: Observer<'_>,
) -> Result<Option<Ended>, Error> {
    let agreed = AtomicBool::new(false);
    let site = Site { device, ..Site::join(ranks, observer.cancel, &agreed)? };
    let ended = run_at(&site, plan, record, shared::heard(site.several(), observer));
    let ended = match ended {
        // All know it already.
        Err(Error::Rank(failed)) => return Err(Error::Rank(failed)),
        ended => site.together(ended)?,
    };
    Ok((ranks.rank() == 0).then_some(ended))
}

/// The ranks share an emulated device.
fn run_in_threads(n: usize, plan: &Plan, record: &Record<TrainCell>, observer: Observer<'_>) -> Result<Ended, Error> {
    let device = plan.tier.clone().map(Device::of);
    let ended = Threads::run(n, |ranks| run_as(ranks, device.as_ref(), plan, record.clone(), observer));
    let (mut own, mut told) = (None, None);
    for ended in ended {
        match ended {
            Ok(Some(first)) => return Ok(first),
            Ok(None) => {}
            Err(error @ Error::Rank(_)) => told = told.or(Some(error)),
            Err(error) => own = own.or(Some(error)),
        }
    }
    // The rank that failed has the details.
    Err(own.or(told).expect("without a record there is an error"))
}

/// `cores` compute the network if no GPU does.
pub(super) fn run_on(
    cores: usize,
    plan: &Plan,
    record: Record<TrainCell>,
    observer: Observer<'_>,
) -> Result<Ended, Error> {
    let site = Site { ranks: &Solo, cores, on_host: 0, device: None, wish: observer.cancel, agreed: observer.cancel };
    run_at(&site, plan, record, observer)
}

fn run_at(site: &Site<'_>, plan: &Plan, mut record: Record<TrainCell>, observer: Observer<'_>) -> Result<Ended, Error> {
    let found = prepared(site, plan);
    let Found { data, kind, n_steps, steps_per_epoch, note } = site.together(found)?;
    site.agree(plan, &data.as_ref().map(TrainingData::identity).unwrap_or_default())?;
    record.notes.extend(note);
    if let Some(data) = &data {
        record.dataset = data.note();
        record.notes.extend(supply::notes_of(&data.source));
    }
    if kind.classes() == Some(1) {
        record.notes.push("the data has only one class, so the loss is 0 and nothing is learnt".to_owned());
    }
    let data = data.map(|data| data.through(plan, site.device, &mut record.notes)).transpose()?;
    if let Some(tier) = plan.tier.as_ref().filter(|_| site.ranks.size() > 1 && site.device.is_none()) {
        let (n, name) = (site.ranks.size(), &tier.name);
        record
            .notes
            .push(format!("each of the {n} ranks emulates {name} by itself: together they get {n} times its rate"));
    }
    let gpu = decoding_gpu(plan, &kind, data.as_ref())?;
    let judges = judges(site, plan, &kind, data.as_ref(), &mut record.notes)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let mut trial = Trial { plan, data, judges, kind, n_steps, steps_per_epoch, threads: 0, clock, site: *site };
    trial.decode_with(&gpu);
    let start = begin(&trial, observer, &mut record.notes)?;
    if start.step >= n_steps {
        record.notes.extend(start.nothing_left(&trial, observer)?);
        return Ok(Ended { record, failure: None });
    }
    let mut machine = trial.build(observer)?;
    let baseline = trial.baseline(&mut machine, observer)?;
    record.notes.extend(settle_decoder(&mut trial, baseline, observer));
    let (tuning, auto) = settle_threads(&mut trial, observer)?;
    let rounds = Rounds { warmups: plan.warmups, repeats: plan.repeats, unit: "step", until: plan.until };
    let mut runs = Runs { trial: &trial, machine, found: Some(start), start: Start::default(), failure: None };
    let requests = || trial.data.as_ref().and_then(TrainingData::requests);
    let before = requests();
    let ran = rounds.run(slice::from_mut(&mut runs), observer)?;
    record.notes.extend(supply::note_of_requests(before, requests()));
    let disturbed = ran.disturbed[0];
    let settled = Settled { trial: &trial, baseline, tuning, auto, disturbed };
    let made = cell(&settled, ran.cells.into_iter().flatten().collect(), &mut record.notes, observer.cancel)?;
    record.cells.extend(made);
    if ran.is_cut && observer.is_cancelled() {
        record.notes.push(rounds.interrupted(record.cells.len()));
    }
    Ok(Ended { record, failure: runs.failure })
}

fn prepared(site: &Site<'_>, plan: &Plan) -> Result<Found, Error> {
    site.several().map_or(Ok(()), |_| shared::check(&plan.settings, plan.until.is_some()))?;
    find(plan, Seen::of(site))
}

/// The start that the first rank finds, on all of them: each at its own position.
fn begin(trial: &Trial<'_>, observer: Observer<'_>, notes: &mut Vec<String>) -> Result<Start, Error> {
    let Some(site) = trial.site.several() else { return saving::begin(trial, observer, notes) };
    let is_first = site.ranks.rank() == 0;
    let found = if is_first { saving::begin(trial, observer, notes) } else { Ok(Start::default()) };
    let mut start = site.together(found)?;
    start.step = site.numbers(start.step)?[0];
    let positions: Vec<String> = start.positions.iter().map(ToString::to_string).collect();
    let positions = site.ranks.broadcast(positions.join(",").into_bytes())?;
    let positions = String::from_utf8_lossy(&positions).into_owned();
    start.positions = positions.split(',').filter_map(|position| position.parse().ok()).collect();
    Ok(start)
}

/// Its classes must be those of the training data.
fn judges(
    site: &Site<'_>,
    plan: &Plan,
    kind: &Kind,
    learnt: Option<&TrainingData>,
    notes: &mut Vec<String>,
) -> Result<Option<TrainingData>, Error> {
    let Some(Validate::Data(path)) = &plan.validate else { return Ok(None) };
    // Validation, unlike training, also works on less than a batch.
    let settings = TrainSettings { batch: 1, ..plan.settings.clone() };
    let plan = Plan { settings, data: Some(path.clone()), validate: None, ..plan.clone() };
    // A rank may have none of few samples, so all of them are found for one.
    let Some(data) = TrainingData::find(&plan, kind.image(), (0, 1))? else { return Ok(None) };
    notes.extend(supply::notes_of(&data.source));
    let (theirs, ours) = (data.source.classes(), learnt.map(|learnt| learnt.source.classes()).unwrap_or_default());
    // Folders are numbered by name, so one more or less shifts the labels of all folders after it.
    let other = theirs.iter().enumerate().find(|(label, name)| ours.get(*label) != Some(name));
    if let Some((_, name)) = other.filter(|_| !ours.is_empty()) {
        let (n, expected, name) = (theirs.len(), ours.len(), name.clone());
        return Err(Error::OtherClasses { path: path.clone(), n, expected, name });
    }
    let largest = data.source.n_classes().unwrap_or(0);
    if let Some(classes) = kind.classes().map(|n| n as usize).filter(|classes| largest > *classes) {
        return Err(Error::Label { name: path.escaped().into_owned(), label: largest as i64 - 1, classes });
    }
    let rank = (site.ranks.rank(), site.ranks.size());
    data.through(&plan, site.device, notes).map(|data| Some(data.judged_by(rank)))
}
