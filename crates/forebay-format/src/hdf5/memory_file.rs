//! A file in memory that has a path, for a library that opens files by itself. What was never written takes no memory.
//!
//! A file without a name would do, but the library insists on the real path of what it is given. The name cannot be guessed and
//! the file is made anew, for its owner alone: the folders are everybody's.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where such files are made: in memory, or where that cannot be written to, where files are not kept.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

/// A file that is gone when this is dropped.
#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) file: File,
    path: PathBuf,
}

impl MemoryFile {
    pub(super) fn new() -> io::Result<Self> {
        // A hasher's keys are from the system's randomness.
        let name = format!(".forebay-hdf5-{:016x}", RandomState::new().hash_one(std::process::id()));
        let open = |folder: &&str| {
            let path = Path::new(folder).join(&name);
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
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
