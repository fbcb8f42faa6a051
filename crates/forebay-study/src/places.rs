//! The folders of a run's data: one for generated data, and those of tiers that are folders.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_dataset::{LIST, MANIFEST, MakePlan, Manifest};
use forebay_storage::Profile;
use forebay_units::{Bytes, Fnv};

use forebay_workload::Workload;

use super::dataset::{DatasetPlan, DatasetSource, Shards, pack_plan};
use super::plan::{Backing, CellPlan, Plan};
use super::records;
use super::steps::Task;

/// The subfolder for generated data on tiers that are folders.
const ON_TIER: &str = "forebay-data";

/// The device that a folder is on: emulated and mounted, or real.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement {
    /// Emulated by this process.
    pub shaped: Option<Profile>,
    /// Emulated by the kernel.
    pub kernel: Option<Profile>,
    /// For the record.
    pub notes: Vec<String>,
}

impl Placement {
    /// The notes, extended for a `--tier` that is emulated on top.
    pub fn notes_with(&self, tier: Option<&Profile>) -> Vec<String> {
        let mut notes = self.notes.clone();
        match (tier, &self.kernel) {
            (Some(tier), None) if self.shaped.is_some() => {
                if let Some(first) = notes.first_mut() {
                    first.push_str(&format!("; --tier {} is used instead", tier.name));
                }
            }
            (Some(tier), Some(kernel)) => notes.push(format!(
                "both limits apply: --tier {} is shaped in this process, on top of the kernel's limits of tier {}",
                tier.name, kernel.name
            )),
            _ => {}
        }
        notes
    }
}

pub type FindPlacement<'a> = &'a dyn Fn(&Path) -> Placement;

#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    plan: &'a Plan,
    data: &'a Path,
}

/// A dataset that must exist before its cells run.
#[derive(Debug, Clone)]
pub struct ToMake<'a> {
    pub name: String,
    pub making: Making<'a>,
    pub dir: PathBuf,
}

#[derive(Debug, Clone)]
pub enum Making<'a> {
    Make(&'a MakePlan),
    Pack {
        packing: Shards,
        of: &'a str,
        from: PathBuf,
        /// `None` if the packed dataset exists already.
        made: Option<&'a MakePlan>,
    },
    Records(Box<Workload>),
}

impl ToMake<'_> {
    /// Checks the file that is written last, and the lengths of shards.
    pub fn is_there(&self) -> bool {
        match &self.making {
            Making::Records(workload) => records::are_there(workload, &self.dir),
            Making::Make(_) => self.dir.join(LIST).exists(),
            Making::Pack { .. } => has_all_shards(&self.dir),
        }
    }

    /// `None` if the files to pack cannot be read.
    pub fn n_samples(&self) -> Option<u64> {
        match &self.making {
            Making::Records(workload) => Some(records::n_samples(workload)),
            Making::Make(plan) | Making::Pack { made: Some(plan), .. } => Some(plan.count()),
            Making::Pack { packing, from, .. } => pack_plan(from, *packing).ok().map(|plan| plan.n_files()),
        }
    }

    /// An estimate.
    pub fn expected_bytes(&self) -> Bytes {
        match &self.making {
            Making::Records(workload) => records::expected_bytes(workload),
            Making::Make(plan) => plan.expected_bytes(),
            Making::Pack { packing, made: Some(plan), .. } => {
                Bytes(packing.sample_bytes(plan.expected_bytes().0 / plan.count()).saturating_mul(plan.count()))
            }
            Making::Pack { packing, from, .. } => {
                pack_plan(from, *packing).map_or(Bytes(0), |plan| plan.expected_bytes())
            }
        }
    }
}

/// Whether the manifest and every shard it names exist.
fn has_all_shards(dir: &Path) -> bool {
    let text = fs::read(dir.join(MANIFEST)).unwrap_or_default();
    let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else { return false };
    let length = |name: &Path| fs::metadata(dir.join(name)).ok().map(|metadata| metadata.len());
    manifest.shards.iter().all(|shard| length(&shard.file) == Some(shard.bytes))
}

impl<'a> Places<'a> {
    /// `data` is the folder for data that is not on a tier's own folder.
    pub fn new(plan: &'a Plan, data: &'a Path) -> Self {
        Self { plan, data }
    }

    pub(super) fn scale(&self) -> forebay_record::Scale {
        self.plan.scale
    }

    /// The tier's own folder, or the shared one.
    pub fn folder_of(&self, tier: Option<&str>) -> PathBuf {
        match tier.and_then(|name| self.plan.tier(name)).map(|tier| &tier.backing) {
            Some(Backing::Folder(path)) => path.join(ON_TIER),
            _ => self.data.to_owned(),
        }
    }

    pub fn checkpoints_of(&self, tier: &str) -> PathBuf {
        self.folder_of(Some(tier)).join(format!("checkpoints-{tier}"))
    }

