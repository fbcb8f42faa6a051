//! From a study's file to its plan: validated and total. What is wrong is said before anything is made or run.

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

/// A study that can be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The study, with what was changed on the command line.
    pub spec: StudySpec,
    /// How much of it.
    pub scale: Scale,
    /// Its data.
    pub datasets: Vec<DatasetPlan>,
    /// Its places.
    pub tiers: Vec<TierPlan>,
    /// Its cells, experiment by experiment.
    pub cells: Vec<CellPlan>,
}

/// A place for data.
#[derive(Debug, Clone)]
pub struct TierPlan {
    /// What the factor `tier` calls it.
    pub name: String,
    /// What stands behind it.
    pub served: Served,
}

/// What stands behind a tier.
#[derive(Debug, Clone)]
pub enum Served {
    /// The shaper in this process.
    Shaped(Profile),
    /// A folder on a real device.
    Folder(PathBuf),
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPlan {
    /// Experiment and levels; no two cells have the same.
    pub id: String,
    /// The experiment.
    pub experiment: String,
    /// The factors' levels.
    pub factors: Levels,
    /// Rounds that are not kept.
    pub warmups: usize,
    /// Rounds that are.
    pub repeats: usize,
    /// What is done.
    pub work: Work,
    /// Why it is not run on this machine; `None` when it is.
    pub left_out: Option<String>,
}

impl Plan {
    /// Checks a study and lays out its cells for this machine.
    ///
    /// # Errors
    /// [`Error::Plan`] with the place in the file, and what was probably meant.
    pub fn new(spec: StudySpec, scale: Scale) -> Result<Self> {
        let n_cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        Self::for_cores(spec, scale, n_cores)
    }

    /// The same for a machine of so many cores. The plan's study has numbers where the file has the machine's cores.
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
        plan.refuse_doubles()?;
        plan.leave_out_what_does_not_fit(forebay_measure::memory());
        Ok(plan)
    }

    /// The numbers of the cells in the order in which they are run: random against drift, the same for a seed.
    pub fn order(&self) -> Vec<usize> {
        permutation(self.cells.len(), self.spec.seed)
    }

    /// A dataset by its name.
    pub fn dataset(&self, name: &str) -> Option<&DatasetPlan> {
        self.datasets.iter().find(|dataset| dataset.name == name)
    }

    /// A tier by its name.
    pub fn tier(&self, name: &str) -> Option<&TierPlan> {
        self.tiers.iter().find(|tier| tier.name == name)
    }

    /// The device a cell emulates.
    pub fn profile_of(&self, cell: &CellPlan) -> Option<Profile> {
        self.profile(cell.work.tier.as_deref()?)
    }

    /// The device that is emulated for a tier.
    pub fn profile(&self, tier: &str) -> Option<Profile> {
        match &self.tier(tier)?.served {
            Served::Shaped(profile) => Some(profile.clone()),
            Served::Folder(_) => None,
        }
    }

