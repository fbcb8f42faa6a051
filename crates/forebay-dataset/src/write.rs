//! Files that are there whole or not at all.
//!
//! Bytes go to a hidden name beside the file and are renamed into place. There is no sync: a power cut may leave a
//! generated picture torn, which the next run of the same command sees and mends. What must survive a power cut
//! (markers, shards, manifests) is written through [`forebay_storage::Storage`] instead.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use forebay_storage::{Error as StorageError, Operation};

use crate::Result;

/// How the hidden names end that a killed run may leave behind.
const TEMPORARY: &str = ".tmp";

/// Writes a file and renames it into place; its folder must exist. Only one process may write in the folder.
pub(crate) fn atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hidden = path.with_file_name(format!(".{name}{TEMPORARY}"));
    let written = File::create(&hidden).and_then(|mut file| file.write_all(bytes)).map_err(|e| (Operation::Write, e));
    let placed = written.and_then(|()| fs::rename(&hidden, path).map_err(|e| (Operation::Commit, e)));
    placed.map_err(|(operation, source)| {
        // Best effort: the failure that is reported is the one above.
        let _ = fs::remove_file(&hidden);
        StorageError::from_io(operation, path, source).into()
    })
}

/// Whether a name is one of those that a killed run leaves behind.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMPORARY)
}

/// Removes what a killed run left half written in `folder`. The folder must be locked.
pub(crate) fn sweep(folder: &Path) -> Result<()> {
    let Ok(listed) = fs::read_dir(folder) else { return Ok(()) };
    for entry in listed.flatten().filter(|entry| is_temporary(&entry.file_name().to_string_lossy())) {
        let path = entry.path();
        fs::remove_file(&path).map_err(|source| StorageError::from_io(Operation::Remove, &path, source))?;
    }
    Ok(())
}

/// Makes a folder and its parents.
pub(crate) fn folder(path: &Path) -> Result<()> {
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
    fn a_missing_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = atomic(&dir.path().join("no/a.jpg"), b"one").unwrap_err();
        assert!(error.to_string().ends_with("no/a.jpg: no such file or folder"), "{error}");
    }
}
