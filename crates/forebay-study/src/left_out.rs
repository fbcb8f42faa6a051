//! Cells that this machine or build cannot run. They are recorded with the reason, so a study's matrix stays complete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_units::Bytes;

use super::places::{Places, ToMake};
use super::plan::Plan;
use super::space::{existing, free};
use super::steps::Task;

impl Plan {
    /// Leaves out workload cells that this build cannot run, or whose batches do not fit into memory.
    pub(super) fn leave_out_unfit(&mut self, memory: Option<Bytes>) {
        for cell in &mut self.cells {
            if let Task::Workload(task) = &cell.work.task {
                cell.left_out = task.unfit(memory);
            }
        }
    }

    /// Leaves out workload cells whose data does not fit on the file system, the largest first.
    pub fn leave_out_too_large(&mut self, data: &Path) {
        let reasons = too_large(&Places::new(self, data), self, &|path| free(&existing(path)));
        for cell in self.cells.iter_mut().filter(|cell| cell.left_out.is_none()) {
            cell.left_out = reasons.get(&cell.id).cloned();
        }
    }
}

/// The reasons by cell id.
fn too_large(places: &Places<'_>, plan: &Plan, free: &dyn Fn(&Path) -> Option<Bytes>) -> BTreeMap<String, String> {
    let cells = || plan.cells.iter().filter(|cell| cell.left_out.is_none());
    let mut wanted: BTreeMap<PathBuf, (ToMake<'_>, Vec<&str>)> = BTreeMap::new();
    for (cell, records) in cells().filter_map(|cell| Some((cell, places.records_of(cell)?))) {
        wanted.entry(records.dir.clone()).or_insert((records, Vec::new())).1.push(&cell.id);
    }
    let mut missing: Vec<_> = wanted.into_values().filter(|(records, _)| !records.is_there()).collect();
    missing.sort_by_cached_key(|(records, _)| records.expected_bytes());
    let mut taken: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let mut reasons = BTreeMap::new();
    for (records, ids) in missing {
        let (needed, folder) = (records.expected_bytes(), existing(&records.dir));
        let Some(available) = free(&folder) else { continue };
        let taken = taken.entry(folder).or_default();
        if taken.saturating_add(needed.0) <= available.0 {
            *taken += needed.0;
            continue;
        }
        let left = Bytes(available.0.saturating_sub(*taken));
        let reason = format!("its data needs {needed}; {left} are free");
        reasons.extend(ids.into_iter().map(|id| (id.to_owned(), reason.clone())));
    }
    reasons
}
