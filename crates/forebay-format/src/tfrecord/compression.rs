//! Whole-shard compression as `tf.io.TFRecordOptions(compression_type=…)` does it.

use std::io::{Read, Write};

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use super::{HEADER_LEN, masked_crc32c};
use crate::Error;
use crate::little_endian::u32_at;

/// How a whole shard is compressed. TFRecord does not say so in the file; the reader has to know or [`sniff`].
///
/// [`sniff`]: Compression::sniff
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    /// One or more gzip members.
    Gzip,
    Zlib,
}

impl Compression {
    /// Tells from the first bytes of a shard (twelve are enough).
    ///
    /// A record's length may happen to look like a gzip or zlib magic number, so a valid frame header goes first.
    pub fn sniff(head: &[u8]) -> Self {
        let framed = head.len() >= HEADER_LEN && masked_crc32c(&head[..8]) == u32_at(head, 8);
        match head {
            _ if framed => Self::None,
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [cmf, flags, ..] if is_zlib_header(*cmf, *flags) => Self::Zlib,
            _ => Self::None,
        }
    }
}

/// RFC 1950: method 8 (deflate), a window of at most 32 KiB, no dictionary, and a header divisible by 31.
fn is_zlib_header(cmf: u8, flags: u8) -> bool {
    cmf & 0x0f == 8 && cmf >> 4 <= 7 && flags & 0x20 == 0 && (u16::from(cmf) << 8 | u16::from(flags)).is_multiple_of(31)
}

/// Bytes that are compressed between two questions whether to go on: some 30 ms of work.
const PIECE: usize = 1 << 20;

/// Compresses a whole shard. The same input gives the same bytes (a gzip header carries no time).
///
/// # Errors
/// Never in practice: the encoders write to memory.
pub fn compress(bytes: &[u8], compression: Compression) -> Result<Vec<u8>, Error> {
    compress_while(bytes, compression, &|| true).map(Option::unwrap_or_default)
}

/// The same bytes, asking before each of its pieces whether to go on; `None` when not.
///
/// # Errors
/// As [`compress`].
pub fn compress_while(
    bytes: &[u8],
    compression: Compression,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<Vec<u8>>, Error> {
    let level = flate2::Compression::default();
    let feed = |encoder: &mut dyn Write| -> std::io::Result<bool> {
        for piece in bytes.chunks(PIECE) {
            if !goes_on() {
                return Ok(false);
            }
            encoder.write_all(piece)?;
        }
        Ok(true)
    };
    let packed = match compression {
        Compression::None => Ok(Some(bytes.to_vec())),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            feed(&mut encoder).and_then(|is_whole| encoder.finish().map(|packed| is_whole.then_some(packed)))
        }
        Compression::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            feed(&mut encoder).and_then(|is_whole| encoder.finish().map(|packed| is_whole.then_some(packed)))
        }
    };
    packed.map_err(|error| Error::invalid("compressed shard", 0, "bytes that can be compressed", error))
}

/// Expands a whole shard of at most `limit` expanded bytes.
///
/// # Errors
/// When the stream is damaged, cut off, followed by other bytes, or larger than `limit`.
pub fn decompress(bytes: &[u8], compression: Compression, limit: u64) -> Result<Vec<u8>, Error> {
    let mut rest = bytes;
    let unpacked = match compression {
        Compression::None => read_bounded(&mut rest, limit),
        Compression::Gzip => read_bounded(MultiGzDecoder::new(&mut rest), limit),
        Compression::Zlib => read_bounded(ZlibDecoder::new(&mut rest), limit),
    };
    let consumed = (bytes.len() - rest.len()) as u64;
    let unpacked = unpacked.map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::truncated("compressed shard", 0, consumed + 1, consumed),
        _ => Error::invalid("compressed shard", consumed, "a valid stream", error),
    })?;
    if unpacked.len() as u64 > limit {
        return Err(Error::TooLarge { what: "expanded shard".to_owned(), limit, found: unpacked.len() as u64 });
    }
    if !rest.is_empty() {
        return Err(Error::invalid(
            "compressed shard",
            consumed,
            "the end of the file",
            format!("{} more bytes", rest.len()),
        ));
    }
    Ok(unpacked)
}

