//! The places of the samples of a shard, found by reading its headers.

use super::key_and_extension;
use super::path::is_shard_wide;
use super::walk::{Skipped, Step, Walk};
use crate::{Error, Scanner, Span, Want};

/// Finds the samples of a tar shard. A span reaches from a sample's first header to the end of its last part's padding, as
/// [`parse_sample`](super::parse_sample) takes it.
#[derive(Debug, Clone)]
pub struct SampleScanner {
    walk: Walk,
    /// The sample whose parts are being met.
    open: Option<(Vec<u8>, Span)>,
    left_out: Vec<Skipped>,
}

impl SampleScanner {
    /// Starts at the beginning of a shard of `total_len` bytes.
    pub fn new(total_len: u64) -> Self {
        Self { walk: Walk::new(0, total_len, true), open: None, left_out: Vec::new() }
    }

    /// Links and sparse files met so far, whose contents are not read.
    pub fn left_out(&self) -> &[Skipped] {
        &self.left_out
    }

    /// Offset up to which the shard was walked: after an error, where the damage is.
    pub fn at(&self) -> u64 {
        self.walk.at()
    }

    /// Adds a file to the open sample, or closes that one and opens the next.
    fn meet(&mut self, path: &[u8], header_offset: u64, end: u64) -> Option<Span> {
        let (key, _) = key_and_extension(path).filter(|_| !is_shard_wide(path))?;
        match &mut self.open {
            Some((open, span)) if open == key => {
                span.len = end - span.offset;
                None
            }
            _ => {
                let span = Span { offset: header_offset, len: end - header_offset };
                self.open.replace((key.to_owned(), span)).map(|(_, span)| span)
            }
        }
    }
}

impl Scanner for SampleScanner {
    fn want(&self) -> Option<Want> {
        self.walk.want()
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<Option<Span>, Error> {
        match self.walk.feed(bytes)? {
            Step::More => Ok(None),
            Step::Skipped(entry) => {
                self.left_out.push(entry);
                Ok(None)
            }
            Step::File(file) => Ok(self.meet(&file.path, file.header_offset, file.end)),
            Step::End => Ok(self.open.take().map(|(_, span)| span)),
        }
    }
}