    fn cells_of(&self, experiment: &ExperimentSpec) -> Result<Vec<CellPlan>> {
        let place = check::place_of(experiment);
        let factors: Vec<matrix::Factor> =
            experiment.factors.iter().map(|(name, levels)| (name.clone(), levels.at(self.scale).clone())).collect();
        let size = matrix::size(experiment.design, &factors);
        if size.is_none_or(|size| self.cells.len().saturating_add(size) > MAX_CELLS) {
            return Err(Error::plan(place, format!("the study has more than {MAX_CELLS} cells")));
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

    /// The dataset and the tier that a cell names are there, and go together.
    fn check_places(&self, id: &str, work: &Work) -> Result<()> {
        let refused = |reason: String, hint| Error::Plan { place: format!("cell {id}"), reason, hint };
        let known = |name: &str| {
            self.tier(name).ok_or_else(|| {
                let all = self.tiers.iter().map(|tier| tier.name.as_str());
                refused(format!("there is no tier \"{name}\""), suggest(name, all))
            })
        };
        let tier = work.tier.as_deref().map(known).transpose()?;
        work.route().iter().flat_map(Route::tiers).try_for_each(|name| known(name).map(drop))?;
        let served = tier.map(|tier| &tier.served);
        if let (Task::Probe(settings), Some(Served::Shaped(_))) = (&work.task, served)
            && settings.engine.contains(&Engine::Uring)
        {
            return Err(refused("io_uring goes past an emulated tier: give engine sync or direct".to_owned(), None));
        }
        let Some(name) = work.dataset() else {
            return match work.needs_data() {
                true => Err(refused("it has no dataset to read: give one".to_owned(), None)),
                false => Ok(()),
            };
        };
        let dataset = self.dataset(name).ok_or_else(|| {
            let all = self.datasets.iter().map(|dataset| dataset.name.as_str());
            refused(format!("there is no dataset \"{name}\""), suggest(name, all))
        })?;
        let is_workload = matches!(work.task, Task::Workload(_));
        if is_workload && !matches!(dataset.source, DatasetSource::Path(_)) {
            let reason = format!("dataset \"{name}\" is made of images: a workload reads its own data, or a path");
            return Err(refused(reason, None));
        }
        match (work.needs_data() || is_workload, &dataset.source, served) {
            (true, DatasetSource::Path(path), Some(Served::Folder(folder))) => {
                let (path, folder) = (path.escaped(), folder.escaped());
                let hint = "make \"dataset\" the factor, with a dataset on each device".to_owned();
                Err(refused(format!("the dataset lies at {path} and cannot lie on {folder} too"), Some(hint)))
            }
            _ => Ok(()),
        }
    }

    fn refuse_doubles(&self) -> Result<()> {
        let mut seen = HashSet::new();
        match self.cells.iter().find(|cell| !seen.insert(cell.id.as_str())) {
            Some(double) => {
                Err(Error::plan(format!("cell {}", double.id), "two cells have this id: a level is given twice"))
            }
            None if self.cells.is_empty() => Err(Error::plan("the study", "it has no experiment, and so no cell")),
            None => Ok(()),
        }
    }

    /// The first line of a run's record.
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

    /// Looks whether the data is there that is not made, and enough of it, and the folders that stand for tiers: data made on a mount point
    /// that is not mounted would lie on another device.
    ///
    /// # Errors
    /// [`Error::Plan`] with the tier or the dataset.
    pub fn check_folders(&self) -> Result<()> {
        for tier in &self.tiers {
            match &tier.served {
                Served::Folder(path) if !path.is_dir() => {
                    let reason = format!("{} is not a folder that is there", path.escaped());
                    return Err(Error::plan(format!("tier \"{}\"", tier.name), reason));
                }
                _ => {}
            }
        }
        dataset::check_there(&self.datasets)?;
        dataset_size::check_there(self)
    }

    /// What stands behind each tier, for the record.
    pub fn tier_notes(&self, find_placement: FindPlacement<'_>) -> Vec<TierNote> {
        let note = |tier: &TierPlan| {
            let (kind, description) = match &tier.served {
                Served::Shaped(profile) => (TierKind::Shaped, profile.describe()),
                Served::Folder(path) => {
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

/// Makes factors of what the experiment's command would sweep and the study says nothing of.
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
    let served = match (&spec.profile, &spec.path) {
        (Some(_), Some(_)) => return Err(Error::plan(place(), "give profile or path, not both")),
        (None, None) => return Err(Error::plan(place(), "give profile (hdd, ssd, optane, lustre) or path")),
        (None, Some(path)) => Served::Folder(path.clone()),
        (Some(profile), None) => Served::Shaped(profile.parse().map_err(|reason: String| Error::Plan {
            place: format!("{}, profile", place()),
            reason,
            hint: did_you_mean(profile, Profile::NAMES),
        })?),
    };
    Ok(TierPlan { name: spec.name.clone(), served })
}
