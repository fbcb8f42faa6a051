//! HDF5 as DLIO makes it: `records` with all samples and a label of 0 for each. The HDF5 library lays out a file; the
//! values are written here, so a file may be split anywhere. A compressed file is made as a whole.
//!
//! When reading, the library reports the places of a file's values, which are then read as byte ranges, in pieces or
//! chunk by chunk.
//!
//! For this the library opens each file itself, once. The metadata it reads bypasses both the emulated device and the
//! count of bytes moved.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use forebay_format::hdf5::{Chunks, Index, Lies, Segment, Skeleton, Spec, compressed};
use forebay_storage::{Buffer, Object};
use forebay_workload::{Compression, Dataset, FileShape, Part};

use super::{DataFormat, Draft, Files, Known, OpenFiles, Piece, Proof, ReadError, Reader, Sink, Step, Tools, refused};
use crate::Result;

/// Number of files whose places of values are kept from epoch to epoch.
const MOST_KNOWN: usize = 1024;
/// Default size of a chunk.
const CHUNK_BYTES: u64 = 1 << 20;
/// Number of layouts kept; files of one size share one.
const KEPT: usize = 64;

struct Hdf5 {
    dataset: Dataset,
    laid_out: Mutex<HashMap<Spec, Arc<Skeleton>>>,
    known: Arc<Known<Index>>,
}

pub(super) fn new(dataset: &Dataset) -> Box<dyn DataFormat> {
    let known = Arc::new(Known::new(MOST_KNOWN));
    Box::new(Hdf5 { dataset: dataset.clone(), laid_out: Mutex::default(), known })
}

impl Hdf5 {
    fn spec(&self, file: &FileShape) -> Spec {
        let hdf5 = &self.dataset.hdf5;
        let n_sets = hdf5.n_dsets_per_record.max(1);
        let mut shape: Vec<u64> = std::iter::once(file.n_samples).chain(file.dims.iter().copied()).collect();
        shape[1] = (shape[1] / n_sets).max(1);
        let gzip = (self.dataset.compression == Compression::Gzip).then_some(self.dataset.compression_level);
        // A shape without the samples' side is the shape of one sample.
        let whole = |sides: &[u64], first: u64| match sides.len() + 1 == shape.len() {
            true => std::iter::once(first).chain(sides.iter().copied()).collect(),
            false => sides.to_vec(),
        };
        let max_shape = (!hdf5.max_shape.is_empty()).then(|| whole(&hdf5.max_shape, file.n_samples));
        let chunked = self.dataset.chunk_bytes.or((gzip.is_some() || max_shape.is_some()).then_some(CHUNK_BYTES));
        let chunk = match (hdf5.chunk_dims.is_empty(), chunked) {
            (false, _) => Some(whole(&hdf5.chunk_dims, 1)),
            (true, Some(bytes)) => Some(self.chunk_of(&shape, bytes)),
            (true, None) => None,
        };
        let chunk =
            chunk.map(|sides| sides.iter().zip(&shape).map(|(side, most)| (*side).min((*most).max(1))).collect());
        Spec { shape, n_sets, element: self.dataset.element, chunk, max_shape, gzip }
    }

    /// Part of one sample: a square of about this many bytes, or as close to a cube as the sides allow.
    fn chunk_of(&self, shape: &[u64], bytes: u64) -> Vec<u64> {
        let values = (bytes / self.dataset.element.bytes()).max(1) as f64;
        let side = values.powf(1.0 / (shape.len() - 1) as f64).ceil() as u64;
        std::iter::once(1).chain(shape[1..].iter().map(|most| side.clamp(1, (*most).max(1)))).collect()
    }

    fn skeleton(&self, spec: &Spec) -> std::result::Result<Arc<Skeleton>, forebay_format::Error> {
        let mut kept = self.laid_out.lock().expect("nobody panics while laying out a file");
        if let Some(skeleton) = kept.get(spec) {
            return Ok(Arc::clone(skeleton));
        }
        let skeleton = Arc::new(Skeleton::new(spec)?);
        if kept.len() == KEPT {
            kept.clear();
        }
        kept.insert(spec.clone(), Arc::clone(&skeleton));
        Ok(skeleton)
    }

    /// The length without compression; if the file cannot be laid out, the length of the values.
    fn stored_len(&self, piece: &Piece) -> u64 {
        let plain = Spec { gzip: None, ..self.spec(&piece.shape) };
        self.skeleton(&plain).map_or(piece.bytes(), |skeleton| skeleton.len)
    }

    fn is_compressed(&self) -> bool {
        self.dataset.compression == Compression::Gzip
    }
}

