//! Storage that answers instantly, to measure the overhead of the harness itself.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{Buffer, Entry, Error, Object, Operation, Result, Storage, Writer};

/// `n_objects` objects named `null/0000000`, `null/0000001`, … of `size` zero bytes each. Writes are accepted and dropped.
///
/// Reading sets the buffer's length without touching its memory: the content is what the buffer held before, zeros for
/// a fresh one.
#[derive(Debug, Clone)]
pub struct Null {
    n_objects: usize,
    size: u64,
}

impl Null {
    /// A null storage with `n_objects` objects of `size` bytes.
    pub fn new(n_objects: usize, size: u64) -> Self {
        Self { n_objects, size }
    }

    pub fn path_of(index: usize) -> PathBuf {
        PathBuf::from(format!("null/{index:07}"))
    }

    fn check(&self, operation: Operation, path: &Path) -> Result<()> {
        // Compares bytes: splitting a path costs more than everything else this storage does.
        let name = path.as_os_str().as_bytes().strip_prefix(b"null/");
        match name.and_then(|name| std::str::from_utf8(name).ok()?.parse::<usize>().ok()) {
            Some(index) if index < self.n_objects => Ok(()),
            _ => Err(Error::NotFound { operation, path: path.to_owned() }),
        }
    }
}

impl Storage for Null {
    fn description(&self) -> String {
        "null".to_owned()
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        if !Path::new("null").starts_with(dir) {
            return Err(Error::NotFound { operation: Operation::List, path: dir.to_owned() });
        }
        Ok((0..self.n_objects).map(|i| Entry { path: Self::path_of(i), size: self.size }).collect())
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.check(Operation::Size, path)?;
        Ok(self.size)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        self.check(Operation::Open, path)?;
        Ok(Box::new(NullObject { size: self.size }))
    }

    fn create(&self, _path: &Path) -> Result<Box<dyn Writer>> {
        Ok(Box::new(NullWriter))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.check(Operation::Remove, path)
    }
}

struct NullObject {
    size: u64,
}

impl Object for NullObject {
    fn len(&self) -> Result<u64> {
        Ok(self.size)
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        Error::check_size(Path::new("null"), self.size, limit)?;
        into.resize(self.size as usize);
        Ok(())
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        let found = self.size.saturating_sub(offset).min(len as u64);
        if found < len as u64 {
            return Err(Error::Truncated { path: PathBuf::from("null"), offset, wanted: len as u64, found });
        }
        into.resize(len);
        Ok(())
    }
}

struct NullWriter;

impl Writer for NullWriter {
    fn write(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
