//! Every `of`-th sample: the ranks' parts are disjoint and together cover all samples.

use super::{Chain, Sequence, Stage};

#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) rank: u64,
    pub(crate) of: u64,
}

impl Stage for Shard {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let mut before = before.open(epoch);
        before.skip(self.rank);
        Box::new(EveryNth { before, of: self.of })
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        before.map(|n| n.saturating_sub(self.rank).div_ceil(self.of))
    }

    fn refuse(&self, _before: &Chain) -> Option<String> {
        (self.rank >= self.of).then(|| format!("rank {} of {} does not exist; ranks count from 0", self.rank, self.of))
    }
}

struct EveryNth {
    before: Box<dyn Sequence>,
    of: u64,
}

impl Sequence for EveryNth {
    fn next(&mut self) -> Option<u32> {
        let item = self.before.next()?;
        self.before.skip(self.of - 1);
        Some(item)
    }

    fn skip(&mut self, n: u64) -> u64 {
        self.before.skip(n.saturating_mul(self.of)).div_ceil(self.of)
    }
}
