//! The parts of a dataset that ranks take.

use crate::dataset::Dataset;
use crate::stage::{Shard, ShardGroups};

impl Dataset {
    /// The part of rank `rank` out of `of`. Parts are disjoint and together cover all samples.
    #[must_use]
    pub fn shard(self, rank: u64, of: u64) -> Self {
        self.shard_blocks(rank, of, 1)
    }

    /// Like [`shard`](Self::shard), but in blocks of `block` neighbouring samples: after a repeat, the parts are those
    /// of batches of `of` times `block` samples.
    #[must_use]
    pub fn shard_blocks(self, rank: u64, of: u64, block: u64) -> Self {
        self.then("shard", Shard { rank, of, block })
    }

    /// The groups (shards or class folders) of rank `rank`: every `of`-th, the same ones in every epoch. Parts are
    /// disjoint and together cover all samples, but may differ in size.
    #[must_use]
    pub fn shard_groups(self, rank: u64, of: u64) -> Self {
        let stage = ShardGroups::new(&self.chain, rank, of);
        self.then("shard_groups", stage)
    }
}
