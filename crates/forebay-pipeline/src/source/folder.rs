//! A tree of image files, one class per folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_format::{Kind, is_passed_over};
use forebay_storage::Storage;
use forebay_units::PathText;

use super::{Index, Packing, Place, Source, below};
use crate::error::Error;

pub(super) fn index(storage: Arc<dyn Storage>, dir: &Path) -> Result<Source, Error> {
    let is_sample =
        |path: &PathBuf| matches!(Kind::by_name(path), Some(Kind::Image(_))) && !is_passed_over(below(path, dir));
    let files = storage.list(dir)?.into_iter().map(|entry| entry.path).filter(is_sample).collect();
    of_files(storage, files, dir)
}

/// The class of an image is its folder.
pub(super) fn of_files(storage: Arc<dyn Storage>, files: Vec<PathBuf>, dir: &Path) -> Result<Source, Error> {
    if files.is_empty() {
        return Err(Error::Empty { what: format!("{}: the folder contains no images", dir.escaped()) });
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
    let mut source = Source::new(storage, Index::new(Packing::Files, files, places));
    source.classes = Arc::new(classes);
    Ok(source)
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

fn class_name(folder: &Path, dir: &Path) -> String {
    let name = below(folder, dir);
    if name.as_os_str().is_empty() { ".".to_owned() } else { name.escaped().into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_storage::Memory;

    #[test]
    fn only_visible_images_are_samples() {
        let memory = Memory::default();
        for path in ["d/a/1.jpg", "d/a/._1.jpg", "d/.b/2.png", "d/c.tar", "d/3.PNG"] {
            memory.insert(path, Vec::new());
        }
        let source = index(Arc::new(memory), Path::new("d")).unwrap();
        assert_eq!(source.files(), [Path::new("d/3.PNG"), Path::new("d/a/1.jpg")]);
        assert_eq!(source.classes(), [".", "a"]);
    }
}
