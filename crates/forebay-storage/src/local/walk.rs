//! All files below a folder, sorted, following symbolic links to files and folders once.
//!
//! Dangling links, pipes and the like are listed too, with no length: opening them gives an error that says what they
//! are, which is better than silently missing data.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Context;
use crate::{Entry, Operation, Result};

/// Files that all listings of this process have found so far.
static N_LISTED: AtomicU64 = AtomicU64::new(0);

/// The number of files that listings of local folders in this process have found so far: listing a million files takes
/// seconds, and this shows progress.
pub fn n_listed() -> u64 {
    N_LISTED.load(Ordering::Relaxed)
}

/// Adds to the files that listings have found; also for listings of objects.
#[cfg(feature = "object")]
pub(crate) fn count_listed(n: usize) {
    N_LISTED.fetch_add(n as u64, Ordering::Relaxed);
}

pub(super) fn files_below(dir: &Path) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![dir.to_owned()];
    let metadata = fs::metadata(dir).context(Operation::List, dir)?;
    if !metadata.is_dir() {
        return Err(super::not_a_file(Operation::List, dir, false));
    }
    while let Some(folder) = pending.pop() {
        let metadata = fs::metadata(&folder).context(Operation::List, &folder)?;
        // Otherwise a link to a parent would be followed for ever.
        if seen.insert((metadata.dev(), metadata.ino())) {
            visit(&folder, &mut found, &mut pending)?;
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn visit(folder: &Path, found: &mut Vec<Entry>, pending: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).context(Operation::List, folder)? {
        let path = entry.context(Operation::List, folder)?.path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                pending.push(path);
                continue;
            }
            Ok(metadata) => found.push(Entry { path, size: metadata.len() }),
            Err(_) => found.push(Entry { path, size: 0 }),
        }
        N_LISTED.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
