//! The footer: which columns there are, and where each one's chunk of each row group lies.

use std::ops::Range;

use super::thrift::Reader;
use super::{Codec, MAGIC, schema};
use crate::Error;

pub use super::schema::Leaf;

/// Bytes at a file's end that say where the footer begins.
pub const TAIL_BYTES: usize = 8;

/// A footer larger than this is refused.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// What a file holds, as far as the chosen columns go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// The chosen columns, in the order they were asked for.
    pub leaves: Vec<Leaf>,
    /// The row groups, in the file's order.
    pub groups: Vec<Group>,
    pub n_rows: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub n_rows: u64,
    pub chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub offset: u64,
    pub len: u64,
    /// Values, not rows: a list column has several per row.
    pub n_values: u64,
    pub codec: Codec,
}

/// Where the footer lies, from a file's last [`TAIL_BYTES`] bytes and its length.
///
/// # Errors
/// When these bytes end no Parquet file, or one whose footer is encrypted.
pub fn footer_range(tail: &[u8], file_bytes: u64) -> Result<Range<u64>, Error> {
    let needed = (TAIL_BYTES + MAGIC.len()) as u64;
    if file_bytes < needed || tail.len() != TAIL_BYTES {
        return Err(Error::truncated("Parquet file", 0, needed, file_bytes));
    }
    let magic = &tail[4..];
    if magic == b"PARE" {
        return Err(Error::unsupported("Parquet files with an encrypted footer"));
    }
    if magic != MAGIC {
        let found = format!("a file that ends in {:02x?}", magic);
        return Err(Error::NotRecognised { expected: "Parquet, whose files end in PAR1", found });
    }
    let len = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if len > MAX_FOOTER_BYTES {
        return Err(Error::TooLarge { what: "Parquet footer".to_owned(), limit: MAX_FOOTER_BYTES, found: len });
    }
    let end = file_bytes - TAIL_BYTES as u64;
    let start = end.checked_sub(len).filter(|start| *start >= MAGIC.len() as u64);
    let start = start.ok_or_else(|| Error::truncated("Parquet footer", 0, len, end))?;
    Ok(start..end)
}

