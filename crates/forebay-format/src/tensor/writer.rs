//! Building a shard.

use super::{HEADER_LEN, Header, Shape};
use crate::Error;

/// Collects what a shard's header and tables need while the caller writes the samples itself.
///
/// The file is complete only when the header is in place, so a streaming writer leaves a page of zeros for it, writes the
/// samples and the tail, and the header last.
#[derive(Debug, Clone)]
pub struct TableBuilder {
    shape: Shape,
    sample_bytes: u64,
    labels: Vec<u8>,
    ids: Vec<u8>,
    crcs: Vec<u8>,
}

impl TableBuilder {
    /// Starts a shard of samples of this shape.
    ///
    /// # Errors
    /// When the shape has no bytes or too many.
    pub fn new(shape: Shape) -> Result<Self, Error> {
        let sample_bytes = shape.sample_bytes()?;
        Ok(Self { shape, sample_bytes, labels: Vec::new(), ids: Vec::new(), crcs: Vec::new() })
    }

    /// Takes note of a sample.
    ///
    /// # Errors
    /// When it is not as long as the shape says.
    pub fn push(&mut self, pixels: &[u8], label: i64, id: u64) -> Result<(), Error> {
        if pixels.len() as u64 != self.sample_bytes {
            let expected = format!("{} bytes", self.sample_bytes);
            let what = format!("sample {}", self.n_samples());
            let offset = HEADER_LEN as u64 + self.n_samples() * self.sample_bytes;
            return Err(Error::invalid(what, offset, expected, format!("{} bytes", pixels.len())));
        }
        self.labels.extend_from_slice(&label.to_le_bytes());
        self.ids.extend_from_slice(&id.to_le_bytes());
        self.crcs.extend_from_slice(&crc32c::crc32c(pixels).to_le_bytes());
        Ok(())
    }

    /// How many samples there are so far.
    pub fn n_samples(&self) -> u64 {
        (self.crcs.len() / 4) as u64
    }

    /// The header, and the tail to be written after the last sample.
    ///
    /// # Errors
    /// When the file would be 2^64 bytes or longer.
    pub fn finish(self) -> Result<(Header, Vec<u8>), Error> {
        let mut header = Header::new(self.shape, self.n_samples(), 0)?;
        let mut tail = Vec::with_capacity(header.tail_span().len as usize);
        tail.resize(header.padding(), 0);
        [self.labels, self.ids, self.crcs].iter().for_each(|table| tail.extend_from_slice(table));
        header.tail_crc32c = crc32c::crc32c(&tail);
        Ok((header, tail))
    }
}

/// Builds a shard in memory.
///
/// ```
/// use forebay_format::tensor::{Shape, Shard, ShardWriter};
///
/// let mut writer = ShardWriter::new(Shape { height: 2, width: 2, channels: 3 })?;
/// writer.append(&[7; 12], 5, 1001)?;
/// let bytes = writer.finish()?;
///
/// let shard = Shard::parse(&bytes)?;
/// assert_eq!((shard.sample(0), shard.tables().labels()), (&[7; 12][..], &[5][..]));
/// # Ok::<(), forebay_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ShardWriter {
    tables: TableBuilder,
    bytes: Vec<u8>,
}

impl ShardWriter {
    /// Starts a shard of samples of this shape.
    ///
    /// # Errors
    /// When the shape has no bytes or too many.
    pub fn new(shape: Shape) -> Result<Self, Error> {
        Ok(Self { tables: TableBuilder::new(shape)?, bytes: vec![0; HEADER_LEN] })
    }

    /// Appends a sample.
    ///
    /// # Errors
    /// When it is not as long as the shape says. Nothing has been appended then.
    pub fn append(&mut self, pixels: &[u8], label: i64, id: u64) -> Result<(), Error> {
        self.tables.push(pixels, label, id)?;
        self.bytes.extend_from_slice(pixels);
        Ok(())
    }

    /// How many samples there are so far.
    pub fn n_samples(&self) -> u64 {
        self.tables.n_samples()
    }

    /// The length the file would have if it were finished now, give or take its padding of less than 4096 bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.n_samples() as usize * super::TABLE_BYTES_PER_SAMPLE as usize
    }

    pub fn is_empty(&self) -> bool {
        self.n_samples() == 0
    }

    /// The finished file.
    ///
    /// # Errors
    /// When it would be 2^64 bytes or longer.
    pub fn finish(mut self) -> Result<Vec<u8>, Error> {
        let (header, tail) = self.tables.finish()?;
        self.bytes.extend_from_slice(&tail);
        self.bytes[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        Ok(self.bytes)
    }
}
