//! What can go wrong with a checkpoint, as outcomes that a caller may treat differently.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_units::{Bytes, PathText};

use crate::{Damage, PassedOver};

/// The result of an operation on checkpoints.
pub type Result<T> = std::result::Result<T, Error>;

/// What was being done to a file or folder when it went wrong.
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
            Self::Sync => "making durable the file",
            Self::SyncFolder => "making durable the names in",
            Self::SyncFileSystem => "making durable the file system of",
            Self::Rename => "renaming",
            Self::Remove => "removing",
            Self::MakeFolder => "making the folder",
            Self::RemoveFolder => "removing the folder",
            Self::List => "listing",
            Self::Space => "asking for the free space of",
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
    /// The tier has no room for another checkpoint, and nothing on it may go.
    #[error(
        "no room for {} more in {}: {} are free, and no checkpoint there may be removed",
        Bytes(*wanted), path.escaped(), Bytes(*free)
    )]
    NoRoom {
        path: PathBuf,
        /// Bytes the checkpoint takes, with what is to stay free.
        wanted: u64,
        free: u64,
    },
    /// What lies there is not the checkpoint that was written.
    #[error("{} is damaged: {damage}", path.escaped())]
    Damaged { path: PathBuf, damage: Damage },
    /// Two tiers hold different checkpoints of one name, or a farther one something that is not ours.
    #[error("{} differs from the checkpoint of that name on the nearer tier, and cannot be replaced by it", path.escaped())]
    Conflict { path: PathBuf },
    /// The files to be written cannot be a checkpoint.
    #[error("a checkpoint cannot hold this: {what}")]
    Plan { what: String },
    /// The state does not fit into the staging pool.
    #[error("a state of {wanted} bytes does not fit into a staging pool of {pool} bytes")]
    Pool { wanted: u64, pool: u64 },
    /// Memory for the staging pool could not be had.
    #[error("allocating {wanted} bytes of memory")]
    Memory {
        wanted: u64,
        #[source]
        source: Arc<io::Error>,
    },
    /// A device did not give its values.
    #[error("copying values from the device")]
    Fetch {
        #[source]
        source: Arc<io::Error>,
    },
    /// A device could not make the staging pool its own.
    #[error("locking {wanted} bytes of memory for the device")]
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
    #[error("no good checkpoint{} in {places}{}", of_step(*step), in_lines(passed_over))]
    NothingGood {
        /// The step that was asked for; none when any would have done.
        step: Option<u64>,
        places: String,
        /// What was wrong with each one found.
        passed_over: Vec<PassedOver>,
    },
    /// Background work failed earlier.
    #[error("a checkpoint of step {step} that was being {what} failed")]
    Background {
        step: u64,
        what: &'static str,
        #[source]
        source: Box<Error>,
    },
    /// It was stopped, or the store was being closed.
    #[error("stopped before the checkpoint was finished")]
    Stopped,
}

impl Error {
    /// Sorts a system error into its outcome.
    pub fn from_io(operation: Operation, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { operation, path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { operation, path },
            _ => Self::Io { operation, path, source: Arc::new(source) },
        }
    }

    /// What a device says that does not give its values.
    pub(crate) fn fetch(source: io::Error) -> Self {
        Self::Fetch { source: Arc::new(source) }
    }

    /// Whether a sync failed: what was written before it is lost, whatever a second sync would say.
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
