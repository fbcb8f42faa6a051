//! Files that are written but not yet durable: synced together, and only then named.
//!
//! A sync waits for the file system's journal, which takes longer than writing a file of some megabytes; after the first
//! of many files, the others find the journal written. A killed run loses the waiting files, so their number is limited.

use std::sync::{Arc, Mutex};

use forebay_storage::{Error as StorageError, Operation};

use super::draft::Target;
use crate::Result;

/// Maximum number of waiting files and bytes.
const MOST_FILES: usize = 64;
const MOST_BYTES: u64 = 256 << 20;

#[derive(Default)]
pub(crate) struct Pending(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    targets: Vec<Arc<Target>>,
    bytes: u64,
}

impl Pending {
    /// Adds a written file. The thread that fills the queue settles all of them.
    pub(crate) fn add(&self, target: Arc<Target>, bytes: u64) -> Result<()> {
        target.begin_sync();
        let due = {
            let mut waiting = self.0.lock().expect("nobody panics while adding a file");
            waiting.targets.push(target);
            waiting.bytes += bytes;
            let is_due = waiting.targets.len() >= MOST_FILES || waiting.bytes >= MOST_BYTES;
            is_due.then(|| std::mem::take(&mut *waiting))
        };
        due.map_or(Ok(()), settle)
    }

    /// Syncs each waiting file and then gives it its name: a file with its final name is durable.
    pub(crate) fn settle(&self) -> Result<()> {
        settle(std::mem::take(&mut *self.0.lock().expect("nobody panics while adding a file")))
    }
}

fn settle(waiting: Waiting) -> Result<()> {
    for target in waiting.targets {
        let failed = |source| StorageError::from_io(Operation::Commit, target.path(), source);
        target.sync().and_then(|()| target.rename()).map_err(failed)?;
    }
    Ok(())
}
