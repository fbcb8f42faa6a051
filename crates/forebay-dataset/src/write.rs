//! Atomic file writes without a sync.
//!
//! Bytes go to a hidden name in the same folder and are renamed into place. There is no sync: a power cut may leave a
//! torn picture, which the next run of the same command detects and replaces. Files that must survive a power cut
//! (markers, shards, manifests) are written through [`forebay_storage::Storage`] instead.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_storage::{Error as StorageError, Operation, is_url};
use forebay_units::random::mix;

use crate::{Result, home};

/// Suffix of the hidden names that a killed run may leave behind.
const TEMPORARY: &str = ".tmp";
/// Maximum length of a file name on Linux, in bytes.
const NAME_MAX: usize = 255;

/// Writes a file and renames it into place; its folder must exist. Only one process may write in the folder. An object
/// appears as a whole.
pub(crate) fn atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    if is_url(path) {
        return home::commit(path, bytes);
    }
    let hidden = hidden_beside(path);
    let written = File::create(&hidden).and_then(|mut file| file.write_all(bytes)).map_err(|e| (Operation::Write, e));
    let placed = written.and_then(|()| fs::rename(&hidden, path).map_err(|e| (Operation::Commit, e)));
    placed.map_err(|(operation, source)| {
        // Best effort: the failure above is reported.
        let _ = fs::remove_file(&hidden);
        StorageError::from_io(operation, path, source).into()
    })
}

/// The hidden name under which a file is written, always the same for the same file.
pub(crate) fn hidden_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let hidden = |name: &[u8]| path.with_file_name(OsStr::from_bytes(&[b".", name, TEMPORARY.as_bytes()].concat()));
    if name.len() + TEMPORARY.len() < NAME_MAX {
        return hidden(name);
    }
    // With the dot and the suffix the name would be too long.
    let number = name.iter().fold(0, |sum, &byte| mix(sum ^ u64::from(byte)).wrapping_add(1));
    hidden(format!("{number:016x}").as_bytes())
}

/// Whether a name is a temporary name of a killed run.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(TEMPORARY.as_bytes())
}

/// Removes the unfinished files of a killed run from `folder`. The folder must be locked.
pub(crate) fn sweep(folder: &Path) -> Result<()> {
    let Ok(listed) = fs::read_dir(folder) else { return Ok(()) };
    for entry in listed.flatten().filter(|entry| is_temporary(&entry.file_name())) {
        let path = entry.path();
        fs::remove_file(&path).map_err(|source| StorageError::from_io(Operation::Remove, &path, source))?;
    }
    Ok(())
}

/// Creates a folder; an object store has none.
pub(crate) fn folder(path: &Path) -> Result<()> {
    if is_url(path) {
        return Ok(());
    }
    Ok(fs::create_dir_all(path).map_err(|source| StorageError::from_io(Operation::Create, path, source))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jpg");
        atomic(&path, b"one").unwrap();
        atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_of_any_bytes_and_of_any_length_are_written_apart() {
        let dir = tempfile::tempdir().unwrap();
        let names = [b"a\xfe.jpg".to_vec(), b"a\xff.jpg".to_vec(), vec![b'n'; 250], vec![b'n'; 255]];
        let paths = names.map(|name| dir.path().join(OsStr::from_bytes(&name)));
        let hidden: std::collections::BTreeSet<_> = paths.iter().map(|path| hidden_beside(path)).collect();
        assert_eq!(hidden.len(), paths.len());
        for path in &paths {
            assert!(is_temporary(hidden_beside(path).file_name().unwrap()));
            atomic(path, b"one").unwrap();
            assert_eq!(fs::read(path).unwrap(), b"one");
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = atomic(&dir.path().join("no/a.jpg"), b"one").unwrap_err();
        assert!(error.to_string().ends_with("no/a.jpg: no such file or folder"), "{error}");
    }
}
