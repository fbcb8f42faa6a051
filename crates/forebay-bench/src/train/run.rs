//! Checks the data against the network, then runs the plan.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use forebay_format::image::ImageSpec;
use forebay_measure::{Cache, Event, Observer, Rounds, ThreadCount};
use forebay_measure::{cold, usage};
use forebay_pipeline::Tuning;
use forebay_record::{Baseline, DatasetNote, Record, TrainCell};
use forebay_train::Model;
use forebay_units::{Clock, PathText, SystemClock};

use super::cell::{Settled, cell};
use super::consumer::{EMULATED_IMAGE, Kind};
use super::data::TrainingData;
use super::device::{self, Accelerator};
use super::plan::{Plan, Validate};
use super::saving::{self, Start};
use super::settings::{Length, TrainSettings};
use super::trial::{Runs, Trial};
use crate::decoder::{DecodeOn, Decoder, DecoderError, Question};
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
        batch: usize,
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

/// `cores` compute the network if no GPU does.
fn find(plan: &Plan, cores: usize) -> Result<Found, Error> {
    let settings = &plan.settings;
    let (accelerator, note) = settings.accelerator(cores, || device::gpu(&plan.cuda_folders));
    let image = match accelerator {
        Accelerator::Emulated(_) => EMULATED_IMAGE,
        Accelerator::Network(_) => Model::named(settings.model(), CLASSES)?.input,
    };
    let data = TrainingData::find(plan, image)?;
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
    let Found { data, kind, n_steps, steps_per_epoch, .. } = find(plan, usage::cores())?;
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
    Ok(find(plan, usage::cores())?.data.map(|data| data.spec()))
}

/// Refuses what a run would refuse: checkpoint folders of another run, and a missing GPU. Changes nothing.
///
/// # Errors
/// [`Error::Occupied`]; the system's error if a folder cannot be read or the GPU cannot be opened.
pub fn check(plan: &Plan) -> Result<(), Error> {
    saving::check(plan)?;
    device::check(plan)?;
    if plan.settings.decode == DecodeOn::Gpu {
        let Found { data, kind, .. } = find(plan, usage::cores())?;
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
    run_on(usage::cores(), plan, record, observer)
}

/// `cores` compute the network if no GPU does.
pub(super) fn run_on(
    cores: usize,
    plan: &Plan,
    mut record: Record<TrainCell>,
    observer: Observer<'_>,
) -> Result<Ended, Error> {
    let Found { data, kind, n_steps, steps_per_epoch, note } = find(plan, cores)?;
    record.notes.extend(note);
    if let Some(data) = &data {
        record.dataset = data.note();
        record.notes.extend(supply::notes_of(&data.source));
    }
    if kind.classes() == Some(1) {
        record.notes.push("the data has only one class, so the loss is 0 and nothing is learnt".to_owned());
    }
    let data = data.map(|data| data.through(plan, &mut record.notes)).transpose()?;
    let gpu = decoding_gpu(plan, &kind, data.as_ref())?;
    let judges = judges(plan, &kind, data.as_ref(), &mut record.notes)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let mut trial = Trial { plan, data, judges, kind, n_steps, steps_per_epoch, threads: 0, clock };
    trial.decode_with(&gpu);
    let start = saving::begin(&trial, observer, &mut record.notes)?;
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

/// The GPU that was asked for, opened before anything is measured.
fn decoding_gpu(plan: &Plan, kind: &Kind, data: Option<&TrainingData>) -> Result<Decoder, Error> {
    match (plan.settings.decode, data) {
        (DecodeOn::Gpu, Some(data)) => {
            Ok(Decoder::on_gpu(&plan.gpus, kind.ordinal().unwrap_or(0), &data.source, data.output())?)
        }
        _ => Ok(Decoder::Cpu),
    }
}

/// With `auto`, the faster decoder, and why it is that.
fn settle_decoder(trial: &mut Trial<'_>, baseline: Option<Baseline>, observer: Observer<'_>) -> Option<String> {
    let (plan, data) = (trial.plan, trial.data.as_ref()?);
    if plan.settings.decode != DecodeOn::Auto {
        return None;
    }
    observer.tell(Event::phase("finding the faster decoder"));
    let question = Question {
        source: &data.source,
        order: plan.settings.order(),
        output: data.output(),
        takes_per_s: baseline.map(|baseline| plan.settings.batch as f64 / baseline.step_s),
        shares_gpu: trial.kind.ordinal().is_some(),
        cancel: observer.cancel,
    };
    let (decoder, why) = Decoder::faster(&plan.gpus, trial.kind.ordinal().unwrap_or(0), &question);
    trial.decode_with(&decoder);
    Some(why)
}

/// Its classes must be those of the training data.
fn judges(
    plan: &Plan,
    kind: &Kind,
    learnt: Option<&TrainingData>,
    notes: &mut Vec<String>,
) -> Result<Option<TrainingData>, Error> {
    let Some(Validate::Data(path)) = &plan.validate else { return Ok(None) };
    // Validation, unlike training, also works on less than a batch.
    let settings = TrainSettings { batch: 1, ..plan.settings.clone() };
    let plan = Plan { settings, data: Some(path.clone()), validate: None, ..plan.clone() };
    let Some(data) = TrainingData::find(&plan, kind.image())? else { return Ok(None) };
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
    data.through(&plan, notes).map(Some)
}

/// The thread count as given, or found by the tuner before any measurement.
fn settle_threads(trial: &mut Trial<'_>, observer: Observer<'_>) -> Result<(Option<Tuning>, bool), Error> {
    let Some(data) = &trial.data else { return Ok((None, false)) };
    if let ThreadCount::Fixed(threads) = trial.plan.settings.threads {
        trial.threads = threads;
        return Ok((None, false));
    }
    observer.tell(Event::phase("finding the thread count"));
    let is_cold = trial.plan.settings.cache() == Cache::Cold;
    cold::prepare(data.source.files(), is_cold)?;
    let (threads, tuning) = supply::tune(&data.tuning(is_cold), observer.cancel)?;
    trial.threads = threads;
    Ok((tuning, true))
}
