//! HDF5: where the values of datasets lie in a file, so that they are read as plain ranges of bytes.
//!
//! HDF5's own library is asked for a file's metadata alone ([`Index::of_file`]), which it opens itself; it lets one thread in at
//! a time. The values then never pass through it: a contiguous dataset is one range, a chunked one a list of ranges whose bytes
//! go backwards through their filters here ([`Chunks::unfilter`]) and into the sample ([`Chunks::place`]), in any number of threads.
//!
//! Written files come the same way: the library makes one of the right shape without values, in memory that has holes where the values
//! go ([`Skeleton`]), and the caller, who writes the files, writes the values around it. Only compressed chunks, whose
//! places depend on their lengths, are handed to it one by one ([`compressed`]).
//!
//! Refused with a sentence: compact, external and virtual datasets, types that are not numbers of this machine's byte order, and filters
//! other than deflate, shuffle, LZF and Fletcher's checksum.

mod filter;
mod index;
mod lzf;
mod memory_file;
mod skeleton;
#[cfg(test)]
mod tests;

pub use filter::Filter;
pub use index::{Chunk, Chunks, Index, Lies, Stored};
pub use skeleton::{Segment, Skeleton, Spec, compressed};
