//! Indexing shards: locating their samples by reading headers alone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use forebay_format::example::{KeyNames, Keys};
use forebay_format::tfrecord::{self, Compression, Expander, FrameScanner};
use forebay_format::{Error as FormatError, Scanner, tar, tensor};
use forebay_storage::{Buffer, Object, ObjectReader, Storage};
use forebay_units::PathText;

use super::stream::StreamedRecords;
use super::{Damaged, Index, NO_LABEL, Packing, PixelShape, Place, Source, keys};
use crate::error::Error;

pub(super) fn tfrecord(storage: Arc<dyn Storage>, shards: &[PathBuf], given: &KeyNames) -> Result<Source, Error> {
    let compression = compression_of_all(storage.as_ref(), shards)?;
    let packing = match compression {
        Compression::None => Packing::TfRecord,
        other => Packing::CompressedTfRecord(other),
    };
    // A compressed shard is decompressed only once, here, so its first records are examined as they pass.
    let decided = Mutex::new(None);
    let (mut index, damaged) = build(storage.as_ref(), shards, packing, |object, add| {
        if compression == Compression::None {
            return scan(&mut FrameScanner::new(object.len()?), object, add);
        }
        let mut records = StreamedRecords::new(ObjectReader::new(object)?, compression);
        let mut decided = decided.lock().expect("no holder of this lock panics");
        let found = decided.is_none().then(|| Keys::decide_first(records.payloads(), given));
        let (spans, damage) = records.finish();
        if !spans.is_empty() {
            *decided = decided.take().or(found);
        }
        spans.into_iter().for_each(|span| add(span.offset, span.len));
        Ok(damage)
    })?;
    let decided = decided.into_inner().ok().flatten();
    let decided = decided.unwrap_or_else(|| keys::of_index(storage.as_ref(), &index, given));
    let mut image_candidates = Vec::new();
    match decided {
        Ok(found) => index.keys = found,
        // A map that takes any record does not need an image; a map that needs one is refused before the first sample.
        Err(FormatError::SeveralImages { candidates }) if given.is_empty() => image_candidates = candidates,
        Err(error) => {
            return Err(Error::Source { what: shards[0].escaped().into_owned(), source: Some(Box::new(error)) });
        }
    }
    let notes = index.keys.note().map(str::to_owned).into_iter().collect();
    let mut source = Source::new(storage, index);
    source.damaged = Arc::new(damaged);
    source.image_candidates = Arc::new(image_candidates);
    source.notes = notes;
    Ok(source)
}

