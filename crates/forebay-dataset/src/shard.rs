//! The samples of a shard that is in memory, whatever its format.
//!
//! A damaged sample does not end the walk where the next one can still be found: a TFRecord payload or a tar entry with
//! wrong content costs itself, a damaged length or header costs the rest of the shard.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_format::example::{Keys, filename};
use forebay_format::tfrecord::{self, Compression, FrameScanner};
use forebay_format::{Error as FormatError, Kind, Scanner, Span, tar, tensor};
use forebay_record::Fault;
use forebay_storage::{Buffer, Storage};
use forebay_units::PathText;

use crate::reason::{chain, why_unreadable};

/// One sample of a shard.
pub(crate) struct Sample<'a> {
    pub(crate) offset: u64,
    pub(crate) label: Option<i64>,
    /// The file it was made from, where that is kept.
    pub(crate) name: Option<PathBuf>,
    pub(crate) content: Content<'a>,
}

/// What a sample holds.
pub(crate) enum Content<'a> {
    /// An image file.
    Encoded(&'a [u8]),
    /// Pixels, already verified.
    Pixels { shape: tensor::Shape, bytes: u64 },
}

/// A whole file in memory, mapped where that is possible.
pub(crate) enum Bytes {
    Mapped(memmap2::Mmap),
    Read(Buffer),
}

impl Bytes {
    pub(crate) fn of(storage: &dyn Storage, path: &Path) -> forebay_storage::Result<Self> {
        let object = storage.open(path)?;
        if let Some(map) = object.map()? {
            return Ok(Self::Mapped(map));
        }
        let mut buffer = Buffer::default();
        object.read_all(&mut buffer)?;
        Ok(Self::Read(buffer))
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(buffer) => buffer.as_slice(),
        }
    }
}

/// Hands every sample of the shard at `path`, good or bad, to `visit`.
pub(crate) fn walk(
    storage: &dyn Storage,
    path: &Path,
    kind: Kind,
    keys: &Keys,
    visit: &mut dyn FnMut(Result<Sample<'_>, Fault>),
) -> Result<(), Fault> {
    let bytes = Bytes::of(storage, path).map_err(|error| Fault::of_file(path, why_unreadable(&error)))?;
    walk_bytes(&bytes, path, kind, keys, visit)
}

fn walk_bytes(
    bytes: &[u8],
    path: &Path,
    kind: Kind,
    keys: &Keys,
    visit: &mut dyn FnMut(Result<Sample<'_>, Fault>),
) -> Result<(), Fault> {
    match kind {
        Kind::TfRecord(Compression::None) => {
            let mut scanner = FrameScanner::new(bytes.len() as u64);
            walk_spans(&mut scanner, bytes, path, |bytes, offset| read_record(bytes, offset, keys), visit);
        }
        Kind::Tar(Compression::None) => {
            let mut scanner = tar::SampleScanner::new(bytes.len() as u64);
            walk_spans(&mut scanner, bytes, path, read_member, visit);
            for entry in scanner.left_out() {
                let reason = format!("{} is {}, which is not read", as_path(&entry.path).escaped(), entry.what);
                visit(Err(Fault::of_record(path, entry.offset, reason)));
            }
        }
        Kind::TfRecord(packed) | Kind::Tar(packed) => {
            let expanded = tfrecord::decompress(bytes, packed, tfrecord::EXPANDED_LIMIT);
            let expanded = expanded.map_err(|error| Fault::of_file(path, chain(&error)))?;
            let plain = match kind {
                Kind::Tar(_) => Kind::Tar(Compression::None),
                _ => Kind::TfRecord(Compression::None),
            };
            walk_bytes(&expanded, path, plain, keys, visit)?;
        }
        Kind::Tensor => walk_tensor(bytes, path, visit)?,
        other => return Err(Fault::of_file(path, format!("not a shard: {}", other.name()))),
    }
    Ok(())
}

/// Visits the samples at the places a scanner finds.
fn walk_spans(
    scanner: &mut dyn Scanner,
    bytes: &[u8],
    path: &Path,
    read: impl for<'a> Fn(&'a [u8], u64) -> Result<Sample<'a>, FormatError>,
    visit: &mut dyn FnMut(Result<Sample<'_>, Fault>),
) {
    while let Some(want) = scanner.want() {
        let start = usize::try_from(want.offset).unwrap_or(usize::MAX).min(bytes.len());
        let piece = &bytes[start..bytes.len().min(start.saturating_add(want.len))];
        match scanner.feed(piece) {
            Ok(None) => {}
            Ok(Some(Span { offset, len })) => {
                let span = &bytes[offset as usize..][..len as usize];
                visit(read(span, offset).map_err(|error| Fault::of_record(path, offset, chain(&error))));
            }
            Err(error) => {
                let reason = format!("{}; the rest of the shard cannot be read", chain(&error));
                visit(Err(Fault::of_record(path, want.offset, reason)));
            }
        }
    }
}

fn read_record<'a>(bytes: &'a [u8], offset: u64, keys: &Keys) -> Result<Sample<'a>, FormatError> {
    let payload = tfrecord::parse_frame(bytes, offset)?.payload;
    let record = keys.read(payload)?;
    let name = filename(payload).map(as_path);
    Ok(Sample { offset, label: record.label, name, content: Content::Encoded(record.image) })
}

fn read_member(bytes: &[u8], offset: u64) -> Result<Sample<'_>, FormatError> {
    let sample = tar::parse_sample(bytes, offset)?;
    let missing = || FormatError::NotRecognised { expected: "a part .jpg, .jpeg or .png", found: parts(&sample) };
    let encoded = sample.image().ok_or_else(missing)?;
    Ok(Sample {
        offset,
        label: sample.label()?,
        name: member_name(bytes, offset, &sample),
        content: Content::Encoded(encoded),
    })
}

fn parts(sample: &tar::Sample<'_>) -> String {
    sample.parts.iter().map(|part| format!(".{}", part.extension)).collect::<Vec<_>>().join(", ")
}

/// The name of a member's file: as kept beside it, else its path in the archive, with the case of the letters kept.
fn member_name(bytes: &[u8], offset: u64, sample: &tar::Sample<'_>) -> Option<PathBuf> {
    if let Some(kept) = sample.part(super::pack::NAME_PART) {
        return Some(as_path(kept));
    }
    let image = sample.image()?.as_ptr();
    let entry = tar::Entries::fragment(bytes, offset).flatten().find(|entry| entry.data.as_ptr() == image);
    entry.map(|entry| as_path(&entry.path))
}

fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn walk_tensor(bytes: &[u8], path: &Path, visit: &mut dyn FnMut(Result<Sample<'_>, Fault>)) -> Result<(), Fault> {
    let shard = tensor::Shard::parse(bytes).map_err(|error| Fault::of_file(path, chain(&error)))?;
    let shape = shard.header().shape();
    for index in 0..shard.header().n_samples() {
        let Span { offset, len } = shard.header().sample_span(index);
        let sample = Sample {
            offset,
            label: Some(shard.tables().labels()[index as usize]).filter(|&label| label >= 0),
            name: None,
            content: Content::Pixels { shape, bytes: len },
        };
        let checked = shard.verify(index).map_err(|error| Fault::of_record(path, offset, chain(&error)));
        visit(checked.map(|()| sample));
    }
    Ok(())
}
