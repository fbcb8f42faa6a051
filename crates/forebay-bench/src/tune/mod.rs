//! Tuning: a training run is measured, the change that its advice names is applied, and kept if the run became faster beyond noise.
//!
//! This goes on until the accelerator is the limit, nothing that was named helps, or the time is up. Where the model does not explain a
//! run, more threads and more batches ahead are tried without a prediction. Formats are tried on a sample, packed in a scratch folder.

mod length;
mod packed;
mod walk;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use forebay_checkpoint::Mode;
use forebay_measure::{Event, Observer, Settings, ThreadCount, remove_left_overs};
use forebay_record::{Change, Level, Levels, Record, TrainCell, Tuning, TuningEnd};
use forebay_units::{Bytes, chain};

use crate::checkpoint::mode_name;
use crate::decoder::DecodeOn;
use crate::supply::Order;
use crate::train::{self, Ended, Error, Plan, run};
use packed::Sample;
use walk::{Bench, Facts, Step, Walk};

#[derive(Debug)]
pub struct Options {
    /// Time for all runs together.
    pub budget: Duration,
    /// Where samples of the data may be packed; `None` leaves other formats out.
    pub scratch: Option<PathBuf>,
    /// Whether shards may be read in another order.
    pub reorders: bool,
    /// Settings of the plan that are not defaults, for the record.
    pub settings: Levels,
    /// Flags of the data that are no settings, for the record.
    pub data_flags: Levels,
}

/// At most so much is packed into the scratch folder at a time.
pub const MOST_PACKED: Bytes = Bytes(packed::MOST_BYTES);

/// What may be changed, with the flags.
pub fn may_try(plan: &Plan, options: &Options) -> Vec<String> {
    let io = train::may_read_directly(plan).then(|| "--io direct".to_owned());
    let saves = plan.saves.as_ref().filter(|_| plan.mode() != Mode::Async);
    let saves = saves.map(|_| format!("--checkpoint-mode {}", mode_name(Mode::Async)));
    let order = options.reorders.then(|| format!("--shuffle {}", Order::WINDOW));
    let decode = plan.settings.decode == DecodeOn::Cpu && plan.gpus.has_any();
    let decode = decode.then(|| format!("--decode {}", DecodeOn::Gpu.name()));
    let formats = options.scratch.as_ref().map(|_| format!("the data packed as {}", train::TENSOR));
    let flags = ["--threads", "--prefetch"].map(str::to_owned);
    flags.into_iter().chain(io).chain(decode).chain(saves).chain(order).chain(formats).collect()
}

/// Runs a plan with the changes that its advice names. The record has one cell per run, in order; without a number of steps, a run has as
/// many as suit the budget. A later run that fails is noted and ends nothing.
///
/// # Errors
/// If the first run fails.
pub fn tune(plan: &Plan, options: &Options, record: Record<TrainCell>, observer: Observer<'_>) -> Result<Ended, Error> {
    let start = Instant::now();
    if let Some(dir) = &options.scratch {
        remove_left_overs(dir, packed::PREFIX);
    }
    let plan = length::sized(plan, options.budget, observer)?;
    let mut runs = Runs { plan, options, observer, record, samples: Vec::new(), failure: None, start };
    if let Some(first) = runs.first()? {
        let has_failed = runs.failure.is_some();
        let walk = Walk::new(&mut runs, options.budget, first);
        let steps = if has_failed { walk.end(TuningEnd::Failed) } else { walk.run() };
        let cells = steps.into_iter().map(|step| runs.cell(step)).collect();
        runs.record.cells = cells;
    }
    let Runs { record, failure, .. } = runs;
    Ok(Ended { record, failure })
}

struct Runs<'a> {
    plan: Plan,
    options: &'a Options,
    observer: Observer<'a>,
    /// Without cells: they are the walk's.
    record: Record<TrainCell>,
    samples: Vec<Sample>,
    failure: Option<Error>,
    start: Instant,
}