impl Footer {
    /// Reads a footer that begins at `base`. Columns are chosen by name; without a choice, all are.
    ///
    /// # Errors
    /// When the bytes are damaged, a chosen column is not there or of a kind that is not read, or a chunk lies outside the file.
    pub fn parse(bytes: &[u8], base: u64, columns: Option<&[String]>) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes, base);
        let mut fields = Vec::new();
        let mut n_rows = 0;
        let mut found = None;
        reader.fields(|reader, id, _| {
            match id {
                2 => fields = schema::fields(reader)?,
                3 => n_rows = reader.count()?,
                4 => {
                    let leaves = schema::choose(&fields, columns)?;
                    let groups = read_groups(reader, &leaves, base)?;
                    found = Some((leaves, groups));
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let (mut leaves, groups) = found.ok_or_else(|| reader.wrong("row groups", "none"))?;
        let sum = groups.iter().try_fold(0_u64, |sum, group| sum.checked_add(group.n_rows));
        if sum != Some(n_rows) {
            return Err(Error::invalid(
                "Parquet footer: rows of all groups",
                base,
                n_rows.to_string(),
                sum.unwrap_or(0),
            ));
        }
        set_widths(&mut leaves, &groups)?;
        Ok(Self { leaves: leaves.into_iter().map(|(_, leaf)| leaf).collect(), groups, n_rows })
    }

    /// Bytes of a row: the values of its chosen columns one after the other.
    pub fn row_bytes(&self) -> usize {
        self.leaves.iter().map(Leaf::row_bytes).fold(0, usize::saturating_add)
    }
}

fn read_groups(reader: &mut Reader<'_>, leaves: &[(usize, Leaf)], end: u64) -> Result<Vec<Group>, Error> {
    let (n_groups, _) = reader.list()?;
    let mut slots = vec![None; leaves.iter().map(|(ordinal, _)| ordinal + 1).max().unwrap_or(0)];
    for (slot, (ordinal, leaf)) in leaves.iter().enumerate() {
        if slots[*ordinal].replace(slot).is_some() {
            return Err(Error::invalid("Parquet columns", end, "every column once", format!("{:?} twice", leaf.name)));
        }
    }
    (0..n_groups).map(|_| read_group(reader, &slots, leaves.len(), end)).collect()
}

fn read_group(reader: &mut Reader<'_>, slots: &[Option<usize>], n_leaves: usize, end: u64) -> Result<Group, Error> {
    let mut n_rows = 0;
    let mut chunks = vec![None; n_leaves];
    reader.fields(|reader, id, _| {
        match id {
            1 => {
                let (n_columns, _) = reader.list()?;
                for ordinal in 0..n_columns {
                    match slots.get(ordinal).copied().flatten() {
                        Some(slot) => chunks[slot] = Some(read_chunk(reader)?.within(end)?),
                        None => reader.pass_struct()?,
                    }
                }
            }
            3 => n_rows = reader.count()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let chunks: Option<Vec<Chunk>> = chunks.into_iter().collect();
    let chunks = chunks.ok_or_else(|| reader.wrong("a chunk of every column", "fewer"))?;
    Ok(Group { n_rows, chunks })
}

/// A chunk as it is written down, not yet judged: those of columns that are not read may be of any kind.
#[derive(Debug, Default)]
struct Written {
    elsewhere: bool,
    codec: i32,
    n_values: u64,
    len: u64,
    data: u64,
    dictionary: Option<u64>,
}

impl Written {
    fn within(self, end: u64) -> Result<Chunk, Error> {
        if self.elsewhere {
            return Err(Error::unsupported("Parquet files whose columns lie in other files"));
        }
        let offset = self.dictionary.filter(|at| *at > 0).map_or(self.data, |at| at.min(self.data));
        if offset < MAGIC.len() as u64 || offset.checked_add(self.len).is_none_or(|last| last > end) {
            let found = format!("{} bytes from {offset} on", self.len);
            return Err(Error::invalid("Parquet column chunk", offset, format!("to lie before {end}"), found));
        }
        Ok(Chunk { offset, len: self.len, n_values: self.n_values, codec: Codec::of_code(self.codec)? })
    }
}

fn read_chunk(reader: &mut Reader<'_>) -> Result<Written, Error> {
    let mut written = Written::default();
    reader.fields(|reader, id, _| {
        match id {
            1 => {
                reader.binary()?;
                written.elsewhere = true;
            }
            3 => read_place(reader, &mut written)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(written)
}

fn read_place(reader: &mut Reader<'_>, written: &mut Written) -> Result<(), Error> {
    reader.fields(|reader, id, _| {
        match id {
            4 => written.codec = reader.i32()?,
            5 => written.n_values = reader.count()?,
            7 => written.len = reader.count()?,
            9 => written.data = reader.count()?,
            11 => written.dictionary = Some(reader.count()?),
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// A list's length is nowhere written: it is what the counts of values and rows say, the same in every group.
fn set_widths(leaves: &mut [(usize, Leaf)], groups: &[Group]) -> Result<(), Error> {
    for (slot, (_, leaf)) in leaves.iter_mut().enumerate() {
        for group in groups.iter().filter(|group| group.n_rows > 0) {
            let n_values = group.chunks[slot].n_values;
            let width = n_values / group.n_rows;
            let known = (leaf.width > 0).then_some(leaf.width as u64);
            let even = n_values == width * group.n_rows && width > 0 && u32::try_from(width).is_ok();
            if !even || known.is_some_and(|known| known != width) || (!leaf.is_list() && width != 1) {
                let found = format!("{n_values} values in {} rows", group.n_rows);
                let expected = format!("column {:?} to have as many values in every row", leaf.name);
                return Err(Error::invalid("Parquet column", group.chunks[slot].offset, expected, found));
            }
            leaf.width = width as usize;
        }
    }
    Ok(())
}
