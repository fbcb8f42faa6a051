//! The `parquet` crate without arrow, given its bytes as a workload's reader would have to give them: copied from the file, a column's
//! chunk at a time.

use std::sync::{Arc, Mutex};

use anyhow::{Result, bail, ensure};
use bytes::{Buf, Bytes};
use forebay_format::Element;
use forebay_format::parquet::Codec;
use parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical};
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{GROUP_ROWS, N_GROUPS, N_READ, Table};

/// Without dictionary, statistics and offset index, in pages as long as ours.
pub fn write(table: &Table, codec: Codec, file: &mut Vec<u8>) -> Result<()> {
    file.clear();
    let compression = if codec == Codec::Snappy { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_compression(compression)
        .set_data_page_size_limit(256 << 10)
        .set_data_page_row_count_limit(1 << 20)
        .set_write_batch_size(64 << 10)
        .build();
    let mut writer = SerializedFileWriter::new(file, schema(table)?, Arc::new(properties))?;
    for group in 0..N_GROUPS {
        let mut columns = writer.next_row_group()?;
        let mut column = 0;
        while let Some(mut chunk) = columns.next_column()? {
            let len = GROUP_ROWS * table.columns[column].element.bytes();
            write_values(chunk.untyped(), table.values(column, group, 0, len))?;
            chunk.close()?;
            column += 1;
        }
        columns.close()?;
    }
    writer.close()?;
    Ok(())
}

fn write_values(writer: &mut ColumnWriter<'_>, bytes: &[u8]) -> Result<()> {
    match writer {
        ColumnWriter::FloatColumnWriter(writer) => writer.write_batch(&typed(bytes, f32::from_le_bytes), None, None)?,
        ColumnWriter::DoubleColumnWriter(writer) => {
            writer.write_batch(&typed(bytes, f64::from_le_bytes), None, None)?
        }
        ColumnWriter::Int32ColumnWriter(writer) => {
            writer.write_batch(&typed(bytes, |[byte]: [u8; 1]| i32::from(byte as i8)), None, None)?
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(writer) => {
            let shared = Bytes::copy_from_slice(bytes);
            let value = |i: usize| FixedLenByteArray::from(ByteArray::from(shared.slice(i * 2..i * 2 + 2)));
            writer.write_batch(&(0..bytes.len() / 2).map(value).collect::<Vec<_>>(), None, None)?
        }
        _ => bail!("the table has no such column"),
    };
    Ok(())
}

fn typed<T, const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|bytes| value(*bytes)).collect()
}

fn schema(table: &Table) -> Result<Arc<Type>> {
    let mut fields = Vec::new();
    for column in &table.columns {
        let (physical, converted, len) = match column.element {
            Element::F32 => (Physical::FLOAT, ConvertedType::NONE, -1),
            Element::F64 => (Physical::DOUBLE, ConvertedType::NONE, -1),
            Element::I8 => (Physical::INT32, ConvertedType::INT_8, -1),
            _ => (Physical::FIXED_LEN_BYTE_ARRAY, ConvertedType::NONE, 2),
        };
        let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::REQUIRED);
        fields.push(Arc::new(field.with_converted_type(converted).with_length(len).build()?));
    }
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

/// The bytes of the chunk at hand, and where they begin in the file.
struct Fetched(Mutex<(u64, Bytes)>, u64);

impl Length for Fetched {
    fn len(&self) -> u64 {
        self.1
    }
}

impl ChunkReader for Fetched {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let held = self.0.lock().expect("no holder panics");
        Ok(held.1.slice((start - held.0) as usize..).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let held = self.0.lock().expect("no holder panics");
        Ok(held.1.slice((start - held.0) as usize..).slice(..length))
    }
}

fn metadata(file: &[u8]) -> Result<ParquetMetaData> {
    let tail = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into()?) as usize;
    let footer = Bytes::copy_from_slice(&file[file.len() - 8 - tail..]);
    Ok(ParquetMetaDataReader::decode_metadata(&footer[..tail])?)
}

