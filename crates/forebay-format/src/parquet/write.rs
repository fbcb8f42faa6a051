//! Writing: a row group at a time, a column at a time, a page at a time.

use super::page::{self, Header};
use super::thrift::Sink;
use super::{Codec, MAGIC, levels};
use crate::{Element, Error};

/// Bytes of values that a page is filled with, unless a row has more.
const PAGE_BYTES: u64 = 256 << 10;
/// Parquet's number of a type of any length.
const BYTE_ARRAY: i32 = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub element: Element,
    /// Values per row; more than 1 makes a list column, or a fixed-length byte column for 8-bit elements.
    pub width: u32,
}

/// How a column lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lay {
    /// Parquet's number of the type, and the length of a field of bytes.
    physical: i32,
    field_bytes: i32,
    /// Values of a row: 1, or those of a list.
    width: u64,
    is_list: bool,
    /// Bytes of a value in the file, and as it is given.
    stored: usize,
    given: usize,
}

impl Lay {
    fn of(column: &Column) -> Self {
        let (element, width) = (column.element, u64::from(column.width));
        let given = element.bytes() as usize;
        let plain = |physical, stored| Self { physical, field_bytes: 0, width, is_list: width > 1, stored, given };
        match element {
            Element::U8 | Element::I8 if width > 1 => {
                let bytes = column.width as usize;
                Self { physical: 7, field_bytes: bytes as i32, width: 1, is_list: false, stored: bytes, given: bytes }
            }
            Element::U8 | Element::I8 | Element::U16 | Element::I16 | Element::U32 | Element::I32 => plain(1, 4),
            Element::U64 | Element::I64 => plain(2, 8),
            Element::F32 => plain(4, 4),
            Element::F64 => plain(5, 8),
            Element::F16 | Element::Bf16 => Self { field_bytes: 2, ..plain(7, 2) },
        }
    }

    fn rows_of_a_page(&self) -> u64 {
        (PAGE_BYTES / (self.width * self.stored as u64)).max(1)
    }
}

#[derive(Debug, Clone, Copy)]
struct Placed {
    offset: u64,
    bytes: u64,
    expanded: u64,
    n_values: u64,
}

#[derive(Debug)]
pub struct Writer {
    columns: Vec<(Column, Lay)>,
    /// Names of the columns of text, which follow the others.
    texts: Vec<String>,
    codec: Codec,
    offset: u64,
    groups: Vec<(u64, Vec<Placed>)>,
    given: Vec<u8>,
    body: Vec<u8>,
}

impl Writer {
    /// A file of these columns.
    ///
    /// # Errors
    /// When there are none, or one has no values or more than fit into a page.
    pub fn new(columns: Vec<Column>, codec: Codec) -> Result<Self, Error> {
        let bad = columns.iter().find(|column| {
            let bytes = u64::from(column.width) * column.element.bytes().max(4);
            column.width == 0 || bytes > page::MAX_PAGE_BYTES / 2
        });
        if let Some(column) = bad {
            let what = format!("Parquet column {:?}", column.name);
            return Err(Error::invalid(what, 0, "from 1 value to 128 MiB a row", column.width));
        }
        if columns.is_empty() {
            return Err(Error::invalid("Parquet file", 0, "columns", "none"));
        }
        let columns = columns.into_iter().map(|column| (Lay::of(&column), column)).map(|(lay, column)| (column, lay));
        let columns = columns.collect();
        Ok(Self {
            columns,
            texts: Vec::new(),
            codec,
            offset: 0,
            groups: Vec::new(),
            given: Vec::new(),
            body: Vec::new(),
        })
    }

    /// Adds columns of text behind those of numbers; their row groups are written by [`Self::write_group_with_texts`].
    #[must_use]
    pub fn with_texts(self, names: &[&str]) -> Self {
        Self { texts: names.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    /// Like [`Self::write_group`]; `text` gives the text of column `.0`, counted from the first column of text, in row `.1` of the
    /// group.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_group_with_texts<'t, E: From<Error>>(
        &mut self,
        n_rows: u64,
        values: &mut dyn FnMut(usize, u64, &mut [u8]),
        text: &dyn Fn(usize, u64) -> &'t str,
        out: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.write_group(n_rows, values, out)?;
        for column in 0..self.texts.len() {
            let mut placed = Placed { offset: self.offset, bytes: 0, expanded: 0, n_values: n_rows };
            let mut row = 0;
            while row < n_rows {
                let first = row;
                self.body.clear();
                while row < n_rows && (self.body.len() as u64) < PAGE_BYTES {
                    let text = text(column, row);
                    self.body.extend((text.len() as u32).to_le_bytes());
                    self.body.extend_from_slice(text.as_bytes());
                    row += 1;
                }
                self.put_page(row - first, &mut placed, out)?;
            }
            self.offset += placed.bytes;
            let (_, chunks) = self.groups.last_mut().expect("the numbers of this group are written");
            chunks.push(placed);
        }
        Ok(())
    }

    /// Writes a row group. `values` fills in the values of column `.0` from row `.1` of the group on, little-endian, as
    /// many rows as fit; `out` takes the file's bytes in order.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_group<E: From<Error>>(
        &mut self,
        n_rows: u64,
        values: &mut dyn FnMut(usize, u64, &mut [u8]),
        out: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.begin(out)?;
        let mut chunks = Vec::with_capacity(self.columns.len());
        for column in 0..self.columns.len() {
            let lay = self.columns[column].1;
            let mut placed = Placed { offset: self.offset, bytes: 0, expanded: 0, n_values: n_rows * lay.width };
            let mut row = 0;
            while row < n_rows {
                let n = lay.rows_of_a_page().min(n_rows - row);
                self.fill_page(&lay, self.columns[column].0.element, n, &mut |given| values(column, row, given));
                self.put_page(n * lay.width, &mut placed, out)?;
                row += n;
            }
            self.offset += placed.bytes;
            chunks.push(placed);
        }
        self.groups.push((n_rows, chunks));
        Ok(())
    }

