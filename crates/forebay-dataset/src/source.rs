//! The data files that a path refers to.
//!
//! A folder means the images and shards below it, with its subfolders as classes; a text file is a list of `path label`
//! lines, with paths relative to the list's folder; any other file means itself. In a folder, names decide first: a file
//! with a data file's name belongs to the dataset, and is reported as bad when read if it holds something else. The first
//! bytes decide only for other names. Everything else is left out and counted by kind, except hidden files and text files
//! with a text file's name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_format::example::Keys;
use forebay_format::{Error as FormatError, Kind, LeftOut, is_passed_over, list, split};
use forebay_record::Form;
use forebay_storage::{Buffer, Error as StorageError, Storage, beside};
use forebay_units::PathText;

use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) path: PathBuf,
    /// Path relative to the dataset's folder; the path itself for a listed file outside it.
    pub(crate) name: PathBuf,
    pub(crate) label: Option<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) form: Form,
    pub(crate) items: Vec<Item>,
    /// Class names by label, from folder names.
    pub(crate) classes: Vec<String>,
    /// A note about the folders, for the user.
    pub(crate) notes: Vec<String>,
    /// Files in the folder that are not part of the dataset.
    pub(crate) left_out: LeftOut,
}

impl Source {
    /// Finds the data files that `path` refers to.
    ///
    /// # Errors
    /// When `path` does not exist, cannot be read, or refers to no data.
    pub(crate) fn open(storage: &dyn Storage, path: &Path) -> Result<Self> {
        // Only a file has a size; a folder is listed.
        let is_file = match storage.size(path) {
            // A listing would fail too, after the same time.
            Err(error) if error.is_final() => return Err(error.into()),
            found => found.is_ok(),
        };
        let source = if is_file { Self::of_file(storage, path)? } else { Self::of_folder(storage, path)? };
        match source.items.is_empty() {
            true => Err(Error::Empty { path: path.to_owned(), left_out: source.left_out.note() }),
            false => Ok(source),
        }
    }

    fn of_file(storage: &dyn Storage, path: &Path) -> Result<Self> {
        let mut buffer = Buffer::default();
        let refused = |source| Error::Format { path: path.to_owned(), source: Box::new(source) };
        match read_head(storage, path, &mut buffer)? {
            Kind::Text => {
                storage.open(path)?.read_within(list::MAX_LEN, &mut buffer).map_err(too_long)?;
                return Ok(Self::of_list(path, buffer.as_slice()));
            }
            Kind::Utf16 => return Err(refused(FormatError::Utf16)),
            Kind::Packed(how) => return Err(refused(FormatError::Archive { how })),
            _ => {}
        }
        let name = path.file_name().unwrap_or_default().into();
        let items = vec![Item { path: path.to_owned(), name, label: None }];
        Ok(Self { form: Form::File, items, classes: Vec::new(), notes: Vec::new(), left_out: LeftOut::default() })
    }

    fn of_folder(storage: &dyn Storage, path: &Path) -> Result<Self> {
        let entries = storage.list(path)?.into_iter().map(|entry| entry.path);
        let (mut files, mut left_out, mut archive) = (Vec::new(), LeftOut::default(), None);
        for file in entries.filter(|file| !is_passed_over(below(file, path))) {
            let Some(kind) = not_data(storage, &file) else {
                files.push(file);
                continue;
            };
            left_out.add(kind, &below(&file, path).escaped());
            if let (Kind::Packed(how), None) = (kind, &archive) {
                archive = Some(Error::Format { path: file, source: Box::new(FormatError::Archive { how }) });
            }
        }
        if let Some(error) = archive.filter(|_| files.is_empty() && left_out.is_archives_alone()) {
            return Err(error);
        }
        let notes = split_note(&files, path).into_iter().collect();
        let mut labels: BTreeMap<PathBuf, i64> = files.iter().map(|file| (folder_of(file), 0)).collect();
        (0..).zip(labels.values_mut()).for_each(|(number, label)| *label = number);
        let item = |file: PathBuf| {
            let (label, name) = (labels.get(&folder_of(&file)).copied(), below(&file, path).to_owned());
            Item { path: file, name, label }
        };
        let items = files.into_iter().map(item).collect();
        let class = |folder: &PathBuf| Some(below(folder, path).escaped().into_owned()).filter(|name| !name.is_empty());
        let classes = labels.keys().map(|folder| class(folder).unwrap_or_else(|| ".".to_owned())).collect();
        Ok(Self { form: Form::Folder, items, classes, notes, left_out })
    }