    pub fn profile_of(&self, tier: &str) -> Option<Profile> {
        self.plan.profile(tier)
    }

    /// The data of a cell; `None` if it needs none.
    pub fn data_of(&self, cell: &CellPlan) -> Option<PathBuf> {
        match (cell.work.dataset(), &cell.work.task) {
            (None, Task::Workload(task)) => {
                let workload = task.read().ok()?;
                Some(self.folder_of(cell.work.tier.as_deref()).join(records::folder_name(&workload)))
            }
            (name, _) => Some(self.dir_of(self.plan.dataset(name?)?, cell.work.tier.as_deref())),
        }
    }

    fn dir_of(&self, dataset: &DatasetPlan, tier: Option<&str>) -> PathBuf {
        match &dataset.source {
            DatasetSource::Path(path) => path.clone(),
            DatasetSource::Make(plan) => self.folder_of(tier).join(folder_name(plan)),
            DatasetSource::Pack { packing, of } => {
                let of = match self.plan.dataset(of).map(|origin| &origin.source) {
                    Some(DatasetSource::Make(plan)) => folder_name(plan),
                    Some(DatasetSource::Path(path)) => path_name(path),
                    _ => of.clone(),
                };
                self.folder_of(tier).join(format!("{of}-{}", packing.folder()))
            }
        }
    }

    /// The data to generate or pack, each folder once; a dataset comes before those packed from it.
    pub fn to_make<'c>(&self, cells: impl IntoIterator<Item = &'c CellPlan>) -> Vec<ToMake<'a>> {
        let mut all: Vec<ToMake<'a>> = Vec::new();
        let mut add = |wanted: ToMake<'a>| {
            if !all.iter().any(|known| known.dir == wanted.dir) {
                all.push(wanted);
            }
        };
        for cell in cells {
            if cell.left_out.is_some() {
                continue;
            }
            if let Some(wanted) = self.records_of(cell) {
                add(wanted);
                continue;
            }
            let Some(dataset) = cell.work.dataset().and_then(|name| self.plan.dataset(name)) else { continue };
            let Some(wanted) = self.making(dataset, cell.work.tier.as_deref()) else { continue };
            if let Making::Pack { of, made: Some(plan), from, .. } = &wanted.making
                && !wanted.is_there()
            {
                add(ToMake { name: (*of).to_owned(), making: Making::Make(plan), dir: from.clone() });
            }
            add(wanted);
        }
        all
    }

    /// Workloads generate their own data.
    pub(super) fn records_of(&self, cell: &CellPlan) -> Option<ToMake<'a>> {
        let Task::Workload(task) = &cell.work.task else { return None };
        let workload = task.read().ok().filter(|_| cell.work.dataset.is_none())?;
        let dir = self.data_of(cell)?;
        Some(ToMake { name: workload.name.clone(), making: Making::Records(Box::new(workload)), dir })
    }

    /// `None` if the dataset exists.
    fn making(&self, dataset: &'a DatasetPlan, tier: Option<&str>) -> Option<ToMake<'a>> {
        let making = match &dataset.source {
            DatasetSource::Path(_) => return None,
            DatasetSource::Make(plan) => Making::Make(plan),
            DatasetSource::Pack { packing, of } => {
                let origin = self.plan.dataset(of)?;
                let made = match &origin.source {
                    DatasetSource::Make(plan) => Some(&**plan),
                    _ => None,
                };
                Making::Pack { packing: *packing, of, from: self.dir_of(origin, tier), made }
            }
        };
        Some(ToMake { name: dataset.name.clone(), making, dir: self.dir_of(dataset, tier) })
    }

    pub fn folders<'c>(&self, cells: impl IntoIterator<Item = &'c CellPlan>) -> BTreeSet<PathBuf> {
        let of = |cell: &'c CellPlan| {
            let saves = cell.work.route().map(|route| route.tiers().map(|tier| self.folder_of(Some(tier))).collect());
            let saves: Vec<PathBuf> = saves.unwrap_or_default();
            saves.into_iter().chain([self.folder_of(cell.work.tier.as_deref())])
        };
        cells.into_iter().flat_map(of).collect()
    }
}

/// The name follows from the content, so studies and scales can share a folder.
fn folder_name(plan: &MakePlan) -> String {
    let made = plan.parameters();
    let profile = match made.profile {
        forebay_dataset::Profile::Imagenet => "imagenet",
        forebay_dataset::Profile::Caltech101 => "caltech101",
    };
    let sizes = made.sizes.as_ref().map(|sizes| format!("-sizes{:08x}", Fnv::of(sizes.to_string().as_bytes()) as u32));
    format!("{profile}-{}-seed{}{}", made.count, made.seed, sizes.unwrap_or_default())
}

/// The last component for people, and a hash of the whole path, since other paths may end the same.
fn path_name(path: &Path) -> String {
    let last = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{last}-{:08x}", Fnv::of(path.as_os_str().as_bytes()) as u32)
}