impl Runs<'_> {
    /// The run without changes; `None` if it was stopped before it had a result.
    fn first(&mut self) -> Result<Option<(TrainCell, Facts)>, Error> {
        let mut plan = self.plan.clone();
        if !plan.settings.cold {
            // Otherwise the first run alone would find the page cache cold.
            plan.warmups = plan.warmups.max(1);
        }
        let ran = self.run(&plan)?;
        if let Some((cell, _)) = &ran {
            self.plan.settings.threads = ThreadCount::Fixed(cell.threads as usize);
        }
        Ok(ran)
    }

    fn run(&mut self, plan: &Plan) -> Result<Option<(TrainCell, Facts)>, Error> {
        let empty = Record { cells: Vec::new(), notes: Vec::new(), ..self.record.clone() };
        let Ended { record, failure } = run(plan, empty, self.observer)?;
        if plan.data == self.plan.data {
            self.record.dataset = record.dataset;
        }
        record.notes.into_iter().for_each(|note| self.note(note));
        self.failure = failure;
        Ok(record.cells.into_iter().next().map(|cell| {
            let facts = facts(&cell);
            (cell, facts)
        }))
    }

    fn note(&mut self, note: String) {
        if !self.record.notes.contains(&note) {
            self.record.notes.push(note);
        }
    }

    /// # Errors
    /// Why the changes cannot be made, in words.
    fn plan_with(&mut self, changes: &[Change]) -> Result<Plan, String> {
        let mut plan = self.plan.clone();
        for Change { setting, value } in changes {
            if setting == Change::DATASET {
                plan.data = Some(self.packed(&value.to_string())?);
            } else if setting == Change::SHUFFLE && !self.options.reorders {
                return Err("it changes the order of the samples; --reorder tries it".to_owned());
            } else {
                plan.settings.set(setting, value)?;
            }
        }
        Settings::check(&plan.settings)?;
        Ok(plan)
    }

    fn packed(&mut self, format: &str) -> Result<PathBuf, String> {
        if let Some(sample) = self.samples.iter().find(|sample| sample.format == format) {
            return Ok(sample.path());
        }
        let Some(scratch) = &self.options.scratch else {
            return Err("no folder was given for a packed sample".to_owned());
        };
        let sample = Sample::pack(&self.plan, format, scratch, self.observer)?;
        self.record.notes.push(sample.note());
        let path = sample.path();
        self.samples.push(sample);
        Ok(path)
    }

    fn cell(&self, Step { cell, tuning, .. }: Step<TrainCell>) -> TrainCell {
        let mut settings = self.options.settings.clone();
        settings.insert("threads".to_owned(), Level::Integer(cell.threads as i64));
        let of_settings = tuning.changes.iter().filter(|change| change.setting != Change::DATASET);
        settings.extend(of_settings.map(|change| (change.setting.clone(), change.value.clone())));
        let format = tuning.dataset();
        let sample = self.samples.iter().find(|sample| Some(sample.format.as_str()) == format);
        let pack = sample.map(|sample| sample.flags.clone());
        let data_flags = self.options.data_flags.clone();
        TrainCell { tuning: Some(Tuning { settings, data_flags, pack, ..tuning }), ..cell }
    }
}

impl Bench for Runs<'_> {
    type Cell = TrainCell;

    fn measure(&mut self, changes: &[Change], advice: &str) -> Option<(TrainCell, Facts)> {
        let ran = match self.plan_with(changes) {
            Ok(plan) => self.run(&plan).map_err(|error| chain(&error)),
            Err(why) => Err(why),
        };
        let why = match (ran, self.failure.take()) {
            (Ok(_), Some(failure)) => chain(&failure),
            (Ok(ran), None) => return ran,
            (Err(why), _) => why,
        };
        if !self.is_stopped() {
            self.note(format!("not tried: {advice}: {why}"));
        }
        None
    }

    fn is_stopped(&self) -> bool {
        self.observer.is_cancelled()
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn say(&self, text: String) {
        self.observer.tell(Event::Remark { text });
    }
}

fn facts(cell: &TrainCell) -> Facts {
    Facts {
        walls_s: cell.samples.iter().map(|run| run.wall_s).collect(),
        lever: cell.lever.clone(),
        limit: cell.limit.as_ref().map(|limit| limit.name.clone()).unwrap_or_default(),
        threads: cell.threads as i64,
        prefetch: cell.prefetch as i64,
        is_disturbed: cell.disturbed.is_some(),
    }
}
