//! csv as pandas writes a frame: one row per sample, starting with its number, optionally gzipped.
//!
//! Reads plain, gzip and zip tables, always a whole file, because the offsets of rows are unknown.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use flate2::write::GzEncoder;
use forebay_format::csv::read::{Expand, Number, Parser, Size};
use forebay_format::csv::write as text;
use forebay_format::npz::read::Content;
use forebay_storage::{Buffer, Object};
use forebay_workload::{Compression, Dataset, Element};

use super::npz::find;
use super::{DataFormat, Draft, Files, Piece, Proof, ReadError, Reader, Tools, Unit};

/// Values that are turned into text at a time.
const VALUES: u64 = 16 << 10;

struct Csv {
    element: Element,
    /// Compression level; `None` for no compression.
    level: Option<u32>,
}

pub(super) fn new(dataset: &Dataset) -> Box<dyn DataFormat> {
    let level = (dataset.compression != Compression::None).then_some(dataset.compression_level);
    Box::new(Csv { element: dataset.element, level })
}

impl Csv {
    fn write_table(&self, piece: &Piece, out: &mut dyn Write) -> io::Result<()> {
        let n_columns = piece.shape.sample_bytes / self.element.bytes();
        let (mut line, mut bytes) = (Vec::new(), Vec::new());
        for from in (0..n_columns).step_by(VALUES as usize) {
            line.clear();
            text::header(from, (from + VALUES).min(n_columns), n_columns, &mut line);
            out.write_all(&line)?;
        }
        let mut noise = piece.noise.from(0);
        for sample in 0..piece.shape.n_samples {
            line.clear();
            text::begin_row(sample, &mut line);
            for from in (0..n_columns).step_by(VALUES as usize) {
                bytes.resize(((n_columns - from).min(VALUES) * self.element.bytes()) as usize, 0);
                noise(&mut bytes);
                text::values(self.element, &bytes, &mut line);
                out.write_all(&line)?;
                line.clear();
            }
            text::end_row(&mut line);
            out.write_all(&line)?;
        }
        Ok(())
    }
}

impl DataFormat for Csv {
    fn proof(&self, _piece: &Piece) -> Proof {
        match self.level {
            None => Proof::Tail(|tail| tail.ends_with(b"\n")),
            Some(_) => Proof::Presence,
        }
    }

    /// The longest text of every value; what is compressed is a third of it.
    fn room(&self, piece: &Piece) -> u64 {
        let longest = match self.element {
            Element::U8 => 4,
            Element::I8 => 5,
            Element::U16 | Element::I16 => 7,
            Element::U32 | Element::I32 => 12,
            Element::U64 | Element::I64 => 21,
            Element::F16 | Element::Bf16 | Element::F32 => 16,
            Element::F64 => 25,
        };
        let n_columns = piece.shape.sample_bytes / self.element.bytes();
        let names = n_columns * (1 + u64::from(n_columns.max(1).ilog10()) + 1);
        let values = n_columns * piece.shape.n_samples * longest + piece.shape.n_samples * 21;
        if self.level.is_some() { (names + values) / 2 } else { names + values }
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let Some(level) = self.level else { return self.write_table(piece, draft) };
        let mut packed = GzEncoder::new(draft, flate2::Compression::new(level.min(9)));
        self.write_table(piece, &mut packed)?;
        packed.finish().map(drop)
    }

    fn unit(&self) -> Unit {
        Unit::File
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        Box::new(CsvReader { files, buffer: Buffer::default() })
    }
}

struct CsvReader {
    files: Arc<Files>,
    buffer: Buffer,
}

impl Reader for CsvReader {
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
        let object = tools.open(&self.files, file)?;
        let mut table = Table::new(self.files.dataset.element, samples, out);
        match self.files.dataset.compression {
            Compression::Zip => self.read_zipped(object.as_ref(), &mut table, tools)?,
            other => self.read_text(object.as_ref(), other, &mut table, tools)?,
        }
        let size = table.finish()?;
        let expected = self.files.dataset.n_samples_per_file;
        if size.n_rows != expected {
            return Err(ReadError::Refused(format!("expected {expected} rows in the table, found {}", size.n_rows)));
        }
        Ok(())
    }
}

impl CsvReader {
    fn read_text(
        &mut self,
        object: &dyn Object,
        compression: Compression,
        table: &mut Table<'_>,
        tools: &mut Tools<'_>,
    ) -> Result<(), ReadError> {
        let len = object.len()?;
        let mut expand = if compression == Compression::Gzip { Expand::gzip() } else { Expand::Plain };
        tools.stream(object, 0..len, (self.files.piece, true), &mut self.buffer, |bytes| {
            Ok(expand.feed(bytes, |text| table.take(text))?)
        })?;
        Ok(expand.finish(|text| table.take(text))?)
    }

