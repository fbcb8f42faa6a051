//! TFRecord: a sequence of records, each framed by its length and two checksums.
//!
//! ```text
//! offset  size
//!      0     8  payload length n, little endian
//!      8     4  masked crc32c of the eight length bytes
//!     12     n  payload
//! 12 + n     4  masked crc32c of the payload
//! ```
//!
//! There is no header, no index and no end marker: a file cut exactly between two records is a shorter valid file. The
//! checksum is "masked" (rotated and offset) so that a record whose payload is itself a TFRecord file does not check a
//! checksum over checksums.

mod compression;
mod expander;
mod records;
mod scanner;
mod stream;

pub use compression::{Compression, compress, compress_while, decompress, expand_start};
pub use expander::Expander;
pub use records::{Record, Records, append, parse_frame};
pub use scanner::FrameScanner;
pub use stream::RecordStream;

/// Bytes before the payload: length and its checksum.
pub const HEADER_LEN: usize = 12;
/// The most a compressed shard may expand to where nothing else is known: it is expanded in memory, and a bomb must not
/// fill that.
pub const EXPANDED_LIMIT: u64 = 4 << 30;
pub const FOOTER_LEN: usize = 4;

const MASK_DELTA: u32 = 0xa282_ead8;

/// The crc32c of `bytes` in the masked form that TFRecord stores.
pub fn masked_crc32c(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

pub fn mask(crc32c: u32) -> u32 {
    crc32c.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// What comes before a payload of so many bytes.
pub fn frame_header(payload_len: u64) -> [u8; HEADER_LEN] {
    let length = payload_len.to_le_bytes();
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&length);
    header[8..].copy_from_slice(&masked_crc32c(&length).to_le_bytes());
    header
}
