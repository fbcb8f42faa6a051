//! What a cell does: one file per step, with its settings and their values.

mod checkpoint;
mod declared;
mod ingest;
mod inspect;
mod probe;
mod route;
pub(crate) mod train;
mod workload;

use std::path::{Path, PathBuf};

use forebay_bench::checkpoint::CheckpointSettings;
use forebay_bench::ingest::IngestSettings;
use forebay_bench::train::{KEEP, TrainSettings};
use forebay_measure::{EXTRA_REPEATS, Kept, Observer, Refused, Setting, Settings, Takes, spelled, value};
use forebay_probe::ProbeSettings;
use forebay_record::{Environment, Level, Measured, Record, Step};
use forebay_storage::Profile;

pub use declared::{Declared, declared};
pub use probe::like;
pub use route::Route;
pub use workload::WorkloadTask;
pub(super) use workload::is_key;

use super::checkpoint_dirs::CheckpointDirs;
use super::places::{FindPlacement, Placement, Places};
use super::plan::{CellPlan, Plan};

pub type Failed = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepResult {
    /// `None` only from test doubles.
    pub measured: Option<Measured>,
    /// Caveats a reader needs to interpret the numbers.
    pub notes: Vec<String>,
}

pub trait Bench {
    /// Measures a cell. After a cancellation it returns soon, and its result is discarded.
    ///
    /// # Errors
    /// The reason why the cell could not be measured; the study records it and continues.
    fn measure(&mut self, cell: &CellPlan, observer: Observer<'_>) -> Result<StepResult, Failed>;
}

/// Settings of an experiment, and the names of its dataset and tiers.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub task: Task,
    /// The dataset to read, or to imitate in a probe.
    pub dataset: Option<String>,
    /// The tier to read from or to probe; without one, data is read where it is.
    pub tier: Option<String>,
    /// Where checkpoints go; `Some(None)` if the study says `none`.
    pub checkpoint: Option<Option<Route>>,
    /// The burst buffer in front of `checkpoint`.
    pub burst: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    Ingest(IngestSettings),
    Probe(ProbeSettings),
    Train(Box<TrainSettings>),
    Inspect,
    Checkpoint(CheckpointSettings),
    /// A DLIO workload.
    Workload(Box<WorkloadTask>),
}

impl Work {
    pub(super) fn new(step: Step, seed: u64) -> Self {
        let task = match step {
            Step::Ingest => Task::Ingest(IngestSettings { seed, ..IngestSettings::default() }),
            Step::Probe => Task::Probe(ProbeSettings::default()),
            Step::Train => Task::Train(Box::new(TrainSettings { seed, ..TrainSettings::default() })),
            Step::Inspect => Task::Inspect,
            Step::Checkpoint => Task::Checkpoint(CheckpointSettings { seed, ..CheckpointSettings::default() }),
            Step::Workload => Task::Workload(Box::default()),
            Step::Trace => unreachable!("no study file can name it"),
        };
        Self { task, dataset: None, tier: None, checkpoint: None, burst: None }
    }

    pub fn step(&self) -> Step {
        match self.task {
            Task::Ingest(_) => Step::Ingest,
            Task::Probe(_) => Step::Probe,
            Task::Train(_) => Step::Train,
            Task::Inspect => Step::Inspect,
            Task::Checkpoint(_) => Step::Checkpoint,
            Task::Workload(_) => Step::Workload,
        }
    }

