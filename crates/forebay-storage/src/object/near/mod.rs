//! Objects kept in a folder on a near disk, so that later epochs and later runs need not fetch them.
//!
//! Each object, or part of one, is a file of its own, written under another name and then renamed: a program that is
//! killed leaves nothing that is taken for an object. Nothing is synced, because checksums find what a power cut
//! damages, and the store has it. Programs on one machine share the folder and its limit; one that opens the folder alone
//! removes what killed ones left and counts the bytes anew. What to keep is decided in `order`.

mod key;
mod order;
mod pass;
mod usage;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

pub(super) use key::Key;
pub(super) use pass::{Keep, Pass};
use usage::{Usage, on_disk};

use crate::error::Context;
use crate::requests::CacheCounts;
use crate::{Buffer, CachePlace, Error, Operation, Result};

/// Marks a folder as a cache; held by every program that uses it.
const MARK: &str = "forebay-cache";
const USED: &str = "used";
/// Begins the names of files that are being written.
const UNFINISHED: &str = "new-";
/// Share of the free space that is used if no size is given.
const SHARE_OF_FREE: f64 = 0.9;

#[derive(Debug)]
pub(super) struct NearCache {
    dir: PathBuf,
    limit: u64,
    lock: Mutex<File>,
    usage: Usage,
    /// Bytes that are about to be written.
    promised: AtomicU64,
    /// Bytes on disk by the name of the key; other programs may add and remove entries.
    entries: Mutex<HashMap<u64, u64>>,
    n_passes: AtomicUsize,
    n_written: AtomicU64,
    counts: Mutex<CacheCounts>,
}

/// The caches of this program: a folder is opened once.
static OPEN: Mutex<Vec<(CachePlace, Weak<NearCache>)>> = Mutex::new(Vec::new());

impl NearCache {
    pub(super) fn open(place: &CachePlace) -> Result<Arc<Self>> {
        let mut open = OPEN.lock().expect("no holder of this lock panics");
        open.retain(|(_, cache)| cache.strong_count() > 0);
        if let Some(cache) = open.iter().find(|(known, _)| known == place).and_then(|(_, cache)| cache.upgrade()) {
            return Ok(cache);
        }
        let cache = Arc::new(Self::open_folder(place)?);
        open.push((place.clone(), Arc::downgrade(&cache)));
        Ok(cache)
    }

