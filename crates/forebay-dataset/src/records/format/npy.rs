//! npy: a header, and the values of one array whose last dimension is the samples. It may be split anywhere.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use forebay_format::npy::write::header;
use forebay_storage::Buffer;
use forebay_workload::{Dataset, Element};

use super::array::ArraySink;
use super::{DataFormat, Draft, Files, Piece, Proof, ReadError, Reader, Tools, Unit, descr};

struct Npy {
    element: Element,
}

pub(super) fn new(dataset: &Dataset) -> Box<dyn DataFormat> {
    Box::new(Npy { element: dataset.element })
}

impl Npy {
    fn header(&self, piece: &Piece) -> Vec<u8> {
        header(descr(self.element), &piece.array_shape())
    }
}

impl DataFormat for Npy {
    fn proof(&self, piece: &Piece) -> Proof {
        Proof::Length(self.room(piece))
    }

    fn room(&self, piece: &Piece) -> u64 {
        self.header(piece).len() as u64 + piece.bytes()
    }

    fn grain(&self, _piece: &Piece) -> Option<u64> {
        Some(1)
    }

    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let header = self.header(piece);
        let len = header.len() as u64;
        if let Some(rest) = header.get(range.start.min(len) as usize..range.end.min(len) as usize) {
            draft.write_all(rest)?;
        }
        let values = range.start.max(len) - len..range.end.max(len) - len;
        draft.fill(values.end - values.start, piece.noise.from(values.start))
    }

    fn unit(&self) -> Unit {
        Unit::File
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        Box::new(NpyReader { files, buffer: Buffer::default() })
    }
}

struct NpyReader {
    files: Arc<Files>,
    buffer: Buffer,
}

impl Reader for NpyReader {
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
        let object = tools.open(&self.files, file)?;
        let len = object.len()?;
        let mut sink = ArraySink::new(self.files.dataset.n_samples_per_file, samples, out);
        tools.stream(object.as_ref(), 0..len, (self.files.piece, false), &mut self.buffer, |bytes| {
            Ok(sink.take(bytes)?)
        })?;
        Ok(sink.finish()?)
    }
}
