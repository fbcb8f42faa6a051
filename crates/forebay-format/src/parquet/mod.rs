//! Parquet files of numbers: columns in row groups, of which a subset can be read without touching the others.
//!
//! A footer says where each column's *chunk* of each row group lies ([`Footer`]). A chunk is a sequence of pages; a
//! [`GroupReader`] decodes the chunks of the chosen columns page by page, in step, into rows: a row is the values of its
//! columns one after the other, little-endian. Only these chunks are asked for, in pieces of the caller's size.
//!
//! A column is a number per row, a list of equally many numbers in every row, or a field of bytes of a fixed length. Written
//! ([`Writer`]), values are plain, every page has a checksum, and lists are those of `pyarrow`, so that `float32` × 1024 opens there
//! as `list<float>`; 8-bit values come as fields of bytes, since a number of Parquet takes at least four. Columns of text can be written,
//! but not read.
//!
//! Read are plain and dictionary pages of both versions, as they are or compressed by snappy or gzip. Refused with their name
//! are null values, strings, nested columns, other encodings and other codecs.

mod chunk;
mod footer;
mod levels;
mod page;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod thrift;
mod write;

pub use chunk::Fetch;
pub use footer::{Chunk, Footer, Group, Leaf, TAIL_BYTES, footer_range};
pub use rows::GroupReader;
pub use write::{Column, Writer, file_bytes};

use crate::Error;

const MAGIC: &[u8; 4] = b"PAR1";

/// How the pages of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    None,
    Snappy,
    /// By gzip, at a level from 0 to 9.
    Gzip(u32),
}

impl Codec {
    fn code(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Snappy => 1,
            Self::Gzip(_) => 2,
        }
    }

    fn of_code(code: i32) -> Result<Self, Error> {
        const OTHERS: [&str; 5] = ["lzo", "brotli", "lz4", "zstd", "lz4_raw"];
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::Snappy),
            2 => Ok(Self::Gzip(6)),
            other => {
                let name = usize::try_from(other - 3).ok().and_then(|i| OTHERS.get(i)).copied();
                let name = name.map_or_else(|| format!("codec {other}"), str::to_owned);
                Err(Error::unsupported(format!("Parquet pages compressed by {name}; none, snappy and gzip are read")))
            }
        }
    }
}
