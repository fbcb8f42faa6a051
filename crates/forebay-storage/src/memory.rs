//! Objects held in memory: for in-memory sources, and for tests that want exact content without a disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use crate::{Buffer, Entry, Error, Object, Operation, Result, Storage, Writer};

type Objects = Arc<RwLock<BTreeMap<PathBuf, Arc<[u8]>>>>;

/// A storage whose objects live in this process; clones share them. Not durable.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    objects: Objects,
}

impl Memory {
    pub fn insert(&self, path: impl Into<PathBuf>, bytes: impl Into<Arc<[u8]>>) {
        self.objects.write().expect("no holder of this lock panics").insert(path.into(), bytes.into());
    }

    fn get(&self, operation: Operation, path: &Path) -> Result<Arc<[u8]>> {
        let objects = self.objects.read().expect("no holder of this lock panics");
        objects.get(path).cloned().ok_or_else(|| Error::NotFound { operation, path: path.to_owned() })
    }
}

impl Storage for Memory {
    fn description(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        let objects = self.objects.read().expect("no holder of this lock panics");
        let found: Vec<Entry> = objects
            .iter()
            .filter(|(path, _)| path.starts_with(dir))
            .map(|(path, bytes)| Entry { path: path.clone(), size: bytes.len() as u64 })
            .collect();
        if found.is_empty() {
            return Err(Error::NotFound { operation: Operation::List, path: dir.to_owned() });
        }
        Ok(found)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        Ok(self.get(Operation::Size, path)?.len() as u64)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        Ok(Box::new(MemoryObject { path: path.to_owned(), bytes: self.get(Operation::Open, path)? }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        Ok(Box::new(MemoryWriter { storage: self.clone(), path: path.to_owned(), bytes: Vec::new() }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.objects.write().expect("no holder of this lock panics").remove(path);
        removed.map(drop).ok_or_else(|| Error::NotFound { operation: Operation::Remove, path: path.to_owned() })
    }
}

struct MemoryObject {
    path: PathBuf,
    bytes: Arc<[u8]>,
}

impl Object for MemoryObject {
    fn len(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        Error::check_size(&self.path, self.bytes.len() as u64, limit)?;
        into.fill_from(&self.bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let rest = &self.bytes[start..];
        let Some(wanted) = rest.get(..len) else {
            let (wanted, found) = (len as u64, rest.len() as u64);
            return Err(Error::Truncated { path: self.path.clone(), offset, wanted, found });
        };
        into.fill_from(wanted);
        Ok(())
    }
}

struct MemoryWriter {
    storage: Memory,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Writer for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.storage.insert(self.path, self.bytes);
        Ok(())
    }
}
