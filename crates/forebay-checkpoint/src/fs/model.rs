//! An in-memory file system that loses unsynced data in a crash.
//!
//! It guarantees no more than POSIX: a file's bytes are safe after its own sync, a name after the sync of its folder.
//! Unsynced data may survive or not, page by page and name by name; [`Crash`] decides. Real file systems order many of
//! these writes, so a protocol that is safe here is safe there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use forebay_units::random::Random;

use super::{File, Fs, Guard, Kind, PAGE, Reading};
use crate::{Error, Operation, Result};

/// Which unsynced data survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    Nothing,
    /// All of it: the machine had just written it.
    All,
    /// Names and lengths but no bytes: files have the right length and hold zeros.
    Lengths,
    /// Each page and each name at random, from this seed.
    Some(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Add(String, usize),
    Remove(String),
    Rename(String, String, usize),
}

#[derive(Debug, Clone)]
enum Node {
    File { current: Vec<u8>, durable: Vec<u8>, dirty: BTreeSet<usize> },
    Dir { current: BTreeMap<String, usize>, durable: BTreeMap<String, usize>, pending: Vec<Change> },
}

impl Node {
    fn dir() -> Self {
        Self::Dir { current: BTreeMap::new(), durable: BTreeMap::new(), pending: Vec::new() }
    }

    fn file() -> Self {
        Self::File { current: Vec::new(), durable: Vec::new(), dirty: BTreeSet::new() }
    }
}

#[derive(Debug, Clone)]
struct State {
    nodes: Vec<Node>,
    locks: BTreeMap<PathBuf, String>,
    capacity: u64,
    #[cfg(test)]
    opened: Vec<(PathBuf, Reading)>,
}

/// The model. Clones share their content; a [`fork`](Self::fork) is independent.
#[derive(Debug, Clone)]
pub struct ModelFs {
    state: Arc<Mutex<State>>,
}

impl ModelFs {
    /// An unlimited file system with these folders in its root, durable.
    pub fn with_dirs(names: &[&str]) -> Self {
        let state = State {
            nodes: vec![Node::dir()],
            locks: BTreeMap::new(),
            capacity: u64::MAX,
            #[cfg(test)]
            opened: Vec::new(),
        };
        let model = Self { state: Arc::new(Mutex::new(state)) };
        for name in names {
            model.make_dir(&Path::new("/").join(name)).expect("the root is there");
        }
        model.sync_dir(Path::new("/")).expect("the root is there");
        model
    }

    /// An independent file system with the same content, both synced and unsynced.
    pub fn fork(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.lock_state().clone())) }
    }

    /// The files opened since the last call, and how.
    #[cfg(test)]
    pub(crate) fn take_opened(&self) -> Vec<(PathBuf, Reading)> {
        std::mem::take(&mut self.lock_state().opened)
    }

    /// Limits the total bytes of all files.
    pub fn set_capacity(&self, bytes: u64) {
        self.lock_state().capacity = bytes;
    }

    /// Cuts the power: durable data stays, and `crash` decides about the rest.
    pub fn crash(&self, crash: Crash) {
        let mut state = self.lock_state();
        let mut coin = Random::new(match crash {
            Crash::Some(seed) => seed,
            _ => 0,
        });
        let mut survives = |kind_survives: bool| match crash {
            Crash::Nothing => false,
            Crash::All => true,
            Crash::Lengths => kind_survives,
            Crash::Some(_) => coin.bits() & 1 == 1,
        };
        for node in &mut state.nodes {
            match node {
                Node::File { current, durable, dirty } => {
                    if survives(true) {
                        durable.resize(current.len(), 0);
                    }
                    for page in std::mem::take(dirty) {
                        if survives(false) {
                            keep_page(durable, current, page);
                        }
                    }
                    current.clone_from(durable);
                }
                Node::Dir { current, durable, pending } => {
                    for change in pending.drain(..) {
                        if survives(true) {
                            apply(durable, change);
                        }
                    }
                    current.clone_from(durable);
                }
            }
        }
        state.locks.clear();
    }

    /// Overwrites bytes of a file as a failing device would: durable and silent.
    ///
    /// # Errors
    /// When the file does not exist.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut state = self.lock_state();
        let id = state.find(Operation::Open, path)?;
        if let Node::File { current, durable, dirty } = &mut state.nodes[id] {
            change(current);
            durable.clone_from(current);
            dirty.clear();
        }
        Ok(())
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn change(&self, operation: Operation, path: &Path, make: impl FnOnce(&mut State) -> Result<Change>) -> Result<()> {
        let mut state = self.lock_state();
        let change = make(&mut state)?;
        let folder = state.find(operation, path.parent().unwrap_or(Path::new("/")))?;
        let Node::Dir { current, pending, .. } = &mut state.nodes[folder] else {
            return Err(refused(operation, path, io::ErrorKind::NotADirectory));
        };
        apply(current, change.clone());
        pending.push(change);
        Ok(())
    }
}

