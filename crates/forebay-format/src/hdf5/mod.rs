//! HDF5: the places of a dataset's values in a file, which are then read as plain byte ranges.
//!
//! The HDF5 library, which opens files itself and admits one thread at a time, reads only a file's metadata
//! ([`Index::of_file`]). The values never pass through it: a contiguous dataset is one range, a chunked one a list of
//! ranges. Their filters are undone here ([`Chunks::unfilter`]) and their values copied into the sample
//! ([`Chunks::place`]), on any number of threads.
//!
//! Files are written in the same way: the library lays out a file of the right shape without values, in memory with holes
//! for the values ([`Skeleton`]), and the caller fills in the values when writing the file. Only compressed chunks, whose
//! places depend on their lengths, pass through the library one by one ([`compressed`]).
//!
//! Not supported, and refused by name: compact, external and virtual datasets, values other than little-endian numbers,
//! and filters other than deflate, shuffle, LZF and Fletcher's checksum.

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
