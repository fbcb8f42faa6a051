//! Parquet: a sample is a row of the columns that are read, one behind the other. Nothing else of a file is touched.
//!
//! A thread goes on within a row group where it stopped. Rows before those it is given are passed over by the headers of their pages.

use std::ops::Range;
use std::sync::Arc;

use forebay_dataset::parquet_columns;
use forebay_format::parquet::{Footer, GroupReader, TAIL_BYTES, footer_range};
use forebay_pipeline::{Activity, SampleError};
use forebay_storage::{Buffer, Object};
use forebay_workload::Compression;

use super::files::Files;
use super::reader::{Known, Layout, Reader, Sink, Tools, Unit};

/// Rows are decoded in blocks of about so many bytes where they are not decoded in place.
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of one read of a column where the workload says nothing: all columns are read side by side, and a thread holds a
/// piece of each.
const PIECE: usize = 256 << 10;

/// Footers that are kept: one may be of megabytes, so no more than the threads of an accelerator have at work at a time.
const MOST_KNOWN: usize = 16;

/// Columns in row groups.
pub(super) struct Parquet {
    shared: Arc<Shared>,
    row_bytes: u64,
}

struct Shared {
    files: Arc<Files>,
    columns: Vec<String>,
    known: Known<Contents>,
}

/// What is known of a file: its footer, and where each group's first row is.
struct Contents {
    footer: Footer,
    starts: Vec<u64>,
}

impl Parquet {
    pub(super) fn new(files: Arc<Files>) -> Self {
        let columns = parquet_columns(&files.dataset, &files.shape_of(0));
        let read = || columns.iter().filter(|(_, is_read)| *is_read).map(|(column, _)| column);
        let row_bytes = read().map(|column| u64::from(column.width) * column.element.bytes()).sum();
        let columns = read().map(|column| column.name.clone()).collect();
        Self { shared: Arc::new(Shared { files, columns, known: Known::new(MOST_KNOWN) }), row_bytes }
    }
}

impl Layout for Parquet {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(ParquetReader {
            shared: Arc::clone(&self.shared),
            open: None,
            buffer: Buffer::default(),
            block: Vec::new(),
        })
    }

    fn unit(&self) -> Unit {
        match self.shared.files.dataset.parquet.row_group_rows {
            0 => Unit::File,
            rows => Unit::Group(rows.min(self.shared.files.dataset.n_samples_per_file)),
        }
    }

    fn sample_bytes(&self) -> Option<u64> {
        Some(self.row_bytes)
    }

    fn decodes(&self) -> bool {
        self.shared.files.dataset.compression != Compression::None
    }
}

struct ParquetReader {
    shared: Arc<Shared>,
    open: Option<Open>,
    buffer: Buffer,
    block: Vec<u8>,
}

/// A file, and the group in it that was read last.
struct Open {
    file: u32,
    object: Box<dyn Object>,
    known: Arc<Contents>,
    group: Option<(usize, GroupReader)>,
}

impl Reader for ParquetReader {
    fn read(
        &mut self,
        file: u32,
        samples: Range<u32>,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), SampleError> {
        let each = out.len() / samples.len().max(1);
        let mut rest = out;
        let mut row = u64::from(samples.start);
        let end = u64::from(samples.end);
        self.open(file, tools)?;
        while row < end {
            let (group, group_end) = self.locate(row)?;
            let n_rows = end.min(group_end) - row;
            let (now, later) = rest.split_at_mut(n_rows as usize * each);
            if let Err(error) = self.read_rows(group, row, each, now, tools) {
                self.open = None;
                return Err(error);
            }
            row += n_rows;
            rest = later;
        }
        Ok(())
    }
}

impl ParquetReader {
    fn open(&mut self, file: u32, tools: &mut Tools<'_>) -> Result<(), SampleError> {
        if self.open.as_ref().is_some_and(|open| open.file == file) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let object = tools.open(&shared.files, file)?;
        let buffer = &mut self.buffer;
        let known = shared.known.get(file, || {
            let len = object.len()?;
            let tail = (TAIL_BYTES as u64).min(len);
            tools.read(object.as_ref(), len - tail, tail as usize, buffer)?;
            let range = footer_range(buffer.as_slice(), len)?;
            tools.read(object.as_ref(), range.start, (range.end - range.start) as usize, buffer)?;
            tools.enter(Activity::Decoding);
            let footer = Footer::parse(buffer.as_slice(), range.start, Some(&shared.columns))?;
            let starts = footer.groups.iter().scan(0, |at, group| Some(std::mem::replace(at, *at + group.n_rows)));
            Ok(Contents { starts: starts.collect(), footer })
        })?;
        self.open = Some(Open { file, object, known, group: None });
        Ok(())
    }

    /// The group of a row, and the row that ends it.
    fn locate(&self, row: u64) -> Result<(usize, u64), SampleError> {
        let Contents { footer, starts } = self.opened().known.as_ref();
        if row >= footer.n_rows {
            let what = format!("row {row} is asked for of a file of {} rows", footer.n_rows);
            return Err(SampleError::Refused(what));
        }
        let group = starts.partition_point(|start| *start <= row) - 1;
        Ok((group, starts[group] + footer.groups[group].n_rows))
    }

    fn opened(&self) -> &Open {
        self.open.as_ref().expect("a file was opened")
    }

    /// Reads rows of one group from `row` on, the first `each` bytes of each into `out`.
    fn read_rows(
        &mut self,
        group: usize,
        row: u64,
        each: usize,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), SampleError> {
        let Open { object, known, group: at, .. } = self.open.as_mut().expect("a file was opened");
        let files = &self.shared.files;
        let within = row - known.starts[group];
        let n_rows = known.footer.groups[group].n_rows;
        let reached = |reader: &GroupReader| n_rows - reader.rows_left();
        if !matches!(at, Some((open, reader)) if *open == group && reached(reader) <= within) {
            *at = Some((group, GroupReader::new(&known.footer, group, files.transfer.unwrap_or(PIECE), files.verify)));
        }
        let (_, reader) = at.as_mut().expect("it is set");
        let buffer = &mut self.buffer;
        let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), SampleError> {
            tools.read(object.as_ref(), offset, len, buffer)?;
            tools.enter(Activity::Decoding);
            into.extend_from_slice(buffer.as_slice());
            Ok(())
        };
        reader.skip(within - reached(reader), &mut fetch)?;
        if each == reader.row_bytes() {
            reader.read(out, &mut fetch)?;
            return Ok(());
        }
        let row_bytes = reader.row_bytes().max(1);
        self.block.resize((BLOCK_BYTES / row_bytes).clamp(1, out.len().div_ceil(each.max(1))) * row_bytes, 0);
        let mut places = out.chunks_exact_mut(each.max(1));
        while places.len() > 0 {
            let wanted = places.len().saturating_mul(row_bytes).min(self.block.len());
            let n = reader.read(&mut self.block[..wanted], &mut fetch)?;
            for (bytes, place) in self.block.chunks_exact(row_bytes).take(n).zip(&mut places) {
                Sink::put(place, bytes);
            }
        }
        Ok(())
    }
}
