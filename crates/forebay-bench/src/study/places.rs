//! Where a run's bytes lie: one folder for data that is made, or a tier's own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use forebay_dataset::MakePlan;
use forebay_storage::Profile;

use super::plan::{CellPlan, DatasetPlan, DatasetSource, Plan, Served};

/// The folder that a study makes on a tier that is a folder itself.
const ON_TIER: &str = "forebay-data";

/// What a folder stands on: an emulated device that was brought up, or nothing of ours.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ground {
    /// The device that this process has to emulate there.
    pub shaped: Option<Profile>,
    /// The device that the kernel emulates there.
    pub kernel: Option<Profile>,
    /// What the record should say of it.
    pub notes: Vec<String>,
}

/// Looks what a folder stands on.
pub type LookDown<'a> = &'a dyn Fn(&Path) -> Ground;

/// The folders of a run.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    plan: &'a Plan,
    data: &'a Path,
}

/// A dataset that must be there before its cells are run.
#[derive(Debug, Clone)]
pub struct ToMake<'a> {
    /// What studies call it.
    pub name: &'a str,
    /// What is made.
    pub plan: &'a MakePlan,
    /// Where.
    pub dir: PathBuf,
}

impl<'a> Places<'a> {
    /// The places of a plan; `data` is where data is made that belongs to no tier's folder.
    pub fn new(plan: &'a Plan, data: &'a Path) -> Self {
        Self { plan, data }
    }

    /// Where a tier's bytes lie: its own folder, or that of all data.
    pub fn folder_of(&self, tier: Option<&str>) -> PathBuf {
        match tier.and_then(|name| self.plan.tier(name)).map(|tier| &tier.served) {
            Some(Served::Folder(path)) => path.join(ON_TIER),
            _ => self.data.to_owned(),
        }
    }

    /// Where the dataset of a cell lies; `None` when it needs none.
    pub fn data_of(&self, cell: &CellPlan) -> Option<PathBuf> {
        let dataset = self.plan.dataset(cell.work.dataset()?)?;
        Some(self.dir_of(dataset, cell.work.tier()))
    }

    fn dir_of(&self, dataset: &DatasetPlan, tier: Option<&str>) -> PathBuf {
        match &dataset.source {
            DatasetSource::Path(path) => path.clone(),
            DatasetSource::Make(plan) => self.folder_of(tier).join(folder_name(plan)),
        }
    }

    /// What must be made for these cells, each place once.
    pub fn to_make<'c>(&self, cells: impl IntoIterator<Item = &'c CellPlan>) -> Vec<ToMake<'a>> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for cell in cells {
            let Some(dataset) = cell.work.dataset().and_then(|name| self.plan.dataset(name)) else { continue };
            let DatasetSource::Make(plan) = &dataset.source else { continue };
            let dir = self.dir_of(dataset, cell.work.tier());
            if seen.insert(dir.clone()) {
                all.push(ToMake { name: &dataset.name, plan, dir });
            }
        }
        all
    }

    /// All folders that cells of these write to.
    pub fn folders<'c>(&self, cells: impl IntoIterator<Item = &'c CellPlan>) -> BTreeSet<PathBuf> {
        cells.into_iter().map(|cell| self.folder_of(cell.work.tier())).collect()
    }
}

/// Named by what is in it, so that studies and scales can share a folder.
fn folder_name(plan: &MakePlan) -> String {
    let made = plan.parameters();
    let profile = match made.profile {
        forebay_dataset::Profile::Imagenet => "imagenet",
        forebay_dataset::Profile::Caltech101 => "caltech101",
    };
    format!("{profile}-{}-seed{}", made.count, made.seed)
}
