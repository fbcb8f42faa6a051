//! Writing a file atomically: afterwards it is complete and durable, or does not exist.
//!
//! The bytes go to a hidden temporary name in the same folder; `commit` syncs the file, renames it, and syncs the
//! folder, without which the new name may be lost in a power cut even though the bytes are safe.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Context;
use crate::{Error, Operation, Result, Writer};

/// After this many bytes the kernel is asked to start writing, which leaves `commit` little to wait for.
const WRITE_BEHIND: u64 = 8 << 20;

pub(super) struct LocalWriter {
    file: File,
    written: u64,
    /// The offset up to which the kernel was asked to write.
    handed_over: u64,
    temporary: PathBuf,
    path: PathBuf,
    /// A write failed; the file's content is wrong.
    torn: bool,
}

impl LocalWriter {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let path = target_of(path)?;
        let folder = folder_of(&path);
        fs::create_dir_all(folder).context(Operation::Create, folder)?;
        let temporary = folder.join(temporary_name(&path));
        let file = File::create_new(&temporary).context(Operation::Create, &path)?;
        Ok(Self { file, written: 0, handed_over: 0, temporary, path, torn: false })
    }

    fn begin_writing(&mut self) {
        let (from, len) = (self.handed_over as libc::off64_t, (self.written - self.handed_over) as libc::off64_t);
        // SAFETY: a valid descriptor and plain integers. What goes wrong here, the sync at the end reports.
        unsafe { libc::sync_file_range(self.file.as_raw_fd(), from, len, libc::SYNC_FILE_RANGE_WRITE) };
        self.handed_over = self.written;
    }
}

/// The path that the rename will replace, with links resolved. Devices and pipes are refused: the rename would replace
/// them by a file for every program on the machine.
fn target_of(path: &Path) -> Result<PathBuf> {
    let what = match fs::metadata(path) {
        Err(_) => return Ok(path.to_owned()),
        Ok(found) if found.is_file() => return fs::canonicalize(path).context(Operation::Create, path),
        Ok(found) if found.is_dir() => "is a folder",
        Ok(_) => "is a device or a pipe",
    };
    Err(Error::Unsupported { operation: Operation::Create, path: path.to_owned(), what: what.to_owned() })
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    }
}

fn temporary_name(path: &Path) -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().as_bytes();
    let serial = NEXT.fetch_add(1, Ordering::Relaxed);
    let ending = format!(".{}-{serial}.tmp", std::process::id());
    // The number makes the name unique, so a long name may be cut to leave room for it.
    let kept = &name[..name.len().min(200)];
    OsString::from_vec([b".", kept, ending.as_bytes()].concat())
}

impl Writer for LocalWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let outcome = self.file.write_all(bytes).context(Operation::Write, &self.path);
        self.torn |= outcome.is_err();
        self.written += bytes.len() as u64;
        if self.written - self.handed_over >= WRITE_BEHIND {
            self.begin_writing();
        }
        outcome
    }

    fn commit(self: Box<Self>) -> Result<()> {
        if self.torn {
            let what = "an earlier write failed".to_owned();
            return Err(Error::Unsupported { operation: Operation::Commit, path: self.path.clone(), what });
        }
        self.file.sync_all().context(Operation::Commit, &self.path)?;
        fs::rename(&self.temporary, &self.path).context(Operation::Commit, &self.path)?;
        let folder = folder_of(&self.path);
        File::open(folder).and_then(|f| f.sync_all()).context(Operation::Commit, folder)
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        // After a successful commit the temporary name is gone; otherwise remove it.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_and_a_folder_are_never_replaced() {
        for (path, what) in [("/dev/null", "is a device or a pipe"), ("/", "is a folder")] {
            let error = LocalWriter::create(Path::new(path)).err().unwrap().to_string();
            assert!(error.contains(what), "{path}: {error}");
        }
    }

    #[test]
    fn a_link_keeps_pointing_to_the_file_that_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let mut writer = Box::new(LocalWriter::create(&link).unwrap());
        writer.write(b"after").unwrap();
        writer.commit().unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("file"));
        assert_eq!(fs::read(&file).unwrap(), b"after");
    }
}
