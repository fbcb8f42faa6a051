//! A file in memory with a path, for a library that opens files itself. Parts that were never written take no memory.
//!
//! An unnamed file would do, but the library resolves the real path of its argument. The folders are world-writable, so
//! the name is unpredictable and the file is created exclusively, for its owner only.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Folders for these files: in memory, or temporary if that is not writable.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

/// A file that is removed on drop.
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
        // It may already be gone.
        let _ = fs::remove_file(&self.path);
    }
}
