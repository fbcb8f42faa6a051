//! A folder with checkpoints, and the names in it.
//!
//! `step-000000000120` is a finished checkpoint and nothing else ever has such a name: it is made under a name that
//! starts with `.staging-` and loses its name to one that starts with `.trash-` before any of its files goes. Names sort
//! by step. A step saved a second time is another take of it, `step-000000000120.001`, and the later take is the newer.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::Fs;
use crate::{Error, Keep, Operation, Result};

pub(crate) const STAGING: &str = ".staging-";
pub(crate) const TRASH: &str = ".trash-";
const LOCK: &str = ".forebay.lock";

/// Which checkpoint. The greater is the newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The step of training.
    pub step: u64,
    /// How often this step had been saved before.
    pub take: u32,
}

impl Name {
    /// Reads the name of a finished checkpoint; `None` for any other.
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

/// A place for checkpoints.
#[derive(Clone)]
pub struct Tier {
    /// How its files are reached.
    pub fs: Arc<dyn Fs>,
    /// Its folder.
    pub dir: PathBuf,
    /// What stays on it.
    pub keep: Keep,
    /// Bytes that all checkpoints on it may take; `None` for what the file system has.
    pub limit_bytes: Option<u64>,
    /// Bytes of the file system that stay free.
    pub reserve_bytes: u64,
}

impl Tier {
    /// A folder that keeps the last five, as far as there is room.
    pub fn new(fs: Arc<dyn Fs>, dir: impl Into<PathBuf>) -> Self {
        Self { fs, dir: dir.into(), keep: Keep::default(), limit_bytes: None, reserve_bytes: 0 }
    }

    /// The folder of a checkpoint.
    pub fn path_of(&self, name: Name) -> PathBuf {
        self.dir.join(name.to_string())
    }

    /// The finished checkpoints, oldest first.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self) -> Result<Vec<Name>> {
        let mut names: Vec<Name> = self.fs.list(&self.dir)?.iter().filter_map(|name| Name::parse(name)).collect();
        names.sort();
        Ok(names)
    }

    /// The file whose lock a store holds.
    pub fn lock_path(&self) -> PathBuf {
        self.dir.join(LOCK)
    }

    /// Makes the folder and those above it that are missing.
    pub(crate) fn make(&self) -> Result<()> {
        make_all(self.fs.as_ref(), &self.dir)
    }

    /// Makes durable what is seen here, and removes what was never finished and what was being removed.
    ///
    /// A process that was killed may have left names that no power cut would spare; whoever believes them and then
    /// removes another copy loses both.
    pub(crate) fn settle(&self) -> Result<()> {
        self.fs.sync_dir(&self.dir)?;
        for name in self.fs.list(&self.dir)? {
            if name.starts_with(STAGING) || name.starts_with(TRASH) {
                self.clear(&self.dir.join(name))?;
            }
        }
        Ok(())
    }

    /// A name that nothing here has, for a checkpoint that is being made or removed.
    pub(crate) fn spare_path(&self, prefix: &str, name: Name) -> Result<PathBuf> {
        let taken = self.fs.list(&self.dir)?;
        let spare = (0_u32..).map(|k| format!("{prefix}{name}-{k}")).find(|spare| !taken.contains(spare));
        Ok(self.dir.join(spare.expect("a folder has fewer names than there are numbers")))
    }

    /// Removes a checkpoint so that no crash leaves half of it under its name.
    pub(crate) fn discard(&self, name: Name) -> Result<()> {
        let trash = self.spare_path(TRASH, name)?;
        self.fs.rename(&self.path_of(name), &trash)?;
        self.fs.sync_dir(&self.dir)?;
        self.clear(&trash)
    }

    /// Removes a folder that is no checkpoint, with all in it.
    pub(crate) fn clear(&self, dir: &Path) -> Result<()> {
        for name in self.fs.list(dir)? {
            match self.fs.remove(&dir.join(&name)) {
                // Not ours, but in a folder of ours that has to go.
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::IsADirectory => {
                    self.clear(&dir.join(name))?
                }
                other => other?,
            }
        }
        self.fs.remove_dir(dir)
    }

    /// Bytes that a checkpoint may still take here, given what those that are here take.
    pub(crate) fn room(&self, used: u64) -> Result<u64> {
        let free = self.fs.free_bytes(&self.dir)?.saturating_sub(self.reserve_bytes);
        Ok(self.limit_bytes.map_or(free, |limit| free.min(limit.saturating_sub(used))))
    }
}

fn make_all(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let Err(Error::NotFound { .. }) = fs.list(dir) else { return Ok(()) };
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(Error::NotFound { operation: Operation::MakeFolder, path: dir.to_owned() }),
    };
    make_all(fs, parent)?;
    fs.make_dir(dir)?;
    fs.sync_dir(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_step_and_only_our_own_spelling_is_one() {
        let name = |step, take| Name { step, take };
        assert_eq!(name(120, 0).to_string(), "step-000000000120");
        assert_eq!(name(120, 1).to_string(), "step-000000000120.001");
        for known in [name(0, 0), name(120, 7), name(u64::MAX, 1000)] {
            assert_eq!(Name::parse(&known.to_string()), Some(known));
        }
        assert!(name(99, 5) < name(120, 0) && name(120, 0) < name(120, 1));
        for foreign in ["step-120", "step-000000000120.1", "step-000000000120.000", ".staging-step-000000000120-0", "x"]
        {
            assert_eq!(Name::parse(foreign), None, "{foreign}");
        }
    }
}