    fn of_list(path: &Path, bytes: &[u8]) -> Self {
        let base = path.parent().unwrap_or(Path::new(""));
        let item = |entry: list::Entry<'_>| Item {
            path: beside(base, entry.path),
            name: entry.path.to_owned(),
            label: entry.label,
        };
        let items = list::parse(bytes).map(item).collect();
        Self { form: Form::List, items, classes: Vec::new(), notes: Vec::new(), left_out: LeftOut::default() }
    }

    /// Notes for the user: splits, the source of the labels, files left out.
    pub(crate) fn notes_with(&self, keys: &Keys) -> Vec<String> {
        let labels = keys.note().map(str::to_owned);
        self.notes.iter().cloned().chain(labels).chain(self.left_out.note()).collect()
    }
}

/// The kind of a file that is neither an image nor a shard. A file that cannot be read stays, to be reported as bad.
fn not_data(storage: &dyn Storage, file: &Path) -> Option<Kind> {
    let kind = match Kind::by_name(file) {
        Some(kind) => kind,
        None => read_head(storage, file, &mut Buffer::default()).ok()?,
    };
    (!kind.is_shard() && !matches!(kind, Kind::Image(_))).then_some(kind)
}

/// Reports a text file that is too large to be a list.
fn too_long(error: StorageError) -> Error {
    match error {
        StorageError::TooLarge { path, size, limit } => Error::LongList { path, size, limit },
        other => other.into(),
    }
}

/// The note if the folders are splits. Files without a data file's name do not count.
fn split_note(files: &[PathBuf], folder: &Path) -> Option<String> {
    let data = || files.iter().filter_map(|file| Kind::by_name(file).map(|kind| (file, kind)));
    let names = split::names(data().map(|(file, _)| below(file, folder)));
    split::note(&names, !data().any(|(_, kind)| kind.is_shard()))
}

/// Recognises a file by its first bytes.
pub(crate) fn read_head(storage: &dyn Storage, path: &Path, buffer: &mut Buffer) -> forebay_storage::Result<Kind> {
    let object = storage.open(path)?;
    let len = object.len()?.min(Kind::HEAD_LEN as u64) as usize;
    object.read_at(0, len, buffer)?;
    Ok(Kind::of(buffer.as_slice()))
}

fn below<'a>(path: &'a Path, folder: &Path) -> &'a Path {
    path.strip_prefix(folder).unwrap_or(path)
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_storage::Memory;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    fn memory(files: &[(&str, &[u8])]) -> Memory {
        let storage = Memory::default();
        files.iter().for_each(|(path, bytes)| storage.insert(*path, bytes.to_vec()));
        storage
    }

    #[test]
    fn folders_are_classes_in_the_order_of_their_names() {
        let storage = memory(&[
            ("set/b/1.jpg", b"x"),
            ("set/a/2.jpg", b"x"),
            ("set/.hidden/3.jpg", b"x"),
            ("set/list.txt", b"x"),
        ]);
        let source = Source::open(&storage, Path::new("set")).unwrap();
        let found: Vec<_> = source.items.iter().map(|item| (item.name.to_str().unwrap(), item.label)).collect();
        assert_eq!(found, [("a/2.jpg", Some(0)), ("b/1.jpg", Some(1))]);
        assert_eq!(source.classes, ["a", "b"]);
    }

    #[test]
    fn list_lines_are_paths_beside_the_list_with_labels() {
        let storage = memory(&[("d/list", b"# all\na/1.jpg 3\nwith space.jpg 4\n\n/abs/2.jpg\n")]);
        let source = Source::open(&storage, Path::new("d/list")).unwrap();
        let found: Vec<_> = source.items.iter().map(|item| (item.path.to_str().unwrap(), item.label)).collect();
        assert_eq!(found, [("d/a/1.jpg", Some(3)), ("d/with space.jpg", Some(4)), ("/abs/2.jpg", None)]);
        assert_eq!(source.form, Form::List);
    }

    #[test]
    fn names_of_any_bytes_are_kept_in_folders_and_in_lists() {
        let storage = Memory::default();
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        storage.insert(path(b"s\xff/k\xfe/a\xfd.jpg"), b"x".to_vec());
        let folder = Source::open(&storage, &path(b"s\xff")).unwrap();
        assert_eq!((&folder.items[0].name, &folder.classes[0][..]), (&path(b"k\xfe/a\xfd.jpg"), r"k\xfe"));
        storage.insert("list", b"s\xff/k\xfe/a\xfd.jpg 7\n".to_vec());
        let list = Source::open(&storage, Path::new("list")).unwrap();
        assert_eq!(
            list.items,
            [Item { path: path(b"s\xff/k\xfe/a\xfd.jpg"), name: path(b"s\xff/k\xfe/a\xfd.jpg"), label: Some(7) }]
        );
    }

    #[test]
    fn nothing_and_an_empty_list_are_errors_that_name_the_path() {
        let storage = memory(&[("empty", b"\n")]);
        let error = |path: &str| Source::open(&storage, Path::new(path)).unwrap_err().to_string();
        assert!(error("missing").contains("missing: no such file or folder"), "{}", error("missing"));
        assert_eq!(error("empty"), "empty: no images or shards found");
    }
}
