//! The samples of a decompressed shard, without those that may not be read.

use forebay_format::Span;
use forebay_format::tfrecord::{Compression, EXPANDED_LIMIT, Expander, RecordStream};

use crate::error::SampleError;

/// Samples of a shard, contiguous in memory.
pub(crate) struct Expanded {
    bytes: Vec<u8>,
    /// The offset of each sample in the decompressed shard and in `bytes`, in order.
    starts: Vec<(u64, usize)>,
}

impl Expanded {
    /// Decompresses a TFRecord shard; records of more than `max_sample` bytes are skipped.
    ///
    /// # Errors
    /// If the stream is damaged. A damaged record ends the shard, as it did during indexing.
    pub(crate) fn of_records(packed: &[u8], how: Compression, max_sample: u64) -> Result<Self, SampleError> {
        let mut stream = RecordStream::new(packed, how, EXPANDED_LIMIT);
        let (mut bytes, mut starts, mut frame) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let span = match stream.next_span() {
                Ok(Some(span)) => span,
                Err(error) if stream.is_broken() => return Err(error.into()),
                Ok(None) | Err(_) => return Ok(Self { bytes, starts }),
            };
            if span.len > max_sample {
                continue;
            }
            match stream.read_frame(&mut frame) {
                Err(error) if stream.is_broken() => return Err(error.into()),
                Err(_) => return Ok(Self { bytes, starts }),
                Ok(()) => {
                    starts.push((span.offset, bytes.len()));
                    bytes.extend_from_slice(&frame);
                }
            }
        }
    }

    /// Decompresses a shard whose samples lie at these spans, in order.
    ///
    /// # Errors
    /// If the stream is damaged.
    pub(crate) fn of_spans(
        packed: &[u8],
        how: Compression,
        spans: impl Iterator<Item = Span>,
    ) -> Result<Self, SampleError> {
        let mut expander = Expander::new(packed, how, EXPANDED_LIMIT);
        let (mut bytes, mut starts, mut piece) = (Vec::new(), Vec::new(), Vec::new());
        for span in spans {
            expander.read_at(span.offset, span.len as usize, &mut piece)?;
            starts.push((span.offset, bytes.len()));
            bytes.extend_from_slice(&piece);
        }
        expander.finish()?;
        Ok(Self { bytes, starts })
    }

    /// The sample of `len` bytes at an offset of the decompressed shard.
    pub(crate) fn sample(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = self.starts.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
        let start = self.starts[at].1;
        self.bytes.get(start..start.checked_add(len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_format::tfrecord::{append, compress};

    #[test]
    fn records_that_may_be_read_are_held_and_others_are_not() {
        let mut shard = Vec::new();
        for len in [10, 100_000, 20] {
            append(&mut shard, &vec![7; len]);
        }
        let packed = compress(&shard, Compression::Gzip).unwrap();
        let expanded = Expanded::of_records(&packed, Compression::Gzip, 1000).unwrap();
        assert_eq!(expanded.bytes.len(), 26 + 36);
        assert_eq!(expanded.sample(0, 26), Some(&shard[..26]));
        assert_eq!(expanded.sample(26, 100_016), None);
        assert_eq!(expanded.sample(100_042, 36), Some(&shard[100_042..]));
        assert!(Expanded::of_records(&packed[..packed.len() - 1], Compression::Gzip, 1000).is_err(), "truncated");
    }

    #[test]
    fn samples_at_given_places_are_held_and_nothing_between_them() {
        let plain: Vec<u8> = (0..=255).collect();
        let packed = compress(&plain, Compression::Gzip).unwrap();
        let spans = [Span { offset: 3, len: 5 }, Span { offset: 200, len: 7 }];
        let expanded = Expanded::of_spans(&packed, Compression::Gzip, spans.into_iter()).unwrap();
        assert_eq!(expanded.bytes.len(), 12);
        assert_eq!(expanded.sample(200, 7), Some(&plain[200..207]));
        assert_eq!(expanded.sample(8, 5), None);
        let cut = &packed[..packed.len() - 1];
        assert!(Expanded::of_spans(cut, Compression::Gzip, spans.into_iter()).is_err(), "truncated");
    }
}
