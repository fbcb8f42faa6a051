//! A file system that counts its operations and fails at the k-th: power cut, failed operation, no space left, or a
//! vanished device. It can also skip the syncs at one point of the protocol, to show that they are needed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::{File, Fs, Guard, Kind, Reading};
use crate::manifest::MANIFEST;
use crate::tier::{STAGING, TRASH};
use crate::{Error, Operation, Result};

/// The fault to inject; operations are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    Never,
    /// This operation and all later ones do not happen.
    Off(u64),
    /// This one operation fails with an I/O error. A sync that failed may be repeated, and then falsely reports
    /// success.
    Fail(u64),
    /// From this operation on, everything that needs space fails.
    Full(u64),
    /// From this operation on, nothing below this folder is reachable.
    Gone(u64, PathBuf),
}

/// A point in the protocol that syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPoint {
    Data,
    Manifest,
    /// The folder in which the checkpoint is created.
    Staging,
    /// The tier's folder, after the checkpoint was renamed into place.
    Commit,
    /// The tier's folder, after a checkpoint was renamed away and before its files are removed.
    Trash,
    /// The tier's folder at opening, before its listing is trusted.
    Open,
}

impl SyncPoint {
    pub const ALL: [Self; 6] = [Self::Data, Self::Manifest, Self::Staging, Self::Commit, Self::Trash, Self::Open];
}

#[derive(Debug)]
struct Script {
    cut: Cut,
    left_out: Option<SyncPoint>,
    n_operations: AtomicU64,
    done: AtomicBool,
    /// The last rename in this folder since its last sync.
    renamed: Mutex<BTreeMap<PathBuf, String>>,
}

#[derive(Clone)]
pub struct FaultyFs {
    inner: Arc<dyn Fs>,
    script: Arc<Script>,
}

impl FaultyFs {
    pub fn new(inner: Arc<dyn Fs>, cut: Cut) -> Self {
        Self::scripted(inner, cut, None)
    }

    /// As [`new`](Self::new), but skips the syncs at one point.
    pub fn without(inner: Arc<dyn Fs>, cut: Cut, left_out: SyncPoint) -> Self {
        Self::scripted(inner, cut, Some(left_out))
    }

    fn scripted(inner: Arc<dyn Fs>, cut: Cut, left_out: Option<SyncPoint>) -> Self {
        let (n_operations, done) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { inner, script: Arc::new(Script { cut, left_out, n_operations, done, renamed: Mutex::default() }) }
    }

    pub fn n_operations(&self) -> u64 {
        self.script.n_operations.load(Ordering::SeqCst)
    }

    pub fn has_cut(&self) -> bool {
        self.script.done.load(Ordering::SeqCst)
    }

    fn file(&self, path: &Path, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(FaultyFile {
            path: path.to_owned(),
            inner,
            script: Arc::clone(&self.script),
            lost: AtomicBool::new(false),
        })
    }
}

impl Script {
    /// Counts an operation and decides whether it fails.
    fn enter(&self, operation: Operation, path: &Path) -> Result<()> {
        let k = self.n_operations.fetch_add(1, Ordering::SeqCst);
        let failed = match &self.cut {
            Cut::Never => None,
            Cut::Off(at) => (k >= *at).then_some(libc::EIO),
            Cut::Fail(at) => (k == *at).then_some(libc::EIO),
            Cut::Full(at) => (k >= *at && takes_space(operation)).then_some(libc::ENOSPC),
            Cut::Gone(at, below) => (k >= *at && path.starts_with(below)).then_some(libc::ENODEV),
        };
        match failed {
            None => Ok(()),
            Some(errno) => {
                self.done.store(true, Ordering::SeqCst);
                Err(Error::from_io(operation, path, io::Error::from_raw_os_error(errno)))
            }
        }
    }

    fn leaves_out(&self, point: SyncPoint) -> bool {
        self.left_out == Some(point)
    }

    /// The protocol point at which this folder is synced now.
    fn point_of_folder(&self, dir: &Path) -> SyncPoint {
        let renamed = self.renamed.lock().expect("no holder of this lock panics").remove(dir);
        match renamed {
            _ if last_name(dir).starts_with(STAGING) => SyncPoint::Staging,
            Some(to) if to.starts_with(TRASH) => SyncPoint::Trash,
            Some(_) => SyncPoint::Commit,
            None => SyncPoint::Open,
        }
    }
}

fn takes_space(operation: Operation) -> bool {
    matches!(operation, Operation::Create | Operation::Allocate | Operation::Write | Operation::MakeFolder)
}

fn last_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Fs for FaultyFs {
    fn description(&self) -> String {
        format!("{} with {:?}", self.inner.description(), self.script.cut)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        self.script.enter(Operation::Create, path)?;
        Ok(self.file(path, self.inner.create(path)?))
    }

    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>> {
        self.script.enter(Operation::Open, path)?;
        Ok(self.file(path, self.inner.open(path, reading)?))
    }

    fn make_dir(&self, path: &Path) -> Result<()> {
        self.script.enter(Operation::MakeFolder, path)?;
        self.inner.make_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.script.enter(Operation::RemoveFolder, path)?;
        self.inner.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.script.enter(Operation::List, dir)?;
        self.inner.list(dir)
    }

    fn kind(&self, path: &Path) -> Result<Kind> {
        self.inner.kind(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.script.enter(Operation::Rename, from)?;
        self.inner.rename(from, to)?;
        let folder = to.parent().unwrap_or(Path::new("/")).to_owned();
        self.script.renamed.lock().expect("no holder of this lock panics").insert(folder, last_name(to));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.script.enter(Operation::Remove, path)?;
        self.inner.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let point = self.script.point_of_folder(dir);
        self.script.enter(Operation::SyncFolder, dir)?;
        if self.script.leaves_out(point) {
            return Ok(());
        }
        self.inner.sync_dir(dir)
    }

    fn sync_all(&self, dir: &Path) -> Result<()> {
        self.script.enter(Operation::SyncFileSystem, dir)?;
        self.inner.sync_all(dir)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.inner.free_bytes(dir)
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Guard>> {
        self.inner.lock(path, holder)
    }
}

struct FaultyFile {
    path: PathBuf,
    inner: Box<dyn File>,
    script: Arc<Script>,
    /// A sync failed. The kernel marked the pages clean, so later syncs report success.
    lost: AtomicBool,
}

impl File for FaultyFile {
    fn allocate(&self, len: u64) -> Result<()> {
        self.script.enter(Operation::Allocate, &self.path)?;
        self.inner.allocate(len)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.script.enter(Operation::Write, &self.path)?;
        self.inner.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.script.enter(Operation::Read, &self.path)?;
        self.inner.read_at(offset, into)
    }

    fn n_bytes(&self) -> Result<u64> {
        self.inner.n_bytes()
    }

    fn sync(&self) -> Result<()> {
        if let Err(error) = self.script.enter(Operation::Sync, &self.path) {
            self.lost.store(true, Ordering::SeqCst);
            return Err(error);
        }
        let point = if last_name(&self.path) == MANIFEST { SyncPoint::Manifest } else { SyncPoint::Data };
        if self.lost.load(Ordering::SeqCst) || self.script.leaves_out(point) {
            return Ok(());
        }
        self.inner.sync()
    }
}
