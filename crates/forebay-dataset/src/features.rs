//! Which features of a dataset's records hold image and label, decided by the first records of its first shard.

use std::iter;
use std::path::Path;

use forebay_format::example::{KeyNames, Keys};
use forebay_format::tfrecord::{Compression, EXPANDED_LIMIT, FrameScanner, RecordStream, parse_frame};
use forebay_format::{Kind, Scanner};
use forebay_storage::{Buffer, Object, ObjectReader, Storage};
use forebay_units::Bytes;

use crate::source::{Source, read_head};
use crate::{Error, Result};

/// At most this many files with unknown names are opened.
const OPENED: usize = 16;

/// Finds the features in the first TFRecord shard of a source.
///
/// # Errors
/// When names are given and there is no such shard, or its first records lack these features; or when several features
/// could be the image.
pub(crate) fn decide(
    storage: &dyn Storage,
    path: &Path,
    source: &Source,
    given: &KeyNames,
    max_sample: Bytes,
) -> Result<Keys> {
    let Some((shard, compression)) = first_shard(storage, source) else {
        return if given.is_empty() { Ok(Keys::default()) } else { Err(Error::NoFeatures { path: path.to_owned() }) };
    };
    let object = storage.open(shard)?;
    let decided = match compression {
        Compression::None => Keys::decide_first(payloads(object.as_ref(), max_sample)?, given),
        packed => Keys::decide_first(expanded_payloads(object.as_ref(), packed, max_sample)?, given),
    };
    decided.map_err(|source| Error::Format { path: shard.to_owned(), source: Box::new(source) })
}

/// The payloads of a shard up to the first damage; records that are too large are skipped.
fn payloads(object: &dyn Object, limit: Bytes) -> Result<impl Iterator<Item = Vec<u8>>> {
    let (mut scanner, mut buffer) = (FrameScanner::new(object.len()?), Buffer::default());
    Ok(iter::from_fn(move || {
        while let Some(want) = scanner.want() {
            object.read_at(want.offset, want.len, &mut buffer).ok()?;
            let Some(span) = scanner.feed(buffer.as_slice()).ok()?.filter(|span| span.len <= limit.0) else { continue };
            object.read_at(span.offset, span.len as usize, &mut buffer).ok()?;
            return parse_frame(buffer.as_slice(), span.offset).ok().map(|record| record.payload.to_vec());
        }
        None
    }))
}

fn expanded_payloads(object: &dyn Object, packed: Compression, limit: Bytes) -> Result<impl Iterator<Item = Vec<u8>>> {
    let mut stream = RecordStream::new(ObjectReader::new(object)?, packed, EXPANDED_LIMIT);
    let mut frame = Vec::new();
    Ok(iter::from_fn(move || {
        let mut span = stream.next_span().ok()??;
        while span.len > limit.0 {
            span = stream.next_span().ok()??;
        }
        stream.read_frame(&mut frame).ok()?;
        parse_frame(&frame, span.offset).ok().map(|record| record.payload.to_vec())
    }))
}

fn first_shard<'a>(storage: &dyn Storage, source: &'a Source) -> Option<(&'a Path, Compression)> {
    let mut unnamed = 0;
    let may_be_one = |path: &&Path| match Kind::by_name(path) {
        Some(kind) => matches!(kind, Kind::TfRecord(_)),
        None => {
            unnamed += 1;
            unnamed <= OPENED
        }
    };
    let kind_of = |path: &Path| read_head(storage, path, &mut Buffer::default()).ok();
    let mut paths = source.items.iter().map(|item| item.path.as_path()).filter(may_be_one);
    paths.find_map(|path| match kind_of(path)? {
        Kind::TfRecord(compression) => Some((path, compression)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_format::example::ExampleWriter;
    use forebay_format::tfrecord;
    use forebay_storage::Memory;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0";

    fn shard(names: &[&str]) -> Vec<u8> {
        let example = names.iter().fold(ExampleWriter::new(), |example, name| example.bytes(name, &[JPEG]));
        let mut shard = Vec::new();
        tfrecord::append(&mut shard, &example.ints("label", &[1]).finish());
        shard
    }

    fn decided(files: &[(&str, Vec<u8>)], given: &KeyNames) -> Result<Keys> {
        let storage = Memory::default();
        files.iter().for_each(|(path, bytes)| storage.insert(*path, bytes.clone()));
        let source = Source::open(&storage, Path::new("d"))?;
        decide(&storage, Path::new("d"), &source, given, Bytes(1 << 20))
    }

    #[test]
    fn the_first_shard_decides_whatever_its_name_and_compression() {
        let gzip = |bytes: Vec<u8>| tfrecord::compress(&bytes, Compression::Gzip).unwrap();
        for name in ["d/x.tfrecord", "d/train-00000-of-00002"] {
            for bytes in [shard(&["image"]), gzip(shard(&["image"]))] {
                let keys = decided(&[("d/a.jpg", JPEG.to_vec()), (name, bytes)], &KeyNames::default()).unwrap();
                assert_eq!((keys.image(), keys.label()), (Some("image"), Some("label")), "{name}");
            }
        }
        assert_eq!(decided(&[("d/a.jpg", JPEG.to_vec())], &KeyNames::default()).unwrap(), Keys::default());
    }

    #[test]
    fn names_for_data_without_features_and_several_images_are_refused() {
        let given = KeyNames { image: Some("right".to_owned()), label: None };
        let error = decided(&[("d/a.jpg", JPEG.to_vec())], &given).unwrap_err().to_string();
        assert_eq!(error, "d: no TFRecord shards found; only TFRecord has named features");
        let two = [("d/x.tfrecord", shard(&["left", "right"]))];
        let error = decided(&two, &KeyNames::default()).unwrap_err();
        let Error::Format { path, source } = error else { panic!("{error}") };
        assert_eq!(
            (path.to_str(), source.to_string().as_str()),
            (Some("d/x.tfrecord"), "several features hold images: left, right")
        );
        assert_eq!(decided(&two, &given).unwrap().image(), Some("right"));
    }
}