/// The first bytes of what a shard expands to, at most `most` of them, from its own first bytes alone. Damage ends them.
pub fn expand_start(head: &[u8], compression: Compression, most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    // What was expanded before the input ended, or an error, is in `out` all the same.
    let _ = match compression {
        Compression::None => head.take(most as u64).read_to_end(&mut out),
        Compression::Gzip => MultiGzDecoder::new(head).take(most as u64).read_to_end(&mut out),
        Compression::Zlib => ZlibDecoder::new(head).take(most as u64).read_to_end(&mut out),
    };
    out
}

/// Reads one byte past the limit at most, so that reaching it can be told from exceeding it.
fn read_bounded(reader: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(limit.saturating_add(1)).read_to_end(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrecord::append;
    use proptest::prelude::*;

    const KINDS: [Compression; 3] = [Compression::None, Compression::Gzip, Compression::Zlib];

    fn shard() -> Vec<u8> {
        let mut bytes = Vec::new();
        (0..20_u8).for_each(|n| append(&mut bytes, &[n; 300]));
        bytes
    }

    #[test]
    fn each_kind_is_recognised_by_its_first_bytes() {
        for kind in KINDS {
            assert_eq!(Compression::sniff(&compress(&shard(), kind).unwrap()[..12]), kind);
        }
        assert_eq!(Compression::sniff(&[]), Compression::None);
    }

    #[test]
    fn a_record_whose_length_looks_like_gzip_is_not_taken_for_it() {
        let mut bytes = Vec::new();
        append(&mut bytes, &vec![0; 0x08_8b1f]);
        assert_eq!(bytes[..3], [0x1f, 0x8b, 8]);
        assert_eq!(Compression::sniff(&bytes[..12]), Compression::None);
    }

    #[test]
    fn compressing_in_pieces_gives_the_same_bytes_and_can_be_stopped() {
        let bytes: Vec<u8> = (0..3 * PIECE as u32 + 17).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut whole = GzEncoder::new(Vec::new(), flate2::Compression::default());
        whole.write_all(&bytes).unwrap();
        assert!(compress(&bytes, Compression::Gzip).unwrap() == whole.finish().unwrap());
        for kind in [Compression::Gzip, Compression::Zlib] {
            let n_asked = std::cell::Cell::new(0);
            let goes_on = || n_asked.replace(n_asked.get() + 1) < 2;
            assert_eq!(compress_while(&bytes, kind, &goes_on).unwrap(), None);
            assert_eq!(n_asked.get(), 3, "asked before each piece, and not again");
        }
    }

    #[test]
    fn expansion_beyond_the_limit_is_refused_and_up_to_it_is_not() {
        let plain = vec![0; 100_000];
        for kind in KINDS {
            let packed = compress(&plain, kind).unwrap();
            assert_eq!(decompress(&packed, kind, 100_000).unwrap(), plain);
            assert!(matches!(decompress(&packed, kind, 99_999), Err(Error::TooLarge { limit: 99_999, .. })));
        }
    }

    #[test]
    fn the_start_is_expanded_from_the_first_bytes_alone() {
        let plain = shard();
        for kind in KINDS {
            let packed = compress(&plain, kind).unwrap();
            let start = expand_start(&packed[..packed.len().min(200)], kind, 12);
            assert_eq!(start, plain[..12], "{kind:?}");
            assert_eq!(expand_start(&packed[..1], kind, 12).len(), usize::from(kind == Compression::None));
        }
    }

    #[test]
    fn a_cut_or_lengthened_stream_is_an_error() {
        for kind in [Compression::Gzip, Compression::Zlib] {
            let mut packed = compress(&shard(), kind).unwrap();
            for cut in 1..packed.len() {
                assert!(decompress(&packed[..cut], kind, 1 << 20).is_err(), "{kind:?} cut at {cut}");
            }
            packed.push(0);
            assert!(decompress(&packed, kind, 1 << 20).is_err(), "{kind:?} with one more byte");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_was_compressed_is_expanded(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            for kind in KINDS {
                let packed = compress(&bytes, kind).unwrap();
                prop_assert_eq!(&decompress(&packed, kind, 1 << 20).unwrap(), &bytes);
            }
        }
    }
}
