//! A tree of image files, one class per folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_storage::Storage;

use super::discover::{Kind, kind_by_name};
use super::{Index, Packing, Place, Source};
use crate::error::Error;

pub(super) fn index(storage: Arc<dyn Storage>, dir: &Path) -> Result<Source, Error> {
    let files: Vec<PathBuf> = storage
        .list(dir)?
        .into_iter()
        .map(|entry| entry.path)
        .filter(|path| kind_by_name(path) == Some(Kind::Image))
        .collect();
    of_files(storage, files, dir)
}

/// Files whose folders are their classes.
pub(super) fn of_files(storage: Arc<dyn Storage>, files: Vec<PathBuf>, dir: &Path) -> Result<Source, Error> {
    if files.is_empty() {
        return Err(Error::Empty { what: format!("{}: it holds no .jpg, .jpeg or .png files", dir.display()) });
    }
    let mut folders: BTreeMap<&Path, u32> = files.iter().map(|file| (parent(file), 0)).collect();
    for (number, label) in folders.values_mut().enumerate() {
        *label = number as u32;
    }
    let places = files
        .iter()
        .enumerate()
        .map(|(number, file)| {
            let class = folders[parent(file)];
            Place { offset: 0, label: i64::from(class), len: 0, file: number as u32, group: class }
        })
        .collect();
    let classes = folders.keys().map(|folder| class_name(folder, dir)).collect();
    let mut source = Source::new(storage, Index { files, places, packing: Packing::Files, tables: Vec::new() });
    source.classes = Arc::new(classes);
    Ok(source)
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

fn class_name(folder: &Path, dir: &Path) -> String {
    let name = folder.strip_prefix(dir).unwrap_or(folder);
    if name.as_os_str().is_empty() { ".".to_owned() } else { name.display().to_string() }
}
