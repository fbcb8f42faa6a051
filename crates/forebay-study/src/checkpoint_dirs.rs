//! The folders of a cell's checkpoints: one per tier, empty at the start and removed at the end.
//!
//! Tiers emulated in process share a folder, so each has its own subfolder. It is locked with `flock`, which the kernel
//! releases when the process ends: leftovers of a killed run can be removed, and files of a running one cannot.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use forebay_units::PathText;

use super::places::{FindPlacement, Places};
use super::steps::{Failed, Route};

pub(super) struct CheckpointDirs {
    _folders: Vec<Folder>,
    pub(super) places: forebay_measure::Places,
    /// For the record.
    pub(super) notes: Vec<String>,
}

impl CheckpointDirs {
    /// Each tier keeps `keep` checkpoints.
    pub(super) fn make(
        places: &Places<'_>,
        route: &Route,
        keep: forebay_measure::Kept,
        data_tier: Option<&str>,
        find_placement: FindPlacement<'_>,
    ) -> Result<Self, Failed> {
        let (mut folders, mut notes) = (Vec::new(), Vec::new());
        let mut place = |tier: &str| -> Result<forebay_measure::Place, Failed> {
            let folder = Folder::make(places.checkpoints_of(tier))?;
            let placement = find_placement(&folder.path);
            notes.extend(placement.notes.iter().map(|note| note.replacen("the data is", "checkpoints are", 1)));
            let dir = folder.path.clone();
            folders.push(folder);
            let shaped = places.profile_of(tier).or(placement.shaped);
            // Images and checkpoints on one tier share its device.
            let is_of_data = shaped.is_some() && data_tier == Some(tier);
            Ok(forebay_measure::Place { dir, shaped, kernel: placement.kernel, is_of_data })
        };
        let fast = route.fast.as_deref().map(&mut place).transpose()?;
        let places = forebay_measure::Places { slow: place(&route.slow)?, fast, keep };
        Ok(Self { _folders: folders, places, notes })
    }
}

struct Folder {
    path: PathBuf,
    /// `None` if the file system has no locks. Held until the folder is dropped.
    _lock: Option<File>,
}

impl Folder {
    /// Creates the folder, or empties one left by an earlier run.
    fn make(path: PathBuf) -> Result<Self, Failed> {
        fs::create_dir_all(&path).map_err(failed("create", &path))?;
        let lock = File::open(&path).map_err(failed("open", &path))?;
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::Error(_)) => None,
            Err(TryLockError::WouldBlock) => {
                return Err(format!("another run uses {} for its checkpoints", path.escaped()).into());
            }
        };
        for entry in fs::read_dir(&path).map_err(failed("list", &path))? {
            let left = entry.map_err(failed("list", &path))?.path();
            let removed = if left.is_dir() { fs::remove_dir_all(&left) } else { fs::remove_file(&left) };
            removed.map_err(failed("remove", &left))?;
        }
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the next run tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn failed(attempt: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failed {
    move |error| format!("cannot {attempt} {}: {error}", path.escaped()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_emptied_locked_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data/checkpoints-hdd");
        fs::create_dir_all(path.join("step-000000000020")).unwrap();
        fs::write(path.join("step-000000000020/left"), "over").unwrap();
        fs::write(path.join(".forebay.lock"), "").unwrap();
        let folder = Folder::make(path.clone()).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        let said = Folder::make(path.clone()).map(|_| ()).unwrap_err().to_string();
        assert_eq!(said, format!("another run uses {} for its checkpoints", path.display()));
        assert!(path.exists(), "a refused run leaves it alone");
        drop(folder);
        assert!(!path.exists());
    }
}
