//! The bytes of a compressed shard, from front to back.
//!
//! A compressed shard cannot be read from the middle, and a small one may expand to any size. Here it is expanded as far
//! as it is asked for, and only what is asked for is held.

use std::io::{self, BufRead, Read};

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use super::Compression;
use crate::{Error, Scanner, Span};

/// Pieces of a shard, asked for in the order in which they lie in the expanded shard.
#[derive(Debug)]
pub struct Expander<R> {
    expanded: Expanded<R>,
    limit: u64,
    at: u64,
}

impl<R: BufRead> Expander<R> {
    /// Starts at the beginning of a shard that expands to at most `limit` bytes.
    pub fn new(reader: R, compression: Compression, limit: u64) -> Self {
        Self { expanded: Expanded::new(reader, compression), limit, at: 0 }
    }

    /// Replaces the content of `piece` by `len` bytes from `offset`; by fewer where the shard ends before.
    ///
    /// # Errors
    /// When the stream is damaged or cut off, when the piece lies beyond the limit, or before the piece given last.
    pub fn read_at(&mut self, offset: u64, len: usize, piece: &mut Vec<u8>) -> Result<(), Error> {
        piece.clear();
        self.check_limit(offset.saturating_add(len as u64))?;
        let Some(before) = offset.checked_sub(self.at) else {
            let expected = format!("a place from {} on, since the stream runs forwards", self.at);
            return Err(Error::invalid("compressed shard", offset, expected, "one before it"));
        };
        if self.pass_over(before)? < before {
            return Ok(());
        }
        let read = self.expanded.by_ref().take(len as u64).read_to_end(piece);
        self.at += read.map_err(|error| stream_error(error, self.at))? as u64;
        Ok(())
    }

    /// Expands the rest and checks that nothing follows the stream.
    ///
    /// # Errors
    /// When the stream is damaged, cut off, followed by other bytes, or expands beyond the limit.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.pass_over((self.limit - self.at).saturating_add(1))?;
        self.check_limit(self.at)?;
        self.expanded.check_end().map_err(|error| stream_error(error, self.at))?
    }

    /// The places of the samples that a scanner finds, up to the damage that ends them, if any.
    ///
    /// # Errors
    /// When the stream itself is damaged, cut off, followed by other bytes, or expands beyond the limit: then nothing of
    /// it can be used.
    pub fn spans(&mut self, scanner: &mut dyn Scanner) -> Result<(Vec<Span>, Option<Error>), Error> {
        let (mut spans, mut damage, mut piece) = (Vec::new(), None, Vec::new());
        while let (None, Some(want)) = (&damage, scanner.want()) {
            self.read_at(want.offset, want.len, &mut piece)?;
            match scanner.feed(&piece) {
                Ok(found) => spans.extend(found),
                Err(error) => damage = Some(error),
            }
        }
        self.finish()?;
        Ok((spans, damage))
    }

    fn pass_over(&mut self, n: u64) -> Result<u64, Error> {
        let passed = io::copy(&mut self.expanded.by_ref().take(n), &mut io::sink());
        let passed = passed.map_err(|error| stream_error(error, self.at))?;
        self.at += passed;
        Ok(passed)
    }

    fn check_limit(&self, end: u64) -> Result<(), Error> {
        match end > self.limit {
            true => Err(Error::TooLarge { what: "expanded shard".to_owned(), limit: self.limit, found: end }),
            false => Ok(()),
        }
    }
}

/// What a failed read of a shard says, of which `at` bytes were expanded.
pub(super) fn stream_error(error: io::Error, at: u64) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::truncated("compressed shard", 0, at + 1, at),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Error::invalid("compressed shard", 0, "a valid stream", error)
        }
        _ => Error::Io(error),
    }
}

#[derive(Debug)]
pub(super) enum Expanded<R> {
    Plain(R),
    Gzip(MultiGzDecoder<R>),
    Zlib(ZlibDecoder<R>),
}

impl<R: BufRead> Expanded<R> {
    pub(super) fn new(reader: R, compression: Compression) -> Self {
        match compression {
            Compression::None => Self::Plain(reader),
            Compression::Gzip => Self::Gzip(MultiGzDecoder::new(reader)),
            Compression::Zlib => Self::Zlib(ZlibDecoder::new(reader)),
        }
    }