fn pages(file: &[u8], group: &RowGroupMetaData, column: usize) -> Result<SerializedPageReader<Fetched>> {
    let (start, len) = group.column(column).byte_range();
    let bytes = Bytes::copy_from_slice(&file[start as usize..(start + len) as usize]);
    let fetched = Arc::new(Fetched(Mutex::new((start, bytes)), file.len() as u64));
    Ok(SerializedPageReader::new(fetched, group.column(column), group.num_rows() as usize, None)?)
}

/// By the crate's column readers.
pub fn read(table: &Table, file: &[u8], rows: &mut [u8]) -> Result<()> {
    each_chunk(table, file, rows, |file, group, column, places| {
        let n_rows = group.num_rows() as usize;
        match get_column_reader(group.column(column).column_descr_ptr(), Box::new(pages(file, group, column)?)) {
            ColumnReader::FloatColumnReader(mut reader) => {
                let mut values = Vec::with_capacity(n_rows);
                reader.read_records(n_rows, None, None, &mut values)?;
                places.put(&values, |value| value.to_le_bytes());
            }
            ColumnReader::DoubleColumnReader(mut reader) => {
                let mut values = Vec::with_capacity(n_rows);
                reader.read_records(n_rows, None, None, &mut values)?;
                places.put(&values, |value| value.to_le_bytes());
            }
            ColumnReader::Int32ColumnReader(mut reader) => {
                let mut values = Vec::with_capacity(n_rows);
                reader.read_records(n_rows, None, None, &mut values)?;
                places.put(&values, |value| [*value as u8]);
            }
            ColumnReader::FixedLenByteArrayColumnReader(mut reader) => {
                let mut values = Vec::with_capacity(n_rows);
                reader.read_records(n_rows, None, None, &mut values)?;
                places.put(&values, |value| [value.data()[0], value.data()[1]]);
            }
            _ => bail!("the table has no such column"),
        }
        Ok(())
    })
}

/// By the crate's footer and pages; the plain values are taken out of them here.
pub fn read_pages(table: &Table, file: &[u8], rows: &mut [u8]) -> Result<()> {
    each_chunk(table, file, rows, |file, group, column, places| {
        let mut pages = pages(file, group, column)?;
        while let Some(page) = pages.get_next_page()? {
            let Page::DataPage { buf, encoding, .. } = page else { bail!("a page that is not written here") };
            ensure!(encoding == Encoding::PLAIN, "values are not plain");
            match table.columns[column].element {
                Element::F32 => places.put(buf.as_chunks::<4>().0, |value| *value),
                Element::F64 => places.put(buf.as_chunks::<8>().0, |value| *value),
                Element::F16 => places.put(buf.as_chunks::<2>().0, |value| *value),
                _ => places.put(buf.as_chunks::<4>().0, |value| [value[0]]),
            }
        }
        Ok(())
    })
}

/// Where the values of a column go in the rows of a group.
struct Places<'a> {
    rows: &'a mut [u8],
    stride: usize,
    at: usize,
}

impl Places<'_> {
    fn put<T, const N: usize>(&mut self, values: &[T], bytes: impl Fn(&T) -> [u8; N]) {
        for (value, row) in values.iter().zip(self.rows.chunks_exact_mut(self.stride)) {
            row[self.at..self.at + N].copy_from_slice(&bytes(value));
        }
    }
}

fn each_chunk(
    table: &Table,
    file: &[u8],
    rows: &mut [u8],
    mut read: impl FnMut(&[u8], &RowGroupMetaData, usize, &mut Places<'_>) -> Result<()>,
) -> Result<()> {
    let metadata = metadata(file)?;
    let stride = table.row_bytes();
    for (group, rows) in metadata.row_groups().iter().zip(rows.chunks_mut(GROUP_ROWS * stride)) {
        let mut at = 0;
        for column in 0..N_READ {
            read(file, group, column, &mut Places { rows, stride, at })?;
            at += table.columns[column].element.bytes();
        }
    }
    Ok(())
}
