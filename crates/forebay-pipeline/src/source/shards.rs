//! Indexing shards: the places of their samples, by reading headers alone.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_format::tfrecord::{self, Compression, FrameScanner, RecordStream};
use forebay_format::{Scanner, tar, tensor};
use forebay_storage::{Buffer, Object, ObjectReader, Storage};

use super::{Damaged, Index, NO_LABEL, Packing, PixelShape, Place, Source};
use crate::error::Error;

pub(super) fn tfrecord(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Source, Error> {
    let mut compressions = Vec::new();
    for path in shards {
        compressions.push(compression_of(storage.open(path)?.as_ref())?);
    }
    let compression = compressions.first().copied().unwrap_or(Compression::None);
    if let Some(odd) = compressions.iter().position(|c| *c != compression) {
        let what = format!("{} and {} are not compressed alike", shards[0].display(), shards[odd].display());
        return Err(Error::Source { what, source: None });
    }
    let packing = match compression {
        Compression::None => Packing::TfRecord,
        other => Packing::CompressedTfRecord(other),
    };
    build(storage, shards, packing, |object, add| match compression {
        Compression::None => scan(&mut FrameScanner::new(object.len()?), object, add),
        other => scan_compressed(other, object, add),
    })
}

pub(super) fn tar(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Source, Error> {
    build(storage, shards, Packing::Tar, |object, add| scan(&mut tar::SampleScanner::new(object.len()?), object, add))
}

/// Takes the place of each sample in turn.
type Add<'a> = dyn FnMut(u64, u64) + 'a;

/// What indexing one shard came to: fine, or damaged from some place on.
type Scan = Result<Option<forebay_format::Error>, Error>;

fn build(
    storage: Arc<dyn Storage>,
    shards: &[PathBuf],
    packing: Packing,
    scan: impl Fn(&dyn Object, &mut Add<'_>) -> Scan,
) -> Result<Source, Error> {
    let mut index = Index::new(packing, shards.to_vec(), Vec::new());
    let mut damaged = Vec::new();
    for (file, path) in shards.iter().enumerate() {
        let before = index.places.len();
        let object = storage.open(path)?;
        let found = scan(object.as_ref(), &mut |offset, len| {
            index.places.push(Place { offset, label: NO_LABEL, len, file: file as u32, group: file as u32 });
        })?;
        if let Some(error) = found {
            let n_samples_before = index.places.len() - before;
            damaged.push(Damaged { path: path.clone(), n_samples_before, error });
        }
    }
    if index.places.is_empty() {
        return Err(nothing_in(shards, damaged));
    }
    let mut source = Source::new(storage, index);
    source.damaged = Arc::new(damaged);
    Ok(source)
}

/// Why there is not a single sample.
fn nothing_in(shards: &[PathBuf], damaged: Vec<Damaged>) -> Error {
    match damaged.into_iter().next() {
        Some(Damaged { path, error, .. }) => {
            Error::Source { what: format!("{} cannot be read", path.display()), source: Some(Box::new(error)) }
        }
        None => Error::Empty { what: names(shards) },
    }
}

fn names(shards: &[PathBuf]) -> String {
    match shards {
        [] => "an empty list of shards".to_owned(),
        [one] => one.display().to_string(),
        [first, rest @ ..] => format!("{} and {} more shards", first.display(), rest.len()),
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

fn scan_compressed(compression: Compression, object: &dyn Object, add: &mut Add<'_>) -> Scan {
    let mut stream = RecordStream::new(ObjectReader::new(object)?, compression, tfrecord::EXPANDED_LIMIT);
    let mut spans = Vec::new();
    let mut next = || stream.next_span().and_then(|span| stream.pass_over().map(|()| span));
    let error = loop {
        match next() {
            Ok(Some(span)) => spans.push(span),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    // A broken stream cannot be expanded later, so that nothing of it can be used.
    if !stream.is_broken() {
        spans.into_iter().for_each(|span| add(span.offset, span.len));
    }
    Ok(error)
}

pub(super) fn tensor(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Source, Error> {
    let mut index = Index::new(Packing::Tensor, Vec::new(), Vec::new());
    let mut pixels: Option<PixelShape> = None;
    let mut damaged = Vec::new();
    for path in shards {
        let (header, tables) = match tensor_tables(storage.open(path)?.as_ref())? {
            Ok(parsed) => parsed,
            // Labels and checksums lie at its end: of a shard that was cut off, nothing can be used.
            Err(error) => {
                damaged.push(Damaged { path: path.clone(), n_samples_before: 0, error });
                continue;
            }
        };
        let tensor::Shape { height, width, channels } = header.shape();
        let shape = PixelShape { height, width, channels };
        if *pixels.get_or_insert(shape) != shape {
            let what = format!("{} and {} hold pixels of different shapes", index.files[0].display(), path.display());
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

/// A shard's header and tables, or what is wrong with them.
type Tensor = Result<(tensor::Header, tensor::Tables), forebay_format::Error>;

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
