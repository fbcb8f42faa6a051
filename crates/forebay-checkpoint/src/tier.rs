//! A folder of checkpoints and the names in it.
//!
//! `step-000000000120` is a finished checkpoint, and forebay gives nothing else such a name. A checkpoint is created
//! under a name that starts with `.staging-`, and renamed to one that starts with `.trash-` before any of its files is
//! removed. Names sort by step. Saving a step again creates `step-000000000120.001`, which is the newer one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::{Fs, Kind};
use crate::manifest::{MANIFEST, is_name};
use crate::verify::read_manifest;
use crate::{Error, Keep, Operation, Result};

pub(crate) const STAGING: &str = ".staging-";
pub(crate) const TRASH: &str = ".trash-";
const LOCK: &str = ".forebay.lock";

/// The name of a checkpoint. The greater is the newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub step: u64,
    /// How often this step had been saved before.
    pub take: u32,
}

impl Name {
    /// Parses the name of a finished checkpoint; `None` for any other name.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("step-")?;
        let (step, take) = rest.split_once('.').unwrap_or((rest, "0"));
        let name = Self { step: step.parse().ok()?, take: take.parse().ok()? };
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step-{:012}", self.step)?;
        if self.take > 0 { write!(f, ".{:03}", self.take) } else { Ok(()) }
    }
}

#[derive(Clone)]
pub struct Tier {
    pub fs: Arc<dyn Fs>,
    pub dir: PathBuf,
    pub keep: Keep,
    /// Limit on the bytes of all checkpoints; `None` for the limit of the file system.
    pub limit_bytes: Option<u64>,
    /// Bytes of the file system to keep free.
    pub reserve_bytes: u64,
}

impl Tier {
    /// A folder that keeps the newest five checkpoints, space permitting.
    pub fn new(fs: Arc<dyn Fs>, dir: impl Into<PathBuf>) -> Self {
        Self { fs, dir: dir.into(), keep: Keep::default(), limit_bytes: None, reserve_bytes: 0 }
    }

    pub fn path_of(&self, name: Name) -> PathBuf {
        self.dir.join(name.to_string())
    }

