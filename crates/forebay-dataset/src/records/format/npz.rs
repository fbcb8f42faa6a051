//! npz as NumPy's `savez` makes it: the values as `x`, a label of 0 per sample as `y`. A stored archive may be split
//! anywhere: the checksum of the values, which occurs before and after them, is patched in at the end.
//!
//! Only the array `x` is read, stored or deflated, with its CRC-32 verified.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use forebay_format::npy::write::header;
use forebay_format::npz::read::{Content, Entry, Finder, LOCAL_LEN, Method as Found};
use forebay_format::npz::write::{Archive, Method, Sum, stored_len};
use forebay_storage::{Buffer, Object};
use forebay_workload::{Compression, Dataset, Element};

use super::array::ArraySink;
use super::{DataFormat, Draft, Files, Piece, Proof, ReadError, Reader, Step, Tools, Unit, descr};

struct Npz {
    element: Element,
    /// Deflate level; `None` for a stored archive.
    level: Option<u32>,
}

pub(super) fn new(dataset: &Dataset) -> Box<dyn DataFormat> {
    let level = (dataset.compression != Compression::None).then_some(dataset.compression_level);
    Box::new(Npz { element: dataset.element, level })
}

impl Npz {
    fn header(&self, piece: &Piece) -> Vec<u8> {
        header(descr(self.element), &piece.array_shape())
    }

    fn labels(piece: &Piece) -> Vec<u8> {
        let mut labels = header("<i8", &[piece.shape.n_samples]);
        labels.resize(labels.len() + 8 * piece.shape.n_samples as usize, 0);
        labels
    }

    fn lengths(&self, piece: &Piece) -> [(&'static str, u64); 2] {
        let values = self.header(piece).len() as u64 + piece.bytes();
        [("x.npy", values), ("y.npy", Self::labels(piece).len() as u64)]
    }

    fn method(&self) -> Method {
        self.level.map_or(Method::Stored, |level| Method::Deflated { level })
    }

    /// The bytes before and after the values of a stored archive, given their checksum.
    fn frame(&self, piece: &Piece, values: &Sum) -> (Vec<u8>, Vec<u8>) {
        let (header, (name, len)) = (self.header(piece), self.lengths(piece)[0]);
        let mut archive = Archive::default();
        archive.begin(name, len, Method::Stored);
        archive.stored(&header);
        archive.stored_apart(values, piece.bytes());
        let mut behind = Vec::new();
        let mut before = archive.end(&mut behind).bytes;
        before.extend(header);
        behind.extend(self.labels_member(piece, &mut archive));
        behind.extend(archive.finish());
        (before, behind)
    }

    fn write_stored(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let mut sum = Sum::default();
        let (before, behind) = self.frame(piece, &sum);
        let (start, end) = (before.len() as u64, before.len() as u64 + piece.bytes());
        let within =
            |bytes: Range<u64>| range.start.clamp(bytes.start, bytes.end)..range.end.clamp(bytes.start, bytes.end);
        let is_whole = range.start == 0 && range.end == end + behind.len() as u64;
        if is_whole {
            draft.hold_first();
        }
        draft.write_all(part(&before, 0, within(0..start)))?;
        let values = within(start..end);
        let mut noise = piece.noise.from(values.start - start);
        draft.fill(values.end - values.start, |out| {
            noise(out);
            sum.update(out);
        })?;
        if is_whole {
            let (before, behind) = self.frame(piece, &sum);
            draft.write_all(&behind)?;
            draft.patch(0, &before);
            return Ok(());
        }
        draft.note(sum);
        draft.write_all(part(&behind, end, within(end..end + behind.len() as u64)))
    }

    fn write_deflated(&self, piece: &Piece, draft: &mut Draft<'_>) -> io::Result<()> {
        let mut archive = Archive::default();
        let (name, len) = self.lengths(piece)[0];
        draft.hold_first();
        draft.write_all(&archive.begin(name, len, self.method()))?;
        let (mut values, mut noise) = (self.header(piece), piece.noise.from(0));
        let (mut left, mut packed) = (piece.bytes(), Vec::new());
        loop {
            archive.deflated(&values, &mut packed);
            draft.write_all(&packed)?;
            packed.clear();
            if left == 0 {
                break;
            }
            values.resize(left.min(128 << 10) as usize, 0);
            noise(&mut values);
            left -= values.len() as u64;
        }
        let mut rest = Vec::new();
        let patch = archive.end(&mut rest);
        rest.extend(self.labels_member(piece, &mut archive));
        rest.extend(archive.finish());
        draft.write_all(&rest)?;
        draft.patch(patch.offset as usize, &patch.bytes);
        Ok(())
    }

    /// The whole second member; it is short enough to be held.
    fn labels_member(&self, piece: &Piece, archive: &mut Archive) -> Vec<u8> {
        let labels = Self::labels(piece);
        let mut out = archive.begin("y.npy", labels.len() as u64, self.method());
        match self.level {
            None => {
                archive.stored(&labels);
                out.extend_from_slice(&labels);
            }
            Some(_) => archive.deflated(&labels, &mut out),
        }
        let patch = archive.end(&mut out);
        out[..patch.bytes.len()].copy_from_slice(&patch.bytes);
        out
    }
}

impl DataFormat for Npz {
    fn proof(&self, piece: &Piece) -> Proof {
        match self.level {
            None => Proof::Length(stored_len(&self.lengths(piece))),
            // The end record of an archive without a comment.
            Some(_) => Proof::Tail(|tail| {
                let end = tail.len().checked_sub(22).map(|at| &tail[at..]);
                end.is_some_and(|end| end.starts_with(b"PK\x05\x06") && end.ends_with(&[0, 0]))
            }),
        }
    }

