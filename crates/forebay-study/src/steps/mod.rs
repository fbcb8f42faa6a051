//! What a cell does: one file a step, with the names and values it may be told.

mod checkpoint;
mod ingest;
mod inspect;
mod probe;
mod route;
mod train;
mod value;
mod workload;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use forebay_measure::Observer;
use forebay_record::{Environment, Level, Measured, Record, Step};
use forebay_storage::Profile;

pub use checkpoint::CheckpointSettings;
pub use ingest::IngestSettings;
pub use inspect::InspectSettings;
pub use probe::{ProbeKind, ProbeRequest, ProbeSettings};
pub use route::Route;
pub use train::{Saving, TrainDevice, TrainSettings};
pub use workload::WorkloadSettings;
pub(super) use workload::is_key;

use super::checkpoint_dirs::CheckpointDirs;
use super::places::{FindPlacement, Placement, Places};
use super::plan::{CellPlan, Plan};

/// Why a cell failed.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepResult {
    /// What was measured; only a bench that measures nothing has none.
    pub measured: Option<Measured>,
    /// What a reader must know to understand the numbers.
    pub notes: Vec<String>,
}

/// What measures cells.
///
/// When it is cancelled it comes back soon; what it then gives is dropped.
pub trait Bench {
    /// Measures a cell.
    ///
    /// # Errors
    /// Whatever kept the cell from being measured; the study records it and goes on.
    fn measure(&mut self, cell: &CellPlan, observer: Observer<'_>) -> Result<StepResult, Failed>;
}

/// What a cell does, with all its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// The ingest micro-benchmark.
    Ingest(IngestSettings),
    /// The raw ceilings.
    Probe(ProbeSettings),
    /// Training.
    Train(Box<TrainSettings>),
    /// What a dataset consists of.
    Inspect(InspectSettings),
    /// Saving and restoring a state.
    Checkpoint(CheckpointSettings),
    /// A workload in the manner of DLIO.
    Workload(Box<WorkloadSettings>),
}

impl Work {
    pub(super) fn new(step: Step, seed: u64) -> Self {
        match step {
            Step::Ingest => Self::Ingest(IngestSettings::new(seed)),
            Step::Probe => Self::Probe(ProbeSettings::new()),
            Step::Train => Self::Train(Box::new(TrainSettings::new(seed))),
            Step::Inspect => Self::Inspect(InspectSettings::default()),
            Step::Checkpoint => Self::Checkpoint(CheckpointSettings::new(seed)),
            Step::Workload => Self::Workload(Box::new(WorkloadSettings::new())),
        }
    }

    /// What the cell does, as the file has it.
    pub fn step(&self) -> Step {
        match self {
            Self::Ingest(_) => Step::Ingest,
            Self::Probe(_) => Step::Probe,
            Self::Train(_) => Step::Train,
            Self::Inspect(_) => Step::Inspect,
            Self::Checkpoint(_) => Step::Checkpoint,
            Self::Workload(_) => Step::Workload,
        }
    }

    /// Sets one of the step's [`names`], or a key of a workload.
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), String> {
        match self {
            Self::Ingest(settings) => settings.set(name, level),
            Self::Probe(settings) => settings.set(name, level),
            Self::Train(settings) => settings.set(name, level),
            Self::Inspect(settings) => settings.set(name, level),
            Self::Checkpoint(settings) => settings.set(name, level),
            Self::Workload(settings) => settings.set(name, level),
        }
    }

    /// What contradicts itself or lacks something.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Ingest(settings) => settings.check(),
            Self::Probe(settings) => settings.check(),
            Self::Train(settings) => settings.check(),
            Self::Inspect(_) => Ok(()),
            Self::Checkpoint(settings) => settings.check(),
            Self::Workload(settings) => settings.check(),
        }
    }

    /// The name of the tier that it reads or probes.
    pub fn tier(&self) -> Option<&str> {
        match self {
            Self::Ingest(settings) => settings.tier.as_deref(),
            Self::Probe(settings) => settings.tier.as_deref(),
            Self::Train(settings) => settings.tier.as_deref(),
            Self::Inspect(settings) => settings.tier.as_deref(),
            Self::Workload(settings) => settings.tier.as_deref(),
            Self::Checkpoint(_) => None,
        }
    }

    /// Where its checkpoints go; `None` when it makes none.
    pub fn route(&self) -> Option<Route> {
        match self {
            Self::Train(settings) => settings.saving.route(),
            Self::Checkpoint(settings) => settings.route(),
            Self::Ingest(_) | Self::Probe(_) | Self::Inspect(_) | Self::Workload(_) => None,
        }
    }

    /// The name of the dataset it reads or imitates.
    pub fn dataset(&self) -> Option<&str> {
        match self {
            Self::Ingest(settings) => settings.dataset.as_deref(),
            Self::Probe(settings) => settings.like.as_deref(),
            Self::Train(settings) => settings.dataset.as_deref().filter(|_| !settings.synthetic),
            Self::Inspect(settings) => settings.dataset.as_deref(),
            Self::Workload(settings) => settings.dataset.as_deref(),
            Self::Checkpoint(_) => None,
        }
    }

    /// Gives it the dataset that its experiment names.
    pub(super) fn read(&mut self, dataset: &str) {
        let place = match self {
            Self::Ingest(settings) => &mut settings.dataset,
            Self::Train(settings) => &mut settings.dataset,
            Self::Inspect(settings) => &mut settings.dataset,
            Self::Workload(settings) => &mut settings.dataset,
            Self::Probe(_) | Self::Checkpoint(_) => return,
        };
        *place = Some(dataset.to_owned());
    }

    /// Whether it cannot be without a dataset.
    pub(super) fn needs_data(&self) -> bool {
        match self {
            Self::Ingest(_) | Self::Inspect(_) => true,
            Self::Train(settings) => !settings.synthetic,
            // A workload makes its own where none is named.
            Self::Probe(_) | Self::Checkpoint(_) | Self::Workload(_) => false,
        }
    }
}

