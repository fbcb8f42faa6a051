//! What is known of each sample: label, id, checksum.

use super::Header;
use crate::Error;
use crate::little_endian::{u32_at, u64_at};

/// Labels, ids and checksums of all samples. Parsing verifies the tables' own checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    header: Header,
    labels: Vec<i64>,
    ids: Vec<u64>,
    crcs: Vec<u32>,
}

impl Tables {
    /// Reads the tables from the bytes at [`Header::tail_span`].
    ///
    /// # Errors
    /// When `tail` has another length or its checksum is wrong.
    pub fn parse(header: &Header, tail: &[u8]) -> Result<Self, Error> {
        let span = header.tail_span();
        if tail.len() as u64 != span.len {
            return Err(Error::truncated("tensor shard: tables", span.offset, span.len, tail.len() as u64));
        }
        let (expected, found) = (header.tail_crc32c, crc32c::crc32c(tail));
        if expected != found {
            let what = "tensor shard".to_owned();
            return Err(Error::Checksum { what, offset: span.offset, part: "table", expected, found });
        }
        let n_samples = header.n_samples() as usize;
        let tables = &tail[header.padding()..];
        let (labels, rest) = tables.split_at(8 * n_samples);
        let (ids, crcs) = rest.split_at(8 * n_samples);
        Ok(Self {
            header: *header,
            labels: (0..n_samples).map(|n| u64_at(labels, 8 * n) as i64).collect(),
            ids: (0..n_samples).map(|n| u64_at(ids, 8 * n)).collect(),
            crcs: (0..n_samples).map(|n| u32_at(crcs, 4 * n)).collect(),
        })
    }

    pub fn labels(&self) -> &[i64] {
        &self.labels
    }

    /// Every sample's id, as its writer chose it.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Checks the bytes of sample `index`.
    ///
    /// # Errors
    /// When they are too few or too many, or are not those that were written.
    ///
    /// # Panics
    /// When there is no such sample.
    pub fn verify_sample(&self, index: u64, bytes: &[u8]) -> Result<(), Error> {
        let span = self.header.sample_span(index);
        let what = || format!("sample {index}");
        if bytes.len() as u64 != span.len {
            return Err(Error::truncated(what(), span.offset, span.len, bytes.len() as u64));
        }
        let (expected, found) = (self.crcs[index as usize], crc32c::crc32c(bytes));
        if expected != found {
            return Err(Error::Checksum { what: what(), offset: span.offset, part: "pixel", expected, found });
        }
        Ok(())
    }
}