    /// The finished checkpoints, oldest first: all folders with a matching name. Their manifests are not read.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self) -> Result<Vec<Name>> {
        let mut folders = Vec::new();
        for name in self.names_of_all()? {
            if self.is_kind(&self.path_of(name), Kind::Folder)? {
                folders.push(name);
            }
        }
        Ok(folders)
    }

    /// All names that match a checkpoint, regardless of what has them.
    pub(crate) fn names_of_all(&self) -> Result<Vec<Name>> {
        let mut names: Vec<Name> = self.fs.list(&self.dir)?.iter().filter_map(|name| Name::parse(name)).collect();
        names.sort();
        Ok(names)
    }

    /// The lock file of a store.
    pub fn lock_path(&self) -> PathBuf {
        self.dir.join(LOCK)
    }

    /// Creates the folder and its missing parents.
    pub(crate) fn make(&self) -> Result<()> {
        make_all(self.fs.as_ref(), &self.dir)
    }

    /// Syncs what is found here, and removes unfinished checkpoints and interrupted removals.
    ///
    /// A killed process may have left names that are not durable. Trusting such a name and removing another copy would
    /// lose both after a power cut.
    pub(crate) fn settle(&self) -> Result<()> {
        self.fs.sync_dir(&self.dir)?;
        self.unfinished()?.into_iter().try_for_each(|name| self.clear(&self.dir.join(name)))
    }

    /// Folders with names that only forebay assigns, if they contain nothing foreign.
    pub(crate) fn unfinished(&self) -> Result<Vec<String>> {
        let mut unfinished = Vec::new();
        for name in self.fs.list(&self.dir)? {
            let dir = self.dir.join(&name);
            if is_spare(&name) && self.is_kind(&dir, Kind::Folder)? && self.holds_only_files(&dir)? {
                unfinished.push(name);
            }
        }
        Ok(unfinished)
    }

    fn is_kind(&self, path: &Path, kind: Kind) -> Result<bool> {
        match self.fs.kind(path) {
            // It is gone, or its name is not UTF-8.
            Err(Error::NotFound { .. }) => Ok(false),
            other => Ok(other? == kind),
        }
    }

    /// Whether a folder contains only regular files with valid names for a checkpoint.
    fn holds_only_files(&self, dir: &Path) -> Result<bool> {
        for name in self.fs.list(dir)? {
            let may_be_ours = name == MANIFEST || is_name(&name);
            if !may_be_ours || !self.is_kind(&dir.join(&name), Kind::File)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a checkpoint's folder contains nothing foreign: only the names in its manifest, or any files if it has
    /// no valid manifest.
    fn holds_only_ours(&self, name: Name) -> Result<bool> {
        let dir = self.path_of(name);
        let Ok(manifest) = read_manifest(self, name) else { return self.holds_only_files(&dir) };
        let is_named = |entry: &String| entry == MANIFEST || manifest.files.iter().any(|file| file.name == *entry);
        for entry in self.fs.list(&dir)? {
            if !is_named(&entry) || self.is_kind(&dir.join(&entry), Kind::Folder)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An unused name for a checkpoint that is being created or removed.
    pub(crate) fn spare_path(&self, prefix: &str, name: Name) -> Result<PathBuf> {
        let taken = self.fs.list(&self.dir)?;
        let spare = (0_u32..).map(|k| format!("{prefix}{name}-{k}")).find(|spare| !taken.contains(spare));
        Ok(self.dir.join(spare.expect("a folder has fewer names than there are numbers")))
    }

    /// Removes a checkpoint so that no crash leaves part of it under its name; false if the folder contains foreign
    /// files, in which case it stays.
    pub(crate) fn discard(&self, name: Name) -> Result<bool> {
        if !self.holds_only_ours(name)? {
            return Ok(false);
        }
        let trash = self.spare_path(TRASH, name)?;
        self.fs.rename(&self.path_of(name), &trash)?;
        self.fs.sync_dir(&self.dir)?;
        self.clear(&trash)?;
        Ok(true)
    }

    /// Removes a folder that is not a checkpoint, with its files. Links are removed, not their targets.
    pub(crate) fn clear(&self, dir: &Path) -> Result<()> {
        self.fs.list(dir)?.iter().try_for_each(|name| self.fs.remove(&dir.join(name)))?;
        self.fs.remove_dir(dir)
    }

    /// Bytes available for another checkpoint, given the size of those present.
    pub(crate) fn room(&self, used: u64) -> Result<u64> {
        let free = self.fs.free_bytes(&self.dir)?.saturating_sub(self.reserve_bytes);
        Ok(self.limit_bytes.map_or(free, |limit| free.min(limit.saturating_sub(used))))
    }
}

/// Whether [`Tier::spare_path`] could have assigned this name.
pub(crate) fn is_spare(name: &str) -> bool {
    let rest = name.strip_prefix(STAGING).or_else(|| name.strip_prefix(TRASH));
    let parts = rest.and_then(|rest| rest.rsplit_once('-'));
    parts.is_some_and(|(name, k)| {
        Name::parse(name).is_some() && k.parse::<u32>().is_ok_and(|number| number.to_string() == k)
    })
}

fn make_all(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let Err(Error::NotFound { .. }) = fs.list(dir) else { return Ok(()) };
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(Error::NotFound { operation: Operation::MakeFolder, path: dir.to_owned() }),
    };
    make_all(fs, parent)?;
    if let Err(error) = fs.make_dir(dir) {
        // Another process may have created it meanwhile.
        fs.list(dir).map_err(|_| error)?;
    }
    fs.sync_dir(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_others_make_at_the_same_time_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let parent = dir.path().join(format!("{round}/a/b"));
            let make = |i: usize| make_all(&crate::LocalFs, &parent.join(format!("rank-{i}")));
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|i| scope.spawn(move || make(i))).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
            });
            assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 8);
        }
    }

    #[test]
    fn names_sort_by_step_and_only_our_own_spelling_is_one() {
        let name = |step, take| Name { step, take };
        assert_eq!(name(120, 0).to_string(), "step-000000000120");
        assert_eq!(name(120, 1).to_string(), "step-000000000120.001");
        for known in [name(0, 0), name(120, 7), name(u64::MAX, 1000)] {
            assert_eq!(Name::parse(&known.to_string()), Some(known));
        }
        assert!(name(99, 5) < name(120, 0) && name(120, 0) < name(120, 1));
        for k in ["0", "17"] {
            assert!(
                is_spare(&format!("{STAGING}step-000000000120-{k}"))
                    && is_spare(&format!("{TRASH}step-000000000120.001-{k}"))
            );
        }
        for foreign in [".staging-mine", ".staging-step-000000000120", ".trash-step-000000000120-00", ".staging-", "x"]
        {
            assert!(!is_spare(foreign), "{foreign}");
        }
        for foreign in ["step-120", "step-000000000120.1", "step-000000000120.000", ".staging-step-000000000120-0", "x"]
        {
            assert_eq!(Name::parse(foreign), None, "{foreign}");
        }
    }
}
