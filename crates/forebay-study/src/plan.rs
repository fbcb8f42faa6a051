//! Turns a study into a validated plan. Errors are reported before anything is generated or run.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use forebay_record::{
    Engine, Environment, ExperimentSpec, Level, Levels, SCHEMA, Scale, Scaled, StudyHead, StudySpec, TierKind,
    TierNote, TierSpec,
};
use forebay_storage::Profile;
use forebay_units::{PathText, did_you_mean, suggest};

use super::dataset::{self, DatasetPlan, DatasetSource};
use super::error::{Error, Result};
use super::matrix::{self, MAX_CELLS};
use super::order::permutation;
use super::places::FindPlacement;
use super::steps::{Route, Task, Work};
use super::{check, cores, dataset_size, steps};

#[derive(Debug, Clone)]
pub struct Plan {
    /// Includes overrides from the command line.
    pub spec: StudySpec,
    pub scale: Scale,
    pub datasets: Vec<DatasetPlan>,
    pub tiers: Vec<TierPlan>,
    /// In the order of the experiments; [`Plan::order`] is the order of the run.
    pub cells: Vec<CellPlan>,
}

#[derive(Debug, Clone)]
pub struct TierPlan {
    pub name: String,
    pub backing: Backing,
}

#[derive(Debug, Clone)]
pub enum Backing {
    /// Emulated by this process.
    Shaped(Profile),
    /// A folder on a real device.
    Folder(PathBuf),
}

#[derive(Debug, Clone, PartialEq)]
pub struct CellPlan {
    /// Experiment and levels; unique in the plan.
    pub id: String,
    pub experiment: String,
    pub factors: Levels,
    /// Rounds before the measured ones; their results are not used.
    pub warmups: usize,
    /// Measured rounds.
    pub repeats: usize,
    pub work: Work,
    /// Why this machine cannot run it; `None` if it can.
    pub left_out: Option<String>,
}

impl Plan {
    /// Validates a study and lays out its cells for this machine.
    ///
    /// # Errors
    /// [`Error::Plan`] with the place in the file and, where possible, a suggestion.
    pub fn new(spec: StudySpec, scale: Scale) -> Result<Self> {
        let n_cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        Self::for_cores(spec, scale, n_cores)
    }

