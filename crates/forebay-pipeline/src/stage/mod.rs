//! Stages, which decide the next sample; one file each.
//!
//! A stage works on sample indices, never on data. This makes a saved position small and exact: the order is a pure
//! function of the seeds, so restoring only walks the indices again, at nanoseconds per sample, without reading a byte.

mod interleave;
mod range;
mod repeat;
mod shard;
mod shuffle;
mod split;
mod take;

use std::fmt::Debug;
use std::sync::Arc;

use crate::source::Index;

pub(crate) use interleave::Interleave;
pub(crate) use repeat::Repeat;
pub(crate) use shard::{Shard, ShardGroups};
pub(crate) use shuffle::{Shuffle, ShuffleBuffer, ShuffleGroups};
pub(crate) use split::Split;
pub(crate) use take::{Skip, Take};

pub(crate) trait Sequence: Send {
    /// The next index, or `None` at the end and on every later call.
    fn next(&mut self) -> Option<u32>;

    /// Skips up to `n` indices and returns how many it skipped. Faster than `next` if the stage allows it.
    fn skip(&mut self, n: u64) -> u64 {
        (0..n).take_while(|_| self.next().is_some()).count() as u64
    }
}

pub(crate) trait Stage: Debug + Send + Sync {
    /// The order of epoch `epoch`, given the stages before this one.
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence>;

    /// Number of samples per epoch, given how many the stages before yield; `None` if endless.
    fn len(&self, before: Option<u64>) -> Option<u64>;

    /// Whether the stage makes epochs of the stages before it.
    fn repeats(&self) -> bool {
        false
    }

    /// Why this stage cannot follow the given stages, if so.
    fn refuse(&self, _before: &Chain) -> Option<String> {
        None
    }
}

/// A source's index and the stages applied so far. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Chain {
    pub(crate) index: Arc<Index>,
    stages: Vec<Arc<dyn Stage>>,
}

impl Chain {
    pub(crate) fn new(index: Arc<Index>) -> Self {
        Self { index, stages: Vec::new() }
    }

    pub(crate) fn push(&mut self, stage: Arc<dyn Stage>) {
        self.stages.push(stage);
    }

    pub(crate) fn open(&self, epoch: u64) -> Box<dyn Sequence> {
        match self.stages.split_last() {
            None => Box::new(range::Range::new(self.index.len() as u32)),
            Some((last, before)) => last.open(&Self { index: Arc::clone(&self.index), stages: before.to_vec() }, epoch),
        }
    }

    /// Samples per epoch; `None` if endless.
    pub(crate) fn len(&self) -> Option<u64> {
        let mut n = Some(self.index.len() as u64);
        for stage in &self.stages {
            n = stage.len(n); // Not a try_fold: `take` makes an endless order finite again.
        }
        n
    }

    /// Samples per epoch of the first repeat; `None` if nothing is repeated.
    pub(crate) fn repeated(&self) -> Option<u64> {
        let at = self.stages.iter().position(|stage| stage.repeats())?;
        Self { index: Arc::clone(&self.index), stages: self.stages[..at].to_vec() }.len()
    }

    /// A text of everything the order depends on: equal texts give equal orders.
    pub(crate) fn describe(&self) -> String {
        format!("{:016x} {:?}", self.index.fingerprint(), self.stages)
    }
}

/// All remaining indices, for stages that need the whole epoch at once.
pub(crate) fn collect(mut sequence: Box<dyn Sequence>) -> Vec<u32> {
    std::iter::from_fn(|| sequence.next()).collect()
}

/// An order that is known completely.
pub(crate) struct Listed {
    items: Vec<u32>,
    next: usize,
}

impl Listed {
    pub(crate) fn new(items: Vec<u32>) -> Self {
        Self { items, next: 0 }
    }
}

impl Sequence for Listed {
    fn next(&mut self) -> Option<u32> {
        let item = self.items.get(self.next).copied()?;
        self.next += 1;
        Some(item)
    }

    fn skip(&mut self, n: u64) -> u64 {
        let left = (self.items.len() - self.next) as u64;
        let skipped = n.min(left);
        self.next += skipped as usize;
        skipped
    }
}
