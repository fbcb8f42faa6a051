//! A shard in memory, or mapped into it.

use super::{Header, Tables};
use crate::Error;

/// A whole shard: header and tables verified, samples verified on request.
#[derive(Debug, Clone)]
pub struct Shard<'a> {
    header: Header,
    tables: Tables,
    bytes: &'a [u8],
}

impl<'a> Shard<'a> {
    /// Reads header and tables.
    ///
    /// # Errors
    /// When the file has another length than it was written with, or header or tables are damaged.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = Header::parse(bytes)?;
        header.check_len(bytes.len() as u64)?;
        let tables = Tables::parse(&header, &bytes[header.tail_span().offset as usize..])?;
        Ok(Self { header, tables, bytes })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The pixels of sample `index`, not verified.
    ///
    /// # Panics
    /// When there is no such sample.
    pub fn sample(&self, index: u64) -> &'a [u8] {
        let span = self.header.sample_span(index);
        &self.bytes[span.offset as usize..][..span.len as usize]
    }

    /// Verifies sample `index`.
    ///
    /// # Errors
    /// When its bytes are not those that were written.
    ///
    /// # Panics
    /// When there is no such sample.
    pub fn verify(&self, index: u64) -> Result<(), Error> {
        self.tables.verify_sample(index, self.sample(index))
    }
}