    fn begin<E>(&mut self, out: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.offset == 0 {
            out(MAGIC)?;
            self.offset = MAGIC.len() as u64;
        }
        Ok(())
    }

    /// Lays out a page's levels and values. Values that are stored as they are given are made in place.
    fn fill_page(&mut self, lay: &Lay, element: Element, n_rows: u64, values: &mut dyn FnMut(&mut [u8])) {
        let len = n_rows as usize * lay.width as usize * lay.given;
        self.body.clear();
        write_levels(&mut self.body, lay, n_rows);
        if lay.given == lay.stored {
            let at = self.body.len();
            self.body.resize(at + len, 0);
            values(&mut self.body[at..]);
        } else {
            self.given.resize(len, 0);
            values(&mut self.given);
            widen(element, &self.given, &mut self.body);
        }
    }

    fn put_page<E: From<Error>>(
        &self,
        n_values: u64,
        placed: &mut Placed,
        out: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let packed = if self.codec == Codec::None { None } else { Some(page::compress(self.codec, &self.body)?) };
        let body = packed.as_deref().unwrap_or(&self.body);
        let header = Header::write(n_values, body.len(), self.body.len(), crc32fast::hash(body));
        out(&header)?;
        out(body)?;
        placed.bytes += (header.len() + body.len()) as u64;
        placed.expanded += (header.len() + self.body.len()) as u64;
        Ok(())
    }

    /// Notes a row group without writing it, as if it were not compressed.
    fn count_group(&mut self, n_rows: u64) {
        self.offset = self.offset.max(MAGIC.len() as u64);
        let mut chunks = Vec::with_capacity(self.columns.len());
        for (_, lay) in &self.columns {
            let page = |n: u64| {
                let mut body = Vec::new();
                write_levels(&mut body, lay, n);
                let len = body.len() + (n * lay.width) as usize * lay.stored;
                (Header::write(n * lay.width, len, len, 0).len() + len) as u64
            };
            let full = lay.rows_of_a_page();
            let whole = if n_rows < full { 0 } else { n_rows / full * page(full) };
            let bytes = whole + if !n_rows.is_multiple_of(full) { page(n_rows % full) } else { 0 };
            chunks.push(Placed { offset: self.offset, bytes, expanded: bytes, n_values: n_rows * lay.width });
            self.offset += bytes;
        }
        self.groups.push((n_rows, chunks));
    }

    /// Writes the footer.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish<E>(mut self, out: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.begin(out)?;
        out(&self.footer())
    }

    fn footer(&self) -> Vec<u8> {
        let mut sink = Sink::default();
        sink.open();
        sink.i32(1, 1);
        self.write_schema(&mut sink);
        sink.i64(3, self.groups.iter().map(|(n_rows, _)| *n_rows as i64).sum());
        sink.list(4, 12, self.groups.len());
        for (n_rows, chunks) in &self.groups {
            self.write_group_place(&mut sink, *n_rows, chunks);
        }
        sink.string(6, "forebay");
        sink.close();
        let len = sink.bytes.len() as u32;
        sink.bytes.extend(len.to_le_bytes());
        sink.bytes.extend(MAGIC);
        sink.bytes
    }

    fn write_schema(&self, sink: &mut Sink) {
        let n_fields: usize = self.columns.iter().map(|(_, lay)| if lay.is_list { 3 } else { 1 }).sum();
        sink.list(2, 12, 1 + n_fields + self.texts.len());
        sink.open();
        sink.string(4, "schema");
        sink.i32(5, (self.columns.len() + self.texts.len()) as i32);
        sink.close();
        for (column, lay) in &self.columns {
            if lay.is_list {
                write_list_field(sink, &column.name);
            }
            let name = if lay.is_list { "element" } else { &column.name };
            write_leaf_field(sink, name, column.element, lay);
        }
        self.texts.iter().for_each(|name| write_text_field(sink, name));
    }

    fn write_group_place(&self, sink: &mut Sink, n_rows: u64, chunks: &[Placed]) {
        sink.open();
        sink.list(1, 12, chunks.len());
        let numbers = self.columns.iter().map(|(column, lay)| {
            let path =
                if lay.is_list { vec![column.name.as_str(), "list", "element"] } else { vec![column.name.as_str()] };
            (lay.physical, path)
        });
        let texts = self.texts.iter().map(|name| (BYTE_ARRAY, vec![name.as_str()]));
        for ((physical, path), placed) in numbers.chain(texts).zip(chunks) {
            sink.open();
            sink.i64(2, placed.offset as i64);
            sink.open_field(3);
            sink.i32(1, physical);
            sink.list(2, 5, 2);
            sink.int_item(page::PLAIN);
            sink.int_item(page::RUNS);
            sink.list(3, 8, path.len());
            path.iter().for_each(|part| sink.item(part));
            sink.i32(4, self.codec.code());
            sink.i64(5, placed.n_values as i64);
            sink.i64(6, placed.expanded as i64);
            sink.i64(7, placed.bytes as i64);
            sink.i64(9, placed.offset as i64);
            sink.close();
            sink.close();
        }
        sink.i64(2, chunks.iter().map(|placed| placed.expanded as i64).sum());
        sink.i64(3, n_rows as i64);
        sink.close();
    }
}

