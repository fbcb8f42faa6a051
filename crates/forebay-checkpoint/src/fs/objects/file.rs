//! Files of a checkpoint as objects: uploaded in parts, read in ranges.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use forebay_storage::{Buffer, Object, Upload};

use super::{Inner, failed, refused};
use crate::fs::File;
use crate::{Error, Operation, Result};

/// What the object is called that keeps the name of an upload until the upload is complete.
pub(super) const KEPT_PART: &str = ".upload";
/// Smallest part but the last; stores accept 5 MiB.
const LEAST_PART: u64 = 8 << 20;
/// Stores take 10,000 parts.
const MOST_PARTS: u64 = 9_000;

/// Bytes that a file and its folder share.
pub(super) type Lent = Arc<Mutex<Vec<u8>>>;

/// A small file in memory: a manifest, before it is published or after it was read.
pub(super) struct NewManifest {
    pub(super) path: PathBuf,
    pub(super) bytes: Lent,
}

impl File for NewManifest {
    fn allocate(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut all = self.bytes.lock().expect("no holder of this lock panics");
        if offset != all.len() as u64 {
            return Err(refused(Operation::Write, &self.path, io::ErrorKind::Unsupported));
        }
        all.extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let all = self.bytes.lock().expect("no holder of this lock panics");
        let rest = all.get(offset as usize..).unwrap_or_default();
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn n_bytes(&self) -> Result<u64> {
        Ok(self.bytes.lock().expect("no holder of this lock panics").len() as u64)
    }

    /// It becomes durable when it is published.
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// A file that is being uploaded.
pub(super) struct NewFile {
    fs: Arc<Inner>,
    path: PathBuf,
    object: PathBuf,
    /// Its length, once it is known.
    len: OnceLock<u64>,
    upload: OnceLock<Box<dyn Upload>>,
    parts: Mutex<BTreeMap<u64, Part>>,
}

#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    n_filled: u64,
}

impl NewFile {
    pub(super) fn new(fs: Arc<Inner>, path: PathBuf, object: PathBuf) -> Self {
        let (len, upload, parts) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Self { fs, path, object, len, upload, parts }
    }

    fn failed(&self, operation: Operation, error: forebay_storage::Error) -> Error {
        failed(operation, &self.path, error)
    }

    fn kept(&self) -> PathBuf {
        let mut name = self.object.clone().into_os_string();
        name.push(KEPT_PART);
        name.into()
    }

    fn size(&self) -> Result<u64> {
        self.len.get().copied().ok_or_else(|| refused(Operation::Write, &self.path, io::ErrorKind::Unsupported))
    }

    fn begin(&self) -> Result<()> {
        let failed = |error| self.failed(Operation::Create, error);
        let upload = self.fs.bucket.begin(&self.object).map_err(failed)?;
        // Before the first part: an upload without parts costs nothing.
        if !self.fs.bucket.create_once(&self.kept(), upload.id().as_bytes()).map_err(failed)? {
            return Err(refused(Operation::Create, &self.path, io::ErrorKind::AlreadyExists));
        }
        let _ = self.upload.set(upload);
        Ok(())
    }

    /// Copies bytes of one part; returns the part when it is complete and to be uploaded.
    fn fill(&self, part: u64, at: u64, bytes: &[u8], part_bytes: u64) -> Option<Vec<u8>> {
        let mut parts = self.parts.lock().expect("no holder of this lock panics");
        let filling = parts.entry(part).or_default();
        if filling.bytes.is_empty() {
            filling.bytes.resize(part_bytes as usize, 0);
        }
        filling.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        filling.n_filled += bytes.len() as u64;
        let is_due = filling.n_filled == part_bytes && self.upload.get().is_some();
        is_due.then(|| parts.remove(&part).map(|part| part.bytes)).flatten()
    }