    /// Plans for a machine with `n_cores` cores; the plan's study has numbers in place of `"cores"`.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn for_cores(mut spec: StudySpec, scale: Scale, n_cores: u64) -> Result<Self> {
        check::names(&spec)?;
        spec.experiments.iter_mut().for_each(sweep);
        cores::expand(&mut spec, n_cores)?;
        spec.experiments.iter().try_for_each(check::experiment)?;
        let datasets = dataset::plans(&spec.datasets, scale)?;
        let tiers = spec.tiers.iter().map(tier_plan).collect::<Result<_>>()?;
        check::figures_and_references(&spec)?;
        let mut plan = Self { spec, scale, datasets, tiers, cells: Vec::new() };
        for experiment in &plan.spec.experiments {
            let cells = plan.cells_of(experiment)?;
            plan.cells.extend(cells);
        }
        plan.refuse_duplicates()?;
        plan.leave_out_unfit(forebay_measure::memory());
        Ok(plan)
    }

    /// Indices of the cells in running order: random because the machine drifts, fixed per seed.
    pub fn order(&self) -> Vec<usize> {
        permutation(self.cells.len(), self.spec.seed)
    }

    pub fn dataset(&self, name: &str) -> Option<&DatasetPlan> {
        self.datasets.iter().find(|dataset| dataset.name == name)
    }

    pub fn tier(&self, name: &str) -> Option<&TierPlan> {
        self.tiers.iter().find(|tier| tier.name == name)
    }

    pub fn profile_of(&self, cell: &CellPlan) -> Option<Profile> {
        self.profile(cell.work.tier.as_deref()?)
    }

    pub fn profile(&self, tier: &str) -> Option<Profile> {
        match &self.tier(tier)?.backing {
            Backing::Shaped(profile) => Some(profile.clone()),
            Backing::Folder(_) => None,
        }
    }

    fn cells_of(&self, experiment: &ExperimentSpec) -> Result<Vec<CellPlan>> {
        let place = check::place_of(experiment);
        let factors: Vec<matrix::Factor> =
            experiment.factors.iter().map(|(name, levels)| (name.clone(), levels.at(self.scale).clone())).collect();
        let size = matrix::size(experiment.design, &factors);
        if size.is_none_or(|size| self.cells.len().saturating_add(size) > MAX_CELLS) {
            return Err(Error::plan(place, format!("a study may have at most {MAX_CELLS} cells")));
        }
        let combinations = matrix::combinations(experiment.design, &factors);
        combinations.into_iter().map(|levels| self.cell(experiment, levels)).collect()
    }

    fn cell(&self, experiment: &ExperimentSpec, factors: Levels) -> Result<CellPlan> {
        let mut values = BTreeMap::new();
        let at_scale = |(name, value): (&String, &Scaled<Level>)| (name.clone(), value.at(self.scale).clone());
        values.extend(experiment.settings.iter().map(at_scale));
        let holds = |when: &Levels| when.iter().all(|(name, level)| factors.get(name) == Some(level));
        for rule in experiment.rules.iter().filter(|rule| holds(&rule.when)) {
            values.extend(rule.set.iter().map(at_scale));
        }
        values.extend(factors.clone());
        let id = matrix::id(&experiment.name, &factors);
        let mut work = Work::new(experiment.run, self.spec.seed);
        if let Some(dataset) = &experiment.dataset {
            work.read(dataset);
        }
        for (name, level) in &values {
            work.set(name, level).map_err(|reason| Error::plan(format!("cell {id}, {name}"), reason))?;
        }
        if let Task::Workload(task) = &mut work.task {
            task.find(&self.spec.workloads);
        }
        work.check().map_err(|reason| Error::plan(format!("cell {id}"), reason))?;
        self.check_places(&id, &work)?;
        if let Some(n_samples) = work.dataset().and_then(|name| dataset_size::n_made(self, name)) {
            dataset_size::for_cell(&id, &work, n_samples)?;
        }
        let rounds = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(CellPlan {
            id,
            experiment: experiment.name.clone(),
            factors,
            warmups: rounds(*experiment.warmups.at(self.scale)),
            repeats: rounds(*experiment.repeats.at(self.scale)),
            work,
            left_out: None,
        })
    }

    /// The dataset and the tier of a cell must exist and be compatible.
    fn check_places(&self, id: &str, work: &Work) -> Result<()> {
        let refused = |reason: String, hint| Error::Plan { place: format!("cell {id}"), reason, hint };
        let known = |name: &str| {
            self.tier(name).ok_or_else(|| {
                let all = self.tiers.iter().map(|tier| tier.name.as_str());
                refused(format!("unknown tier \"{name}\""), suggest(name, all))
            })
        };
        let tier = work.tier.as_deref().map(known).transpose()?;
        work.route().iter().flat_map(Route::tiers).try_for_each(|name| known(name).map(drop))?;
        let backing = tier.map(|tier| &tier.backing);
        if let (Task::Probe(settings), Some(Backing::Shaped(_))) = (&work.task, backing)
            && settings.engine.contains(&Engine::Uring)
        {
            return Err(refused("io_uring bypasses an emulated tier; use engine sync or direct".to_owned(), None));
        }
        let Some(name) = work.dataset() else {
            return match work.needs_data() {
                true => Err(refused("missing `dataset`".to_owned(), None)),
                false => Ok(()),
            };
        };
        let dataset = self.dataset(name).ok_or_else(|| {
            let all = self.datasets.iter().map(|dataset| dataset.name.as_str());
            refused(format!("unknown dataset \"{name}\""), suggest(name, all))
        })?;
        let is_workload = matches!(work.task, Task::Workload(_));
        if is_workload && !matches!(dataset.source, DatasetSource::Path(_)) {
            let reason = format!(
                "dataset \"{name}\" consists of images; a workload generates its data or reads a dataset with `path`"
            );
            return Err(refused(reason, None));
        }
        match (work.needs_data() || is_workload, &dataset.source, backing) {
            (true, DatasetSource::Path(path), Some(Backing::Folder(folder))) => {
                let (path, folder) = (path.escaped(), folder.escaped());
                let hint = "make \"dataset\" the factor, with a dataset on each device".to_owned();
                Err(refused(format!("the dataset is at {path} and cannot also be on {folder}"), Some(hint)))
            }
            _ => Ok(()),
        }
    }

    fn refuse_duplicates(&self) -> Result<()> {
        let mut seen = HashSet::new();
        match self.cells.iter().find(|cell| !seen.insert(cell.id.as_str())) {
            Some(duplicate) => {
                Err(Error::plan(format!("cell {}", duplicate.id), "duplicate cell: a level is listed twice"))
            }
            None if self.cells.is_empty() => Err(Error::plan("the study", "no experiments")),
            None => Ok(()),
        }
    }

    pub fn head(
        &self,
        command_line: Vec<String>,
        environment: Environment,
        data: &Path,
        find_placement: FindPlacement<'_>,
    ) -> StudyHead {
        StudyHead {
            schema: SCHEMA.to_owned(),
            command: "study".to_owned(),
            command_line,
            environment,
            spec: self.spec.clone(),
            scale: self.scale,
            n_cells: self.cells.len() as u64,
            tiers: self.tier_notes(find_placement),
            data: Some(data.escaped().into_owned()),
            notes: Vec::new(),
        }
    }

    /// Checks that existing data is there and large enough, and that the folders of tiers exist: data generated in the
    /// mount point of an unmounted device would end up on another device.
    ///
    /// # Errors
    /// [`Error::Plan`] with the tier or the dataset.
    pub fn check_folders(&self) -> Result<()> {
        for tier in &self.tiers {
            match &tier.backing {
                Backing::Folder(path) if !path.is_dir() => {
                    let reason = format!("{} is not an existing folder", path.escaped());
                    return Err(Error::plan(format!("tier \"{}\"", tier.name), reason));
                }
                _ => {}
            }
        }
        dataset::check_existing(&self.datasets)?;
        dataset_size::check_existing(self)
    }

    pub fn tier_notes(&self, find_placement: FindPlacement<'_>) -> Vec<TierNote> {
        let note = |tier: &TierPlan| {
            let (kind, description) = match &tier.backing {
                Backing::Shaped(profile) => (TierKind::Shaped, profile.describe()),
                Backing::Folder(path) => {
                    let placement = find_placement(path);
                    let (kind, what) = match (placement.kernel, placement.shaped) {
                        (Some(profile), _) => (TierKind::Kernel, Some(profile.describe())),
                        (None, Some(profile)) => (TierKind::Shaped, Some(profile.describe())),
                        (None, None) => {
                            (TierKind::Device, forebay_measure::describe_environment(path, "").data_file_system)
                        }
                    };
                    (
                        kind,
                        what.map_or_else(|| path.escaped().into_owned(), |what| format!("{what}, {}", path.escaped())),
                    )
                }
            };
            TierNote { name: tier.name.clone(), kind, description }
        };
        self.tiers.iter().map(note).collect()
    }
}

/// Turns settings that the command sweeps by default into factors, unless the study sets them.
fn sweep(experiment: &mut ExperimentSpec) {
    for (name, levels) in steps::sweeps(experiment.run) {
        let is_set =
            experiment.settings.contains_key(name) || experiment.rules.iter().any(|rule| rule.set.contains_key(name));
        if !is_set {
            experiment.factors.entry(name.to_owned()).or_insert(Scaled::Both(levels));
        }
    }
}

fn tier_plan(spec: &TierSpec) -> Result<TierPlan> {
    let place = || format!("tier \"{}\"", spec.name);
    let backing = match (&spec.profile, &spec.path) {
        (Some(_), Some(_)) => return Err(Error::plan(place(), "give `profile` or `path`, not both")),
        (None, None) => return Err(Error::plan(place(), "give `profile` (hdd, ssd, optane, lustre, s3) or `path`")),
        (None, Some(path)) => Backing::Folder(path.clone()),
        (Some(profile), None) => Backing::Shaped(profile.parse().map_err(|reason: String| Error::Plan {
            place: format!("{}, profile", place()),
            reason,
            hint: did_you_mean(profile, Profile::NAMES),
        })?),
    };
    Ok(TierPlan { name: spec.name.clone(), backing })
}