    /// A zlib stream ends by itself; nothing may follow.
    pub(super) fn check_end(&mut self) -> io::Result<Result<(), Error>> {
        let rest = match self {
            Self::Plain(reader) => reader.fill_buf(),
            Self::Gzip(decoder) => decoder.get_mut().fill_buf(),
            Self::Zlib(decoder) => decoder.get_mut().fill_buf(),
        };
        Ok(match rest?.len() {
            0 => Ok(()),
            n => Err(Error::invalid("compressed shard", 0, "the end of the file", format!("{n} or more bytes"))),
        })
    }
}

impl<R: BufRead> Read for Expanded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(into),
            Self::Gzip(decoder) => decoder.read(into),
            Self::Zlib(decoder) => decoder.read(into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar;
    use crate::tfrecord::compress;

    fn archive() -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in 0..4_u8 {
            tar::append_file(&mut bytes, format!("{n}.jpg"), &vec![n; usize::from(n) * 1000]).unwrap();
        }
        tar::finish(&mut bytes);
        bytes
    }

    fn spans(packed: &[u8], how: Compression, limit: u64) -> Result<(Vec<Span>, Option<Error>), Error> {
        Expander::new(packed, how, limit).spans(&mut tar::SampleScanner::new(u64::MAX))
    }

    #[test]
    fn pieces_come_forwards_and_end_with_the_shard() {
        let packed = compress(b"0123456789", Compression::Gzip).unwrap();
        let mut expander = Expander::new(packed.as_slice(), Compression::Gzip, 10);
        let mut piece = Vec::new();
        for (offset, len, wanted) in [(2, 3, &b"234"[..]), (5, 0, b""), (9, 1, b"9"), (10, 0, b"")] {
            expander.read_at(offset, len, &mut piece).unwrap();
            assert_eq!(piece, wanted);
        }
        assert!(expander.read_at(3, 1, &mut piece).is_err(), "backwards");
        assert!(matches!(expander.read_at(10, 1, &mut piece), Err(Error::TooLarge { found: 11, .. })));
        expander.finish().unwrap();
    }

    #[test]
    fn the_samples_of_a_compressed_archive_lie_where_those_of_the_plain_one_do() {
        let plain = archive();
        let (wanted, damage) = spans(&plain, Compression::None, 1 << 20).unwrap();
        assert!(damage.is_none() && wanted.len() == 4);
        for how in [Compression::Gzip, Compression::Zlib] {
            let packed = compress(&plain, how).unwrap();
            assert_eq!(spans(&packed, how, plain.len() as u64).unwrap().0, wanted);
            let error = spans(&packed, how, plain.len() as u64 - 1).unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. }), "{error}");
            for cut in 1..packed.len() {
                assert!(spans(&packed[..cut], how, 1 << 20).is_err(), "{how:?} cut at {cut}");
            }
            assert!(spans(&[&packed[..], b"x"].concat(), how, 1 << 20).is_err(), "one more byte");
        }
    }

    #[test]
    fn an_archive_that_was_cut_before_it_was_compressed_gives_the_samples_before() {
        let packed = compress(&archive()[..6000], Compression::Gzip).unwrap();
        let (found, damage) = spans(&packed, Compression::Gzip, 1 << 20).unwrap();
        assert_eq!((found.len(), damage.is_some()), (3, true));
    }

    #[test]
    fn an_entry_of_any_length_is_refused_by_its_header() {
        let mut bytes = archive();
        // The size as a number of base 256, and the checksum of the header anew.
        bytes[124..136].copy_from_slice(&[[0x80, 0, 0, 0].as_slice(), &(1_u64 << 60).to_be_bytes()].concat());
        bytes[148..156].fill(b' ');
        let sum: u32 = bytes[..512].iter().map(|byte| u32::from(*byte)).sum();
        bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let error = spans(&compress(&bytes, Compression::Gzip).unwrap(), Compression::Gzip, 1 << 30).unwrap_err();
        assert!(matches!(error, Error::TooLarge { found, .. } if found > 1 << 60), "{error}");
    }
}
