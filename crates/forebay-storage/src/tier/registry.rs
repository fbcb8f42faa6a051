//! The folder that knows all tiers: one folder a tier, named like it, with its state file.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

use super::error::Attempt;
use super::state::STATE;
use super::{Condition, Error, Result, Tier};

const LOCK: &str = ".lock";

/// How often the lock is taken anew because its file went meanwhile; the last tier goes far less often than that.
const MOST_TRIES: u32 = 1000;

/// All tiers of a user or a machine. The folder is made when the first comes and goes with the last.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(super) dir: PathBuf,
}

impl Registry {
    /// The registry in this folder, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The names of all tiers, sorted; also of those that are half there or whose state cannot be read.
    ///
    /// # Errors
    /// When the folder is there and cannot be listed.
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

    /// The tier that this file or folder lies on: the innermost whose data folder holds it and that is up.
    ///
    /// # Errors
    /// When the registry or the mount table cannot be read. A tier whose state cannot be read is passed over.
    pub fn find(&self, path: &Path) -> Result<Option<Tier>> {
        for tier in self.around(path)? {
            if tier.status()?.condition == Condition::Up {
                return Ok(Some(tier));
            }
        }
        Ok(None)
    }

    /// The tier that this file or folder lies on, as [`find`](Self::find) has it; but a tier that is not up is not taken
    /// for the bare disk below it.
    ///
    /// # Errors
    /// [`Error::NotUp`] when the innermost tier whose data folder holds it is not up; else as [`find`](Self::find).
    pub fn ground(&self, path: &Path) -> Result<Option<Tier>> {
        let Some(tier) = self.around(path)?.into_iter().next() else { return Ok(None) };
        match tier.status()?.condition {
            Condition::Up => Ok(Some(tier)),
            condition => Err(Error::NotUp { path: path.to_owned(), name: tier.name, condition }),
        }
    }

    /// All tiers, up or not, whose data folder holds this file or folder, the innermost first.
    fn around(&self, path: &Path) -> Result<Vec<Tier>> {
        let path = path.canonicalize().or_else(|_| std::path::absolute(path)).attempt("finding", path)?;
        let mut tiers: Vec<Tier> = self.names()?.iter().filter_map(|name| self.tier(name).ok().flatten()).collect();
        tiers.retain(|tier| path.starts_with(tier.data()));
        tiers.sort_by_key(|tier| std::cmp::Reverse(tier.depth()));
        Ok(tiers)
    }

    /// Makes the folder and keeps others from changing tiers meanwhile.
    pub(super) fn lock(&self) -> Result<Lock> {
        let path = self.dir.join(LOCK);
        for _ in 0..MOST_TRIES {
            fs::create_dir_all(&self.dir).attempt("creating", &self.dir)?;
            let file = match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
                // The last tier went, and the folder with it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.attempt("opening", &path)?,
            };
            file.lock().attempt("locking", &path)?;
            // What we waited for may have been removed by the one we waited for.
            let ours = file.metadata().attempt("looking at", &path)?.ino();
            if fs::metadata(&path).is_ok_and(|found| found.ino() == ours) {
                let dir = self.dir.canonicalize().attempt("finding", &self.dir)?;
                return Ok(Lock { dir, _file: file });
            }
        }
        Err(std::io::Error::other(format!("gone again after each of {MOST_TRIES} tries"))).attempt("locking", &path)
    }
}

/// A folder of ours: with a state file, or with nothing but what a kill left of writing one.
fn is_tier(folder: &Path) -> bool {
    folder.join(STATE).exists() || strangers(folder, &[]).is_ok_and(|found| found.is_empty())
}

/// What is in a folder besides these names and unfinished state files.
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

/// Whether this is a state file that was being written when everything stopped.
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
            // Whoever waits for the lock sees that it is gone and starts again.
            let _ = fs::remove_file(self.dir.join(LOCK));
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// An error that leaves a tier's folder as it is.
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
        assert_eq!(cause, "gone again after each of 1000 tries");
    }
}