    fn open_folder(place: &CachePlace) -> Result<Self> {
        let dir = &place.dir;
        fs::create_dir_all(dir).context(Operation::Create, dir)?;
        let mark = dir.join(MARK);
        if !mark.exists() && fs::read_dir(dir).context(Operation::List, dir)?.next().is_some() {
            let what = "the folder is not empty and not a cache: give a new or empty folder".to_owned();
            return Err(Error::Unsupported { operation: Operation::Open, path: dir.clone(), what });
        }
        let open = |path: &Path| {
            File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(path)
                .context(Operation::Create, path)
        };
        let lock = open(&mark)?;
        let usage = Usage::new(open(&dir.join(USED))?).context(Operation::Read, dir)?;
        for number in 0..=u8::MAX {
            let folder = dir.join(format!("{number:02x}"));
            fs::create_dir_all(&folder).context(Operation::Create, &folder)?;
        }
        let is_alone = lock.try_lock().is_ok();
        let (entries, unfinished) = entries_of(dir)?;
        if is_alone {
            unfinished.iter().for_each(|path| drop(fs::remove_file(path)));
            usage.set(entries.values().sum()).context(Operation::Write, dir)?;
        }
        // Gives up being alone, or waits for the one that is.
        lock.lock_shared().context(Operation::Open, &mark)?;
        let limit = match place.size {
            Some(size) => size.0,
            None => usage.seen() + (crate::tier::free(dir)? as f64 * SHARE_OF_FREE) as u64,
        };
        Ok(Self {
            dir: dir.clone(),
            limit,
            lock: Mutex::new(lock),
            usage,
            promised: AtomicU64::new(0),
            entries: Mutex::new(entries),
            n_passes: AtomicUsize::new(0),
            n_written: AtomicU64::new(0),
            counts: Mutex::default(),
        })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn counts(&self) -> CacheCounts {
        *self.counts.lock().expect("no holder of this lock panics")
    }

    fn count(&self, change: impl FnOnce(&mut CacheCounts)) {
        change(&mut self.counts.lock().expect("no holder of this lock panics"));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.entries.lock().expect("no holder of this lock panics")
    }

    /// Whether neither another pass of this program nor another program uses the cache.
    fn is_alone(&self) -> bool {
        let lock = self.lock.lock().expect("no holder of this lock panics");
        let is_alone = lock.try_lock().is_ok();
        // A failed attempt may have given up the shared lock.
        let is_held = lock.lock_shared().is_ok();
        is_alone && is_held && self.n_passes.load(Ordering::Relaxed) <= 1
    }

    fn path_of(&self, name: u64) -> PathBuf {
        self.dir.join(format!("{:02x}/{name:016x}", name >> 56))
    }

    /// The bytes on disk of an entry that another program may have made.
    fn find(&self, name: u64) -> Option<u64> {
        let bytes = on_disk(fs::metadata(self.path_of(name)).ok()?.len());
        self.entries().insert(name, bytes);
        Some(bytes)
    }

    /// Reads an entry; `false` if it is not there, or is damaged and was removed.
    pub(super) fn read(&self, key: &Key, into: &mut Buffer) -> bool {
        match self.read_file(key, into) {
            Ok(true) => {
                self.count(|counts| {
                    counts.read += 1;
                    counts.read_bytes += into.len() as u64;
                });
                return true;
            }
            // Another program needed the space.
            Err(error) if error.kind() == io::ErrorKind::NotFound => drop(self.entries().remove(&key.name)),
            Ok(false) | Err(_) => {
                self.remove(key.name);
                self.count(|counts| counts.damaged += 1);
            }
        }
        false
    }

    fn read_file(&self, key: &Key, into: &mut Buffer) -> io::Result<bool> {
        let mut file = File::open(self.path_of(key.name))?;
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        into.resize(len);
        file.read_exact(into.as_mut_slice())?;
        let found = key.verify(into.as_slice());
        into.resize(found.unwrap_or(0));
        Ok(found.is_some())
    }

    /// Keeps bytes that take `size` bytes on disk, in place of the victims; returns whether they are in the cache.
    fn keep(&self, key: &Key, bytes: &[u8], size: u64, victims: &[u64]) -> bool {
        let n_evicted = victims.iter().filter(|victim| self.remove(**victim)).count();
        self.count(|counts| counts.evicted += n_evicted as u64);
        let path = self.path_of(key.name);
        if path.exists() {
            // Another program was faster.
            return true;
        }
        match self.usage.reserve(size, self.limit) {
            Ok(true) => {}
            // Other programs that share the cache have filled it.
            Ok(false) => return false,
            Err(_) => {
                self.count(|counts| counts.unwritten += 1);
                return false;
            }
        }
        let number = self.n_written.fetch_add(1, Ordering::Relaxed);
        let unfinished = path.with_file_name(format!("{UNFINISHED}{}-{number}", std::process::id()));
        let is_kept = write(&unfinished, &path, key, bytes).is_ok();
        if is_kept {
            self.entries().insert(key.name, size);
        } else {
            let _ = fs::remove_file(&unfinished);
            self.usage.release(size);
        }
        self.count(|counts| {
            counts.kept += u64::from(is_kept);
            counts.kept_bytes += if is_kept { bytes.len() as u64 } else { 0 };
            counts.unwritten += u64::from(!is_kept);
        });
        is_kept
    }

    /// Removes an entry; `false` if it is gone.
    fn remove(&self, name: u64) -> bool {
        self.entries().remove(&name);
        let path = self.path_of(name);
        let Ok(found) = fs::metadata(&path) else { return false };
        // Of several programs that remove it, one succeeds.
        let is_removed = fs::remove_file(&path).is_ok();
        if is_removed {
            self.usage.release(on_disk(found.len()));
        }
        is_removed
    }
}

fn write(unfinished: &Path, path: &Path, key: &Key, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(unfinished)?;
    file.write_all(bytes)?;
    file.write_all(&key.trailer(bytes))?;
    fs::rename(unfinished, path)
}

/// The entries with their bytes on disk, and files that were not finished.
fn entries_of(dir: &Path) -> Result<(HashMap<u64, u64>, Vec<PathBuf>)> {
    let (mut entries, mut unfinished) = (HashMap::new(), Vec::new());
    for number in 0..=u8::MAX {
        let folder = dir.join(format!("{number:02x}"));
        for file in fs::read_dir(&folder).context(Operation::List, &folder)? {
            let file = file.context(Operation::List, &folder)?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(UNFINISHED) {
                unfinished.push(file.path());
            } else if let Ok(name) = u64::from_str_radix(name, 16)
                && let Ok(found) = file.metadata()
            {
                entries.insert(name, on_disk(found.len()));
            }
        }
    }
    Ok((entries, unfinished))
}

#[cfg(test)]
mod tests;