/// The settings and factors a step knows.
pub(super) fn names(step: Step) -> &'static [&'static str] {
    match step {
        Step::Ingest => ingest::NAMES,
        Step::Probe => probe::NAMES,
        Step::Train => train::NAMES,
        Step::Inspect => inspect::NAMES,
        Step::Checkpoint => checkpoint::NAMES,
        Step::Workload => workload::NAMES,
    }
}

/// The real steps, on the places of a run.
pub struct Steps<'a> {
    plan: &'a Plan,
    places: Places<'a>,
    find_placement: FindPlacement<'a>,
    /// Looked for once, when a cell asks.
    gpu: OnceCell<train::Gpu>,
    cuda_folders: Vec<PathBuf>,
}

impl<'a> Steps<'a> {
    /// Cells of the plan; data that is made lies in `data`, what folders stand on is found by `find_placement`, and CUDA's
    /// libraries may lie in `cuda_folders`.
    pub fn new(plan: &'a Plan, data: &'a Path, find_placement: FindPlacement<'a>, cuda_folders: Vec<PathBuf>) -> Self {
        Self { plan, places: Places::new(plan, data), find_placement, gpu: OnceCell::new(), cuda_folders }
    }

    /// The folders of a cell's checkpoints; `None` when it makes none.
    fn checkpoint_dirs(&self, cell: &CellPlan) -> Result<Option<CheckpointDirs>, Failed> {
        let keep = match &cell.work {
            Work::Train(settings) => settings.saving.keep(),
            _ => train::KEEP,
        };
        let make = |route| CheckpointDirs::make(&self.places, &route, keep, self.find_placement);
        cell.work.route().map(make).transpose()
    }
}

impl Bench for Steps<'_> {
    fn measure(&mut self, cell: &CellPlan, observer: Observer<'_>) -> Result<StepResult, Failed> {
        let data = self.places.data_of(cell);
        let checkpoint_dirs = self.checkpoint_dirs(cell)?;
        let dir = self.places.folder_of(cell.work.tier());
        let stands_on = match &cell.work {
            Work::Probe(_) => (self.find_placement)(&dir),
            // Synthetic batches stand on nothing, and so does what only has a checkpoint_dirs.
            Work::Train(settings) if settings.synthetic => Placement::default(),
            Work::Checkpoint(_) => Placement::default(),
            _ => (self.find_placement)(data.as_deref().unwrap_or(&dir)),
        };
        let on = Stage {
            shaped: self.plan.profile_of(cell).or(stands_on.shaped),
            kernel: stands_on.kernel,
            warmups: cell.warmups,
            repeats: cell.repeats,
            cuda_folders: self.cuda_folders.clone(),
            saves: checkpoint_dirs.as_ref().map(|checkpoint_dirs| checkpoint_dirs.places.clone()),
        };
        let mut measured = match &cell.work {
            Work::Ingest(settings) => {
                let data = data.expect("a plan has no ingest cell without a dataset");
                ingest::run(settings, data, on, observer)
            }
            Work::Probe(settings) => probe::run(&ProbeRequest { settings, dir, like: data, on }, observer),
            Work::Train(settings) => {
                let gpu = match settings.device {
                    Some(TrainDevice::Auto) => self.gpu.get_or_init(|| train::open_gpu(&self.cuda_folders)),
                    _ => &Ok(()),
                };
                train::run(settings, data, on, gpu, observer)
            }
            Work::Inspect(_) => {
                inspect::run(&data.expect("a plan has no inspect cell without a dataset"), observer.cancel)
            }
            Work::Checkpoint(settings) => checkpoint::run(settings, on, observer),
            Work::Workload(settings) => {
                let data = data.expect("a plan has no workload cell without data");
                workload::run(settings, data, dir.join("workload-checkpoints"), on, observer)
            }
        }?;
        measured.notes.extend(stands_on.notes);
        measured.notes.extend(checkpoint_dirs.into_iter().flat_map(|checkpoint_dirs| checkpoint_dirs.notes));
        Ok(measured)
    }
}

/// The record of a cell: where and by which command it ran stands in the study's own head.
fn record<C: forebay_record::Cell>() -> Record<C> {
    Record::new(Vec::new(), Environment::default())
}

/// What a cell runs on, and how often.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// The device that this process emulates.
    pub shaped: Option<Profile>,
    /// The device that the kernel emulates.
    pub kernel: Option<Profile>,
    /// Rounds that are not kept.
    pub warmups: usize,
    /// Rounds that are.
    pub repeats: usize,
    /// Folders that CUDA's libraries may lie in.
    pub cuda_folders: Vec<PathBuf>,
    /// Where its checkpoints go.
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
                    Level::Text("sync".to_owned()),
                    Level::Text("burst".to_owned()),
                    Level::Text("tensorflow".to_owned()),
                    Level::Text("random".to_owned()),
                    Level::Text("4K/30:8K/70".to_owned()),
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
        assert_eq!(probe("random", &["mix", "like"]).unwrap_err(), "give mix or like, not both");
        assert!(probe("sequential", &["mix"]).unwrap_err().starts_with("mix and like are for random requests"));
    }
}
