//! A page: its header, its checksum, and its bytes as they were before they were compressed.

use std::io::Read;

use super::Codec;
use super::thrift::{Kind, Reader, Sink};
use crate::Error;

/// A page larger than this is refused.
pub(super) const MAX_PAGE_BYTES: u64 = 256 << 20;

/// A header larger than this is refused; statistics of long fields lie in it.
pub(super) const MAX_HEADER_BYTES: usize = 1 << 20;

pub(super) const PLAIN: i32 = 0;
pub(super) const PLAIN_DICTIONARY: i32 = 2;
pub(super) const RUNS: i32 = 3;
pub(super) const RUNS_DICTIONARY: i32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Values, with their levels in front, all compressed together.
    Data { definition: i32, repetition: i32 },
    /// The same with levels of known length that are not compressed.
    DataV2 { definition_bytes: u64, repetition_bytes: u64, compressed: bool },
    /// What the indices of the pages after it mean.
    Dictionary,
    /// An index page; its values are not needed, so it is passed over.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: PageKind,
    pub(super) n_values: u64,
    pub(super) encoding: i32,
    /// Bytes of the page in the file, without its header.
    pub(super) bytes: u64,
    pub(super) expanded: u64,
    pub(super) crc: Option<u32>,
}

impl Header {
    /// Reads a header at `base`; returns it with its length.
    pub(super) fn parse(bytes: &[u8], base: u64) -> Result<(Self, usize), Error> {
        let mut reader = Reader::new(bytes, base);
        let mut header = Self { kind: PageKind::Other, n_values: 0, encoding: PLAIN, bytes: 0, expanded: 0, crc: None };
        let mut page_type = -1;
        reader.fields(|reader, id, _| {
            match id {
                1 => page_type = reader.i32()?,
                2 => header.expanded = reader.count()?,
                3 => header.bytes = reader.count()?,
                4 => header.crc = Some(reader.i32()? as u32),
                5 => header.data(reader)?,
                7 => header.dictionary(reader)?,
                8 => header.data_v2(reader)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        header.check(page_type, base)?;
        Ok((header, reader.position()))
    }

    fn check(&self, page_type: i32, base: u64) -> Result<(), Error> {
        let kind = match self.kind {
            PageKind::Data { .. } => 0,
            PageKind::Dictionary => 2,
            PageKind::DataV2 { .. } => 3,
            PageKind::Other => 1,
        };
        if page_type != kind {
            return Err(Error::invalid("Parquet page: type", base, kind.to_string(), page_type));
        }
        let found = self.bytes.max(self.expanded);
        if found > MAX_PAGE_BYTES {
            return Err(Error::TooLarge { what: "Parquet page".to_owned(), limit: MAX_PAGE_BYTES, found });
        }
        Ok(())
    }

    fn data(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let (mut definition, mut repetition) = (RUNS, RUNS);
        reader.fields(|reader, id, _| {
            match id {
                1 => self.n_values = reader.count()?,
                2 => self.encoding = reader.i32()?,
                3 => definition = reader.i32()?,
                4 => repetition = reader.i32()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        self.kind = PageKind::Data { definition, repetition };
        Ok(())
    }

    fn dictionary(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        reader.fields(|reader, id, _| {
            match id {
                1 => self.n_values = reader.count()?,
                2 => self.encoding = reader.i32()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        self.kind = PageKind::Dictionary;
        Ok(())
    }

    fn data_v2(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let (mut definition_bytes, mut repetition_bytes, mut compressed) = (0, 0, true);
        reader.fields(|reader, id, kind| {
            match id {
                1 => self.n_values = reader.count()?,
                4 => self.encoding = reader.i32()?,
                5 => definition_bytes = reader.count()?,
                6 => repetition_bytes = reader.count()?,
                7 => compressed = kind == Kind::True,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        self.kind = PageKind::DataV2 { definition_bytes, repetition_bytes, compressed };
        Ok(())
    }

    /// The header of a page of plain values. Its length depends on the counts alone.
    pub(super) fn write(n_values: u64, bytes: usize, expanded: usize, crc: u32) -> Vec<u8> {
        let mut sink = Sink::default();
        sink.open();
        sink.i32(1, 0);
        sink.i32(2, expanded as i32);
        sink.i32(3, bytes as i32);
        sink.u32_of_five_bytes(4, crc);
        sink.open_field(5);
        sink.i32(1, n_values as i32);
        sink.i32(2, PLAIN);
        sink.i32(3, RUNS);
        sink.i32(4, RUNS);
        sink.close();
        sink.close();
        sink.bytes
    }
}

/// Checks a page's bytes against the checksum of its header, where there is one.
pub(super) fn verify(header: &Header, body: &[u8], offset: u64) -> Result<(), Error> {
    let Some(expected) = header.crc else { return Ok(()) };
    let found = crc32fast::hash(body);
    if found == expected {
        return Ok(());
    }
    Err(Error::Checksum { what: "Parquet page".to_owned(), offset, part: "data", expected, found })
}

/// Appends what `bytes` were before they were compressed: `expanded` bytes.
pub(super) fn expand(codec: Codec, bytes: &[u8], expanded: usize, offset: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    let damaged =
        |found: String| Error::invalid("Parquet page", offset, format!("{expanded} bytes, compressed"), found);
    match codec {
        Codec::None => out.extend_from_slice(bytes),
        Codec::Snappy => {
            let len = snap::raw::decompress_len(bytes).map_err(|error| damaged(error.to_string()))?;
            if len != expanded {
                return Err(damaged(format!("{len} bytes")));
            }
            out.resize(start + len, 0);
            let done = snap::raw::Decoder::new().decompress(bytes, &mut out[start..]);
            done.map_err(|error| damaged(error.to_string()))?;
        }
        Codec::Gzip(_) => {
            // One byte more than expected, so that a longer page is noticed and a bomb is not expanded.
            let mut decoder = flate2::read::MultiGzDecoder::new(bytes).take(expanded as u64 + 1);
            decoder.read_to_end(out).map_err(|error| damaged(error.to_string()))?;
        }
    }
    let found = out.len() - start;
    if found == expanded { Ok(()) } else { Err(damaged(format!("{found} bytes"))) }
}

/// A page's bytes as they are written.
pub(super) fn compress(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |error: String| Error::invalid("Parquet page", 0, "bytes that can be compressed", error);
    match codec {
        Codec::None => Ok(bytes.to_vec()),
        Codec::Snappy => snap::raw::Encoder::new().compress_vec(bytes).map_err(|error| failed(error.to_string())),
        Codec::Gzip(level) => {
            let mut out = Vec::with_capacity(bytes.len() / 2);
            let mut encoder = flate2::read::GzEncoder::new(bytes, flate2::Compression::new(level.min(9)));
            encoder.read_to_end(&mut out).map_err(|error| failed(error.to_string()))?;
            Ok(out)
        }
    }
}
