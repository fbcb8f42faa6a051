//! The samples of a shard, whatever its format, one at a time.
//!
//! A damaged sample does not end the walk where the next one can still be found: a TFRecord payload or a tar entry with
//! wrong content costs itself, a damaged length or header costs the rest of the shard.

use std::path::Path;

use forebay_format::example::ImageExample;
use forebay_format::tfrecord::{self, Compression, FrameScanner, RecordStream};
use forebay_format::{Error as FormatError, Kind, Scanner, Span, tar, tensor};
use forebay_record::Fault;
use forebay_storage::{Buffer, Error as StorageError, Object, ObjectReader, Storage};
use forebay_units::Bytes;

use crate::reason::{chain, too_large, why_unreadable};

/// One sample of a shard.
pub(crate) struct Sample<'a> {
    pub(crate) offset: u64,
    pub(crate) label: Option<i64>,
    /// The file it was made from, where that is kept.
    pub(crate) name: Option<String>,
    pub(crate) content: Content<'a>,
}

/// What a sample holds.
pub(crate) enum Content<'a> {
    /// An image file.
    Encoded(&'a [u8]),
    /// Pixels, already verified.
    Pixels { shape: tensor::Shape, bytes: u64 },
}

/// Hands every sample of the shard at `path`, good or bad, to `visit`. A sample of more than `limit` bytes is bad.
pub(crate) fn walk(
    storage: &dyn Storage,
    path: &Path,
    kind: Kind,
    limit: u64,
    visit: &mut dyn FnMut(Result<Sample<'_>, Fault>),
) -> Result<(), Fault> {
    let object = storage.open(path).map_err(|error| Fault::of_file(path, why_unreadable(&error)))?;
    let walk = Walk { object: object.as_ref(), path, limit };
    match kind {
        Kind::TfRecord(Compression::None) => walk.spans(FrameScanner::new(walk.len()?), read_record, visit),
        Kind::TfRecord(packed) => walk.compressed(packed, visit),
        Kind::Tar => walk.spans(tar::SampleScanner::new(walk.len()?), read_member, visit),
        Kind::Tensor => walk.tensor(visit),
        other => Err(Fault::of_file(path, format!("not a shard: {}", other.name()))),
    }
}

/// Takes a sample out of its bytes in the shard.
type ReadSample = for<'a> fn(&'a [u8], u64) -> Result<Sample<'a>, FormatError>;

/// A shard that is walked; one sample of it is held at a time.
struct Walk<'a> {
    object: &'a dyn Object,
    path: &'a Path,
    limit: u64,
}

