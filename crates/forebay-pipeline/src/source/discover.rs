//! What is at a path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_format::tfrecord::{Compression, FrameScanner};
use forebay_format::{Scanner, image, tensor};
use forebay_storage::{Buffer, Storage};

use super::{Source, folder};
use crate::error::Error;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One image.
    Image,
    /// TFRecord frames, compressed or not.
    TfRecord,
    /// A tar archive.
    Tar,
    /// Pre-decoded pixels.
    Tensor,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::TfRecord => "TFRecord shards",
            Self::Tar => "tar shards",
            Self::Tensor => "tensor shards",
        }
    }
}

/// Enough of a file to recognise it by: a tar archive's magic ends at byte 265.
const HEAD: usize = 512;

pub(super) fn discover(storage: Arc<dyn Storage>, path: &Path) -> Result<Source, Error> {
    // Only a file has a size; a folder is listed.
    if storage.size(path).is_ok() {
        return match kind_of_file(storage.as_ref(), path)? {
            Some(Kind::Image) => folder::of_files(storage, vec![path.to_owned()], path),
            Some(kind) => shards(storage, kind, &[path.to_owned()]),
            None => Source::list(storage, path),
        };
    }
    let mut kinds: BTreeMap<Kind, Vec<PathBuf>> = BTreeMap::new();
    for entry in storage.list(path)?.into_iter().filter(|entry| !is_hidden(&entry.path, path)) {
        let kind = match kind_by_name(&entry.path) {
            None if !is_text_by_name(&entry.path) => kind_of_file(storage.as_ref(), &entry.path)?,
            known => known,
        };
        if let Some(kind) = kind {
            kinds.entry(kind).or_default().push(entry.path);
        }
    }
    if kinds.len() > 1 {
        let found: Vec<String> = kinds.iter().map(|(kind, files)| format!("{} {}", files.len(), kind.name())).collect();
        let what =
            format!("{} holds several kinds at once ({}): name one of its folders", path.display(), found.join(", "));
        return Err(Error::Source { what, source: None });
    }
    match kinds.pop_first() {
        None => Err(Error::Empty { what: format!("{}: it holds no images and no shards", path.display()) }),
        Some((Kind::Image, files)) => folder::of_files(storage, files, path),
        Some((kind, files)) => shards(storage, kind, &files),
    }
}

fn shards(storage: Arc<dyn Storage>, kind: Kind, files: &[PathBuf]) -> Result<Source, Error> {
    match kind {
        Kind::TfRecord => Source::tfrecord(storage, files),
        Kind::Tar => Source::tar(storage, files),
        Kind::Tensor | Kind::Image => Source::tensor(storage, files),
    }
}

/// A name that starts with a dot somewhere below `dir`: unfinished or foreign.
fn is_hidden(path: &Path, dir: &Path) -> bool {
    let below = path.strip_prefix(dir).unwrap_or(path);
    below.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

fn is_text_by_name(path: &Path) -> bool {
    matches!(
        extension(path).as_str(),
        "txt" | "json" | "md" | "csv" | "tsv" | "html" | "xml" | "yaml" | "toml" | "index"
    )
}

/// What a file's name says. Shards are often called `name.tfrecord-00000-of-00012` or `name.tfrecord.gz`.
pub(super) fn kind_by_name(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    match extension(path).as_str() {
        "jpg" | "jpeg" | "jpe" | "png" => Some(Kind::Image),
        "tar" => Some(Kind::Tar),
        "fbt" => Some(Kind::Tensor),
        _ if name.contains(".tfrecord") || name.contains(".tfrec") => Some(Kind::TfRecord),
        _ => None,
    }
}

/// What a file's first bytes say; `None` for anything else, text included.
///
/// # Errors
/// When the file cannot be read.
pub fn kind_of_file(storage: &dyn Storage, path: &Path) -> Result<Option<Kind>, Error> {
    let object = storage.open(path)?;
    let len = object.len()?.min(HEAD as u64) as usize;
    let mut buffer = Buffer::default();
    object.read_at(0, len, &mut buffer)?;
    let head = buffer.as_slice();
    if image::sniff(head).is_some() {
        return Ok(Some(Kind::Image));
    }
    if head.starts_with(tensor::MAGIC) {
        return Ok(Some(Kind::Tensor));
    }
    if head.get(257..262) == Some(b"ustar") {
        return Ok(Some(Kind::Tar));
    }
    let compressed = Compression::sniff(head) != Compression::None;
    Ok((compressed || is_frame_header(head) || by_empty_name(path, head)).then_some(Kind::TfRecord))
}

/// Whether the bytes start with a length and its right checksum: not likely by chance.
fn is_frame_header(head: &[u8]) -> bool {
    let mut scanner = FrameScanner::new(u64::MAX);
    let wanted = scanner.want().map_or(0, |want| want.len);
    head.get(..wanted).is_some_and(|header| scanner.feed(header).is_ok())
}

/// A shard without any record has no bytes to recognise it by.
fn by_empty_name(path: &Path, head: &[u8]) -> bool {
    head.is_empty() && kind_by_name(path) == Some(Kind::TfRecord)
}
