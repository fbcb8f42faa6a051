//! Shards of images that are already decoded and resized: decode once, train often.
//!
//! All samples of a shard have the same shape and lie one after the other without gaps, so that a batch is one read and a
//! sample's place is a multiplication. Every byte of the file is covered by some crc32c, and the header knows the file's
//! length: a shard that was cut off, or whose writer was killed before it put the header in place, is recognised at once.
//!
//! All numbers are little endian.
//!
//! ```text
//! offset  size
//!      0     8  magic "FBTENSR1"
//!      8     4  version, 1
//!     12     1  type of a value, 0 = u8
//!     13     1  order of the values, 0 = height, width, channels
//!     14     2  zero
//!     16     4  height
//!     20     4  width
//!     24     4  channels
//!     28     4  crc32c of the tail
//!     32     8  number of samples n
//!     40     8  bytes of a sample b = height * width * channels
//!     48     8  offset of the first sample, 4096
//!     56     8  offset of the tables t: the end of the samples rounded up to 4096
//!     64     8  length of the file, t + 20 n
//!     72  4020  zero
//!   4092     4  crc32c of the 4092 bytes before it
//!   4096   n b  samples
//!                 -- the tail begins --
//!              zeros up to t
//!      t   8 n  labels, signed
//!  + 8 n   8 n  ids, chosen by the writer
//! + 16 n   4 n  crc32c of each sample
//! ```
//!
//! An id is for finding a sample's origin again. Names are not kept: what was lost in resizing does not come back.
//!
//! [`ShardWriter`] builds a shard in memory; [`TableBuilder`] serves writers that stream. [`Shard`] reads one that is in
//! memory or mapped; [`Header`] and [`Tables`] serve readers that fetch pieces.

mod header;
mod shard;
mod tables;
mod writer;

pub use header::{Header, Shape};
pub use shard::Shard;
pub use tables::Tables;
pub use writer::{ShardWriter, TableBuilder};

/// The first bytes of a shard. The version that readers check is the field behind it, not the digit.
pub const MAGIC: &[u8; 8] = b"FBTENSR1";
/// The length of the header and the offset of the first sample: one page, so that samples can be read directly.
pub const HEADER_LEN: usize = 4096;

const VERSION: u32 = 1;
/// The bytes of the three tables that belong to one sample.
const TABLE_BYTES_PER_SAMPLE: u64 = 20;

#[cfg(test)]
mod tests;
