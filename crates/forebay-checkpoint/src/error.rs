//! Errors of checkpoint operations, as outcomes that a caller may treat differently.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_units::{Bytes, PathText};

use crate::{Damage, PassedOver};

/// The result of an operation on checkpoints.
pub type Result<T> = std::result::Result<T, Error>;

/// The file-system operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    Create,
    Open,
    Allocate,
    Write,
    Read,
    Sync,
    SyncFolder,
    SyncFileSystem,
    Rename,
    Remove,
    MakeFolder,
    RemoveFolder,
    List,
    Space,
    Lock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "creating",
            Self::Open => "opening",
            Self::Allocate => "allocating space for",
            Self::Write => "writing",
            Self::Read => "reading",
            Self::Sync => "syncing",
            Self::SyncFolder => "syncing the folder",
            Self::SyncFileSystem => "syncing the file system of",
            Self::Rename => "renaming",
            Self::Remove => "removing",
            Self::MakeFolder => "creating the folder",
            Self::RemoveFolder => "removing the folder",
            Self::List => "listing",
            Self::Space => "querying the free space of",
            Self::Lock => "locking",
        })
    }
}

#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{operation} {}: no such file or folder", path.escaped())]
    NotFound { operation: Operation, path: PathBuf },
    #[error("{operation} {}: no space left on the device", path.escaped())]
    Full { operation: Operation, path: PathBuf },
    #[error("{operation} {}", path.escaped())]
    Io {
        operation: Operation,
        path: PathBuf,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("{} is in use by {holder}", path.escaped())]
    Locked {
        path: PathBuf,
        /// Process and host, from the lock file.
        holder: String,
    },
    /// The tier has no space for another checkpoint, and none of its checkpoints may be removed.
    #[error(
        "not enough space in {}: {} needed, {} free, and no checkpoint there may be removed",
        path.escaped(), Bytes(*wanted), Bytes(*free)
    )]
    NoRoom {
        path: PathBuf,
        /// Bytes needed, including the reserve that must stay free.
        wanted: u64,
        free: u64,
    },
    /// The checkpoint differs from what was written.
    #[error("{} is damaged: {damage}", path.escaped())]
    Damaged { path: PathBuf, damage: Damage },
    /// Two tiers hold different checkpoints with the same name, or the farther tier holds a folder that forebay did not
    /// write.
    #[error("{} differs from the checkpoint of the same name on the nearer tier and cannot be replaced", path.escaped())]
    Conflict { path: PathBuf },
    /// The files to be written do not form a valid checkpoint.
    #[error("invalid checkpoint layout: {what}")]
    Plan { what: String },
    /// The state does not fit into the staging pool.
    #[error("state of {wanted} bytes does not fit into the staging pool of {pool} bytes")]
    Pool { wanted: u64, pool: u64 },
    /// The staging pool could not be allocated.
    #[error("allocating {wanted} bytes of memory")]
    Memory {
        wanted: u64,
        #[source]
        source: Arc<io::Error>,
    },
    /// Copying values from a device failed.
    #[error("copying values from the device")]
    Fetch {
        #[source]
        source: Arc<io::Error>,
    },
    /// The device could not page-lock the staging pool.
    #[error("page-locking {wanted} bytes of memory for the device")]
    PageLock {
        wanted: u64,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("starting the thread {name}")]
    Thread {
        name: &'static str,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("no valid checkpoint{} in {places}{}", of_step(*step), in_lines(passed_over))]
    NothingGood {
        /// The requested step; `None` for any step.
        step: Option<u64>,
        places: String,
        /// Every checkpoint found, and why it was skipped.
        passed_over: Vec<PassedOver>,
    },
    /// Background work failed earlier.
    #[error("the checkpoint of step {step} failed while being {what}")]
    Background {
        step: u64,
        what: &'static str,
        #[source]
        source: Box<Error>,
    },
    /// The operation was stopped, or the store is closing.
    #[error("stopped before the checkpoint was finished")]
    Stopped,
}

impl Error {
    /// Maps a system error to its outcome.
    pub fn from_io(operation: Operation, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { operation, path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { operation, path },
            _ => Self::Io { operation, path, source: Arc::new(source) },
        }
    }

    /// Wraps an error of a device that failed to deliver its values.
    pub(crate) fn fetch(source: io::Error) -> Self {
        Self::Fetch { source: Arc::new(source) }
    }

    /// Whether a sync failed. The data written before it is lost, even if a second sync succeeds.
    pub(crate) fn is_failed_sync(&self) -> bool {
        use Operation::{Sync, SyncFileSystem, SyncFolder};
        matches!(self, Self::Io { operation: Sync | SyncFolder | SyncFileSystem, .. })
    }
}

fn of_step(step: Option<u64>) -> String {
    step.map(|step| format!(" of step {step}")).unwrap_or_default()
}

fn in_lines(passed_over: &[PassedOver]) -> String {
    passed_over.iter().map(|one| format!("\n  {one}")).collect()
}

/// Adds the operation and the path to a system error.
pub(crate) trait Context<T> {
    fn context(self, operation: Operation, path: &Path) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: Operation, path: &Path) -> Result<T> {
        self.map_err(|source| Error::from_io(operation, path, source))
    }
}