impl Walk<'_> {
    fn len(&self) -> Result<u64, Fault> {
        self.object.len().map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &StorageError) -> Fault {
        Fault::of_file(self.path, why_unreadable(error))
    }

    /// What is wrong with the sample at an offset.
    fn bad(&self, offset: u64, error: &FormatError) -> Fault {
        Fault::of_record(self.path, offset, chain(error))
    }

    /// Refuses a sample that is too large to be read.
    fn check_size(&self, span: Span) -> Result<(), Fault> {
        if span.len > self.limit {
            let reason = too_large(Bytes(span.len), Bytes(self.limit));
            return Err(Fault::of_record(self.path, span.offset, reason));
        }
        Ok(())
    }

    /// Reads a sample that is not too large.
    fn read(&self, span: Span, buffer: &mut Buffer) -> Result<(), Fault> {
        self.check_size(span)?;
        let read = self.object.read_at(span.offset, span.len as usize, buffer);
        read.map_err(|error| Fault::of_record(self.path, span.offset, why_unreadable(&error)))
    }

    /// Visits the samples at the places a scanner finds.
    fn spans(
        &self,
        mut scanner: impl Scanner,
        read: ReadSample,
        visit: &mut dyn FnMut(Result<Sample<'_>, Fault>),
    ) -> Result<(), Fault> {
        let mut buffer = Buffer::default();
        while let Some(want) = scanner.want() {
            self.object.read_at(want.offset, want.len, &mut buffer).map_err(|error| self.unreadable(&error))?;
            match scanner.feed(buffer.as_slice()) {
                Ok(None) => {}
                Ok(Some(span)) => visit(self.read(span, &mut buffer).and_then(|()| {
                    read(buffer.as_slice(), span.offset).map_err(|error| self.bad(span.offset, &error))
                })),
                Err(error) => {
                    let reason = format!("{}; the rest of the shard cannot be read", chain(&error));
                    visit(Err(Fault::of_record(self.path, want.offset, reason)));
                }
            }
        }
        Ok(())
    }

    fn compressed(&self, packed: Compression, visit: &mut dyn FnMut(Result<Sample<'_>, Fault>)) -> Result<(), Fault> {
        let broken = |error: FormatError| Fault::of_file(self.path, chain(&error));
        let reader = ObjectReader::new(self.object).map_err(|error| self.unreadable(&error))?;
        let mut stream = RecordStream::new(reader, packed, tfrecord::EXPANDED_LIMIT);
        let mut frame = Vec::new();
        while let Some(span) = stream.next_span().map_err(broken)? {
            if let Err(fault) = self.check_size(span) {
                visit(Err(fault));
                continue;
            }
            stream.read_frame(&mut frame).map_err(broken)?;
            visit(read_record(&frame, span.offset).map_err(|error| self.bad(span.offset, &error)));
        }
        Ok(())
    }

    fn tensor(&self, visit: &mut dyn FnMut(Result<Sample<'_>, Fault>)) -> Result<(), Fault> {
        let broken = |error: FormatError| Fault::of_file(self.path, chain(&error));
        let read = |offset: u64, len: usize, buffer: &mut Buffer| {
            self.object.read_at(offset, len, buffer).map_err(|error| self.unreadable(&error))
        };
        let (len, mut buffer) = (self.len()?, Buffer::default());
        read(0, len.min(tensor::Header::NEEDED_LEN as u64) as usize, &mut buffer)?;
        let header = tensor::Header::parse(buffer.as_slice()).map_err(broken)?;
        header.check_len(len).map_err(broken)?;
        let tail = header.tail_span();
        read(tail.offset, tail.len as usize, &mut buffer)?;
        let tables = tensor::Tables::parse(&header, buffer.as_slice()).map_err(broken)?;
        for (index, &label) in (0..).zip(tables.labels()) {
            let span = header.sample_span(index);
            let checked = self.read(span, &mut buffer).and_then(|()| {
                tables.verify_sample(index, buffer.as_slice()).map_err(|error| self.bad(span.offset, &error))
            });
            visit(checked.map(|()| Sample {
                offset: span.offset,
                label: Some(label).filter(|&label| label >= 0),
                name: None,
                content: Content::Pixels { shape: header.shape(), bytes: span.len },
            }));
        }
        Ok(())
    }
}

fn read_record(bytes: &[u8], offset: u64) -> Result<Sample<'_>, FormatError> {
    let record = tfrecord::parse_frame(bytes, offset)?;
    let example = ImageExample::parse(record.payload)?;
    let name = example.filename.map(str::to_owned);
    Ok(Sample { offset, label: example.label, name, content: Content::Encoded(example.encoded) })
}

fn read_member(bytes: &[u8], offset: u64) -> Result<Sample<'_>, FormatError> {
    let sample = tar::parse_sample(bytes, offset)?;
    let missing =
        || FormatError::NotRecognised { expected: "an image part, such as .jpg or .webp", found: parts(&sample) };
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
fn member_name(bytes: &[u8], offset: u64, sample: &tar::Sample<'_>) -> Option<String> {
    if let Some(kept) = sample.part(super::pack::NAME_PART) {
        return std::str::from_utf8(kept).ok().map(str::to_owned);
    }
    let image = sample.image()?.as_ptr();
    tar::Entries::fragment(bytes, offset).flatten().find(|entry| entry.data.as_ptr() == image).map(|entry| entry.path)
}
