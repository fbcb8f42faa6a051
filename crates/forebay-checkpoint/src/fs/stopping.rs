//! A file system that can be stopped: a store's background work ends at its next chunk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::pass::{pass_on_file, pass_on_names};
use super::{File, Fs, Reading};
use crate::{Error, Result};

/// Passes everything on until a flag is set. After that, creating, reading and writing fail with [`Error::Stopped`];
/// names can still be listed and removed.
pub struct StoppingFs {
    inner: Arc<dyn Fs>,
    stop: Arc<AtomicBool>,
}

impl StoppingFs {
    pub fn new(inner: Arc<dyn Fs>, stop: Arc<AtomicBool>) -> Self {
        Self { inner, stop }
    }

    fn file(&self, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(StoppingFile { inner, stop: Arc::clone(&self.stop) })
    }
}

fn check(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

impl Fs for StoppingFs {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        check(&self.stop)?;
        Ok(self.file(self.inner.create(path)?))
    }

    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>> {
        check(&self.stop)?;
        Ok(self.file(self.inner.open(path, reading)?))
    }

    pass_on_names!();
}

struct StoppingFile {
    inner: Box<dyn File>,
    stop: Arc<AtomicBool>,
}

impl File for StoppingFile {
    pass_on_file!();

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        check(&self.stop)?;
        self.inner.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        check(&self.stop)?;
        self.inner.read_at(offset, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelFs;

    #[test]
    fn no_byte_moves_after_the_stop_and_names_still_go() {
        let stop = Arc::new(AtomicBool::new(false));
        let fs = StoppingFs::new(Arc::new(ModelFs::with_dirs(&["t"])), Arc::clone(&stop));
        let path = Path::new("/t/f");
        let file = fs.create(path).unwrap();
        file.write_at(0, b"before").unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(file.write_at(6, b"after"), Err(Error::Stopped)));
        assert!(matches!(file.read_at(0, &mut [0; 6]), Err(Error::Stopped)));
        assert!(matches!(fs.create(Path::new("/t/g")), Err(Error::Stopped)));
        assert!(matches!(fs.open(path, Reading::Cached), Err(Error::Stopped)));
        assert_eq!((file.n_bytes().unwrap(), fs.list(Path::new("/t")).unwrap()), (6, vec!["f".to_owned()]));
        fs.remove(path).unwrap();
        assert_eq!(fs.list(Path::new("/t")).unwrap(), [] as [&str; 0]);
    }
}
