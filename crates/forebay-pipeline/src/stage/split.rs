//! Holding out samples, the same ones in every epoch.

use super::{Chain, Sequence, Stage};
use crate::rng::Rng;

/// Selects `n` samples of the source by `seed` and yields only those, or all others.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) seed: u64,
    pub(crate) n: u64,
    /// True yields only the selected samples, false all others.
    pub(crate) chosen: bool,
}

impl Stage for Split {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let n_samples = before.index.len();
        let mut order: Vec<u32> = (0..n_samples as u32).collect();
        // A separate stream, so the selection is independent of all later orders.
        Rng::new(self.seed, u64::MAX).shuffle(&mut order);
        let mut gives = vec![!self.chosen; n_samples];
        order.iter().take(self.n as usize).for_each(|sample| gives[*sample as usize] = self.chosen);
        Box::new(Filtered { before: before.open(epoch), gives })
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        let chosen = before.map(|n| self.n.min(n));
        if self.chosen { chosen } else { before.zip(chosen).map(|(n, chosen)| n - chosen) }
    }

    fn refuse(&self, before: &Chain) -> Option<String> {
        (!before.stages.is_empty()).then(|| "must come before all other stages".to_owned())
    }
}

struct Filtered {
    before: Box<dyn Sequence>,
    gives: Vec<bool>,
}

impl Sequence for Filtered {
    fn next(&mut self) -> Option<u32> {
        std::iter::from_fn(|| self.before.next()).find(|sample| self.gives[*sample as usize])
    }
}
