//! What this machine and the file system of a folder support.

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
    Yes,
    /// It was tried and failed, for this reason.
    No(String),
}

impl Support {
    fn from<T>(outcome: io::Result<T>) -> Self {
        match outcome {
            Ok(_) => Self::Yes,
            Err(error) => Self::No(error.to_string()),
        }
    }

    pub fn is_yes(&self) -> bool {
        *self == Self::Yes
    }
}

/// What works on the probed file, found by trying it rather than by kernel version or file system name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    pub direct: Support,
    pub io_uring: Support,
    /// The `cachestat` system call, which proves a cache state without mapping the file.
    pub cachestat: Support,
}

impl Capabilities {
    /// Tries everything on an existing file.
    pub fn probe(file: &Path) -> Self {
        let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(file);
        let cachestat = File::open(file).and_then(|f| {
            let len = fs::metadata(file)?.len();
            cache::cachestat(&f, len)
        });
        Self { direct: Support::from(direct), io_uring: Self::io_uring(), cachestat: Support::from(cachestat) }
    }

    /// Tries to create a ring; needs no file.
    pub fn io_uring() -> Support {
        Support::from(ring::probe())
    }

    pub fn allows(&self, mode: Mode) -> bool {
        (!mode.is_direct() || self.direct.is_yes()) && (!mode.is_uring() || self.io_uring.is_yes())
    }
}
