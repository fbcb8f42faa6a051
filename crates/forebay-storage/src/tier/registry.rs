//! The registry of all tiers: one folder per tier, with the tier's name, which holds its state file.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

use super::error::Attempt;
use super::state::STATE;
use super::{Condition, Error, Result, Tier};

const LOCK: &str = ".lock";

/// How often to retry the lock if its file is removed meanwhile, which happens only when the last tier is removed.
const MOST_TRIES: u32 = 1000;

/// All tiers of a user or a machine. The first tier creates the folder, removing the last one removes it.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(super) dir: PathBuf,
}

impl Registry {
    /// The registry in this folder, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The names of all tiers, sorted, including incomplete ones and those whose state cannot be read.
    ///
    /// # Errors
    /// When the folder exists and cannot be listed.
    pub fn names(&self) -> Result<Vec<String>> {
        let listed = match fs::read_dir(&self.dir) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            listed => listed.attempt("listing", &self.dir)?,
        };
        let folders = listed.flatten().filter(|entry| entry.path().is_dir());
        let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| super::plan::check_name(name).is_ok() && is_tier(&self.dir.join(name)));
        names.sort();
        Ok(names)
    }

    /// The tier of that name.
    ///
    /// # Errors
    /// When its state cannot be read.
    pub fn tier(&self, name: &str) -> Result<Option<Tier>> {
        super::plan::check_name(name)?;
        Tier::read(&self.dir.join(name))
    }

    /// The tier that holds this file or folder: the innermost tier that is up and whose data folder contains it.
    ///
    /// # Errors
    /// When the registry or the mount table cannot be read. A tier whose state cannot be read is skipped.
    pub fn find(&self, path: &Path) -> Result<Option<Tier>> {
        for tier in self.around(path)? {
            if tier.status()?.condition == Condition::Up {
                return Ok(Some(tier));
            }
        }
        Ok(None)
    }

    /// Like [`find`](Self::find), but a tier that is not up is an error instead of being mistaken for the disk under it.
    ///
    /// # Errors
    /// [`Error::NotUp`] when the innermost tier whose data folder contains it is not up; otherwise as [`find`](Self::find).
    pub fn ground(&self, path: &Path) -> Result<Option<Tier>> {
        let Some(tier) = self.around(path)?.into_iter().next() else { return Ok(None) };
        match tier.status()?.condition {
            Condition::Up => Ok(Some(tier)),
            condition => Err(Error::NotUp { path: path.to_owned(), name: tier.name, condition }),
        }
    }

    /// All tiers, up or not, whose data folder contains this file or folder, the innermost first.
    fn around(&self, path: &Path) -> Result<Vec<Tier>> {
        let path = path.canonicalize().or_else(|_| std::path::absolute(path)).attempt("finding", path)?;
        let mut tiers: Vec<Tier> = self.names()?.iter().filter_map(|name| self.tier(name).ok().flatten()).collect();
        tiers.retain(|tier| path.starts_with(tier.data()));
        tiers.sort_by_key(|tier| std::cmp::Reverse(tier.depth()));
        Ok(tiers)
    }

    /// Creates the folder and locks out other processes that change tiers.
    pub(super) fn lock(&self) -> Result<Lock> {
        let path = self.dir.join(LOCK);
        for _ in 0..MOST_TRIES {
            fs::create_dir_all(&self.dir).attempt("creating", &self.dir)?;
            let file = match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
                // The last tier was removed, and the folder with it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.attempt("opening", &path)?,
            };
            file.lock().attempt("locking", &path)?;
            // The process we waited for may have removed the lock file.
            let ours = file.metadata().attempt("looking at", &path)?.ino();
            if fs::metadata(&path).is_ok_and(|found| found.ino() == ours) {
                let dir = self.dir.canonicalize().attempt("finding", &self.dir)?;
                return Ok(Lock { dir, _file: file });
            }
        }
        Err(std::io::Error::other(format!("removed again after each of {MOST_TRIES} tries"))).attempt("locking", &path)
    }
}

/// A tier's folder: with a state file, or with nothing but an unfinished one.
fn is_tier(folder: &Path) -> bool {
    folder.join(STATE).exists() || strangers(folder, &[]).is_ok_and(|found| found.is_empty())
}

/// Entries of a folder other than these names and unfinished state files.
pub(super) fn strangers(folder: &Path, expected: &[&str]) -> Result<Vec<String>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.attempt("listing", folder)?,
    };
    let mut names: Vec<String> = listed.flatten().map(|entry| entry.file_name().escaped().into_owned()).collect();
    names.retain(|name| !expected.contains(&name.as_str()) && !is_unfinished(name));
    names.sort();
    Ok(names)
}

/// Whether this is an unfinished state file, left by a kill.
pub(super) fn is_unfinished(name: &str) -> bool {
    name.starts_with(&format!(".{STATE}.")) && name.ends_with(".tmp")
}

/// While this is held, no other process changes tiers of this registry.
pub(super) struct Lock {
    /// The registry's folder, without links.
    pub(super) dir: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let is_empty =
            |dir: &Path| fs::read_dir(dir).is_ok_and(|listed| listed.flatten().all(|entry| entry.file_name() == LOCK));
        if is_empty(&self.dir) {
            // A process that waits for the lock notices that the file is gone and starts again.
            let _ = fs::remove_file(self.dir.join(LOCK));
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// An error with an unchanged tier folder.
pub(super) fn refuse_strangers(folder: &Path, expected: &[&str]) -> Result<()> {
    match strangers(folder, expected)?.into_iter().next() {
        Some(found) => Err(Error::Foreign { path: folder.to_owned(), found }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_never_stays_is_an_error_after_some_tries() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("gone/lock", dir.path().join(LOCK)).unwrap();
        let error = Registry::new(dir.path()).lock().err().unwrap();
        assert!(error.to_string().starts_with("locking "), "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "removed again after each of 1000 tries");
    }
}