    /// `name` is one of [`names`], or a key of a workload.
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        self.set_place(name, level).unwrap_or_else(|| self.set_setting(name, level)).map_err(|refused| match level {
            Level::Text(text) => format!("\"{text}\": {refused}"),
            other => format!("{other}: {refused}"),
        })
    }

    /// `None` if the name is not a dataset or tier of this step.
    fn set_place(&mut self, name: &str, level: &Level) -> Option<Result<(), Refused>> {
        if !places_of(self.step()).any(|place| place == name) {
            return None;
        }
        let saves = self.step() == Step::Checkpoint;
        Some(match name {
            "tier" if !saves => value::text(level).map(|tier| self.tier = Some(tier)),
            "tier" | "checkpoint" => route::to(level).map(|to| self.checkpoint = Some(to)),
            "burst" => route::burst(level).map(|burst| self.burst = burst),
            // "dataset", and "like" of a probe.
            _ => value::text(level).map(|dataset| self.dataset = Some(dataset)),
        })
    }

    fn set_setting(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match &mut self.task {
            Task::Ingest(settings) => one(settings, name, level),
            Task::Probe(settings) => one(settings, name, level),
            Task::Train(settings) => one(settings.as_mut(), name, level),
            Task::Inspect => Err("inspect has no settings".to_owned()),
            Task::Checkpoint(settings) => one(settings, name, level),
            Task::Workload(task) => task.set(name, level),
        }
    }

    /// Finds contradictions and missing settings.
    pub(super) fn check(&self) -> Result<(), String> {
        let checked = match &self.task {
            Task::Ingest(settings) => Settings::check(settings),
            Task::Probe(settings) => settings.check_with(self.dataset.is_some()),
            Task::Train(settings) => {
                Settings::check(settings.as_ref()).and_then(|()| train::check_saves(settings, self))
            }
            Task::Inspect => Ok(()),
            Task::Checkpoint(settings) => checkpoint::check(settings, self),
            Task::Workload(task) => task.check(),
        };
        checked.map_err(|refused| spelled(&refused, str::to_owned))
    }

    /// `None` if the cell makes no checkpoints, or its settings contradict each other.
    pub fn route(&self) -> Option<Route> {
        self.checkpoint.clone()??.behind(self.burst.as_deref()).ok()
    }

    pub fn dataset(&self) -> Option<&str> {
        self.dataset.as_deref().filter(|_| !self.is_synthetic())
    }

    fn is_synthetic(&self) -> bool {
        matches!(&self.task, Task::Train(settings) if settings.synthetic)
    }

    pub(super) fn read(&mut self, dataset: &str) {
        if places_of(self.step()).any(|place| place == "dataset") {
            self.dataset = Some(dataset.to_owned());
        }
    }

    pub(super) fn needs_data(&self) -> bool {
        match self.task {
            Task::Ingest(_) | Task::Inspect => true,
            Task::Train(_) => !self.is_synthetic(),
            // A workload generates its own if none is named.
            Task::Probe(_) | Task::Checkpoint(_) | Task::Workload(_) => false,
        }
    }
}

/// Sets one value; lists, which a command may sweep, are refused.
fn one<S: Settings>(settings: &mut S, name: &str, level: &Level) -> Result<(), Refused> {
    let is_swept = |setting: &&Setting<S>| setting.name == name && setting.takes == Takes::Sweep;
    if S::TABLE.iter().any(|setting| is_swept(&setting)) && matches!(level, Level::Text(text) if text.contains(',')) {
        return Err(format!("a cell has one value; to vary {name}, make it a factor"));
    }
    settings.set(name, level)
}

fn places_of(step: Step) -> impl Iterator<Item = &'static str> {
    declared::places(step).iter().map(|(name, _)| *name)
}

pub(super) fn names(step: Step) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = declared(step).into_iter().map(|setting| setting.name).collect();
    names.sort_unstable();
    names
}

/// Settings with several values by default; in a study each becomes a factor.
pub(super) fn sweeps(step: Step) -> Vec<(&'static str, Vec<Level>)> {
    match step {
        Step::Ingest => sweeps_of::<IngestSettings>(),
        Step::Checkpoint => sweeps_of::<CheckpointSettings>(),
        _ => Vec::new(),
    }
}

fn sweeps_of<S: Settings>() -> Vec<(&'static str, Vec<Level>)> {
    let swept = S::TABLE.iter().filter(|setting| setting.takes == Takes::Sweep);
    let levels = |default: &'static str| default.split(',').map(Level::of_text).collect();
    swept.filter_map(|setting| Some((setting.name, levels(setting.default?)))).collect()
}

/// The real steps, in the folders of a run.
pub struct Steps<'a> {
    plan: &'a Plan,
    places: Places<'a>,
    find_placement: FindPlacement<'a>,
    cuda_folders: Vec<PathBuf>,
    extra_repeats: Option<usize>,
}

impl<'a> Steps<'a> {
    /// `data` holds generated data, `find_placement` finds the device of a folder, and `cuda_folders` may hold CUDA's
    /// libraries.
    pub fn new(plan: &'a Plan, data: &'a Path, find_placement: FindPlacement<'a>, cuda_folders: Vec<PathBuf>) -> Self {
        Self { plan, places: Places::new(plan, data), find_placement, cuda_folders, extra_repeats: None }
    }

    /// Watches every cell for other processes, and runs a disturbed repeat again.
    pub fn watched(self) -> Self {
        Self { extra_repeats: Some(EXTRA_REPEATS), ..self }
    }

    /// `None` if the cell saves no checkpoints.
    fn checkpoint_dirs(&self, cell: &CellPlan) -> Result<Option<CheckpointDirs>, Failed> {
        let keep = match &cell.work.task {
            Task::Train(settings) => settings.kept(),
            _ => Kept::in_each(KEEP),
        };
        let make =
            |route| CheckpointDirs::make(&self.places, &route, keep, cell.work.tier.as_deref(), self.find_placement);
        cell.work.route().map(make).transpose()
    }
}

