//! A file system that does something, once, before its k-th operation: kill this process, fill or shut down a disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_checkpoint::{File, Fs, Guard, Kind, Reading, Result};

#[derive(Clone)]
pub(crate) struct HookFs {
    inner: Arc<dyn Fs>,
    hook: Arc<Hook>,
}

struct Hook {
    at: u64,
    n_operations: AtomicU64,
    act: Box<dyn Fn() + Send + Sync>,
}

impl Hook {
    fn pass(&self) {
        if self.n_operations.fetch_add(1, Ordering::SeqCst) == self.at {
            (self.act)();
        }
    }
}

impl HookFs {
    pub(crate) fn new(inner: Arc<dyn Fs>, at: u64, act: impl Fn() + Send + Sync + 'static) -> Self {
        Self { inner, hook: Arc::new(Hook { at, n_operations: AtomicU64::new(0), act: Box::new(act) }) }
    }

    pub(crate) fn has_acted(&self) -> bool {
        self.hook.n_operations.load(Ordering::SeqCst) > self.hook.at
    }

    fn passed(&self) -> &dyn Fs {
        self.hook.pass();
        self.inner.as_ref()
    }

    fn file(&self, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(HookFile { inner, hook: Arc::clone(&self.hook) })
    }
}

impl Fs for HookFs {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(self.file(self.passed().create(path)?))
    }

    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>> {
        Ok(self.file(self.passed().open(path, reading)?))
    }

    fn make_dir(&self, path: &Path) -> Result<()> {
        self.passed().make_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.passed().remove_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.passed().list(dir)
    }

    fn kind(&self, path: &Path) -> Result<Kind> {
        self.inner.kind(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.passed().rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.passed().remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.passed().sync_dir(dir)
    }

    fn sync_all(&self, dir: &Path) -> Result<()> {
        self.passed().sync_all(dir)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.inner.free_bytes(dir)
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Guard>> {
        self.inner.lock(path, holder)
    }
}

struct HookFile {
    inner: Box<dyn File>,
    hook: Arc<Hook>,
}

impl File for HookFile {
    fn allocate(&self, len: u64) -> Result<()> {
        self.hook.pass();
        self.inner.allocate(len)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.hook.pass();
        self.inner.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.hook.pass();
        self.inner.read_at(offset, into)
    }

    fn n_bytes(&self) -> Result<u64> {
        self.inner.n_bytes()
    }

    fn sync(&self) -> Result<()> {
        self.hook.pass();
        self.inner.sync()
    }
}