    fn finish(&self, len: u64) -> Result<()> {
        let failed = |error| self.failed(Operation::Sync, error);
        let Some(upload) = self.upload.get() else {
            let mut parts = self.parts.lock().expect("no holder of this lock panics");
            let bytes = parts.remove(&0).map(|part| part.bytes).unwrap_or_default();
            return match self.fs.bucket.create_once(&self.object, &bytes).map_err(failed)? {
                true => Ok(()),
                false => Err(refused(Operation::Sync, &self.path, io::ErrorKind::AlreadyExists)),
            };
        };
        if let Err(error) = upload.complete() {
            // Its answer may be what was lost. No one else writes this object.
            if self.fs.storage.size(&self.object).ok() != Some(len) {
                return Err(failed(error));
            }
        }
        // What remains is removed with the checkpoint.
        let _ = self.fs.bucket.clear(&self.kept());
        Ok(())
    }
}

/// Bytes per part of a file of this length.
fn part_bytes(len: u64) -> u64 {
    len.div_ceil(MOST_PARTS).next_multiple_of(1 << 20).max(LEAST_PART)
}

impl File for NewFile {
    fn allocate(&self, len: u64) -> Result<()> {
        if self.len.set(len).is_err() {
            return Err(refused(Operation::Allocate, &self.path, io::ErrorKind::Unsupported));
        }
        if len > part_bytes(len) { self.begin() } else { Ok(()) }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let (len, mut offset, mut rest) = (self.size()?, offset, bytes);
        if offset + bytes.len() as u64 > len {
            return Err(refused(Operation::Write, &self.path, io::ErrorKind::Unsupported));
        }
        let whole = part_bytes(len);
        while !rest.is_empty() {
            let (part, at) = (offset / whole, offset % whole);
            let this = whole.min(len - part * whole);
            let (now, later) = rest.split_at(rest.len().min((this - at) as usize));
            let complete = self.fill(part, at, now, this);
            if let (Some(bytes), Some(upload)) = (complete, self.upload.get()) {
                upload.put(part as usize, bytes).map_err(|error| self.failed(Operation::Write, error))?;
            }
            (offset, rest) = (offset + now.len() as u64, later);
        }
        Ok(())
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
        Err(refused(Operation::Read, &self.path, io::ErrorKind::Unsupported))
    }

    fn n_bytes(&self) -> Result<u64> {
        self.size()
    }

    fn sync(&self) -> Result<()> {
        self.finish(self.size()?)
    }
}

/// A finished file.
pub(super) struct StoredFile {
    path: PathBuf,
    object: Box<dyn Object>,
    spare: Mutex<Vec<Buffer>>,
}

impl StoredFile {
    pub(super) fn new(path: PathBuf, object: Box<dyn Object>) -> Self {
        Self { path, object, spare: Mutex::default() }
    }
}

impl File for StoredFile {
    fn allocate(&self, _: u64) -> Result<()> {
        Err(read_only(Operation::Allocate, &self.path))
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(read_only(Operation::Write, &self.path))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let n = (self.n_bytes()?.saturating_sub(offset)).min(into.len() as u64) as usize;
        if n == 0 {
            return Ok(0);
        }
        let spare = || self.spare.lock().expect("no holder of this lock panics");
        let mut buffer = spare().pop().unwrap_or_default();
        let read = self.object.read_at(offset, n, &mut buffer);
        read.map_err(|error| failed(Operation::Read, &self.path, error))?;
        into[..n].copy_from_slice(buffer.as_slice());
        spare().push(buffer);
        Ok(n)
    }

    fn n_bytes(&self) -> Result<u64> {
        self.object.len().map_err(|error| failed(Operation::Read, &self.path, error))
    }

    fn sync(&self) -> Result<()> {
        Err(read_only(Operation::Sync, &self.path))
    }
}

fn read_only(operation: Operation, path: &Path) -> Error {
    refused(operation, path, io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_large_enough_for_stores_and_few_enough() {
        assert_eq!((part_bytes(0), part_bytes(1 << 30)), (LEAST_PART, LEAST_PART));
        for len in [80 << 30, 1 << 40, 5 << 40] {
            let part = part_bytes(len);
            assert!(len.div_ceil(part) <= 10_000 && part <= 5 << 30, "{len}: {part}");
        }
    }
}
