//! The records of a compressed shard during indexing: their locations, and the first payloads, to choose the features.

use std::iter;

use forebay_format::tfrecord::{Compression, EXPANDED_LIMIT, RecordStream, parse_frame};
use forebay_format::{Error as FormatError, MAX_SAMPLE_SIZE, Span};
use forebay_storage::ObjectReader;

pub(super) struct StreamedRecords<'a> {
    stream: RecordStream<ObjectReader<'a>>,
    spans: Vec<Span>,
    damage: Option<FormatError>,
    is_over: bool,
}

impl<'a> StreamedRecords<'a> {
    pub(super) fn new(reader: ObjectReader<'a>, compression: Compression) -> Self {
        let stream = RecordStream::new(reader, compression, EXPANDED_LIMIT);
        Self { stream, spans: Vec::new(), damage: None, is_over: false }
    }

    /// The payloads from here on, as they are requested; damaged or oversized records are skipped.
    pub(super) fn payloads(&mut self) -> impl Iterator<Item = Vec<u8>> {
        let mut frame = Vec::new();
        let next = move || {
            while !self.is_over {
                if let Some(span) = self.advance(Some(&mut frame))
                    && let Ok(record) = parse_frame(&frame, span.offset)
                {
                    return Some(record.payload.to_vec());
                }
            }
            None
        };
        iter::from_fn(next)
    }

    /// The locations of all records and the damage that ends them, if any.
    pub(super) fn finish(mut self) -> (Vec<Span>, Option<FormatError>) {
        while self.advance(None).is_some() {}
        // A broken stream cannot be decompressed later, so none of its records is usable.
        let spans = if self.stream.is_broken() { Vec::new() } else { self.spans };
        (spans, self.damage)
    }

    /// Moves to the next record, and reads it into `frame` if that is given and the record is not too large.
    fn advance(&mut self, frame: Option<&mut Vec<u8>>) -> Option<Span> {
        if self.is_over {
            return None;
        }
        let found = self.try_advance(frame).unwrap_or_else(|error| {
            self.damage = Some(error);
            None
        });
        self.is_over = found.is_none();
        self.spans.extend(found);
        found
    }

    fn try_advance(&mut self, frame: Option<&mut Vec<u8>>) -> Result<Option<Span>, FormatError> {
        let Some(span) = self.stream.next_span()? else { return Ok(None) };
        match frame {
            Some(frame) if span.len <= MAX_SAMPLE_SIZE => self.stream.read_frame(frame)?,
            Some(frame) => {
                frame.clear();
                self.stream.pass_over()?;
            }
            None => self.stream.pass_over()?,
        }
        Ok(Some(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_format::tfrecord::{append, compress};
    use forebay_storage::{Memory, Storage};
    use std::path::Path;

    fn with_records<T>(cut: usize, look: impl FnOnce(StreamedRecords<'_>) -> T) -> T {
        let mut shard = Vec::new();
        (0..5_u8).for_each(|n| append(&mut shard, &[n; 9]));
        let mut packed = compress(&shard, Compression::Gzip).unwrap();
        packed.truncate(packed.len() - cut);
        let memory = Memory::default();
        memory.insert("a", packed);
        let object = memory.open(Path::new("a")).unwrap();
        look(StreamedRecords::new(ObjectReader::new(object.as_ref()).unwrap(), Compression::Gzip))
    }

    #[test]
    fn payloads_that_were_looked_at_are_indexed_like_the_others() {
        for looked_at in [0, 2, 5] {
            let (payloads, (spans, damage)) = with_records(0, |mut records| {
                let payloads: Vec<_> = records.payloads().take(looked_at).collect();
                (payloads, records.finish())
            });
            assert_eq!(payloads, (0..looked_at as u8).map(|n| vec![n; 9]).collect::<Vec<_>>());
            assert!(damage.is_none());
            assert_eq!(spans, [0, 25, 50, 75, 100].map(|offset| Span { offset, len: 25 }));
        }
    }

    #[test]
    fn nothing_of_a_stream_that_was_cut_off_is_used() {
        let (spans, damage) = with_records(3, |records| records.finish());
        assert!(spans.is_empty() && damage.is_some());
    }
}
