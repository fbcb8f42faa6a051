//! The records of a shard that comes as a stream, compressed or not, one at a time.
//!
//! A compressed shard cannot be walked by offsets, and a small one may expand to any size. Here it is expanded as it is
//! walked: what is held is one record, and only where the caller wants that one.

use std::io::{self, BufRead, Read};

use super::expander::{Expanded, stream_error};
use super::records::Frame;
use super::{Compression, HEADER_LEN};
use crate::{Error, Span};

/// Walks the records of a stream. After an error it is over.
#[derive(Debug)]
pub struct RecordStream<R> {
    expanded: Expanded<R>,
    limit: u64,
    end: u64,
    index: u64,
    header: [u8; HEADER_LEN],
    /// Bytes of the current frame that have not been read.
    left: u64,
    is_broken: bool,
}

impl<R: BufRead> RecordStream<R> {
    /// Starts at the beginning of a shard that expands to at most `limit` bytes.
    pub fn new(reader: R, compression: Compression, limit: u64) -> Self {
        let expanded = Expanded::new(reader, compression);
        Self { expanded, limit, end: 0, index: 0, header: [0; HEADER_LEN], left: 0, is_broken: false }
    }

    /// The place of the next frame in the expanded shard, or `None` at its end. What is left of the frame before is passed
    /// over.
    ///
    /// # Errors
    /// When the stream or the frame's header is damaged or cut off, or the shard expands to more than the limit.
    pub fn next_span(&mut self) -> Result<Option<Span>, Error> {
        self.pass_over()?;
        let offset = self.end;
        let mut filled = 0;
        while filled < HEADER_LEN {
            match self.read(|expanded, header| expanded.read(&mut header[filled..]))? {
                0 if filled == 0 => return self.check_end().map(|()| None),
                0 => return Err(Error::truncated(self.name(), offset, HEADER_LEN as u64, filled as u64)),
                n => filled += n,
            }
        }
        let len = Frame { bytes: &self.header, offset, index: Some(self.index) }.frame_len()?;
        self.end = offset.saturating_add(len);
        if self.end > self.limit {
            return Err(Error::TooLarge { what: "expanded shard".to_owned(), limit: self.limit, found: self.end });
        }
        (self.left, self.index) = (len - HEADER_LEN as u64, self.index + 1);
        Ok(Some(Span { offset, len }))
    }

    /// Skips the rest of the current frame.
    ///
    /// # Errors
    /// When the stream is damaged or ends before the frame does.
    pub fn pass_over(&mut self) -> Result<(), Error> {
        let left = self.left;
        let passed = self.read(|expanded, _| io::copy(&mut expanded.take(left), &mut io::sink()))?;
        self.finish_frame(passed)
    }

    /// Replaces the content of `frame` by the frame whose place was given last, as [`parse_frame`](super::parse_frame) takes
    /// it. It can be read once.
    ///
    /// # Errors
    /// When the stream is damaged or ends before the frame does.
    pub fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<(), Error> {
        let left = self.left;
        frame.clear();
        frame.extend_from_slice(&self.header);
        let read = self.read(|expanded, _| expanded.take(left).read_to_end(frame))?;
        self.finish_frame(read as u64)
    }