/// The length of a file that is not compressed: a function of its shape. `row_group_rows` of 0 are all rows.
///
/// # Errors
/// As [`Writer::new`].
pub fn file_bytes(columns: &[Column], n_rows: u64, row_group_rows: u64) -> Result<u64, Error> {
    let mut writer = Writer::new(columns.to_vec(), Codec::None)?;
    let rows = if row_group_rows == 0 { n_rows.max(1) } else { row_group_rows };
    for first in (0..n_rows).step_by(usize::try_from(rows).unwrap_or(usize::MAX)) {
        writer.count_group(rows.min(n_rows - first));
    }
    Ok(writer.offset.max(MAGIC.len() as u64) + writer.footer().len() as u64)
}

fn write_list_field(sink: &mut Sink, name: &str) {
    sink.open();
    sink.i32(3, 0);
    sink.string(4, name);
    sink.i32(5, 1);
    sink.i32(6, 3);
    sink.open_field(10);
    sink.open_field(3);
    sink.close();
    sink.close();
    sink.close();
    sink.open();
    sink.i32(3, 2);
    sink.string(4, "list");
    sink.i32(5, 1);
    sink.close();
}

fn write_leaf_field(sink: &mut Sink, name: &str, element: Element, lay: &Lay) {
    sink.open();
    sink.i32(1, lay.physical);
    if lay.field_bytes > 0 {
        sink.i32(2, lay.field_bytes);
    }
    sink.i32(3, 0);
    sink.string(4, name);
    if let Some((converted, bits, signed)) = integer(element).filter(|_| lay.field_bytes == 0) {
        sink.i32(6, converted);
        sink.open_field(10);
        sink.open_field(10);
        sink.byte(1, bits);
        sink.bool(2, signed);
        sink.close();
        sink.close();
    } else if element == Element::F16 {
        sink.open_field(10);
        sink.open_field(15);
        sink.close();
        sink.close();
    }
    sink.close();
}

fn write_text_field(sink: &mut Sink, name: &str) {
    sink.open();
    sink.i32(1, BYTE_ARRAY);
    sink.i32(3, 0);
    sink.string(4, name);
    // The old name and the new one of text in UTF-8.
    sink.i32(6, 0);
    sink.open_field(10);
    sink.open_field(1);
    sink.close();
    sink.close();
    sink.close();
}

/// Parquet's old name for a type of integers, its bits and whether it has a sign.
fn integer(element: Element) -> Option<(i32, u8, bool)> {
    Some(match element {
        Element::U8 => (11, 8, false),
        Element::U16 => (12, 16, false),
        Element::U32 => (13, 32, false),
        Element::U64 => (14, 64, false),
        Element::I8 => (15, 8, true),
        Element::I16 => (16, 16, true),
        Element::I32 => (17, 32, true),
        Element::I64 => (18, 64, true),
        _ => return None,
    })
}

fn write_levels(out: &mut Vec<u8>, lay: &Lay, n_rows: u64) {
    if !lay.is_list {
        return;
    }
    for write in [&|out: &mut Vec<u8>| levels::write_repetition(out, n_rows, lay.width) as (), &|out: &mut Vec<u8>| {
        levels::write_definition(out, n_rows * lay.width)
    }] as [&dyn Fn(&mut Vec<u8>); 2]
    {
        let at = out.len();
        out.extend([0; 4]);
        write(out);
        let len = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }
}

/// Small integers as those of 32 bits, which is the least that Parquet has.
fn widen(element: Element, given: &[u8], out: &mut Vec<u8>) {
    let wide = |value: &[u8]| match element {
        Element::U8 => i32::from(value[0]),
        Element::I8 => i32::from(value[0] as i8),
        Element::U16 => i32::from(u16::from_le_bytes([value[0], value[1]])),
        _ => i32::from(i16::from_le_bytes([value[0], value[1]])),
    };
    out.extend(given.chunks_exact(element.bytes() as usize).flat_map(|value| wide(value).to_le_bytes()));
}
