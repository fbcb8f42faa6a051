//! The files of an archive that is in memory.

use super::walk::{Step, Walk};
use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its path in the archive, which need not be UTF-8.
    pub path: Vec<u8>,
    /// Where its headers begin, those for a long path included.
    pub header_offset: u64,
    pub data_offset: u64,
    pub data: &'a [u8],
}

/// Iterates over the regular files of an archive. Ends after an error.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    base_offset: u64,
    walk: Walk,
}

impl<'a> Entries<'a> {
    /// Starts at the beginning of a whole archive. One that ends without a block of zeros yields an error there.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, base_offset: 0, walk: Walk::new(0, bytes.len() as u64, true) }
    }

    /// Starts at the beginning of a piece of an archive that was found at `base_offset` and ends with an entry.
    pub fn fragment(bytes: &'a [u8], base_offset: u64) -> Self {
        let end = base_offset.saturating_add(bytes.len() as u64);
        Self { bytes, base_offset, walk: Walk::new(base_offset, end, false) }
    }

    fn slice(&self, offset: u64, len: u64) -> &'a [u8] {
        &self.bytes[(offset - self.base_offset) as usize..][..len as usize]
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let want = self.walk.want()?;
            match self.walk.feed(self.slice(want.offset, want.len as u64)) {
                Ok(Step::More | Step::Skipped(_)) => {}
                Ok(Step::End) => return None,
                Ok(Step::File(file)) => {
                    let data = self.slice(file.data_offset, file.size);
                    let (header_offset, data_offset) = (file.header_offset, file.data_offset);
                    return Some(Ok(Entry { path: file.path, header_offset, data_offset, data }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
