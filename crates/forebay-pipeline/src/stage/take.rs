//! The first `n` samples, or all others.

use super::{Chain, Sequence, Stage};

#[derive(Debug)]
pub(crate) struct Take {
    pub(crate) n: u64,
}

impl Stage for Take {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        Box::new(Taking { before: before.open(epoch), left: self.n })
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        Some(before.map_or(self.n, |n| n.min(self.n)))
    }
}

struct Taking {
    before: Box<dyn Sequence>,
    left: u64,
}

impl Sequence for Taking {
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.before.next()
    }

    fn skip(&mut self, n: u64) -> u64 {
        let skipped = self.before.skip(n.min(self.left));
        self.left -= skipped;
        skipped
    }
}

#[derive(Debug)]
pub(crate) struct Skip {
    pub(crate) n: u64,
}

impl Stage for Skip {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let mut before = before.open(epoch);
        before.skip(self.n);
        before
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        before.map(|n| n.saturating_sub(self.n))
    }
}
