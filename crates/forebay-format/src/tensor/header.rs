//! The first page of a shard.

use super::{HEADER_LEN, MAGIC, TABLE_BYTES_PER_SAMPLE, VERSION};
use crate::little_endian::{u32_at, u64_at};
use crate::{Error, Span};

const CRC_AT: usize = HEADER_LEN - 4;
/// The longest tables that are read: those of some thirteen million samples. They are held as a whole.
const MAX_TABLES_LEN: u64 = 256 << 20;

/// The size of every sample of a shard, in bytes of unsigned 8-bit values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    pub height: u32,
    pub width: u32,
    pub channels: u32,
}

impl Shape {
    /// The bytes of one sample.
    ///
    /// # Errors
    /// When they are none, or more than 2^40.
    pub fn sample_bytes(&self) -> Result<u64, Error> {
        const LIMIT: u64 = 1 << 40;
        let pixels = u64::from(self.height) * u64::from(self.width);
        let found = pixels.saturating_mul(u64::from(self.channels));
        match found {
            0 => Err(Error::invalid("tensor shard: shape", 16, "no side of zero", format!("{self:?}"))),
            1..=LIMIT => Ok(found),
            _ => Err(Error::TooLarge { what: "tensor shard: sample".to_owned(), limit: LIMIT, found }),
        }
    }
}

/// What the first page says: the shape of the samples and where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    shape: Shape,
    n_samples: u64,
    sample_bytes: u64,
    tables_at: u64,
    pub(super) tail_crc32c: u32,
}

impl Header {
    /// How many bytes of a file [`parse`](Self::parse) needs.
    pub const NEEDED_LEN: usize = HEADER_LEN;

    pub(super) fn new(shape: Shape, n_samples: u64, tail_crc32c: u32) -> Result<Self, Error> {
        let sample_bytes = shape.sample_bytes()?;
        let tables_at = n_samples
            .checked_mul(sample_bytes + TABLE_BYTES_PER_SAMPLE)
            .and_then(|len| len.checked_add(2 * HEADER_LEN as u64))
            .map(|_| (HEADER_LEN as u64 + n_samples * sample_bytes).next_multiple_of(HEADER_LEN as u64))
            .ok_or_else(|| {
                Error::invalid("tensor shard: number of samples", 32, "a file below 2^64 bytes", n_samples)
            })?;
        Ok(Self { shape, n_samples, sample_bytes, tables_at, tail_crc32c })
    }

    /// Reads the header from the beginning of a file.
    ///
    /// # Errors
    /// When the bytes are not a tensor shard's, are fewer than [`NEEDED_LEN`](Self::NEEDED_LEN), are damaged, or belong
    /// to a version or type that is not known here.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            let found = format!("\"{}\"", magic.escape_ascii());
            return Err(Error::NotRecognised { expected: "a tensor shard, which begins with FBTENSR1", found });
        }
        let Some(page) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(Error::truncated("tensor shard: header", 0, HEADER_LEN as u64, bytes.len() as u64));
        };
        let (expected, found) = (u32_at(page, CRC_AT), crc32c::crc32c(&page[..CRC_AT]));
        if expected != found {
            return Err(Error::Checksum {
                what: "tensor shard".to_owned(),
                offset: 0,
                part: "header",
                expected,
                found,
            });
        }
        Self::parse_verified(page)
    }

    fn parse_verified(page: &[u8; HEADER_LEN]) -> Result<Self, Error> {
        match (u32_at(page, 8), page[12], page[13]) {
            (VERSION, 0, 0) => {}
            (VERSION, kind, order) => {
                return Err(Error::unsupported(format!("tensor shard of type {kind} in order {order}")));
            }
            (version, _, _) => return Err(Error::unsupported(format!("tensor shard of version {version}"))),
        }
        let shape = Shape { height: u32_at(page, 16), width: u32_at(page, 20), channels: u32_at(page, 24) };
        let header = Self::new(shape, u64_at(page, 32), u32_at(page, 28))?;
        // Everything else follows from what was read; if the page says otherwise, another program wrote it.
        let canonical = header.to_bytes();
        match (0..HEADER_LEN).find(|&at| page[at] != canonical[at]) {
            None => Ok(header),
            Some(at) => Err(Error::invalid("tensor shard: header", at as u64, canonical[at].to_string(), page[at])),
        }
    }

    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut page = [0; HEADER_LEN];
        let mut put = |at: usize, field: &[u8]| page[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(16, &self.shape.height.to_le_bytes());
        put(20, &self.shape.width.to_le_bytes());
        put(24, &self.shape.channels.to_le_bytes());
        put(28, &self.tail_crc32c.to_le_bytes());
        put(32, &self.n_samples.to_le_bytes());
        put(40, &self.sample_bytes.to_le_bytes());
        put(48, &(HEADER_LEN as u64).to_le_bytes());
        put(56, &self.tables_at.to_le_bytes());
        put(64, &self.total_len().to_le_bytes());
        let crc = crc32c::crc32c(&page[..CRC_AT]);
        page[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        page
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// The bytes of one sample, which is also the distance from one to the next.
    pub fn sample_bytes(&self) -> u64 {
        self.sample_bytes
    }

    pub fn total_len(&self) -> u64 {
        self.tables_at + self.n_samples * TABLE_BYTES_PER_SAMPLE
    }

    /// Where sample `index` is. `n` samples in a row are `n` times as long.
    ///
    /// # Panics
    /// When there is no such sample.
    pub fn sample_span(&self, index: u64) -> Span {
        assert!(index < self.n_samples, "sample {index} of {}", self.n_samples);
        Span { offset: HEADER_LEN as u64 + index * self.sample_bytes, len: self.sample_bytes }
    }

    /// Where the tail is, which [`Tables::parse`](super::Tables::parse) takes.
    pub fn tail_span(&self) -> Span {
        let offset = HEADER_LEN as u64 + self.n_samples * self.sample_bytes;
        Span { offset, len: self.total_len() - offset }
    }

    /// The bytes of the tail before the tables.
    pub(super) fn padding(&self) -> usize {
        (self.tables_at - self.tail_span().offset) as usize
    }

    /// Checks the length of the file against the one it had when it was written, and that its tables can be held.
    ///
    /// # Errors
    /// When the file is shorter or longer, or has more samples than the tables of a shard may have.
    pub fn check_len(&self, file_len: u64) -> Result<(), Error> {
        let tables = self.tail_span().len;
        if tables > MAX_TABLES_LEN {
            let what = "tensor shard: tables".to_owned();
            return Err(Error::TooLarge { what, limit: MAX_TABLES_LEN, found: tables });
        }
        let total_len = self.total_len();
        if file_len < total_len {
            return Err(Error::truncated("tensor shard", 0, total_len, file_len));
        }
        if file_len > total_len {
            let found = format!("{} more bytes", file_len - total_len);
            return Err(Error::invalid("tensor shard", total_len, "the end of the file", found));
        }
        Ok(())
    }
}
