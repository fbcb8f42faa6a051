//! Records out of and into a shard that is in memory.

use super::{FOOTER_LEN, HEADER_LEN, frame_header, masked_crc32c};
use crate::Error;
use crate::little_endian::{u32_at, u64_at};

/// One record of a shard, both of its checksums verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where its frame begins in the file.
    pub offset: u64,
    pub payload: &'a [u8],
}

/// Appends one framed record to a shard.
pub fn append(out: &mut Vec<u8>, payload: &[u8]) {
    out.reserve(HEADER_LEN + payload.len() + FOOTER_LEN);
    out.extend_from_slice(&frame_header(payload.len() as u64));
    out.extend_from_slice(payload);
    out.extend_from_slice(&masked_crc32c(payload).to_le_bytes());
}

/// Reads the one frame that `bytes` consist of, as a [`FrameScanner`](super::FrameScanner) located it.
///
/// # Errors
/// When `bytes` are shorter or longer than the frame, or when a checksum is wrong. `base_offset`, the frame's place in
/// the file, appears in the message.
pub fn parse_frame(bytes: &[u8], base_offset: u64) -> Result<Record<'_>, Error> {
    let frame = Frame { bytes, offset: base_offset, index: None };
    let record = frame.parse()?;
    let expected = HEADER_LEN + record.payload.len() + FOOTER_LEN;
    if bytes.len() != expected {
        return Err(Error::invalid(
            "record: frame length",
            base_offset,
            format!("{expected} bytes"),
            format!("{} bytes", bytes.len()),
        ));
    }
    Ok(record)
}

/// Iterates over the records of a whole shard. After an error it ends, since the next frame cannot be found.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    index: u64,
}

impl<'a> Records<'a> {
    /// Starts at the first record of an uncompressed shard.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, index: 0 }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let frame = Frame { bytes: rest, offset: self.at as u64, index: Some(self.index) };
        let record = frame.parse();
        self.index += 1;
        self.at = match &record {
            Ok(record) => self.at + HEADER_LEN + record.payload.len() + FOOTER_LEN,
            Err(_) => self.bytes.len(),
        };
        Some(record)
    }
}

/// Bytes that begin with a frame, and what to call it in a message.
pub(super) struct Frame<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
    pub(super) index: Option<u64>,
}

impl<'a> Frame<'a> {
    fn parse(&self) -> Result<Record<'a>, Error> {
        let available = self.bytes.len() as u64;
        let needed = self.frame_len()?;
        if available < needed {
            return Err(Error::truncated(self.name(), self.offset, needed, available));
        }
        let end = needed as usize - FOOTER_LEN;
        let payload = &self.bytes[HEADER_LEN..end];
        self.check("payload", payload, u32_at(self.bytes, end))?;
        Ok(Record { offset: self.offset, payload })
    }

    /// The length of the whole frame, from a header whose checksum has been verified.
    pub(super) fn frame_len(&self) -> Result<u64, Error> {
        let Some(header) = self.bytes.get(..HEADER_LEN) else {
            return Err(Error::truncated(self.name(), self.offset, HEADER_LEN as u64, self.bytes.len() as u64));
        };
        self.check("length", &header[..8], u32_at(header, 8))?;
        let payload_len = u64_at(header, 0);
        payload_len
            .checked_add((HEADER_LEN + FOOTER_LEN) as u64)
            .ok_or_else(|| Error::invalid(self.name(), self.offset, "a payload length below 2^64 - 16", payload_len))
    }

    fn check(&self, part: &'static str, bytes: &[u8], expected: u32) -> Result<(), Error> {
        let found = masked_crc32c(bytes);
        if found == expected {
            return Ok(());
        }
        Err(Error::Checksum { what: self.name(), offset: self.offset, part, expected, found })
    }

    pub(super) fn name(&self) -> String {
        self.index.map_or_else(|| "record".to_owned(), |index| format!("record {index}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shard(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        payloads.iter().for_each(|payload| append(&mut out, payload));
        out
    }

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        Records::new(bytes).map(|record| record.map(|record| record.payload.to_vec())).collect()
    }

    /// Written by TensorFlow 2.21: `tf.io.TFRecordWriter(path).write(b"forebay")`.
    const GOLDEN: &[u8] = b"\x07\0\0\0\0\0\0\0\xbb\xd7\x9f\x11forebay\x70\x28\xb7\x84";

    #[test]
    fn masked_checksum_agrees_with_the_published_crc32c_test_vector() {
        // RFC 3720, B.4: 32 zero bytes have the crc32c 0x8a9136aa.
        let expected = 0x8a91_36aa_u32.rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(masked_crc32c(&[0; 32]), expected);
    }

    #[test]
    fn a_record_is_written_as_tensorflow_writes_it() {
        assert_eq!(shard(&[b"forebay".to_vec()]), GOLDEN);
    }

    #[test]
    fn a_damaged_payload_is_named_with_its_record_and_offset() {
        let mut bytes = shard(&[b"one".to_vec(), b"two".to_vec()]);
        bytes[19 + 12] ^= 1;
        let error = Records::new(&bytes).nth(1).unwrap().unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("record 1 at offset 19: payload checksum: expected 0x"), "{text}");
    }

    #[test]
    fn a_length_near_the_end_of_the_number_range_is_refused() {
        let length = u64::MAX.to_le_bytes();
        let mut bytes = length.to_vec();
        bytes.extend_from_slice(&masked_crc32c(&length).to_le_bytes());
        assert!(matches!(Records::new(&bytes).next(), Some(Err(Error::Invalid { .. }))));
    }

    #[test]
    fn a_frame_with_bytes_after_it_is_refused() {
        let mut bytes = shard(&[b"one".to_vec()]);
        assert_eq!(parse_frame(&bytes, 40).unwrap(), Record { offset: 40, payload: b"one" });
        bytes.push(0);
        assert!(matches!(parse_frame(&bytes, 40), Err(Error::Invalid { offset: 40, .. })));
    }

    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_written_is_read_back(payloads in payloads()) {
            prop_assert_eq!(read(&shard(&payloads)).unwrap(), payloads);
        }

        #[test]
        fn a_truncated_shard_is_a_prefix_or_an_error(payloads in payloads()) {
            let bytes = shard(&payloads);
            for cut in 0..bytes.len() {
                match read(&bytes[..cut]) {
                    Ok(records) => prop_assert_eq!(&shard(&records), &bytes[..cut]),
                    Err(error) => prop_assert!(matches!(error, Error::Truncated { .. }), "cut at {}", cut),
                }
            }
        }

        #[test]
        fn any_flipped_bit_is_detected(payload in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut bytes = shard(std::slice::from_ref(&payload));
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(read(&bytes).is_err(), "bit {}", bit);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
