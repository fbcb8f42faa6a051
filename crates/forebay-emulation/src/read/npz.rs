//! Archives of arrays: the array `x`, stored or deflated, its CRC-32 verified on the way.

use std::ops::Range;
use std::sync::Arc;

use forebay_format::npz::read::{Content, Entry, Finder, LOCAL_LEN, Method};
use forebay_pipeline::{Activity, SampleError};
use forebay_storage::{Buffer, Object};
use forebay_workload::Compression;

use super::array::ArraySink;
use super::files::Files;
use super::reader::{Layout, Reader, Tools, Unit};

/// The member that holds the samples; `y`, their labels, is not read.
const SAMPLES: &str = "x.npy";

/// One archive a file.
pub(super) struct Npz(pub(super) Arc<Files>);

impl Layout for Npz {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(NpzReader { files: Arc::clone(&self.0), buffer: Buffer::default() })
    }

    fn unit(&self) -> Unit {
        Unit::File
    }

    fn decodes(&self) -> bool {
        self.0.dataset.compression != Compression::None
    }
}

struct NpzReader {
    files: Arc<Files>,
    buffer: Buffer,
}

impl Reader for NpzReader {
    fn read(
        &mut self,
        file: u32,
        samples: Range<u32>,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), SampleError> {
        let object = tools.open(&self.files, file)?;
        let (entry, range) = find(object.as_ref(), &mut self.buffer, tools, |name| name == SAMPLES)?;
        let mut sink = ArraySink::new(self.files.dataset.n_samples_per_file, samples, out);
        let mut content = Content::new(&entry, self.files.verify);
        let looks_at_all = self.files.verify || entry.method == Method::Deflated;
        tools.stream(object.as_ref(), range, (self.files.piece, looks_at_all), &mut self.buffer, |bytes| {
            Ok(content.feed(bytes, |bytes| sink.take(bytes))?)
        })?;
        content.finish()?;
        Ok(sink.finish()?)
    }
}

/// Finds a member and where its bytes lie.
pub(super) fn find(
    object: &dyn Object,
    buffer: &mut Buffer,
    tools: &mut Tools<'_>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(Entry, Range<u64>), SampleError> {
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
        .ok_or_else(|| SampleError::Refused(format!("the archive has no member {SAMPLES}")))?;
    let header_len = LOCAL_LEN.min(len.saturating_sub(entry.offset) as usize);
    tools.read(object, entry.offset, header_len, buffer)?;
    tools.enter(Activity::Decoding);
    let start = entry.data_offset(buffer.as_slice(), len)?;
    let range = start..start + entry.packed_bytes;
    Ok((entry, range))
}