impl State {
    fn find(&self, operation: Operation, path: &Path) -> Result<usize> {
        let mut id = 0;
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            let Node::Dir { current, .. } = &self.nodes[id] else {
                return Err(refused(operation, path, io::ErrorKind::NotADirectory));
            };
            let missing = || Error::NotFound { operation, path: path.to_owned() };
            id = *current.get(name.to_string_lossy().as_ref()).ok_or_else(missing)?;
        }
        Ok(id)
    }

    fn add(&mut self, operation: Operation, path: &Path, node: Node) -> Result<Change> {
        if self.find(operation, path).is_ok() {
            return Err(refused(operation, path, io::ErrorKind::AlreadyExists));
        }
        self.find(operation, path.parent().unwrap_or(Path::new("/")))?;
        self.nodes.push(node);
        Ok(Change::Add(name_of(path), self.nodes.len() - 1))
    }

    /// Total bytes of all files that have a name.
    fn used(&self, id: usize) -> u64 {
        match &self.nodes[id] {
            Node::File { current, .. } => current.len() as u64,
            Node::Dir { current, .. } => current.values().map(|id| self.used(*id)).sum(),
        }
    }
}

fn apply(names: &mut BTreeMap<String, usize>, change: Change) {
    match change {
        Change::Add(name, id) => drop(names.insert(name, id)),
        Change::Remove(name) => drop(names.remove(&name)),
        Change::Rename(from, to, id) => {
            names.remove(&from);
            names.insert(to, id);
        }
    }
}