    fn read_zipped(
        &mut self,
        object: &dyn Object,
        table: &mut Table<'_>,
        tools: &mut Tools<'_>,
    ) -> Result<(), ReadError> {
        let (entry, range) = find(object, &mut self.buffer, tools, |_| true)?;
        let mut content = Content::new(&entry, self.files.verify);
        tools.stream(object, range, (self.files.piece, true), &mut self.buffer, |bytes| {
            Ok(content.feed(bytes, |text| table.take(text))?)
        })?;
        Ok(content.finish()?)
    }
}

/// Puts the values of some rows into a batch, as the workload's elements.
struct Table<'a> {
    parser: Parser,
    element: Element,
    wanted: Range<u64>,
    room: usize,
    out: &'a mut [u8],
}

impl<'a> Table<'a> {
    fn new(element: Element, wanted: Range<u32>, out: &'a mut [u8]) -> Self {
        out.fill(0);
        let room = out.len() / wanted.len().max(1);
        let wanted = u64::from(wanted.start)..u64::from(wanted.end);
        Self { parser: Parser::default(), element, wanted, room, out }
    }

    fn take(&mut self, text: &[u8]) -> Result<(), forebay_format::Error> {
        let Self { parser, element, wanted, room, out } = self;
        parser.feed(text, |row, column, number| put(*element, wanted, *room, out, (row, column), number))
    }

    fn finish(self) -> Result<Size, forebay_format::Error> {
        let Self { parser, element, wanted, room, out } = self;
        parser.finish(|row, column, number| put(element, &wanted, room, out, (row, column), number))
    }
}

fn put(element: Element, wanted: &Range<u64>, room: usize, out: &mut [u8], (row, column): (u64, u64), number: Number) {
    let width = element.bytes() as usize;
    let to = column as usize * width;
    if !wanted.contains(&row) || to >= room {
        return;
    }
    let bytes = encode(element, number);
    let n = width.min(room - to);
    out[(row - wanted.start) as usize * room + to..][..n].copy_from_slice(&bytes[..n]);
}

/// A number as the element is in memory, in the first of eight bytes.
fn encode(element: Element, number: Number) -> [u8; 8] {
    let float = match number {
        Number::Natural(n) => n as f64,
        Number::Negative(n) => n as f64,
        Number::Float(x) => x,
    };
    let whole = match number {
        Number::Natural(n) => n,
        Number::Negative(n) => n as u64,
        Number::Float(x) => x as i64 as u64,
    };
    let mut out = [0; 8];
    match element {
        Element::F64 => out = float.to_le_bytes(),
        Element::F32 => out[..4].copy_from_slice(&(float as f32).to_le_bytes()),
        Element::Bf16 => out[..2].copy_from_slice(&(float as f32).to_le_bytes()[2..]),
        Element::F16 => out[..2].copy_from_slice(&half(float as f32).to_le_bytes()),
        _ => out = whole.to_le_bytes(),
    }
    out
}

/// A float of 16 bits, cut off rather than rounded: the value was one before it was text.
fn half(x: f32) -> u16 {
    let bits = x.to_bits();
    let (sign, exponent, fraction) = ((bits >> 16) & 0x8000, ((bits >> 23) & 0xff) as i32 - 112, (bits >> 13) & 0x3ff);
    let rest = match exponent {
        1..=30 => ((exponent as u32) << 10) | fraction,
        -9..=0 => (0x400 | fraction) >> (1 - exponent),
        e if e < -9 => 0,
        _ if x.is_nan() => 0x7e00,
        _ => 0x7c00,
    };
    (sign | rest) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_elements_of_their_width() {
        assert_eq!(encode(Element::U8, Number::Natural(200))[..1], [200]);
        assert_eq!(encode(Element::I16, Number::Negative(-2))[..2], [0xfe, 0xff]);
        assert_eq!(encode(Element::F32, Number::Float(1.5))[..4], 1.5_f32.to_le_bytes());
        assert_eq!(encode(Element::Bf16, Number::Float(1.5))[..2], 0x3fc0_u16.to_le_bytes());
        for (x, bits) in [(1.0, 0x3c00), (-0.333_251_95, 0xb555), (5.960_464_5e-8, 1), (0.0, 0), (70000.0, 0x7c00)] {
            assert_eq!(half(x), bits, "{x}");
        }
    }

    #[test]
    fn the_rows_that_are_wanted_are_put_and_no_others() {
        let mut out = [9; 6];
        let mut table = Table::new(Element::U8, 1..3, &mut out);
        table.take(b",0,1\n0,1,2\n1,3,4\n2,5,").unwrap();
        table.take(b"6\n3,7,8\n").unwrap();
        assert_eq!(table.finish().unwrap(), Size { n_rows: 4, n_columns: 2 });
        assert_eq!(out, [3, 4, 0, 5, 6, 0]);
    }
}
