//! Undoing the filters of a chunk.

use std::io::Read;

use super::lzf;
use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// A zlib stream (with its header and checksum), despite the name.
    Deflate,
    /// Bytes grouped by their position within a value of this many bytes.
    Shuffle(usize),
    /// HDF5's own checksum, four bytes after the data.
    Fletcher32,
    Lzf,
}

/// Undoes the filters, last first; a set bit of `mask` marks a filter that was skipped. The result has `expected` bytes.
pub(super) fn undo(
    filters: &[Filter],
    mask: u32,
    bytes: &[u8],
    expected: usize,
    offset: u64,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    out.clear();
    out.extend_from_slice(bytes);
    for (i, filter) in filters.iter().enumerate().rev() {
        if i < 32 && mask >> i & 1 == 1 {
            continue;
        }
        // A checksum over compressed bytes adds four bytes.
        *out = filter.undo(out, expected + 4, offset)?;
    }
    if out.len() == expected {
        return Ok(());
    }
    Err(Error::invalid("HDF5 chunk", offset, format!("{expected} bytes"), format!("{} bytes", out.len())))
}

impl Filter {
    fn undo(self, bytes: &[u8], limit: usize, offset: u64) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(limit);
        match self {
            Self::Deflate => {
                let mut decoder = flate2::read::ZlibDecoder::new(bytes).take(limit as u64 + 1);
                let done = decoder.read_to_end(&mut out);
                done.map_err(|error| Error::invalid("HDF5 chunk", offset, "a zlib stream", error))?;
            }
            Self::Shuffle(size) => unshuffle(bytes, size, &mut out),
            Self::Lzf => lzf::expand(bytes, limit, offset, &mut out)?,
            Self::Fletcher32 => {
                let (body, sum) = bytes
                    .split_last_chunk::<4>()
                    .ok_or_else(|| Error::truncated("HDF5 chunk: checksum", offset, 4, bytes.len() as u64))?;
                let (expected, found) = (u32::from_le_bytes(*sum), fletcher32(body));
                if expected != found {
                    let what = "HDF5 chunk".to_owned();
                    return Err(Error::Checksum { what, offset, part: "Fletcher", expected, found });
                }
                out.extend_from_slice(body);
            }
        }
        Ok(out)
    }
}

/// Byte `j` of value `i` is at `j · values + i`; bytes of an incomplete value stay at the end.
fn unshuffle(bytes: &[u8], size: usize, out: &mut Vec<u8>) {
    let size = size.max(1);
    let n = bytes.len() / size;
    out.resize(n * size, 0);
    for (j, lane) in bytes.chunks_exact(n.max(1)).take(size).enumerate() {
        for (value, byte) in out.chunks_exact_mut(size).zip(lane) {
            value[j] = *byte;
        }
    }
    out.extend_from_slice(&bytes[n * size..]);
}

/// Fletcher's checksum of 16-bit words, the higher byte first, as HDF5 folds it.
fn fletcher32(bytes: &[u8]) -> u32 {
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut low, mut high) = (0_u32, 0_u32);
    for block in bytes.chunks(720) {
        for pair in block.chunks(2) {
            low += u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from);
            high += low;
        }
        (low, high) = (fold(low), fold(high));
    }
    let (low, high) = (fold(low), fold(high));
    high << 16 | low
}
