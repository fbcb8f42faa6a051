//! An output that passed all checks, and how it is written.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use forebay_storage::{Local, Storage, Writer};

use super::guard::cannot_write;
use super::print_data;

/// Maximum length of a file name on Linux file systems.
const LONGEST_NAME: usize = 255;

/// The target of a result, from [`Outputs`](super::Outputs).
#[derive(Debug)]
pub(crate) struct Output {
    pub(super) shown: PathBuf,
    pub(super) way: Way,
}

#[derive(Debug)]
pub(super) enum Way {
    Stdout,
    /// A device or a pipe, written to directly.
    Stream(PathBuf),
    /// A file, links followed.
    File(PathBuf),
}

impl Output {
    /// Whether the result goes to stdout, which then has no other text.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.way, Way::Stdout)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.shown
    }

    /// Writes a text with a line end, at once.
    pub(crate) fn write(&self, text: &str) -> Result<()> {
        let text = format!("{text}\n");
        match &self.way {
            Way::Stdout => print_data(&text),
            Way::Stream(path) => std::fs::write(path, text).with_context(|| cannot_write(&self.shown)),
            Way::File(path) => put(path, text.as_bytes()).with_context(|| cannot_write(&self.shown)),
        }
    }

    /// Starts a file that is written piece by piece and appears once it is complete.
    pub(crate) fn begin(&self) -> Result<Draft> {
        match &self.way {
            Way::Stdout => Ok(Draft::Stream(Box::new(std::io::stdout()), self.shown.clone())),
            Way::Stream(path) => {
                let stream = OpenOptions::new().write(true).open(path).with_context(|| cannot_write(&self.shown))?;
                Ok(Draft::Stream(Box::new(stream), self.shown.clone()))
            }
            Way::File(path) => Ok(Draft::File(Local::default().create(path)?)),
        }
    }

    /// A file whose lines can be read as they are written.
    pub(crate) fn open(&self) -> Result<Box<dyn Write + Send>> {
        match &self.way {
            Way::Stdout => Ok(Box::new(std::io::stdout())),
            Way::Stream(path) | Way::File(path) => {
                let file = File::create(path).with_context(|| cannot_write(&self.shown))?;
                Ok(Box::new(file))
            }
        }
    }
}

/// An unfinished file; dropping it keeps the former one.
pub(crate) enum Draft {
    File(Box<dyn Writer>),
    Stream(Box<dyn Write>, PathBuf),
}

impl Draft {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::File(file) => Ok(file.write(bytes)?),
            Self::Stream(stream, shown) => stream.write_all(bytes).with_context(|| cannot_write(shown)),
        }
    }

    pub(crate) fn commit(self) -> Result<()> {
        match self {
            Self::File(file) => Ok(file.commit()?),
            Self::Stream(mut stream, shown) => stream.flush().with_context(|| cannot_write(&shown)),
        }
    }
}

/// Writes a file in the command's own folder.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    put(path, bytes).with_context(|| cannot_write(path))
}

/// A hidden name in the same folder, within the length limit.
fn temporary_name(name: &OsStr) -> OsString {
    let ending = format!(".{}", std::process::id());
    let kept = &name.as_bytes()[..name.len().min(LONGEST_NAME - 1 - ending.len())];
    OsString::from_vec([b".", kept, ending.as_bytes()].concat())
}

/// Writes a temporary file and renames it once it is complete: a full disk leaves the former file. If the folder takes no
/// new files, the file is written in place.
fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // Links are kept; their target is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let former = std::fs::metadata(&target).ok();
    if former.as_ref().is_some_and(|former| !former.is_file()) {
        return std::fs::write(&target, bytes);
    }
    let temporary = target.with_file_name(temporary_name(target.file_name().unwrap_or_default()));
    let written = match OpenOptions::new().write(true).create_new(true).open(&temporary) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return std::fs::write(&target, bytes),
        opened => opened.and_then(|mut file| {
            former.map_or(Ok(()), |former| file.set_permissions(former.permissions()))?;
            file.write_all(bytes)?;
            std::fs::rename(&temporary, &target)
        }),
    };
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_can_be_written_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n".repeat(LONGEST_NAME));
        replace(&path, b"text").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
