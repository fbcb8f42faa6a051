//! TensorFlow's checkpoint format, version 2: values in shards, a table that locates them, and a graph that reads them.
//!
//! `STEM.data-00000-of-00001` holds the values end to end, `STEM.index` is a LevelDB table from names to places with a
//! checksum for each tensor, `STEM.meta` is a graph with a variable for each tensor and the operations that save and
//! restore them, and `checkpoint` names the newest stem of the folder. Index and data have the bytes that TensorFlow
//! itself writes for the same tensors in the same order. Notes are tensors of one string, named `_forebay/notes/KEY`.
//!
//! Bundles with any number of shards can be read. String tensors are read whole; partitioned variables are refused.

mod decode;
mod encode;
mod entry;
mod meta;
mod proto;
mod state;
mod strings;
mod table_read;
mod table_write;

use super::{Catalog, Error, Format, Layout, Source};
use crate::Snapshot;

pub use state::State;

/// The end of every LevelDB table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const FOOTER_LEN: usize = 48;
/// Prefix of note names; no tensor name may start with it.
const NOTES: &str = "_forebay/notes/";

/// Files `STEM.data-…`, `STEM.index`, `STEM.meta` and `checkpoint`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bundle;

impl Format for Bundle {
    fn name(&self) -> &'static str {
        "tensorflow"
    }

    fn has_checksums(&self) -> bool {
        true
    }

    fn stem<'a>(&self, file: &'a str) -> Option<&'a str> {
        file.strip_suffix(".index").filter(|stem| !stem.is_empty())
    }

    fn plan(&self, stem: &str, snapshot: &Snapshot<'_>) -> Result<Layout, Error> {
        super::check(self.name(), stem, snapshot)?;
        encode::plan(stem, snapshot)
    }

    fn open(&self, stem: &str, source: &dyn Source) -> Result<Catalog, Error> {
        decode::open(stem, source)
    }
}

fn index_name(stem: &str) -> String {
    format!("{stem}.index")
}

fn shard_name(stem: &str, shard: u32, n_shards: u32) -> String {
    format!("{stem}.data-{shard:05}-of-{n_shards:05}")
}

/// Masks a crc32c for storage, as LevelDB does: a checksum of data that contains its own checksum would be weak.
fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

fn masked_crc32c(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_is_undone() {
        for crc in [0, 1, 0x1234_5678, u32::MAX] {
            assert_eq!(unmask(mask(crc)), crc);
            assert_ne!(mask(crc), crc);
        }
    }
}
