//! Small files of the kernel that are read repeatedly.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

/// A file that stays open: each read is a `pread` from the start into a reused buffer.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: PathBuf,
    file: io::Result<File>,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Opens a file; a missing file is remembered as missing.
    pub(crate) fn open(path: PathBuf) -> Self {
        let file = File::open(&path);
        Self { path, file, buffer: Vec::with_capacity(8 * 1024) }
    }

    /// The current content; `None` if it cannot be read.
    pub(crate) fn read(&mut self) -> Option<&str> {
        let file = self.file.as_ref().ok()?;
        self.buffer.clear();
        loop {
            let filled = self.buffer.len();
            if self.buffer.capacity() - filled < 4 * 1024 {
                self.buffer.reserve(8 * 1024);
            }
            self.buffer.resize(self.buffer.capacity(), 0);
            let read = file.read_at(&mut self.buffer[filled..], filled as u64);
            self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        std::str::from_utf8(&self.buffer).ok()
    }

    /// Why the file cannot be read; `None` if it can.
    pub(crate) fn trouble(&mut self) -> Option<String> {
        if let Err(error) = &self.file {
            return Some(format!("{}: {error}", self.path.escaped()));
        }
        if self.read().is_none() { Some(format!("{} cannot be read", self.path.escaped())) } else { None }
    }
}

/// Reads a file that may vanish at any moment, such as one of a process. Process names need not be UTF-8.
pub(crate) fn read_once<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> io::Result<std::borrow::Cow<'a, str>> {
    buffer.clear();
    File::open(path)?.read_to_end(buffer)?;
    Ok(String::from_utf8_lossy(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_is_now_also_when_it_is_long() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let mut file = ProcFile::open(path.clone());
        assert_eq!(file.read(), Some("one"));
        let long = "0123456789".repeat(10_000);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.read(), Some(long.as_str()));
        std::fs::write(&path, "").unwrap();
        assert_eq!(file.read(), Some(""));
        assert_eq!(file.trouble(), None);
    }

    #[test]
    fn a_file_of_the_kernel_that_stays_open_shows_what_is_new() {
        let mut file = ProcFile::open("/proc/uptime".into());
        let first = file.read().unwrap().to_owned();
        let start = std::time::Instant::now();
        while file.read() == Some(first.as_str()) {
            assert!(start.elapsed().as_secs() < 10, "the machine's clock does not advance");
        }
    }

    #[test]
    fn a_missing_file_is_unknown_and_says_why() {
        let mut file = ProcFile::open("nowhere/pressure".into());
        assert_eq!(file.read(), None);
        assert!(file.trouble().unwrap().starts_with("nowhere/pressure: No such file"));
    }
}
