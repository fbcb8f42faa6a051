//! The disk space that a study needs on each file system.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use forebay_bench::checkpoint;
use forebay_record::Scale;
use forebay_units::Bytes;

use super::error::{Error, Result};
use super::places::Places;
use super::plan::CellPlan;
use super::records;
use super::steps::{Route, Task, train};

#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// Any folder on it.
    pub path: PathBuf,
    pub to_make: Bytes,
    /// The largest file of a probe, which is removed after its cell.
    pub to_probe: Bytes,
    /// Peak of any cell's checkpoints, which are removed after it.
    pub to_save: Bytes,
    /// `None` if unknown.
    pub available: Option<Bytes>,
    /// For the error's hint.
    pub scale: Scale,
}

impl Space {
    /// The peak: generated data plus the largest temporary files.
    pub fn needed(&self) -> Bytes {
        // Cells run one at a time and remove what they wrote.
        self.to_make + self.to_probe.max(self.to_save)
    }

    /// # Errors
    /// [`Error::Space`] if it does not fit.
    pub fn check(&self) -> Result<()> {
        match self.available {
            Some(available) if available < self.needed() => {
                Err(Error::Space { path: self.path.clone(), needed: self.needed(), available, scale: self.scale })
            }
            _ => Ok(()),
        }
    }
}

/// One entry per file system.
pub fn spaces<'c>(places: &Places<'_>, cells: impl IntoIterator<Item = &'c CellPlan> + Clone) -> Vec<Space> {
    let mut by_device: BTreeMap<u64, Space> = BTreeMap::new();
    let mut at = |path: &Path, add: &dyn Fn(&mut Space)| {
        let there = existing(path);
        let device = there.metadata().map_or(0, |metadata| metadata.dev());
        let new = || {
            let none = Bytes(0);
            let (path, scale, available) = (path.to_owned(), places.scale(), free(&there));
            Space { path, to_make: none, to_probe: none, to_save: none, available, scale }
        };
        add(by_device.entry(device).or_insert_with(new));
    };
    for wanted in places.to_make(cells.clone()) {
        if !wanted.is_there() {
            let bytes = wanted.expected_bytes();
            at(&wanted.dir, &|space| space.to_make += bytes);
        }
    }
    for cell in cells {
        if let Task::Probe(settings) = &cell.work.task
            && settings.has_file()
        {
            let folder = places.folder_of(cell.work.tier.as_deref());
            at(&folder, &|space| space.to_probe = space.to_probe.max(settings.file_size()));
        }
        if cell.left_out.is_some() {
            continue;
        }
        for (folder, bytes) in saves(places, cell) {
            at(&folder, &|space| space.to_save = space.to_save.max(bytes));
        }
    }
    by_device.into_values().collect()
}

/// Peak size of a cell's checkpoints per file system: those kept on each tier (a benchmark keeps one) and one more, since
/// the next is written before the oldest is removed; at most as many as the cell saves.
fn saves(places: &Places<'_>, cell: &CellPlan) -> Vec<(PathBuf, Bytes)> {
    let (bytes, n_copies) = match &cell.work.task {
        Task::Train(settings) => (train::state_bytes(settings), train::most_copies(settings)),
        Task::Checkpoint(settings) => (settings.state_bytes(), checkpoint::COPIES),
        Task::Workload(task) => {
            return vec![(places.folder_of(cell.work.tier.as_deref()), records::saved_bytes(task))];
        }
        _ => return Vec::new(),
    };
    let most = Bytes(bytes.saturating_mul(n_copies));
    let mut all: BTreeMap<u64, (PathBuf, Bytes)> = BTreeMap::new();
    for tier in cell.work.route().iter().flat_map(Route::tiers) {
        let folder = places.checkpoints_of(tier);
        let device = existing(&folder).metadata().map_or(0, |metadata| metadata.dev());
        all.entry(device).or_insert((folder, Bytes(0))).1 += most;
    }
    all.into_values().collect()
}

/// The path, or its nearest existing ancestor.
pub(super) fn existing(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned()
}

pub(super) fn free(path: &Path) -> Option<Bytes> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the structure holds only integers, for which zeros are valid.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the string is a valid C string, and the structure is valid for writes.
    let code = unsafe { libc::statvfs(name.as_ptr(), &raw mut stat) };
    (code == 0).then(|| Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_sizes() {
        let space = |available| Space {
            path: "out".into(),
            to_make: Bytes(3_000),
            to_probe: Bytes(4_000),
            to_save: Bytes(3_999),
            available,
            scale: Scale::Quick,
        };
        assert!(space(Some(Bytes(7_000))).check().is_ok());
        assert!(space(None).check().is_ok(), "unknown free space does not stop a run");
        let error = space(Some(Bytes(6_999))).check().unwrap_err();
        assert_eq!(error.to_string(), "out: 7.0 KB needed, 7.0 KB free");
        assert_eq!(error.hint().unwrap(), "free space there, or put the data elsewhere with --data DIR");
        let full = Space { scale: Scale::Full, ..space(Some(Bytes(0))) }.check().unwrap_err();
        assert!(full.hint().unwrap().ends_with(", or run with --scale quick"), "{full}");
    }

    #[test]
    fn a_missing_folder_is_on_the_file_system_of_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(existing(&dir.path().join("a/b/c")), dir.path());
        assert!(free(dir.path()).unwrap() > Bytes(0));
    }
}
