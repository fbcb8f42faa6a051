//! A folder that one command fills: claimed, locked, and recognised by later runs.
//!
//! The first file written into a folder is a hidden marker with the parameters it is made from. A later run with the
//! same parameters resumes; a folder with another marker, or with files but no marker, is left alone. The folder is
//! locked while a run fills it. A prefix of an object store has no lock.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use forebay_storage::{Buffer, Error as StorageError, Operation, Routed, Storage, is_url};
use serde_json::{Map, Value};

use crate::{Error, Result, write};

/// A claimed folder; dropping it releases the claim.
pub(crate) struct Home {
    path: PathBuf,
    /// Whether an earlier run marked the folder.
    pub(crate) resumed: bool,
    _lock: Option<File>,
}

impl Home {
    /// Claims `path` for the content described by `identity`, which is stored in the file `marker`.
    ///
    /// Creates the folder if it is missing.
    pub(crate) fn claim(path: &Path, marker: &str, identity: &Map<String, Value>) -> Result<Self> {
        write::folder(path)?;
        let lock = if is_url(path) { None } else { Some(lock(path)?) };
        let file = path.join(marker);
        let resumed = match read(&file)? {
            Some(bytes) => agree(path, &bytes, identity).map(|()| true)?,
            None => {
                refuse_foreign(path)?;
                commit_json(&file, &Value::Object(identity.clone()))?;
                false
            }
        };
        Ok(Self { path: path.to_owned(), resumed, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether the folder `path` is marked with the same identity; another identity is an error.
pub(crate) fn agrees(path: &Path, marker: &str, identity: &Map<String, Value>) -> Result<bool> {
    read(&path.join(marker))?.map_or(Ok(false), |bytes| agree(path, &bytes, identity).map(|()| true))
}

/// The content of a small file; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let read = || {
        if !is_url(path) {
            return fs::read(path).map_err(|source| StorageError::from_io(Operation::Read, path, source));
        }
        let mut buffer = Buffer::default();
        Routed::default().open(path)?.read_all(&mut buffer)?;
        Ok(buffer.as_slice().to_vec())
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(StorageError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn commit_json(path: &Path, value: &Value) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).expect("a JSON value has a text");
    text.push('\n');
    commit(path, text.as_bytes())
}

pub(crate) fn commit(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut writer = Routed::default().create(path)?;
    writer.write(bytes)?;
    Ok(writer.commit()?)
}

fn lock(path: &Path) -> Result<File> {
    let folder = File::open(path).map_err(|source| StorageError::from_io(Operation::Open, path, source))?;
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Busy { path: path.to_owned() }),
        // Some file systems have no locks; a folder there is filled without one.
        _ => Ok(folder),
    }
}

fn refuse_foreign(path: &Path) -> Result<()> {
    if is_url(path) {
        return match Routed::default().list(path) {
            Ok(_) => Err(Error::Foreign { path: path.to_owned() }),
            Err(StorageError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        };
    }
    let listed = fs::read_dir(path).map_err(|source| StorageError::from_io(Operation::List, path, source))?;
    // An unfinished marker of a killed run and ext4's lost+found are nobody's data.
    let is_ours = |name: &OsStr| write::is_temporary(name) || name == "lost+found";
    let held = listed.flatten().any(|entry| !is_ours(&entry.file_name()));
    if held { Err(Error::Foreign { path: path.to_owned() }) } else { Ok(()) }
}

/// The key of a marker whose value is a checksum over the inputs' names, sizes, times and labels: it shows that they
/// differ, not how.
pub(crate) const INPUTS: &str = "inputs";

/// Whether the marker matches ours.
fn agree(path: &Path, bytes: &[u8], identity: &Map<String, Value>) -> Result<()> {
    let theirs: Map<String, Value> = serde_json::from_slice(bytes).unwrap_or_default();
    // Ours goes through text as theirs did, so that numbers compare equal.
    let text = serde_json::to_vec(identity).expect("a JSON value has a text");
    let ours: Map<String, Value> = serde_json::from_slice(&text).expect("our own text");
    if theirs == ours {
        return Ok(());
    }
    let mut keys: Vec<&String> =
        ours.keys().chain(theirs.keys()).filter(|key| ours.get(*key) != theirs.get(*key)).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.iter().all(|key| *key == INPUTS) {
        return Err(Error::OtherInputs { path: path.to_owned() });
    }
    keys.retain(|key| *key != INPUTS);
    Err(Error::Different { path: path.to_owned(), theirs: listing(&keys, &theirs), ours: listing(&keys, &ours) })
}

fn listing(keys: &[&String], of: &Map<String, Value>) -> String {
    let value = |key: &String| of.get(key).map_or("–".to_owned(), Value::to_string);
    keys.iter().map(|key| format!("{key} {}", value(key))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(seed: u64) -> Map<String, Value> {
        Map::from_iter([("seed".to_owned(), Value::from(seed)), ("sigma".to_owned(), Value::from(0.555))])
    }

    #[test]
    fn a_folder_is_claimed_and_recognised_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set");
        assert!(!Home::claim(&path, ".m.json", &identity(1)).unwrap().resumed);
        assert!(Home::claim(&path, ".m.json", &identity(1)).unwrap().resumed);
    }

    #[test]
    fn other_parameters_are_refused_and_named() {
        let dir = tempfile::tempdir().unwrap();
        drop(Home::claim(dir.path(), ".m.json", &identity(1)).unwrap());
        let error = Home::claim(dir.path(), ".m.json", &identity(2)).err().unwrap();
        assert!(error.to_string().ends_with("the folder was made with seed 1; requested seed 2"), "{error}");
    }

    #[test]
    fn inputs_that_differ_are_told_in_words_not_by_their_checksums() {
        let of = |seed: u64, inputs: &str| {
            let mut map = identity(seed);
            map.insert(INPUTS.to_owned(), inputs.into());
            map
        };
        let dir = tempfile::tempdir().unwrap();
        drop(Home::claim(dir.path(), ".m.json", &of(1, "a445")).unwrap());
        let error = Home::claim(dir.path(), ".m.json", &of(1, "bb4a")).err().unwrap();
        assert!(matches!(error, Error::OtherInputs { .. }), "{error}");
        assert!(!error.to_string().contains("a445"), "{error}");
        let error = Home::claim(dir.path(), ".m.json", &of(2, "bb4a")).err().unwrap();
        assert!(error.to_string().ends_with("the folder was made with seed 1; requested seed 2"), "{error}");
    }

    #[test]
    fn a_folder_with_other_data_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "x").unwrap();
        let error = Home::claim(dir.path(), ".m.json", &identity(1)).err().unwrap();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_claimed_folder_is_busy() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Home::claim(dir.path(), ".m.json", &identity(1)).unwrap();
        assert!(matches!(Home::claim(dir.path(), ".m.json", &identity(1)), Err(Error::Busy { .. })));
    }

    #[test]
    fn a_file_in_the_folders_place_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "x").unwrap();
        let error = Home::claim(&path, ".m.json", &identity(1)).err().unwrap();
        assert!(error.to_string().contains("file"), "{error}");
    }
}
