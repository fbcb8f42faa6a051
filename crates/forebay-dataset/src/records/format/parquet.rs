//! Parquet: columns of noise in row groups. A group is written front to back, so a file is made as a whole.
//!
//! A sample is a row of the columns that are read, concatenated. Nothing else of a file is touched. A thread continues
//! within a row group where it stopped. Earlier rows are skipped by their page headers.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use forebay_format::parquet::{Codec, Column, Footer, GroupReader, TAIL_BYTES, Writer, file_bytes, footer_range};
use forebay_storage::{Buffer, Object};
use forebay_workload::{Compression, Dataset, FileShape};

use super::{DataFormat, Draft, Files, Known, Piece, Proof, ReadError, Reader, Sink, Step, Tools, Unit};

/// Rows that are not decoded in place are decoded in blocks of about this many bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// Default bytes per read of a column. All columns are read side by side, and a thread holds a piece of each.
const PIECE: usize = 256 << 10;

/// Number of footers kept. A footer may have megabytes, so no more than an accelerator's threads use at a time.
const MOST_KNOWN: usize = 16;

/// The columns of a file, each with whether it is read. Without columns in the workload there is one, `data`, of a
/// sample's bytes.
fn parquet_columns(dataset: &Dataset, shape: &FileShape) -> Vec<(Column, bool)> {
    if dataset.parquet.columns.is_empty() {
        let element = forebay_format::Element::U8;
        let width = u32::try_from(shape.sample_bytes).unwrap_or(u32::MAX);
        return vec![(Column { name: "data".to_owned(), element, width }, true)];
    }
    let mut columns = Vec::new();
    for kind in &dataset.parquet.columns {
        for i in 0..kind.count {
            let name = if kind.count == 1 { kind.name.clone() } else { format!("{}{i}", kind.name) };
            let width = u32::try_from(kind.width).unwrap_or(u32::MAX);
            columns.push((Column { name, element: kind.element, width }, kind.is_read));
        }
    }
    columns
}

struct Parquet {
    dataset: Dataset,
    codec: Codec,
    /// Lengths of uncompressed files by number of rows and bytes per row: a footer of many groups takes a while to lay out.
    lengths: Mutex<HashMap<(u64, u64), u64>>,
    known: Arc<Known<Contents>>,
}

pub(super) fn new(dataset: &Dataset) -> Box<dyn DataFormat> {
    let codec = match dataset.compression {
        Compression::Gzip => Codec::Gzip(dataset.compression_level),
        Compression::Snappy => Codec::Snappy,
        _ => Codec::None,
    };
    let known = Arc::new(Known::new(MOST_KNOWN));
    Box::new(Parquet { dataset: dataset.clone(), codec, lengths: Mutex::default(), known })
}

impl Parquet {
    fn read_columns(&self, file: &FileShape) -> impl Iterator<Item = Column> {
        let columns = parquet_columns(&self.dataset, file);
        columns.into_iter().filter(|(_, is_read)| *is_read).map(|(column, _)| column)
    }

    fn columns(&self, piece: &Piece) -> Vec<(Column, forebay_workload::Element)> {
        let kinds = self.dataset.parquet.columns.iter().flat_map(|kind| (0..kind.count).map(|_| kind.element));
        let kinds = kinds.chain(std::iter::repeat(forebay_workload::Element::U8));
        parquet_columns(&self.dataset, &piece.shape).into_iter().map(|(column, _)| column).zip(kinds).collect()
    }

    fn group_rows(&self, piece: &Piece) -> u64 {
        match self.dataset.parquet.row_group_rows {
            0 => piece.shape.n_samples.max(1),
            rows => rows,
        }
    }

    /// The length without compression; if the file cannot be written, the length of the values.
    fn stored_len(&self, piece: &Piece) -> u64 {
        let key = (piece.shape.n_samples, piece.shape.sample_bytes);
        let mut lengths = self.lengths.lock().expect("nobody panics while laying out a footer");
        *lengths.entry(key).or_insert_with(|| {
            let columns: Vec<Column> = self.columns(piece).into_iter().map(|(column, _)| column).collect();
            file_bytes(&columns, piece.shape.n_samples, self.group_rows(piece)).unwrap_or(piece.bytes())
        })
    }
}

/// An error of the encoder or of the output.
struct Failed(io::Error);

impl From<forebay_format::Error> for Failed {
    fn from(error: forebay_format::Error) -> Self {
        Self(io::Error::other(error))
    }
}

impl DataFormat for Parquet {
    fn proof(&self, piece: &Piece) -> Proof {
        match self.codec {
            Codec::None => Proof::Length(self.stored_len(piece)),
            _ => Proof::Tail(|tail| tail.ends_with(b"PAR1")),
        }
    }