impl DataFormat for Hdf5 {
    fn check(&self) -> Result<()> {
        let shape = self.dataset.shape_of(Part::Train, 0);
        let n_sets = self.dataset.hdf5.n_dsets_per_record.max(1);
        if shape.dims.first().is_some_and(|side| !side.is_multiple_of(n_sets)) {
            let reason = "a sample's first dimension is not a multiple of it";
            return Err(refused("dataset.hdf5.num_dset_per_record", &n_sets.to_string(), reason));
        }
        let plain = Spec { gzip: None, ..self.spec(&shape) };
        let what = format!("chunks {:?} and maximum shape {:?} of {:?}", plain.chunk, plain.max_shape, plain.shape);
        self.skeleton(&plain).map_err(|_| refused("dataset.hdf5", &what, "not possible in HDF5"))?;
        Ok(())
    }

    fn proof(&self, piece: &Piece) -> Proof {
        if self.is_compressed() { Proof::Presence } else { Proof::Length(self.stored_len(piece)) }
    }

    fn room(&self, piece: &Piece) -> u64 {
        let stored = self.stored_len(piece);
        if self.is_compressed() { stored + stored / 1000 + 4096 } else { stored }
    }

    fn grain(&self, _piece: &Piece) -> Option<u64> {
        (!self.is_compressed()).then_some(1)
    }

    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let spec = self.spec(&piece.shape);
        if spec.gzip.is_some() {
            let mut values = |place: u64, out: &mut [u8]| piece.noise.fill(place, out);
            let mut out = |bytes: &[u8]| draft.write_all(bytes).map_err(forebay_format::Error::Io);
            return compressed(&spec, &mut values, &mut out).map_err(io::Error::other);
        }
        let skeleton = self.skeleton(&spec).map_err(io::Error::other)?;
        for (offset, segment) in &skeleton.segments {
            let len = match segment {
                Segment::Bytes(bytes) => bytes.len() as u64,
                Segment::Values(values) => values.end - values.start,
            };
            let (from, to) = (range.start.max(*offset), range.end.min(offset + len));
            if from >= to {
                continue;
            }
            match segment {
                Segment::Bytes(bytes) => draft.write_all(&bytes[(from - offset) as usize..(to - offset) as usize])?,
                Segment::Values(values) => draft.fill(to - from, piece.noise.from(values.start + from - offset))?,
            }
        }
        Ok(())
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        let (open, last, known) = (OpenFiles::default(), None, Arc::clone(&self.known));
        Box::new(Hdf5Reader { files, known, open, buffer: Buffer::default(), values: Vec::new(), last })
    }
}

struct Hdf5Reader {
    files: Arc<Files>,
    known: Arc<Known<Index>>,
    open: OpenFiles<(Box<dyn Object>, Arc<Index>)>,
    buffer: Buffer,
    /// The values of the last chunk read.
    values: Vec<u8>,
    /// The last chunk read: its file and offset.
    last: Option<(u32, u64)>,
}

impl Reader for Hdf5Reader {
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
        let each = out.len() / samples.len().max(1);
        let Self { files, known, open, buffer, values, last } = self;
        let (object, index) = open.get(file, || {
            let object = tools.open(files, file)?;
            let n_samples = files.dataset.n_samples_per_file.max(1);
            let find = || Ok(Index::of_file(&files.path_of(file), n_samples)?);
            Ok((object, known.get(file, find)?))
        })?;
        let mut chunked = Chunked { file, buffer, values, last };
        for (sample, place) in samples.map(u64::from).zip(out.chunks_mut(each.max(1))) {
            let mut rest = place;
            for set in &index.sets {
                let (now, later) = rest.split_at_mut(rest.len().min(set.sample_bytes() as usize));
                match &set.lies {
                    Lies::Nowhere => now.fill(0),
                    Lies::Contiguous(offset) => {
                        let start = offset + sample * set.sample_bytes();
                        let mut sink = Sink::new(now);
                        let range = start..start + set.sample_bytes();
                        tools.stream(object.as_ref(), range, (files.piece, false), chunked.buffer, |bytes| {
                            sink.take(bytes);
                            Ok(())
                        })?;
                        sink.finish();
                    }
                    Lies::Chunked(chunks) => chunked.read(object.as_ref(), chunks, sample, now, tools)?,
                }
                rest = later;
            }
            rest.fill(0);
        }
        Ok(())
    }
}

struct Chunked<'a> {
    file: u32,
    buffer: &'a mut Buffer,
    values: &'a mut Vec<u8>,
    last: &'a mut Option<(u32, u64)>,
}

impl Chunked<'_> {
    /// Reads every chunk with values of the sample; the last chunk read is not read again.
    fn read(
        &mut self,
        object: &dyn Object,
        chunks: &Chunks,
        sample: u64,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), ReadError> {
        out.fill(0);
        for chunk in chunks.of_sample(sample) {
            if *self.last != Some((self.file, chunk.offset)) {
                *self.last = None;
                tools.read(object, chunk.offset, chunk.len as usize, self.buffer)?;
                tools.enter(Step::Decoding);
                chunks.unfilter(chunk, self.buffer.as_slice(), self.values)?;
                *self.last = Some((self.file, chunk.offset));
            }
            chunks.place(chunk, self.values, sample, out);
        }
        Ok(())
    }
}
