//! Tar shards in WebDataset's convention.
//!
//! A shard is an ordinary tar archive. Consecutive entries whose paths agree up to the first dot of the file name form one
//! sample: `train/0001.jpg` and `train/0001.cls` are the parts `jpg` and `cls` of the sample `train/0001`.
//!
//! Read are the ustar header with its prefix, pax records for path and size, GNU's long names and base-256 numbers; header
//! checksums are verified. Directories and devices are passed over; links and sparse files are left out and named. Written
//! are ustar headers, with a pax record where a path does not fit. Python's `tarfile` reads what is written here, and the
//! reverse.
//!
//! An archive ends with two blocks of zeros. If there is not even one, the archive was cut off, and that is an error.

mod entries;
mod header;
mod path;
mod samples;
mod scanner;
mod walk;
mod writer;

pub use entries::{Entries, Entry};
pub use path::key_and_extension;
pub use samples::{Part, Sample, Samples, parse_sample};
pub use scanner::SampleScanner;
pub use walk::Skipped;
pub use writer::{append_file, finish};

/// Everything in an archive begins at a multiple of this.
pub const BLOCK: usize = 512;

/// The longest pax or GNU long-name entry that is read. Paths on Linux have at most 4 KiB.
const MAX_EXTENSION_LEN: u64 = 1 << 20;

#[cfg(test)]
mod tests;