    fn room(&self, piece: &Piece) -> u64 {
        let stored = self.stored_len(piece);
        if self.codec == Codec::None { stored } else { stored + stored / 1000 + 4096 }
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let columns = self.columns(piece);
        let plain = columns.iter().map(|(column, _)| column.clone()).collect();
        let mut writer = Writer::new(plain, self.codec).map_err(io::Error::other)?;
        let mut out = |bytes: &[u8]| draft.write_all(bytes).map_err(Failed);
        let (mut left, mut place) = (piece.shape.n_samples, 0);
        while left > 0 {
            let n_rows = self.group_rows(piece).min(left);
            // Where each column of the group begins among all values of the file, on a word boundary, so that no float is cut.
            let mut bases = Vec::with_capacity(columns.len());
            for (column, _) in &columns {
                bases.push(place);
                place += (n_rows * row_bytes(column)).next_multiple_of(8);
            }
            let mut values = |i: usize, row: u64, values: &mut [u8]| {
                let (column, element) = &columns[i];
                piece.noise.of_element(*element).fill(bases[i] + row * row_bytes(column), values);
            };
            writer.write_group(n_rows, &mut values, &mut out).map_err(|failed| failed.0)?;
            left -= n_rows;
        }
        writer.finish(&mut out).map_err(|failed| failed.0)
    }

    fn unit(&self) -> Unit {
        match self.dataset.parquet.row_group_rows {
            0 => Unit::File,
            rows => Unit::Group(rows.min(self.dataset.n_samples_per_file)),
        }
    }

    fn sample_bytes(&self, first: &FileShape) -> Option<u64> {
        Some(self.read_columns(first).map(|column| row_bytes(&column)).sum())
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        let columns = self.read_columns(&files.shape_of(0)).map(|column| column.name).collect();
        let known = Arc::clone(&self.known);
        Box::new(ParquetReader { files, columns, known, open: None, buffer: Buffer::default(), block: Vec::new() })
    }
}

fn row_bytes(column: &Column) -> u64 {
    u64::from(column.width) * column.element.bytes()
}

/// Cached data of a file: its footer, and each group's first row.
struct Contents {
    footer: Footer,
    starts: Vec<u64>,
}

struct ParquetReader {
    files: Arc<Files>,
    columns: Vec<String>,
    known: Arc<Known<Contents>>,
    open: Option<Open>,
    buffer: Buffer,
    block: Vec<u8>,
}

/// A file and its last group read.
struct Open {
    file: u32,
    object: Box<dyn Object>,
    known: Arc<Contents>,
    group: Option<(usize, GroupReader)>,
}

impl Reader for ParquetReader {
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
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
    fn open(&mut self, file: u32, tools: &mut Tools<'_>) -> Result<(), ReadError> {
        if self.open.as_ref().is_some_and(|open| open.file == file) {
            return Ok(());
        }
        let object = tools.open(&self.files, file)?;
        let (buffer, columns) = (&mut self.buffer, &self.columns);
        let known = self.known.get(file, || {
            let len = object.len()?;
            let tail = (TAIL_BYTES as u64).min(len);
            tools.read(object.as_ref(), len - tail, tail as usize, buffer)?;
            let range = footer_range(buffer.as_slice(), len)?;
            tools.read(object.as_ref(), range.start, (range.end - range.start) as usize, buffer)?;
            tools.enter(Step::Decoding);
            let footer = Footer::parse(buffer.as_slice(), range.start, Some(columns))?;
            let starts = footer.groups.iter().scan(0, |at, group| Some(std::mem::replace(at, *at + group.n_rows)));
            Ok(Contents { starts: starts.collect(), footer })
        })?;
        self.open = Some(Open { file, object, known, group: None });
        Ok(())
    }

    /// The group of a row, and the row that ends it.
    fn locate(&self, row: u64) -> Result<(usize, u64), ReadError> {
        let Contents { footer, starts } = self.opened().known.as_ref();
        if row >= footer.n_rows {
            let what = format!("row {row} is out of range: the file has {} rows", footer.n_rows);
            return Err(ReadError::Refused(what));
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
    ) -> Result<(), ReadError> {
        let Open { object, known, group: at, .. } = self.open.as_mut().expect("a file was opened");
        let files = &self.files;
        let within = row - known.starts[group];
        let n_rows = known.footer.groups[group].n_rows;
        let reached = |reader: &GroupReader| n_rows - reader.rows_left();
        if !matches!(at, Some((open, reader)) if *open == group && reached(reader) <= within) {
            *at = Some((group, GroupReader::new(&known.footer, group, files.transfer.unwrap_or(PIECE), files.verify)));
        }
        let (_, reader) = at.as_mut().expect("it is set");
        let buffer = &mut self.buffer;
        let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), ReadError> {
            tools.read(object.as_ref(), offset, len, buffer)?;
            tools.enter(Step::Decoding);
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
