//! One subject under one attack.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::subject::Subject;

/// What happens while the command runs, and when.
#[derive(Debug, Clone, Copy)]
pub struct Blow {
    pub deed: Deed,
    pub after: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// The process gets this signal.
    Signal(&'static str),
    /// All files below this folder are removed.
    Remove(&'static str),
}

/// Changes a case's folder before the run.
pub type Prepare = Box<dyn Fn(&Path) -> Result<()>>;
/// Undoes what outlives the folder.
pub type Clear = Box<dyn Fn(&Path)>;

/// A command to be run in a copy of the inputs.
pub struct Case {
    pub subject: Subject,
    /// The attack's own words: "at most 10 descriptors".
    pub how: String,
    /// The arguments; the subject's own unless the attack is on them.
    pub line: String,
    /// Programs to run it under, as `prlimit --nofile=10`.
    pub under: Vec<String>,
    pub env: Vec<(&'static str, Option<String>)>,
    pub blow: Option<Blow>,
    /// Changes the copy before the run. What it leaves is what must be unchanged afterwards.
    pub prepare: Option<Prepare>,
    /// Undoes what outlives the copy, such as a mount.
    pub clear: Option<Clear>,
    /// Folder of the copy to run in.
    pub folder: PathBuf,
    /// Files beside the subject's own that may be written.
    pub also_writes: Vec<String>,
    /// A status that is wrong here although it is documented: an attack that must be refused is not a success.
    pub must_fail: bool,
    pub limit: Duration,
}

impl Case {
    pub fn new(subject: &Subject, how: impl Into<String>) -> Self {
        Self {
            subject: *subject,
            how: how.into(),
            line: subject.line.to_owned(),
            under: Vec::new(),
            env: Vec::new(),
            blow: None,
            prepare: None,
            clear: None,
            folder: PathBuf::new(),
            also_writes: Vec::new(),
            must_fail: false,
            limit: Duration::from_secs(60),
        }
    }

    pub fn under(mut self, words: &[&str]) -> Self {
        self.under = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub fn prepare(mut self, change: impl Fn(&Path) -> Result<()> + 'static) -> Self {
        self.prepare = Some(Box::new(change));
        self
    }

    /// The signal that it gets, if any.
    pub fn signal(&self) -> Option<&'static str> {
        match self.blow?.deed {
            Deed::Signal(name) => Some(name),
            Deed::Remove(_) => None,
        }
    }

    /// Whether the path is one that the campaign itself removes while the command runs.
    pub fn removes(&self, path: &Path) -> bool {
        matches!(self.blow, Some(Blow { deed: Deed::Remove(folder), .. }) if path.starts_with(folder))
    }

    /// Whether the run may make or change the path.
    pub fn may_write(&self, path: &Path) -> bool {
        let own = self.subject.writes.iter().map(Path::new);
        own.chain(self.also_writes.iter().map(Path::new)).any(|allowed| path.starts_with(allowed))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "forebay {} ({})", self.line, self.how)
    }
}