    /// Whether the stream itself is damaged or cut off, rather than the records in it.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn finish_frame(&mut self, n: u64) -> Result<(), Error> {
        let missing = self.left - n;
        self.left = 0;
        if missing > 0 {
            self.index -= 1;
            let len = HEADER_LEN as u64 + n + missing;
            return Err(Error::truncated(self.name(), self.end - len, len, len - missing));
        }
        Ok(())
    }

    fn check_end(&mut self) -> Result<(), Error> {
        let end = self.read(|expanded, _| expanded.check_end())?;
        self.is_broken = end.is_err();
        end
    }

    fn read<T>(
        &mut self,
        read: impl FnOnce(&mut Expanded<R>, &mut [u8; HEADER_LEN]) -> io::Result<T>,
    ) -> Result<T, Error> {
        read(&mut self.expanded, &mut self.header).map_err(|error| {
            self.is_broken = true;
            stream_error(error, self.end)
        })
    }

    fn name(&self) -> String {
        format!("record {}", self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrecord::{append, compress, parse_frame};

    const KINDS: [Compression; 3] = [Compression::None, Compression::Gzip, Compression::Zlib];

    fn shard() -> Vec<u8> {
        let mut bytes = Vec::new();
        (0..9_u8).for_each(|n| append(&mut bytes, &vec![n; usize::from(n) * 40]));
        bytes
    }

    /// The payloads, every second one read and the others passed over, and how it ended.
    /// Records with their contents, where these are within the limit, and what ended the walk.
    type Walked = (Vec<(Span, Option<Vec<u8>>)>, Option<Error>);

    fn walk(bytes: &[u8], kind: Compression, limit: u64) -> Walked {
        let mut stream = RecordStream::new(bytes, kind, limit);
        let (mut found, mut frame) = (Vec::new(), Vec::new());
        loop {
            let span = match stream.next_span() {
                Ok(Some(span)) => span,
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            };
            let read = if found.len() % 2 == 0 { stream.read_frame(&mut frame) } else { stream.pass_over() };
            if let Err(error) = read {
                return (found, Some(error));
            }
            let payload = (found.len() % 2 == 0).then(|| parse_frame(&frame, span.offset).unwrap().payload.to_vec());
            found.push((span, payload));
        }
    }

    #[test]
    fn records_come_one_by_one_and_may_be_passed_over() {
        for kind in KINDS {
            let (found, error) = walk(&compress(&shard(), kind).unwrap(), kind, 1 << 20);
            assert!(error.is_none(), "{error:?}");
            assert_eq!(found.iter().map(|(span, _)| span.len).sum::<u64>(), shard().len() as u64);
            for (n, (_, payload)) in found.iter().enumerate() {
                assert_eq!(payload.as_ref().is_some(), n % 2 == 0);
                assert!(payload.as_ref().is_none_or(|payload| *payload == vec![n as u8; n * 40]));
            }
        }
    }

    #[test]
    fn a_cut_or_lengthened_stream_is_an_error() {
        for kind in [Compression::Gzip, Compression::Zlib] {
            let mut packed = compress(&shard(), kind).unwrap();
            for cut in 1..packed.len() {
                assert!(walk(&packed[..cut], kind, 1 << 20).1.is_some(), "{kind:?} cut at {cut}");
            }
            packed.push(0);
            assert!(walk(&packed, kind, 1 << 20).1.is_some(), "{kind:?} with one more byte");
        }
    }

    #[test]
    fn a_bomb_is_refused_by_its_first_header_or_by_the_limit() {
        let zeros = compress(&vec![0; 1 << 20], Compression::Gzip).unwrap();
        let (found, error) = walk(&zeros, Compression::Gzip, 1 << 30);
        assert!(found.is_empty() && matches!(error, Some(Error::Checksum { part: "length", .. })), "{error:?}");
        let mut huge = crate::tfrecord::frame_header(1 << 40).to_vec();
        huge.extend(vec![0; 1 << 20]);
        let (found, error) = walk(&compress(&huge, Compression::Zlib).unwrap(), Compression::Zlib, 1 << 30);
        assert!(found.is_empty() && matches!(error, Some(Error::TooLarge { .. })), "{error:?}");
    }

    #[test]
    fn a_record_that_the_shard_does_not_hold_is_truncated_and_the_stream_is_not_broken() {
        let mut cut = shard();
        cut.truncate(cut.len() - 5);
        let packed = compress(&cut, Compression::Gzip).unwrap();
        let mut stream = RecordStream::new(packed.as_slice(), Compression::Gzip, 1 << 20);
        for _ in 0..8 {
            stream.next_span().unwrap();
        }
        let last = stream.next_span().unwrap().unwrap();
        let error = stream.pass_over().unwrap_err().to_string();
        assert_eq!(
            error,
            format!("record 8 at offset {}: truncated: {} bytes needed, {} found", last.offset, last.len, last.len - 5)
        );
        assert!(!stream.is_broken());
    }
}
