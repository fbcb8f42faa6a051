//! What this machine and the file system under a folder can do.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;

use super::{Mode, ring};
use crate::cache;

/// Whether something works here, with the reason when it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// It was tried and works.
    Yes,
    /// It was tried and does not, for this reason.
    No(String),
}

impl Support {
    fn from<T>(outcome: io::Result<T>) -> Self {
        match outcome {
            Ok(_) => Self::Yes,
            Err(error) => Self::No(error.to_string()),
        }
    }

    /// Whether it works.
    pub fn is_yes(&self) -> bool {
        *self == Self::Yes
    }
}

/// What was found by trying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Direct I/O on this file system.
    pub direct: Support,
    /// io_uring with the operations we use.
    pub io_uring: Support,
    /// The `cachestat` system call, which proves a cache state without mapping the file.
    pub cachestat: Support,
}

impl Capabilities {
    /// Tries each on a file that exists.
    pub fn probe(file: &Path) -> Self {
        let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(file);
        let cachestat = File::open(file).and_then(|f| {
            let len = fs::metadata(file)?.len();
            cache::cachestat(&f, len)
        });
        Self {
            direct: Support::from(direct),
            io_uring: Support::from(ring::probe()),
            cachestat: Support::from(cachestat),
        }
    }

    /// Whether a mode can be used.
    pub fn allows(&self, mode: Mode) -> bool {
        (!mode.is_direct() || self.direct.is_yes()) && (!mode.is_uring() || self.io_uring.is_yes())
    }
}