    fn room(&self, piece: &Piece) -> u64 {
        let stored = stored_len(&self.lengths(piece));
        if self.level.is_some() { stored + stored / 1000 + 4096 } else { stored }
    }

    fn grain(&self, _piece: &Piece) -> Option<u64> {
        self.level.is_none().then_some(1)
    }

    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        match self.level {
            None => self.write_stored(piece, range, draft),
            Some(_) => self.write_deflated(piece, draft),
        }
    }

    fn patches(&self, piece: &Piece, values: &Sum) -> Vec<(u64, Vec<u8>)> {
        let (before, behind) = self.frame(piece, values);
        let end = before.len() as u64 + piece.bytes();
        vec![(0, before), (end, behind)]
    }

    fn unit(&self) -> Unit {
        Unit::File
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        Box::new(NpzReader { files, buffer: Buffer::default() })
    }
}

/// The bytes of a range of a file, out of `bytes`, which begin at `offset` in it.
fn part(bytes: &[u8], offset: u64, range: Range<u64>) -> &[u8] {
    &bytes[(range.start - offset) as usize..(range.end - offset) as usize]
}

/// The member that holds the samples; `y`, their labels, is not read.
const SAMPLES: &str = "x.npy";

struct NpzReader {
    files: Arc<Files>,
    buffer: Buffer,
}

impl Reader for NpzReader {
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
        let object = tools.open(&self.files, file)?;
        let (entry, range) = find(object.as_ref(), &mut self.buffer, tools, |name| name == SAMPLES)?;
        let mut sink = ArraySink::new(self.files.dataset.n_samples_per_file, samples, out);
        let mut content = Content::new(&entry, self.files.verify);
        let looks_at_all = self.files.verify || entry.method == Found::Deflated;
        tools.stream(object.as_ref(), range, (self.files.piece, looks_at_all), &mut self.buffer, |bytes| {
            Ok(content.feed(bytes, |bytes| sink.take(bytes))?)
        })?;
        content.finish()?;
        Ok(sink.finish()?)
    }
}

/// Finds a member and the place of its bytes.
pub(super) fn find(
    object: &dyn Object,
    buffer: &mut Buffer,
    tools: &mut Tools<'_>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(Entry, Range<u64>), ReadError> {
    let len = object.len()?;
    let mut finder = Finder::new(len)?;
    while let Some(want) = finder.want() {
        tools.read(object, want.offset, want.len, buffer)?;
        finder.feed(buffer.as_slice())?;
    }
    let entry = finder
        .finish()
        .into_iter()
        .find(|entry| is_wanted(&entry.name))
        .ok_or_else(|| ReadError::Refused(format!("the archive has no member {SAMPLES}")))?;
    let header_len = LOCAL_LEN.min(len.saturating_sub(entry.offset) as usize);
    tools.read(object, entry.offset, header_len, buffer)?;
    tools.enter(Step::Decoding);
    let start = entry.data_offset(buffer.as_slice(), len)?;
    let range = start..start + entry.packed_bytes;
    Ok((entry, range))
}
