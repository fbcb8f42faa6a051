//! A file system for dry runs: it records changes instead of making them, while the command runs as usual.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use forebay_checkpoint::{Error, File, Fs, Guard, Kind, Operation, Reading, Result};

/// Reads the real file system minus renamed paths. Writes nothing and takes no lock.
pub(super) struct DryFs {
    inner: Arc<dyn Fs>,
    gone: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Debug)]
struct NoLock;

impl Guard for NoLock {}

impl DryFs {
    pub(super) fn new(inner: Arc<dyn Fs>) -> Self {
        Self { inner, gone: Mutex::default() }
    }

    fn gone(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.gone.lock().expect("no thread panics while it holds this lock")
    }

    /// Fails for a path that counts as removed.
    fn check(&self, operation: Operation, path: &Path) -> Result<()> {
        let is_gone = path.ancestors().any(|above| self.gone().contains(above));
        if is_gone { Err(Error::NotFound { operation, path: path.to_owned() }) } else { Ok(()) }
    }
}

fn refuse<T>(operation: Operation, path: &Path) -> Result<T> {
    let what = std::io::Error::new(std::io::ErrorKind::Unsupported, "nothing is written in a dry run");
    Err(Error::from_io(operation, path, what))
}

impl Fs for DryFs {
    fn description(&self) -> String {
        format!("{}, unchanged", self.inner.description())
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        refuse(Operation::Create, path)
    }

    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>> {
        self.check(Operation::Open, path)?;
        self.inner.open(path, reading)
    }

    fn make_dir(&self, path: &Path) -> Result<()> {
        refuse(Operation::MakeFolder, path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.remove(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let names = match self.inner.list(dir) {
            // The target of an earlier rename, which the command now removes.
            Err(Error::NotFound { .. }) => return Ok(Vec::new()),
            names => names?,
        };
        let gone = self.gone();
        Ok(names.into_iter().filter(|name| !gone.contains(&dir.join(name))).collect())
    }

    fn kind(&self, path: &Path) -> Result<Kind> {
        self.check(Operation::Open, path)?;
        self.inner.kind(path)
    }

    fn rename(&self, from: &Path, _: &Path) -> Result<()> {
        self.remove(from)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.gone().insert(path.to_owned());
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn sync_all(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.inner.free_bytes(dir)
    }

    fn lock(&self, _path: &Path, _holder: &str) -> Result<Box<dyn Guard>> {
        Ok(Box::new(NoLock))
    }
}
