//! Local files, read in one of four modes.
//!
//! Buffered reads go through the page cache; direct reads bypass it; the io_uring modes submit the open, read and close
//! of many files in one system call. Which is fastest depends on the disk, so [`choose_mode`] measures instead of
//! guessing, and [`Capabilities::probe`] reports what this machine and file system support.

mod capabilities;
mod choose;
mod file;
mod ring;
mod walk;
mod window;
mod writer;

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Context;
use crate::{Buffer, Entry, Error, Object, Operation, Result, Storage, Writer};

pub use capabilities::{Capabilities, Support};
pub use choose::{CHOICE_LIMIT, Choice, choose_mode};
#[cfg(feature = "object")]
pub(crate) use walk::count_listed;
pub use walk::n_listed;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// `open`, `read`, `close` through the page cache.
    #[default]
    Buffered,
    /// The same with `O_DIRECT`, past the page cache.
    Direct,
    /// io_uring through the page cache: many files per system call.
    Uring,
    UringDirect,
}

impl Mode {
    /// In the order in which [`choose_mode`] prefers them when rates are within its margin.
    pub const ALL: [Self; 4] = [Self::Buffered, Self::Direct, Self::Uring, Self::UringDirect];

    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::UringDirect)
    }

    pub fn is_uring(self) -> bool {
        matches!(self, Self::Uring | Self::UringDirect)
    }

    /// The name used in flags and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Buffered => "buffered",
            Self::Direct => "direct",
            Self::Uring => "uring",
            Self::UringDirect => "uring-direct",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| format!("\"{text}\" is not one of buffered, direct, uring, uring-direct"))
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Local {
    mode: Mode,
}

impl Local {
    /// Reads in the given mode. An unsupported mode fails at the first read; see [`Capabilities::probe`].
    pub fn new(mode: Mode) -> Self {
        Self { mode }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }
}

impl Storage for Local {
    fn description(&self) -> String {
        format!("local, {}", self.mode.name())
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        walk::files_below(dir)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        let metadata = std::fs::metadata(path).context(Operation::Size, path)?;
        if !metadata.is_file() {
            return Err(not_a_file(Operation::Size, path, metadata.is_dir()));
        }
        Ok(metadata.len())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        Ok(Box::new(file::LocalObject::open(path, self.mode)?))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        Ok(Box::new(writer::LocalWriter::create(path)?))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).context(Operation::Remove, path)
    }

    fn read_many_preferred(&self) -> usize {
        if self.mode.is_uring() { ring::DEPTH } else { 1 }
    }

    fn read_many(&self, paths: &[&Path], limit: u64, into: &mut [Buffer]) -> Vec<Result<()>> {
        assert!(into.len() >= paths.len(), "one buffer per path");
        if self.mode.is_uring() {
            return ring::read_files(paths, limit, into, self.mode);
        }
        paths.iter().zip(into).map(|(path, buffer)| self.open(path)?.read_within(limit, buffer)).collect()
    }
}

fn not_a_file(operation: Operation, path: &Path, is_folder: bool) -> Error {
    let what = if is_folder { "is a folder, not a file" } else { "is a pipe or a device, not a regular file" };
    Error::Unsupported { operation, path: path.to_owned(), what: what.to_owned() }
}
