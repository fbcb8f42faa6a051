//! The hidden folder of an experiment: removed however the run ends; the next run removes leftovers of a killed one.
//!
//! On an object store it is a prefix. Nothing there says whether its process still runs, so that of a killed one stays.
//!
//! A folder in use is locked with `flock`, which the kernel releases when the process ends, so two experiments on one
//! disk do not remove each other's files.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use std::{io, process};

use forebay_storage::{Routed, Storage, bucket, is_url};

use crate::error::{Context, Error};

pub struct Scratch {
    /// A folder, or a prefix of an object store.
    path: PathBuf,
    /// Held until the folder is removed; `None` if the file system has no locks.
    lock: Option<File>,
}

/// Number of names to try. Another process can take a folder only between its creation and its locking, so losing even
/// a few in a row means that something else is wrong.
const MOST_TRIES: u32 = 100;

impl Scratch {
    pub fn create(dir: &Path, prefix: &str) -> Result<Self, Error> {
        if is_url(dir) {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            // Processes of several machines may use one bucket.
            let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis());
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            return Ok(Self { path: dir.join(format!("{prefix}{}-{started}-{number}", process::id())), lock: None });
        }
        for number in 0..MOST_TRIES {
            let path = dir.join(format!("{prefix}{}-{number}", process::id()));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                // Virtual file systems such as /proc do not create folders.
                Err(error) if error.kind() == io::ErrorKind::NotFound && dir.is_dir() => {
                    return Err(Error::NothingCanBeMade { path: dir.to_owned() });
                }
                Err(error) => return Err(Error::from_io("creating a folder in", dir, error)),
                Ok(()) => {}
            }
            match lock(&path) {
                Ok(Locking::Held(file)) => return Ok(Self { path, lock: Some(file) }),
                Ok(Locking::Unsupported) => return Ok(Self { path, lock: None }),
                Ok(Locking::Lost) => {}
                Err(error) => {
                    // The folder is empty, so removing it needs no descriptor.
                    let _ = fs::remove_dir(&path);
                    return Err(Error::from_own("opening", &path, error));
                }
            }
        }
        let error = io::Error::other(format!("another process took each of {MOST_TRIES} folders"));
        Err(Error::from_io("creating a folder in", dir, error))
    }

    /// Also creates `dir` if it is missing.
    pub fn create_below(dir: &Path, prefix: &str) -> Result<Self, Error> {
        if !is_url(dir) {
            fs::create_dir_all(dir).context("making", dir)?;
        }
        Self::create(dir, prefix)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a file and allocates its space, as fio does: the run is to measure writing, not allocation.
    pub fn fresh(&self, name: &str, size: u64) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::from_io("removing", &path, error));
            }
            _ => {}
        }
        let file = File::create_new(&path).context("creating", &path)?;
        // SAFETY: a valid descriptor and plain integers.
        let code = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size as libc::off_t) };
        if code != 0 {
            let error = io::Error::last_os_error();
            // File systems that cannot allocate in advance allocate while writing.
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(Error::from_io("allocating", &path, error));
            }
            file.set_len(size).context("lengthening", &path)?;
        }
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if is_url(&self.path) {
            // What cannot be removed now stays.
            let _ = remove_objects(&self.path);
            return;
        }
        let removed = fs::remove_dir_all(&self.path);
        // Removal needs a descriptor, and the lock may hold the last one.
        if removed.is_err() && self.lock.take().is_some() {
            // If this fails too, the next experiment tries again.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes all objects below a URL.
///
/// # Errors
/// When the store could not be asked.
pub fn remove_objects(dir: &Path) -> Result<(), Error> {
    let bucket = bucket();
    match Routed::default().list(dir) {
        Ok(entries) => entries.iter().try_for_each(|entry| bucket.clear(&entry.path)).map_err(Error::from),
        Err(forebay_storage::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

enum Locking {
    Held(File),
    Unsupported,
    /// Another process took it for a leftover between creation and locking.
    Lost,
}

/// Only a folder that is gone or locked by another process was lost to a race; any other failure is an error.
fn lock(path: &Path) -> io::Result<Locking> {
    let folder = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Locking::Lost),
        opened => opened?,
    };
    Ok(match folder.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Locking::Lost,
        Err(fs::TryLockError::Error(_)) => Locking::Unsupported,
        Ok(()) if is_still(path, &folder)? => Locking::Held(folder),
        Ok(()) => Locking::Lost,
    })
}

fn is_still(path: &Path, folder: &File) -> io::Result<bool> {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        named => Ok(identity(named?) == identity(folder.metadata()?)),
    }
}

/// Returns the names of the removed folders.
pub fn remove_left_overs(dir: &Path, prefix: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_ours(name, prefix) && remove_unlocked(&dir.join(name))).collect()
}

/// Whether another process uses a folder of `dir` whose name begins with `prefix`.
pub fn is_at_work(dir: &Path, prefix: &str) -> bool {
    let names =
        fs::read_dir(dir).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_ours(name, prefix)).filter_map(|name| File::open(dir.join(name)).ok()).any(|folder| {
        // Dropping the descriptor releases the lock.
        matches!(folder.try_lock(), Err(fs::TryLockError::WouldBlock))
    })
}

/// Whether a name is the prefix and two numbers; all other names are the user's.
fn is_ours(name: &str, prefix: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

fn remove_unlocked(path: &Path) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let Some(folder) = is_folder.then(|| File::open(path).ok()).flatten() else { return false };
    folder.try_lock().is_ok() && is_still(path, &folder).unwrap_or(false) && fs::remove_dir_all(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = ".forebay-probe-";

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_goes_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(dir.path(), PREFIX).unwrap();
        let file = scratch.fresh("data", 10_000).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().len(), 10_000);
        assert_eq!(scratch.fresh("data", 20_000).unwrap(), file);
        assert_eq!(fs::metadata(&file).unwrap().len(), 20_000, "it is created again");
        drop(scratch);
        assert_eq!(names(dir.path()), [] as [&str; 0]);
    }

    #[test]
    fn names_that_are_taken_are_passed_over_and_their_number_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let name = |number: u32| dir.path().join(format!("{PREFIX}{}-{number}", process::id()));
        (0..MOST_TRIES - 1).for_each(|number| fs::write(name(number), "taken").unwrap());
        let last = Scratch::create(dir.path(), PREFIX).unwrap();
        assert_eq!(last.path(), name(MOST_TRIES - 1));
        let Err(Error::Io { what, path, source }) = Scratch::create(dir.path(), PREFIX) else { panic!("none is left") };
        assert_eq!((what, path.as_path()), ("creating a folder in", dir.path()));
        assert_eq!(source.to_string(), "another process took each of 100 folders");
    }

    #[test]
    fn only_left_overs_of_ours_that_nobody_uses_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let used = Scratch::create(dir.path(), PREFIX).unwrap();
        let left = ".forebay-probe-1-0";
        for name in [left, ".forebay-probe-x-0", ".forebay-probe-results", ".forebay-probe-1-", "other"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("data"), "x").unwrap();
        }
        fs::write(dir.path().join(".forebay-probe-2-0"), "a file, not a folder").unwrap();
        assert_eq!(remove_left_overs(dir.path(), PREFIX), [left]);
        assert_eq!(remove_left_overs(dir.path(), ".forebay-other-"), [] as [&str; 0]);
        assert!(used.path().exists());
        assert_eq!(names(dir.path()).len(), 6);
    }
}
