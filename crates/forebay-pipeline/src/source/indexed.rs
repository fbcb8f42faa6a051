//! Indexed binary: records without frames, whose offsets and sizes are in two files beside the data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_format::indexed::{read, write};
use forebay_storage::{Buffer, Storage};
use forebay_units::PathText;

use super::{Index, NO_LABEL, Packing, Place, Source};
use crate::error::Error;

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// The data files among `paths`, or in the folder that is the only path, if there are index files beside them.
pub(super) fn files(storage: &dyn Storage, paths: &[PathBuf]) -> Result<Option<Vec<PathBuf>>, Error> {
    let has_index = |path: &PathBuf| storage.size(&beside(path, write::OFFSETS)).is_ok();
    let [one] = paths else {
        return Ok(paths.iter().all(has_index).then(|| paths.to_vec()));
    };
    if has_index(one) {
        return Ok(Some(paths.to_vec()));
    }
    if storage.size(one).is_ok() {
        return Ok(None);
    }
    let listed: Vec<PathBuf> = storage.list(one)?.into_iter().map(|entry| entry.path).collect();
    let data = |path: &PathBuf| {
        let name = path.to_str()?.strip_suffix(write::OFFSETS)?;
        Some(PathBuf::from(name)).filter(|data| listed.binary_search(data).is_ok())
    };
    let found: Vec<PathBuf> = listed.iter().filter_map(data).collect();
    Ok(if found.is_empty() { None } else { Some(found) })
}

pub(super) fn index(storage: Arc<dyn Storage>, files: &[PathBuf]) -> Result<Source, Error> {
    let mut index = Index::new(Packing::Indexed, files.to_vec(), Vec::new());
    for (file, path) in files.iter().enumerate() {
        let whole = |ending| {
            let mut buffer = Buffer::default();
            storage.open(&beside(path, ending))?.read_all(&mut buffer)?;
            Ok::<_, Error>(buffer)
        };
        let (offsets, sizes) = (whole(write::OFFSETS)?, whole(write::SIZES)?);
        let spans = read::spans(offsets.as_slice(), sizes.as_slice(), 0, storage.size(path)?);
        let spans = spans
            .map_err(|error| Error::Source { what: path.escaped().into_owned(), source: Some(Box::new(error)) })?;
        let (file, label) = (file as u32, NO_LABEL);
        let place = |span: forebay_format::Span| Place { offset: span.offset, label, len: span.len, file, group: file };
        index.places.extend(spans.into_iter().map(place));
    }
    if index.places.is_empty() {
        let what = files.first().map(|file| file.escaped().into_owned()).unwrap_or_default();
        return Err(Error::Empty { what });
    }
    Ok(Source::new(storage, index))
}
