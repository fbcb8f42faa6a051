//! A text file with one `path label` line per sample, as in the micro-benchmark of Chien et al.

use std::path::Path;
use std::sync::Arc;

use forebay_format::list;
use forebay_storage::{Buffer, Storage, beside};
use forebay_units::PathText;

use super::{Index, NO_LABEL, Packing, Place, Source, group_of};
use crate::error::Error;

pub(super) fn index(storage: Arc<dyn Storage>, path: &Path) -> Result<Source, Error> {
    let mut buffer = Buffer::default();
    storage.open(path)?.read_within(list::MAX_LEN, &mut buffer).map_err(too_long)?;
    let text = buffer.as_slice();
    if let Err(error) = std::str::from_utf8(text)
        && !list::is_lines_of_bytes(text)
    {
        let what = format!("{}: expected images, a shard or a list, found data that is not text", path.escaped());
        return Err(Error::Source { what, source: Some(Box::new(error)) });
    }
    let base = path.parent().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    let mut places = Vec::new();
    for entry in list::parse(text) {
        let label = entry.label.unwrap_or(NO_LABEL);
        places.push(Place { offset: 0, label, len: 0, file: files.len() as u32, group: group_of(label) });
        files.push(beside(base, entry.path));
    }
    if files.is_empty() {
        return Err(Error::Empty { what: format!("the list {}", path.escaped()) });
    }
    let is_labelled = places.iter().any(|place| place.label != NO_LABEL);
    if let Some(misread) = list::misread(text).find(|misread| is_fault(misread, is_labelled, storage.as_ref(), base)) {
        return Err(Error::Source { what: format!("{}: {misread}", path.escaped()), source: None });
    }
    Ok(Source::new(storage, Index::new(Packing::Files, files, places)))
}

/// Adds to the error of a text over the size limit that it was taken for a list.
fn too_long(error: forebay_storage::Error) -> Error {
    match error {
        forebay_storage::Error::TooLarge { path, size, limit } => {
            let what = format!("{}: too large for a list: {size}, limit {limit}", path.escaped());
            Error::Source { what, source: None }
        }
        other => other.into(),
    }
}

/// Whether a word is neither a label nor part of a path. If other lines have labels, only that sample fails; -1 is a
/// way to say that there is no label.
fn is_fault(misread: &list::Misread<'_>, is_labelled: bool, storage: &dyn Storage, base: &Path) -> bool {
    match misread.entry.label {
        Some(label) => label > 0,
        None => !is_labelled && storage.open(&beside(base, misread.entry.path)).is_err(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_storage::Memory;

    fn fingerprint(list: &str) -> u64 {
        let memory = Memory::default();
        memory.insert("list", list.as_bytes().to_vec());
        index(Arc::new(memory), Path::new("list")).unwrap().index.fingerprint()
    }

    #[test]
    fn other_labels_paths_or_orders_are_other_sources() {
        let lists = ["ab 0\nc 1\n", "ab 1\nc 1\n", "a 0\nbc 1\n", "c 1\nab 0\n"];
        let mut found = lists.map(fingerprint).to_vec();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), lists.len());
        assert_eq!(fingerprint("# the same\nab\t0\n\nc 1"), fingerprint(lists[0]));
    }

    #[test]
    fn a_list_of_names_that_are_not_utf_8_names_those_bytes() {
        let memory = Memory::default();
        memory.insert("list", b"a\xfe.jpg 3\n\xffb/c.jpg 4\n".to_vec());
        let source = index(Arc::new(memory), Path::new("list")).unwrap();
        let files: Vec<&[u8]> = source.files().iter().map(|path| path.as_os_str().as_encoded_bytes()).collect();
        assert_eq!(files, [&b"a\xfe.jpg"[..], b"\xffb/c.jpg"]);
        assert_eq!(source.name_of(0), r"a\xfe.jpg");
    }

    #[test]
    fn a_word_in_place_of_a_label_is_named_unless_a_file_has_that_name() {
        let memory = Memory::default();
        memory.insert("list", b"a.jpg\nb.jpg cat\n".to_vec());
        let error = index(Arc::new(memory.clone()), Path::new("list")).err().unwrap().to_string();
        assert!(error.starts_with("list: line 2: expected a class number"), "{error}");
        memory.insert("large", b"a.jpg 0\nb.jpg 99999999999\n".to_vec());
        let error = index(Arc::new(memory.clone()), Path::new("large")).err().unwrap().to_string();
        assert!(error.starts_with("large: line 2: expected a class number"), "{error}");
        memory.insert("b.jpg cat", b"an image".to_vec());
        let source = index(Arc::new(memory), Path::new("list")).unwrap();
        assert_eq!(source.files()[1], Path::new("b.jpg cat"));
    }
}
