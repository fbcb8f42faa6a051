//! Some samples kept away from the others, the same ones in every epoch.

use super::{Chain, Sequence, Stage};
use crate::rng::Rng;

/// Chooses `n` samples of the source by `seed`: gives those alone, or all but those.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) seed: u64,
    pub(crate) n: u64,
    /// True yields the chosen samples alone, false all others.
    pub(crate) chosen: bool,
}

impl Stage for Split {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let n_samples = before.index.len();
        let mut order: Vec<u32> = (0..n_samples as u32).collect();
        // An epoch of its own, so that the choice has nothing to do with any order that follows.
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
        (!before.stages.is_empty())
            .then(|| "samples are held out of the source itself, before any other stage".to_owned())
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