pub(super) fn tar(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Source, Error> {
    let compression = match compression_of_all(storage.as_ref(), shards)? {
        // A tar archive begins with a name, which may look like a zlib stream.
        Compression::Zlib => Compression::None,
        other => other,
    };
    let packing = if compression == Compression::None { Packing::Tar } else { Packing::CompressedTar(compression) };
    let left_out = Mutex::new(Vec::new());
    let (index, damaged) = build(storage.as_ref(), shards, packing, |object, add| {
        let (mut scanner, found);
        if compression == Compression::None {
            scanner = tar::SampleScanner::new(object.len()?);
            found = scan(&mut scanner, object, add)?;
        } else {
            // Its decompressed length is known only at its end.
            scanner = tar::SampleScanner::new(u64::MAX);
            found = scan_expanded(compression, object, &mut scanner, add)?;
        }
        left_out.lock().expect("no holder of this lock panics").extend(scanner.left_out().iter().cloned());
        Ok(found)
    })?;
    let mut source = Source::new(storage, index);
    source.damaged = Arc::new(damaged);
    source.notes = note_of(&left_out.into_inner().unwrap_or_default()).into_iter().collect();
    Ok(source)
}

/// The note on entries whose contents are not read.
fn note_of(left_out: &[tar::Skipped]) -> Option<String> {
    let first = left_out.first()?;
    let more = match left_out.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let path = Path::new(OsStr::from_bytes(&first.path));
    Some(format!("links and sparse files in tar archives are skipped: {} ({}){more}", path.escaped(), first.what))
}

/// Receives the location of each sample in turn.
type Add<'a> = dyn FnMut(u64, u64) + 'a;

/// The result of indexing a shard: `None`, or the damage that ends it.
type Scan = Result<Option<FormatError>, Error>;

fn build(
    storage: &dyn Storage,
    shards: &[PathBuf],
    packing: Packing,
    scan: impl Fn(&dyn Object, &mut Add<'_>) -> Scan + Sync,
) -> Result<(Index, Vec<Damaged>), Error> {
    let mut index = Index::new(packing, shards.to_vec(), Vec::new());
    let mut damaged = Vec::new();
    let found = on_each(storage, shards, |path| {
        let mut spans = Vec::new();
        let found = scan(storage.open(path)?.as_ref(), &mut |offset, len| spans.push((offset, len)))?;
        Ok::<_, Error>((spans, found))
    });
    for (file, (path, outcome)) in shards.iter().zip(found).enumerate() {
        let (spans, found) = outcome?;
        if let Some(error) = found {
            damaged.push(Damaged { path: path.clone(), n_samples_before: spans.len(), error });
        }
        let place = |(offset, len)| Place { offset, label: NO_LABEL, len, file: file as u32, group: file as u32 };
        index.places.extend(spans.into_iter().map(place));
    }
    if index.places.is_empty() {
        return Err(nothing_in(shards, damaged));
    }
    Ok((index, damaged))
}

/// Runs something for each path, in their order: one after the other on a local disk, many at a time where each takes
/// a round trip or more.
pub(super) fn on_each<T: Send>(storage: &dyn Storage, paths: &[PathBuf], run: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    let n_threads = paths.first().map_or(1, |first| storage.concurrency(first)).min(paths.len());
    if n_threads <= 1 {
        return paths.iter().map(|path| run(path)).collect();
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(number) else { break };
                    let outcome = run(path);
                    done.lock().expect("no holder of this lock panics").push((number, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The error if there is no sample at all.
fn nothing_in(shards: &[PathBuf], damaged: Vec<Damaged>) -> Error {
    match damaged.into_iter().next() {
        Some(Damaged { path, error, .. }) => {
            Error::Source { what: format!("{} cannot be read", path.escaped()), source: Some(Box::new(error)) }
        }
        None => Error::Empty { what: names(shards) },
    }
}

fn names(shards: &[PathBuf]) -> String {
    match shards {
        [] => "an empty list of shards".to_owned(),
        [one] => one.escaped().into_owned(),
        [first, rest @ ..] => format!("{} and {} more shards", first.escaped(), rest.len()),
    }
}

/// The compression of all shards, which must agree.
fn compression_of_all(storage: &dyn Storage, shards: &[PathBuf]) -> Result<Compression, Error> {
    let compressions = on_each(storage, shards, |path| compression_of(storage.open(path)?.as_ref()));
    let compressions = compressions.into_iter().collect::<Result<Vec<_>, Error>>()?;
    let compression = compressions.first().copied().unwrap_or(Compression::None);
    match compressions.iter().position(|c| *c != compression) {
        None => Ok(compression),
        Some(odd) => {
            let what = format!("{} and {} are compressed differently", shards[0].escaped(), shards[odd].escaped());
            Err(Error::Source { what, source: None })
        }
    }
}

fn compression_of(object: &dyn Object) -> Result<Compression, Error> {
    let mut head = Buffer::default();
    object.read_at(0, object.len()?.min(16) as usize, &mut head)?;
    Ok(Compression::sniff(head.as_slice()))
}

fn scan(scanner: &mut dyn Scanner, object: &dyn Object, add: &mut Add<'_>) -> Scan {
    let mut buffer = Buffer::default();
    while let Some(want) = scanner.want() {
        object.read_at(want.offset, want.len, &mut buffer)?;
        match scanner.feed(buffer.as_slice()) {
            Ok(Some(span)) => add(span.offset, span.len),
            Ok(None) => {}
            Err(error) => return Ok(Some(error)),
        }
    }
    Ok(None)
}

/// Indexes a compressed shard, which is decompressed once and not kept. A broken stream has no usable samples.
fn scan_expanded(compression: Compression, object: &dyn Object, scanner: &mut dyn Scanner, add: &mut Add<'_>) -> Scan {
    let reader = ObjectReader::new(object)?;
    Ok(match Expander::new(reader, compression, tfrecord::EXPANDED_LIMIT).spans(scanner) {
        Ok((spans, damage)) => {
            spans.into_iter().for_each(|span| add(span.offset, span.len));
            damage
        }
        Err(error) => Some(error),
    })
}

pub(super) fn tensor(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Source, Error> {
    let mut index = Index::new(Packing::Tensor, Vec::new(), Vec::new());
    let mut pixels: Option<PixelShape> = None;
    let mut damaged = Vec::new();
    for path in shards {
        let (header, tables) = match tensor_tables(storage.open(path)?.as_ref())? {
            Ok(parsed) => parsed,
            // Labels and checksums are at the end, so a truncated shard has no usable samples.
            Err(error) => {
                damaged.push(Damaged { path: path.clone(), n_samples_before: 0, error });
                continue;
            }
        };
        let tensor::Shape { height, width, channels } = header.shape();
        let shape = PixelShape { height, width, channels };
        if *pixels.get_or_insert(shape) != shape {
            let what = format!("{} and {} have different pixel shapes", index.files[0].escaped(), path.escaped());
            return Err(Error::Source { what, source: None });
        }
        let (first, file) = (index.places.len() as u32, index.files.len() as u32);
        index.places.extend(tables.labels().iter().enumerate().map(|(i, label)| {
            let span = header.sample_span(i as u64);
            Place { offset: span.offset, label: *label, len: span.len, file, group: file }
        }));
        index.files.push(path.clone());
        index.tables.push((first, tables));
    }
    if index.places.is_empty() {
        return Err(nothing_in(shards, damaged));
    }
    let mut source = Source::new(storage, index);
    source.pixels = pixels;
    source.damaged = Arc::new(damaged);
    Ok(source)
}

/// The header and tables of a shard, or its damage.
type Tensor = Result<(tensor::Header, tensor::Tables), FormatError>;

fn tensor_tables(object: &dyn Object) -> Result<Tensor, Error> {
    let len = object.len()?;
    let mut buffer = Buffer::default();
    object.read_at(0, len.min(tensor::Header::NEEDED_LEN as u64) as usize, &mut buffer)?;
    let header =
        match tensor::Header::parse(buffer.as_slice()).and_then(|header| header.check_len(len).map(|()| header)) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error)),
        };
    let tail = header.tail_span();
    object.read_at(tail.offset, tail.len as usize, &mut buffer)?;
    Ok(tensor::Tables::parse(&header, buffer.as_slice()).map(|tables| (header, tables)))
}
