//! A text file with one `path label` line a sample, as the micro-benchmark of Chien et al. takes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_storage::{Buffer, Storage};

use super::{Index, NO_LABEL, Packing, Place, Source};
use crate::error::Error;

pub(super) fn index(storage: Arc<dyn Storage>, list: &Path) -> Result<Source, Error> {
    let mut buffer = Buffer::default();
    storage.open(list)?.read_all(&mut buffer)?;
    let text = std::str::from_utf8(buffer.as_slice()).map_err(|error| Error::Source {
        what: format!("{} is neither an image, nor a shard, nor a list: it is not text", list.display()),
        source: Some(Box::new(error)),
    })?;
    let base = list.parent().unwrap_or(Path::new(""));
    let mut files: Vec<PathBuf> = Vec::new();
    let mut places = Vec::new();
    for line in text.lines() {
        let Some((path, label)) = parse_line(line) else { continue };
        let group = label.unwrap_or(0).max(0) as u32;
        let label = label.unwrap_or(NO_LABEL);
        places.push(Place { offset: 0, label, len: 0, file: files.len() as u32, group });
        files.push(base.join(path));
    }
    if files.is_empty() {
        return Err(Error::Empty { what: format!("the list {}", list.display()) });
    }
    Ok(Source::new(storage, Index { files, places, packing: Packing::Files, tables: Vec::new() }))
}

/// The path and, if the last word is a whole number, the label; `None` for an empty line or a `#` comment.
fn parse_line(line: &str) -> Option<(&str, Option<i64>)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    if let Some((path, last)) = line.rsplit_once([' ', '\t'])
        && let Ok(label) = last.parse::<i64>()
    {
        return Some((path.trim_end(), Some(label)));
    }
    Some((line, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_hold_spaces_and_a_label_may_be_missing() {
        assert_eq!(parse_line("a/b.jpg 7"), Some(("a/b.jpg", Some(7))));
        assert_eq!(parse_line("my photos/b 2.jpg\t12 "), Some(("my photos/b 2.jpg", Some(12))));
        assert_eq!(parse_line("a/b.jpg"), Some(("a/b.jpg", None)));
        assert_eq!(parse_line("  "), None);
        assert_eq!(parse_line("# a comment"), None);
    }
}
