//! Random orders: of the whole epoch, of a sliding buffer, or of the groups (shards or class folders).

use super::{Chain, Listed, Sequence, Stage, collect};
use crate::rng::Rng;

/// Shuffles the whole epoch uniformly, differently in each epoch.
#[derive(Debug)]
pub(crate) struct Shuffle {
    pub(crate) seed: u64,
}

impl Stage for Shuffle {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let mut items = collect(before.open(epoch));
        Rng::new(self.seed, epoch).shuffle(&mut items);
        Box::new(Listed::new(items))
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        before
    }

    fn refuse(&self, before: &Chain) -> Option<String> {
        endless(before)
    }
}

/// Keeps `size` samples and yields a random one of them each time, as tf.data's shuffle does.
#[derive(Debug)]
pub(crate) struct ShuffleBuffer {
    pub(crate) seed: u64,
    pub(crate) size: usize,
}

impl Stage for ShuffleBuffer {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let mut before = before.open(epoch);
        let held: Vec<u32> = std::iter::from_fn(|| before.next()).take(self.size).collect();
        Box::new(Sliding { before, held, rng: Rng::new(self.seed, epoch) })
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        before
    }

    fn refuse(&self, _before: &Chain) -> Option<String> {
        (self.size == 0).then(|| "the buffer size must be at least 1".to_owned())
    }
}

struct Sliding {
    before: Box<dyn Sequence>,
    held: Vec<u32>,
    rng: Rng,
}

impl Sequence for Sliding {
    fn next(&mut self) -> Option<u32> {
        if self.held.is_empty() {
            return None;
        }
        let pick = self.rng.below(self.held.len());
        match self.before.next() {
            Some(fresh) => Some(std::mem::replace(&mut self.held[pick], fresh)),
            None => Some(self.held.swap_remove(pick)),
        }
    }
}

/// Shuffles the groups and keeps the order within each: useful for shards before interleaving.
#[derive(Debug)]
pub(crate) struct ShuffleGroups {
    pub(crate) seed: u64,
}

impl Stage for ShuffleGroups {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let mut groups = before.index.grouped(collect(before.open(epoch)));
        Rng::new(self.seed, epoch).shuffle(&mut groups);
        Box::new(Listed::new(groups.concat()))
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        before
    }

    fn refuse(&self, before: &Chain) -> Option<String> {
        endless(before)
    }
}

/// The error of a stage that needs the whole epoch.
pub(super) fn endless(before: &Chain) -> Option<String> {
    before.len().is_none().then(|| "needs the whole epoch, which is endless here; put it before repeat()".to_owned())
}
