//! indexed_binary: a file of plain values and two index files. It may be split anywhere.
//!
//! Samples are contiguous; their offsets and sizes are in the two index files. They are read, or mapped. The index of a
//! quarter of a billion samples has gigabytes, so only the needed part of it is read.

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_format::Span;
use forebay_format::indexed::read::{NUMBER_LEN, spans};
use forebay_format::indexed::write::{OFFSETS, SIZES, offsets, sizes};
use forebay_storage::{Buffer, Object};
use forebay_units::PathText;
use forebay_workload::{Dataset, Format};

use super::{Beside, DataFormat, Draft, Files, OpenFiles, Piece, Proof, ReadError, Reader, Sink, Step, Tools};

/// Samples whose places are written at a time.
const SAMPLES: u64 = 16 << 10;

struct Indexed {
    /// Whether the data is mapped to be read; the index is read.
    mapped: bool,
}

pub(super) fn new(dataset: &Dataset) -> Box<dyn DataFormat> {
    Box::new(Indexed { mapped: dataset.format == Format::MmapIndexedBinary })
}

impl DataFormat for Indexed {
    fn proof(&self, piece: &Piece) -> Proof {
        Proof::Length(piece.bytes())
    }

    fn room(&self, piece: &Piece) -> u64 {
        piece.bytes()
    }

    fn grain(&self, _piece: &Piece) -> Option<u64> {
        Some(1)
    }

    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        draft.fill(range.end - range.start, piece.noise.from(range.start))
    }

    fn beside(&self, piece: &Piece) -> Vec<Beside> {
        let room = 8 * piece.shape.n_samples;
        [OFFSETS, SIZES]
            .map(|ending| Beside { path: format!("{}{ending}", piece.path), proof: Proof::Length(room), room })
            .into()
    }

    fn write_beside(&self, piece: &Piece, which: usize, draft: &mut Draft<'_>) -> io::Result<()> {
        let (n, bytes) = (piece.shape.n_samples, piece.shape.sample_bytes);
        let mut numbers = Vec::new();
        for from in (0..n).step_by(SAMPLES as usize) {
            let to = (from + SAMPLES).min(n);
            numbers.clear();
            match which {
                0 => offsets(from, to, bytes, &mut numbers),
                _ => sizes(to - from, bytes, &mut numbers),
            }
            draft.write_all(&numbers)?;
        }
        Ok(())
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        Box::new(IndexedReader {
            files,
            mapped: self.mapped,
            open: OpenFiles::default(),
            offsets: Buffer::default(),
            sizes: Buffer::default(),
            buffer: Buffer::default(),
        })
    }
}

struct IndexedReader {
    files: Arc<Files>,
    mapped: bool,
    open: OpenFiles<Opened>,
    offsets: Buffer,
    sizes: Buffer,
    buffer: Buffer,
}

struct Opened {
    data: Box<dyn Object>,
    len: u64,
    map: Option<memmap2::Mmap>,
    offsets: Box<dyn Object>,
    sizes: Box<dyn Object>,
}

impl Opened {
    fn open(files: &Files, file: u32, mapped: bool, tools: &mut Tools<'_>) -> Result<Self, ReadError> {
        let data = tools.open(files, file)?;
        let path = files.path_of(file);
        let beside = |ending: &str| {
            let mut name = path.clone().into_os_string();
            name.push(ending);
            Ok::<_, ReadError>(files.storage.open(&PathBuf::from(name))?)
        };
        let (offsets, sizes, len) = (beside(OFFSETS)?, beside(SIZES)?, data.len()?);
        let map = if mapped { data.map()? } else { None };
        if mapped && map.is_none() {
            let what = format!("{} cannot be mapped on {}", path.escaped(), files.storage.description());
            return Err(ReadError::Refused(what));
        }
        Ok(Self { data, len, map, offsets, sizes })
    }
}

impl Reader for IndexedReader {
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
        let Self { files, mapped, open, offsets, sizes, buffer } = self;
        let opened = open.get(file, || Opened::open(files, file, *mapped, tools))?;
        let (first, n) = (u64::from(samples.start), samples.len());
        tools.read(opened.offsets.as_ref(), first * NUMBER_LEN, n * NUMBER_LEN as usize, offsets)?;
        tools.read(opened.sizes.as_ref(), first * NUMBER_LEN, n * NUMBER_LEN as usize, sizes)?;
        let found = spans(offsets.as_slice(), sizes.as_slice(), first, opened.len)?;
        let room = out.len() / n.max(1);
        for (span, place) in found.iter().zip(out.chunks_mut(room.max(1))) {
            match &opened.map {
                Some(map) => touch(map, span, place, tools)?,
                None => stream(opened.data.as_ref(), span, files.piece, buffer, place, tools)?,
            }
        }
        Ok(())
    }
}

fn stream(
    data: &dyn Object,
    span: &Span,
    piece: usize,
    buffer: &mut Buffer,
    place: &mut [u8],
    tools: &mut Tools<'_>,
) -> Result<(), ReadError> {
    let mut sink = Sink::new(place);
    tools.stream(data, span.offset..span.offset + span.len, (piece, false), buffer, |bytes| {
        sink.take(bytes);
        Ok(())
    })?;
    sink.finish();
    Ok(())
}

/// Touches every page of a sample, so that all of it is read, and copies as much as the batch has space for.
///
/// The pages are first requested with a call that reports errors, because touching an unreadable page kills the process.
/// Only a file that becomes shorter between the two steps still does.
fn touch(map: &memmap2::Mmap, span: &Span, place: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
    tools.enter(Step::Reading);
    let (from, to) = (span.offset as usize, (span.offset + span.len) as usize);
    let Some(bytes) = map.get(from..to) else {
        return Err(ReadError::Refused(format!("the file ends before byte {to}, which its index refers to")));
    };
    let page = from - from % PAGE;
    match map.advise_range(memmap2::Advice::PopulateRead, page, to - page) {
        // Linux before 5.14 does not know this advice; then the pages are just touched.
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => {
            return Err(ReadError::Refused(format!("reading the mapped bytes {from} to {to}: {error}")));
        }
        _ => {}
    }
    Sink::put(place, bytes);
    let rest = bytes.get(place.len()..).unwrap_or_default();
    std::hint::black_box(rest.iter().step_by(PAGE).chain(rest.last()).fold(0_u8, |sum, byte| sum ^ byte));
    tools.count(span.len);
    Ok(())
}

/// Page size of mapped memory.
const PAGE: usize = 4096;
