//! Folders of pictures to try things on.

use std::fs;
use std::path::{Path, PathBuf};

use forebay_dataset::{Control, MakePlan, MakeSpec, Profile, make};
use forebay_units::Bytes;
use tempfile::TempDir;

/// Every file below a folder, with its path from there and its bytes, ordered by path.
pub(crate) fn relative(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    content(dir).into_iter().map(|(path, bytes)| (path.strip_prefix(dir).unwrap().to_owned(), bytes)).collect()
}

fn content(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(content(&entry.path())),
            false => found.push((entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

/// The pictures among the files of a folder.
pub(crate) fn pictures(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let is_picture = |path: &Path| path.extension().is_some_and(|extension| extension == "jpg");
    relative(dir).into_iter().filter(|(path, _)| is_picture(path)).collect()
}

/// A folder `set` of `count` small pictures in three classes.
pub(crate) fn small_set(count: u64) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let spec = MakeSpec {
        count: Some(count),
        seed: 11,
        classes: Some(3),
        median_size: Some(Bytes(4_000)),
        ..MakeSpec::new(Profile::Imagenet)
    };
    make(&MakePlan::new(&spec).unwrap(), &path, &Control::default()).unwrap();
    (dir, path)
}
