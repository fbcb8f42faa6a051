//! The places of the records of a shard, found by reading twelve bytes of each.

use super::records::Frame;
use super::{FOOTER_LEN, HEADER_LEN};
use crate::{Error, Scanner, Span, Want};

/// Finds the frames of an uncompressed TFRecord shard. A span holds a whole frame, checksums included, as
/// [`parse_frame`](super::parse_frame) takes it.
#[derive(Debug, Clone)]
pub struct FrameScanner {
    at: u64,
    total_len: u64,
    index: u64,
    failed: bool,
}

impl FrameScanner {
    /// Starts at the beginning of a shard of `total_len` bytes.
    pub fn new(total_len: u64) -> Self {
        Self { at: 0, total_len, index: 0, failed: false }
    }

    fn locate(&self, bytes: &[u8]) -> Result<Span, Error> {
        let frame = Frame { bytes, offset: self.at, index: Some(self.index) };
        let rest = self.total_len - self.at;
        let smallest = (HEADER_LEN + FOOTER_LEN) as u64;
        if rest < smallest {
            return Err(Error::truncated(frame.name(), self.at, smallest, rest));
        }
        let len = frame.frame_len()?;
        if rest < len {
            return Err(Error::truncated(frame.name(), self.at, len, rest));
        }
        Ok(Span { offset: self.at, len })
    }
}

impl Scanner for FrameScanner {
    fn want(&self) -> Option<Want> {
        let rest = self.total_len - self.at;
        (rest > 0 && !self.failed).then(|| Want { offset: self.at, len: rest.min(HEADER_LEN as u64) as usize })
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<Option<Span>, Error> {
        if self.want().is_none() {
            return Ok(None);
        }
        let span = self.locate(bytes).inspect_err(|_| self.failed = true)?;
        self.at += span.len;
        self.index += 1;
        Ok(Some(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrecord::{append, parse_frame};

    fn scan(bytes: &[u8]) -> (Vec<Span>, Option<Error>) {
        let mut scanner = FrameScanner::new(bytes.len() as u64);
        let mut spans = Vec::new();
        while let Some(want) = scanner.want() {
            match scanner.feed(&bytes[want.offset as usize..][..want.len]) {
                Ok(span) => spans.extend(span),
                Err(error) => return (spans, Some(error)),
            }
        }
        (spans, None)
    }

    #[test]
    fn spans_cover_the_shard_and_parse() {
        let mut bytes = Vec::new();
        (0..5_u8).for_each(|n| append(&mut bytes, &vec![n; usize::from(n) * 100]));
        let (spans, error) = scan(&bytes);
        assert!(error.is_none());
        assert_eq!(spans.iter().map(|span| span.len).sum::<u64>(), bytes.len() as u64);
        for (n, span) in spans.iter().enumerate() {
            let frame = &bytes[span.offset as usize..][..span.len as usize];
            assert_eq!(parse_frame(frame, span.offset).unwrap().payload, vec![n as u8; n * 100]);
        }
    }

    #[test]
    fn a_shard_cut_anywhere_inside_a_record_is_an_error() {
        let mut bytes = Vec::new();
        append(&mut bytes, b"first");
        let boundary = bytes.len();
        append(&mut bytes, b"second");
        for cut in 1..bytes.len() {
            let (spans, error) = scan(&bytes[..cut]);
            assert_eq!(spans.len(), usize::from(cut >= boundary));
            assert_eq!(matches!(error, Some(Error::Truncated { .. })), cut != boundary, "cut at {cut}");
        }
    }

    #[test]
    fn a_failed_scan_wants_nothing_more() {
        let mut scanner = FrameScanner::new(100);
        assert!(scanner.feed(&[7; 12]).is_err());
        assert_eq!(scanner.want(), None);
        assert!(scanner.feed(&[7; 12]).unwrap().is_none());
    }
}