fn keep_page(durable: &mut Vec<u8>, current: &[u8], page: usize) {
    let end = ((page + 1) * PAGE).min(current.len());
    if end > durable.len() {
        durable.resize(end, 0);
    }
    durable[page * PAGE..end].copy_from_slice(&current[page * PAGE..end]);
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn refused(operation: Operation, path: &Path, kind: io::ErrorKind) -> Error {
    Error::from_io(operation, path, kind.into())
}

impl Fs for ModelFs {
    fn description(&self) -> String {
        "a model in memory".to_owned()
    }

    /// One, so the operations of a save have a fixed order.
    fn in_flight(&self) -> usize {
        1
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        self.change(Operation::Create, path, |state| state.add(Operation::Create, path, Node::file()))?;
        self.open(path, Reading::Cached)
    }

    fn open(&self, path: &Path, _reading: Reading) -> Result<Box<dyn File>> {
        #[cfg(test)]
        self.lock_state().opened.push((path.to_owned(), _reading));
        let state = self.lock_state();
        let id = state.find(Operation::Open, path)?;
        if matches!(state.nodes[id], Node::Dir { .. }) {
            return Err(refused(Operation::Open, path, io::ErrorKind::IsADirectory));
        }
        Ok(Box::new(ModelFile { state: Arc::clone(&self.state), id, path: path.to_owned() }))
    }

    fn make_dir(&self, path: &Path) -> Result<()> {
        self.change(Operation::MakeFolder, path, |state| state.add(Operation::MakeFolder, path, Node::dir()))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.change(Operation::RemoveFolder, path, |state| {
            let id = state.find(Operation::RemoveFolder, path)?;
            match &state.nodes[id] {
                Node::Dir { current, .. } if current.is_empty() => Ok(Change::Remove(name_of(path))),
                _ => Err(refused(Operation::RemoveFolder, path, io::ErrorKind::DirectoryNotEmpty)),
            }
        })
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let state = self.lock_state();
        match &state.nodes[state.find(Operation::List, dir)?] {
            Node::Dir { current, .. } => Ok(current.keys().cloned().collect()),
            Node::File { .. } => Err(refused(Operation::List, dir, io::ErrorKind::NotADirectory)),
        }
    }

    fn kind(&self, path: &Path) -> Result<Kind> {
        let state = self.lock_state();
        Ok(match &state.nodes[state.find(Operation::Open, path)?] {
            Node::Dir { .. } => Kind::Folder,
            Node::File { .. } => Kind::File,
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change(Operation::Rename, from, |state| {
            let id = state.find(Operation::Rename, from)?;
            if state.find(Operation::Rename, to).is_ok() {
                return Err(refused(Operation::Rename, from, io::ErrorKind::AlreadyExists));
            }
            Ok(Change::Rename(name_of(from), name_of(to), id))
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change(Operation::Remove, path, |state| {
            let id = state.find(Operation::Remove, path)?;
            match state.nodes[id] {
                Node::File { .. } => Ok(Change::Remove(name_of(path))),
                Node::Dir { .. } => Err(refused(Operation::Remove, path, io::ErrorKind::IsADirectory)),
            }
        })
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut state = self.lock_state();
        let id = state.find(Operation::SyncFolder, dir)?;
        sync_node(&mut state.nodes[id]);
        Ok(())
    }

    fn sync_all(&self, dir: &Path) -> Result<()> {
        let mut state = self.lock_state();
        state.find(Operation::SyncFileSystem, dir)?;
        state.nodes.iter_mut().for_each(sync_node);
        Ok(())
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        let state = self.lock_state();
        state.find(Operation::Space, dir)?;
        Ok(state.capacity.saturating_sub(state.used(0)))
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Guard>> {
        let mut state = self.lock_state();
        if let Some(holder) = state.locks.get(path) {
            return Err(Error::Locked { path: path.to_owned(), holder: holder.clone() });
        }
        state.locks.insert(path.to_owned(), holder.to_owned());
        Ok(Box::new(ModelGuard { state: Arc::clone(&self.state), path: path.to_owned() }))
    }
}

fn sync_node(node: &mut Node) {
    match node {
        Node::File { current, durable, dirty } => {
            durable.clone_from(current);
            dirty.clear();
        }
        Node::Dir { current, durable, pending } => {
            durable.clone_from(current);
            pending.clear();
        }
    }
}

#[derive(Debug)]
struct ModelGuard {
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl Guard for ModelGuard {}

impl Drop for ModelGuard {
    fn drop(&mut self) {
        self.state.lock().expect("no holder of this lock panics").locks.remove(&self.path);
    }
}

struct ModelFile {
    state: Arc<Mutex<State>>,
    id: usize,
    path: PathBuf,
}

impl ModelFile {
    fn extend(
        &self,
        operation: Operation,
        len: u64,
        write: impl FnOnce(&mut Vec<u8>, &mut BTreeSet<usize>),
    ) -> Result<()> {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        let (used, capacity) = (state.used(0), state.capacity);
        let Node::File { current, dirty, .. } = &mut state.nodes[self.id] else {
            return Err(refused(operation, &self.path, io::ErrorKind::IsADirectory));
        };
        let more = len.saturating_sub(current.len() as u64);
        if used + more > capacity {
            return Err(Error::Full { operation, path: self.path.clone() });
        }
        let len = current.len().max(len as usize);
        current.resize(len, 0);
        write(current, dirty);
        Ok(())
    }
}

impl File for ModelFile {
    fn allocate(&self, len: u64) -> Result<()> {
        self.extend(Operation::Allocate, len, |_, _| {})
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        self.extend(Operation::Write, end as u64, |current, dirty| {
            current[start..end].copy_from_slice(bytes);
            dirty.extend(start / PAGE..end.div_ceil(PAGE));
        })
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let state = self.state.lock().expect("no holder of this lock panics");
        let Node::File { current, .. } = &state.nodes[self.id] else { return Ok(0) };
        let from = current.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn n_bytes(&self) -> Result<u64> {
        match &self.state.lock().expect("no holder of this lock panics").nodes[self.id] {
            Node::File { current, .. } => Ok(current.len() as u64),
            Node::Dir { .. } => Ok(0),
        }
    }

    fn sync(&self) -> Result<()> {
        sync_node(&mut self.state.lock().expect("no holder of this lock panics").nodes[self.id]);
        Ok(())
    }
}
