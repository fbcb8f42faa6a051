//! The samples of a shard of any format, one at a time.
//!
//! A damaged sample does not end the walk if the next one can still be found: a damaged TFRecord payload or tar entry
//! loses only that sample, a damaged length or header loses the rest of the shard.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_format::example::{Keys, filename};
use forebay_format::tfrecord::{self, Compression, Expander, FrameScanner, RecordStream};
use forebay_format::{Error as FormatError, Kind, Scanner, Span, tar, tensor};
use forebay_record::Fault;
use forebay_storage::{Buffer, Error as StorageError, Object, ObjectReader, Storage};
use forebay_units::{Bytes, PathText, chain};

use crate::reason::{too_large, why_unreadable};

#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) storage: &'a dyn Storage,
    /// The features of TFRecord records that hold image and label.
    pub(crate) keys: &'a Keys,
    /// A larger sample is reported as bad and not read.
    pub(crate) limit: u64,
}

pub(crate) struct Sample<'a> {
    pub(crate) offset: u64,
    pub(crate) label: Option<i64>,
    /// The name of the original file, if stored.
    pub(crate) name: Option<PathBuf>,
    pub(crate) content: Content<'a>,
}

pub(crate) enum Content<'a> {
    Encoded(&'a [u8]),
    /// Decoded pixels; their checksum was verified when they were read.
    Pixels {
        shape: tensor::Shape,
        bytes: u64,
    },
}

/// Passes every sample of the shard at `path`, good or bad, to `visit`.
pub(crate) fn walk(reading: &Reading<'_>, path: &Path, kind: Kind, visit: &mut Visit<'_>) -> Result<(), Fault> {
    let object = reading.storage.open(path).map_err(|error| Fault::of_file(path, why_unreadable(&error)))?;
    let walk = Walk { object: object.as_ref(), path, keys: reading.keys, limit: reading.limit };
    match kind {
        Kind::TfRecord(Compression::None) => walk.spans(
            &mut FrameScanner::new(walk.len()?),
            |bytes, offset| read_record(bytes, offset, walk.keys),
            visit,
        ),
        Kind::TfRecord(packed) => walk.compressed_records(packed, visit),
        Kind::Tar(Compression::None) => {
            let mut scanner = tar::SampleScanner::new(walk.len()?);
            walk.spans(&mut scanner, read_member, visit)?;
            walk.name_skipped(&scanner, visit);
            Ok(())
        }
        Kind::Tar(packed) => walk.compressed_archive(packed, visit),
        Kind::Tensor => walk.tensor(visit),
        other => Err(Fault::of_file(path, format!("not a shard: {}", other.name()))),
    }
}

/// Takes each sample in turn, good or bad.
type Visit<'a> = dyn FnMut(Result<Sample<'_>, Fault>) + 'a;

/// A shard being walked; holds one sample at a time.
struct Walk<'a> {
    object: &'a dyn Object,
    path: &'a Path,
    keys: &'a Keys,
    limit: u64,
}

impl Walk<'_> {
    fn len(&self) -> Result<u64, Fault> {
        self.object.len().map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &StorageError) -> Fault {
        Fault::of_file(self.path, why_unreadable(error))
    }

    /// A fault of the whole shard.
    fn broken(&self, error: &FormatError) -> Fault {
        Fault::of_file(self.path, chain(error))
    }

    /// A fault of the sample at an offset.
    fn bad(&self, offset: u64, error: &FormatError) -> Fault {
        Fault::of_record(self.path, offset, chain(error))
    }

    /// A fault of everything after an offset.
    fn ended(&self, offset: u64, error: &FormatError) -> Fault {
        Fault::of_record(self.path, offset, format!("{}; the rest of the shard cannot be read", chain(error)))
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
        scanner: &mut dyn Scanner,
        read: impl for<'a> Fn(&'a [u8], u64) -> Result<Sample<'a>, FormatError>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Fault> {
        let mut buffer = Buffer::default();
        while let Some(want) = scanner.want() {
            self.object.read_at(want.offset, want.len, &mut buffer).map_err(|error| self.unreadable(&error))?;
            match scanner.feed(buffer.as_slice()) {
                Ok(None) => {}
                Ok(Some(span)) => visit(self.read(span, &mut buffer).and_then(|()| {
                    read(buffer.as_slice(), span.offset).map_err(|error| self.bad(span.offset, &error))
                })),
                Err(error) => visit(Err(self.ended(want.offset, &error))),
            }
        }
        Ok(())
    }

    fn compressed_records(&self, packed: Compression, visit: &mut Visit<'_>) -> Result<(), Fault> {
        let broken = |error: FormatError| self.broken(&error);
        let reader = ObjectReader::new(self.object).map_err(|error| self.unreadable(&error))?;
        let mut stream = RecordStream::new(reader, packed, tfrecord::EXPANDED_LIMIT);
        let mut frame = Vec::new();
        while let Some(span) = stream.next_span().map_err(broken)? {
            if let Err(fault) = self.check_size(span) {
                visit(Err(fault));
                continue;
            }
            stream.read_frame(&mut frame).map_err(broken)?;
            visit(read_record(&frame, span.offset, self.keys).map_err(|error| self.bad(span.offset, &error)));
        }
        Ok(())
    }

    /// An archive is expanded twice: the end of a sample is known only after it.
    fn compressed_archive(&self, packed: Compression, visit: &mut Visit<'_>) -> Result<(), Fault> {
        let broken = |error: FormatError| self.broken(&error);
        let expand = || {
            let reader = ObjectReader::new(self.object).map_err(|error| self.unreadable(&error))?;
            Ok(Expander::new(reader, packed, tfrecord::EXPANDED_LIMIT))
        };
        let mut scanner = tar::SampleScanner::new(u64::MAX);
        let (spans, damage) = expand()?.spans(&mut scanner).map_err(broken)?;
        let (mut expander, mut piece) = (expand()?, Vec::new());
        for span in spans {
            if let Err(fault) = self.check_size(span) {
                visit(Err(fault));
                continue;
            }
            expander.read_at(span.offset, span.len as usize, &mut piece).map_err(broken)?;
            visit(read_member(&piece, span.offset).map_err(|error| self.bad(span.offset, &error)));
        }
        if let Some(error) = damage {
            // The scanner stopped at the offset it wants next.
            visit(Err(self.ended(scanner.at(), &error)));
        }
        self.name_skipped(&scanner, visit);
        Ok(())
    }

    /// Reports the unsupported entries of an archive.
    fn name_skipped(&self, scanner: &tar::SampleScanner, visit: &mut Visit<'_>) {
        for entry in scanner.left_out() {
            let reason = format!("{} is {}, which is not supported", as_path(&entry.path).escaped(), entry.what);
            visit(Err(Fault::of_record(self.path, entry.offset, reason)));
        }
    }

    fn tensor(&self, visit: &mut Visit<'_>) -> Result<(), Fault> {
        let broken = |error: FormatError| self.broken(&error);
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

fn read_record<'a>(bytes: &'a [u8], offset: u64, keys: &Keys) -> Result<Sample<'a>, FormatError> {
    let payload = tfrecord::parse_frame(bytes, offset)?.payload;
    let record = keys.read(payload)?;
    let name = filename(payload).map(as_path);
    Ok(Sample { offset, label: record.label, name, content: Content::Encoded(record.image) })
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

/// The name of a sample's file: the stored name, or else its path in the archive, in the original case.
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