impl Bench for Steps<'_> {
    fn measure(&mut self, cell: &CellPlan, observer: Observer<'_>) -> Result<StepResult, Failed> {
        let observer = Observer { extra_repeats: self.extra_repeats, ..observer };
        let data = self.places.data_of(cell);
        let checkpoint_dirs = self.checkpoint_dirs(cell)?;
        let dir = self.places.folder_of(cell.work.tier.as_deref());
        let placement = match &cell.work.task {
            Task::Probe(_) => (self.find_placement)(&dir),
            // Synthetic batches are not read.
            Task::Train(settings) if settings.synthetic => Placement::default(),
            Task::Checkpoint(_) => Placement::default(),
            _ => (self.find_placement)(data.as_deref().unwrap_or(&dir)),
        };
        let on = StepContext {
            shaped: self.plan.profile_of(cell).or(placement.shaped),
            kernel: placement.kernel,
            warmups: cell.warmups,
            repeats: cell.repeats,
            cuda_folders: self.cuda_folders.clone(),
            saves: checkpoint_dirs.as_ref().map(|checkpoint_dirs| checkpoint_dirs.places.clone()),
        };
        let mut measured = match &cell.work.task {
            Task::Ingest(settings) => {
                let data = data.expect("a plan has no ingest cell without a dataset");
                ingest::run(settings, data, on, observer)
            }
            Task::Probe(settings) => probe::run(settings, dir, data, on, observer),
            Task::Train(settings) => train::run(settings, data, on, observer),
            Task::Inspect => {
                inspect::run(&data.expect("a plan has no inspect cell without a dataset"), observer.cancel)
            }
            Task::Checkpoint(settings) => checkpoint::run(settings, &cell.work, on, observer),
            Task::Workload(task) => {
                let data = data.expect("a plan has no workload cell without data");
                workload::run(task, data, dir.join("workload-checkpoints"), on, observer)
            }
        }?;
        measured.notes.extend(placement.notes);
        measured.notes.extend(checkpoint_dirs.into_iter().flat_map(|checkpoint_dirs| checkpoint_dirs.notes));
        Ok(measured)
    }
}

/// An empty record; the study's head holds environment and command line.
fn record<C: forebay_record::Cell>() -> Record<C> {
    Record::new(Vec::new(), Environment::default())
}

/// The devices, rounds and folders of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepContext {
    /// Emulated by this process.
    pub shaped: Option<Profile>,
    /// Emulated by the kernel.
    pub kernel: Option<Profile>,
    /// Rounds before the measured ones; their results are not used.
    pub warmups: usize,
    /// Measured rounds.
    pub repeats: usize,
    /// Searched for CUDA's libraries.
    pub cuda_folders: Vec<PathBuf>,
    pub saves: Option<forebay_measure::Places>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_step_can_be_set_and_no_other() {
        for step in [Step::Ingest, Step::Probe, Step::Train, Step::Inspect, Step::Checkpoint, Step::Workload] {
            for name in names(step) {
                let tried = [
                    Level::Integer(4096),
                    Level::Integer(8),
                    Level::Number(0.5),
                    Level::Flag(true),
                    Level::Text("alexnet".to_owned()),
                    Level::Text("adamw".to_owned()),
                    Level::Text("tf32".to_owned()),
                    Level::Text("emulated:3ms".to_owned()),
                    Level::Text("auto".to_owned()),
                    Level::Text("cpu".to_owned()),
                    Level::Text("sync".to_owned()),
                    Level::Text("burst".to_owned()),
                    Level::Text("skip".to_owned()),
                    Level::Text("tensorflow".to_owned()),
                    Level::Text("random".to_owned()),
                    Level::Text("u8".to_owned()),
                    Level::Text("nchw".to_owned()),
                    Level::Text("4K/30:8K/70".to_owned()),
                    Level::Text("2s".to_owned()),
                    Level::Text("window:8".to_owned()),
                    Level::Text("4:16".to_owned()),
                ];
                let set = |level: &Level| Work::new(step, 0).set(name, level).is_ok();
                assert!(tried.iter().any(set), "{step:?} {name}");
                assert!(!tried.iter().all(set), "{step:?} {name} takes anything");
            }
            assert!(Work::new(step, 0).set("colour", &Level::Integer(1)).is_err());
        }
    }

    #[test]
    fn a_probe_that_contradicts_itself_is_refused() {
        let probe = |mode: &str, with: &[&str]| {
            let mut work = Work::new(Step::Probe, 0);
            work.set("mode", &Level::Text(mode.to_owned())).unwrap();
            with.iter().for_each(|name| work.set(name, &Level::Text("4K/100".to_owned())).unwrap());
            work.check()
        };
        assert_eq!(probe("random,files", &["mix"]), Ok(()));
        assert_eq!(probe("sequential", &[]), Ok(()));
        let said = "mix and like both set the sizes; omit one";
        assert_eq!(probe("random", &["mix", "like"]).unwrap_err(), said);
        assert!(probe("sequential", &["mix"]).unwrap_err().starts_with("mix sets the sizes of random requests"));
    }
}
