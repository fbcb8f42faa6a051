//! A file in memory that has a path, for a library that opens files by itself. What was never written takes no memory.
//!
//! A file without a name would do, but the library insists on the real path of what it is given.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where such files are made: in memory, or where that cannot be written to, where files are not kept.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

static N_MADE: AtomicU64 = AtomicU64::new(0);

/// A file that is gone when this is dropped.
#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) file: File,
    path: PathBuf,
}

impl MemoryFile {
    pub(super) fn new() -> io::Result<Self> {
        let number = N_MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!(".forebay-hdf5-{}-{number}", std::process::id());
        let open = |folder: &&str| {
            let path = Path::new(folder).join(&name);
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
            Ok(Self { file, path })
        };
        FOLDERS.first().map(open).filter(Result::is_ok).unwrap_or_else(|| open(&FOLDERS[1]))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // One that is gone already is as good.
        let _ = fs::remove_file(&self.path);
    }
}
