//! A file system that counts the bytes moved, so a monitor can sample the rate every second.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::pass::{pass_on_file, pass_on_names};
use super::{File, Fs, Reading};
use crate::Result;

/// Bytes moved so far; clones share the counters.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    read: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl Counters {
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

/// Counts completed reads and writes of another file system.
#[derive(Clone)]
pub struct CountedFs {
    inner: Arc<dyn Fs>,
    counters: Counters,
}

impl CountedFs {
    pub fn new(inner: Arc<dyn Fs>) -> (Self, Counters) {
        let counters = Counters::default();
        (Self { inner, counters: counters.clone() }, counters)
    }

    fn count(&self, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(CountedFile { inner, counters: self.counters.clone() })
    }
}

impl Fs for CountedFs {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(self.count(self.inner.create(path)?))
    }

    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>> {
        Ok(self.count(self.inner.open(path, reading)?))
    }

    pass_on_names!();
}

struct CountedFile {
    inner: Box<dyn File>,
    counters: Counters,
}

impl File for CountedFile {
    pass_on_file!();

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(offset, bytes)?;
        self.counters.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let n = self.inner.read_at(offset, into)?;
        self.counters.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelFs;

    #[test]
    fn what_passed_is_counted_and_what_failed_or_was_not_there_is_not() {
        let (fs, counters) = CountedFs::new(Arc::new(ModelFs::with_dirs(&["t"])));
        let path = Path::new("/t/f");
        let file = fs.create(path).unwrap();
        file.write_at(0, &[1; 5000]).unwrap();
        file.write_at(5000, &[1; 100]).unwrap();
        assert_eq!((counters.read_bytes(), counters.written_bytes()), (0, 5100));
        let mut into = [0; 200];
        assert_eq!(fs.open(path, Reading::Cached).unwrap().read_at(5000, &mut into).unwrap(), 100);
        assert!(fs.open(Path::new("/t/g"), Reading::Cached).is_err());
        assert_eq!((counters.read_bytes(), counters.written_bytes()), (100, 5100));
    }
}
