//! HDF5: the library says where a file's values lie, and they are read as ranges of bytes, in pieces or chunk by chunk.
//!
//! The library opens a file by itself, once, to find that out. What it reads then, the file's metadata, passes neither the
//! emulated device nor the count of bytes moved.

use std::ops::Range;
use std::sync::Arc;

use forebay_format::hdf5::{Chunks, Index, Lies};
use forebay_pipeline::{Activity, SampleError};
use forebay_storage::{Buffer, Object};
use forebay_workload::Compression;

use super::files::Files;
use super::reader::{Known, Layout, OpenFiles, Reader, Sink, Tools};

/// Files of which it is kept where their values lie, from epoch to epoch.
const MOST_KNOWN: usize = 1024;

/// Datasets of samples.
pub(super) struct Hdf5(Arc<Shared>);

struct Shared {
    files: Arc<Files>,
    known: Known<Index>,
}

impl Hdf5 {
    pub(super) fn new(files: Arc<Files>) -> Self {
        Self(Arc::new(Shared { files, known: Known::new(MOST_KNOWN) }))
    }
}

impl Layout for Hdf5 {
    fn reader(&self) -> Box<dyn Reader> {
        let (open, last) = (OpenFiles::default(), None);
        Box::new(Hdf5Reader { shared: Arc::clone(&self.0), open, buffer: Buffer::default(), values: Vec::new(), last })
    }

    fn decodes(&self) -> bool {
        self.0.files.dataset.compression != Compression::None
    }
}

struct Hdf5Reader {
    shared: Arc<Shared>,
    open: OpenFiles<(Box<dyn Object>, Arc<Index>)>,
    buffer: Buffer,
    /// The values of the chunk that was read last.
    values: Vec<u8>,
    /// Which that is: its file and where it begins there.
    last: Option<(u32, u64)>,
}

impl Reader for Hdf5Reader {
    fn read(
        &mut self,
        file: u32,
        samples: Range<u32>,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), SampleError> {
        let each = out.len() / samples.len().max(1);
        let shared = Arc::clone(&self.shared);
        let Self { open, buffer, values, last, .. } = self;
        let (object, index) = open.get(file, || {
            let object = tools.open(&shared.files, file)?;
            let n_samples = shared.files.dataset.n_samples_per_file.max(1);
            let find = || Ok(Index::of_file(&shared.files.path_of(file), n_samples)?);
            Ok((object, shared.known.get(file, find)?))
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
                        tools.stream(object.as_ref(), range, (shared.files.piece, false), chunked.buffer, |bytes| {
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

/// Where chunks are read to.
struct Chunked<'a> {
    file: u32,
    buffer: &'a mut Buffer,
    values: &'a mut Vec<u8>,
    last: &'a mut Option<(u32, u64)>,
}

impl Chunked<'_> {
    /// Reads every chunk that has values of the sample; one that was read last is not read again.
    fn read(
        &mut self,
        object: &dyn Object,
        chunks: &Chunks,
        sample: u64,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), SampleError> {
        out.fill(0);
        for chunk in chunks.of_sample(sample) {
            if *self.last != Some((self.file, chunk.offset)) {
                *self.last = None;
                tools.read(object, chunk.offset, chunk.len as usize, self.buffer)?;
                tools.enter(Activity::Decoding);
                chunks.unfilter(chunk, self.buffer.as_slice(), self.values)?;
                *self.last = Some((self.file, chunk.offset));
            }
            chunks.place(chunk, self.values, sample, out);
        }
        Ok(())
    }
}
