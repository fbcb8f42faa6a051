//! The part of one rank: disjoint from the others', and together they cover all samples.

use std::fmt;

use super::{Chain, Sequence, Stage, collect};

/// `block` samples of every `of` times as many.
pub(crate) struct Shard {
    pub(crate) rank: u64,
    pub(crate) of: u64,
    pub(crate) block: u64,
}

/// Fingerprints of orders are made of this. Single samples are described as before there were blocks: states
/// saved then can still be resumed.
impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shard = f.debug_struct("Shard");
        shard.field("rank", &self.rank).field("of", &self.of);
        if self.block > 1 {
            shard.field("block", &self.block);
        }
        shard.finish()
    }
}

impl Stage for Shard {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let mut before = before.open(epoch);
        before.skip(self.rank * self.block);
        Box::new(Blocks { before, block: self.block, gap: self.block * (self.of - 1), left: self.block })
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        let round = self.of * self.block;
        before.map(|n| n / round * self.block + (n % round).saturating_sub(self.rank * self.block).min(self.block))
    }

    fn refuse(&self, _before: &Chain) -> Option<String> {
        if self.block == 0 {
            return Some("a block has at least 1 sample".to_owned());
        }
        no_such_rank(self.rank, self.of)
    }
}

fn no_such_rank(rank: u64, of: u64) -> Option<String> {
    (rank >= of).then(|| format!("rank {rank} of {of} does not exist; ranks count from 0"))
}

struct Blocks {
    before: Box<dyn Sequence>,
    block: u64,
    /// Samples of the other ranks between two blocks.
    gap: u64,
    /// Samples left of the current block.
    left: u64,
}

impl Blocks {
    /// At the end of a block, goes on to the next.
    fn step(&mut self, n: u64) {
        self.left -= n;
        if self.left == 0 {
            self.before.skip(self.gap);
            self.left = self.block;
        }
    }
}

impl Sequence for Blocks {
    fn next(&mut self) -> Option<u32> {
        let item = self.before.next()?;
        self.step(1);
        Some(item)
    }

    fn skip(&mut self, n: u64) -> u64 {
        let begun = n.min(self.left);
        let mut skipped = self.before.skip(begun);
        if skipped < begun || skipped == n && n < self.left {
            self.left -= skipped;
            return skipped;
        }
        self.step(begun);
        // Now at the start of a block: whole rounds, then a part of a block.
        let (rounds, rest) = ((n - begun) / self.block, (n - begun) % self.block);
        let round = self.block + self.gap;
        let gone = self.before.skip(rounds.saturating_mul(round));
        skipped += gone / round * self.block + (gone % round).min(self.block);
        if gone == rounds.saturating_mul(round) {
            let gone = self.before.skip(rest);
            self.left -= gone;
            skipped += gone;
        }
        skipped
    }
}

/// Every `of`-th group of the source, whole: the same groups in every epoch.
#[derive(Debug)]
pub(crate) struct ShardGroups {
    pub(crate) rank: u64,
    pub(crate) of: u64,
    /// Samples of these groups.
    pub(crate) n: u64,
}

impl ShardGroups {
    /// The stages before must give the same samples in every epoch.
    pub(crate) fn new(before: &Chain, rank: u64, of: u64) -> Self {
        let n = if of == 0 || before.len().is_none() { 0 } else { own(before, 0, (rank, of)).len() as u64 };
        Self { rank, of, n }
    }
}

impl Stage for ShardGroups {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        Box::new(super::Listed::new(own(before, epoch, (self.rank, self.of))))
    }

    fn len(&self, _before: Option<u64>) -> Option<u64> {
        Some(self.n)
    }

    fn refuse(&self, before: &Chain) -> Option<String> {
        let endless = || super::shuffle::endless(before);
        no_such_rank(self.rank, self.of).or_else(endless)
    }
}

fn own(before: &Chain, epoch: u64, (rank, of): (u64, u64)) -> Vec<u32> {
    let groups = before.index.grouped(collect(before.open(epoch)));
    let own = |at: usize| at as u64 % of == rank;
    groups.into_iter().enumerate().filter(|(at, _)| own(*at)).flat_map(|(_, group)| group).collect()
}
