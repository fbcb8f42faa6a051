//! The order of an epoch, and a place in it that any number of ranks can continue from.
//!
//! All ranks together take the samples of an epoch in one order, in turns. A place is the number of samples that all of them
//! have taken: a run with other ranks skips as many and goes on in turns.

use forebay_pipeline::{Batched, Dataset, Mapped, Source};

/// The share of a rank, and how it is cut into batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) rank: u64,
    pub(crate) world_size: u64,
    pub(crate) batch_size: u64,
    pub(crate) drop_last: bool,
    pub(crate) order: Order,
}

/// The order of an epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    AsStored,
    /// All samples shuffled.
    Samples {
        seed: u64,
    },
    /// Groups of neighbours shuffled, `cycle` of them taken in turns with `run` samples of each, and mixed in a window.
    Groups {
        seed: u64,
        cycle: usize,
        run: usize,
        window: usize,
    },
}

impl Order {
    /// Of samples that can be read alone; shuffled if there is a seed.
    pub(crate) fn of_samples(seed: Option<u64>) -> Self {
        seed.map_or(Self::AsStored, |seed| Self::Samples { seed })
    }

    fn of(self, dataset: Dataset) -> Dataset {
        match self {
            Self::AsStored => dataset,
            Self::Samples { seed } if dataset.packing_is_seekable() => dataset.shuffle(seed),
            // A compressed shard can only be read as a whole; tf.data's usual order works there.
            Self::Samples { seed } => Self::Groups { seed, cycle: 4, run: 16, window: 1024 }.of(dataset),
            Self::Groups { seed, cycle, run, window } => {
                dataset.shuffle_groups(seed).interleave(cycle, run).shuffle_buffer(window, seed)
            }
        }
    }
}

/// Where an epoch begins or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) epoch: u64,
    /// Samples of the epoch that all ranks together have taken.
    pub(crate) taken: u64,
}

/// The rest of an epoch for one rank.
pub(crate) struct Rest {
    pub(crate) place: Place,
    /// Samples in it.
    pub(crate) n_samples: u64,
    pub(crate) n_batches: u64,
}

impl Share {
    /// Samples of this rank after `taken` of `all`.
    fn samples(&self, all: u64, taken: u64) -> u64 {
        let left = all.saturating_sub(taken);
        match self.drop_last {
            // The same for every rank, so that none waits for the others' last batch.
            true => left / self.world_size,
            false => left.saturating_sub(self.rank).div_ceil(self.world_size),
        }
    }

    fn batches(&self, n_samples: u64) -> u64 {
        if self.drop_last { n_samples / self.batch_size } else { n_samples.div_ceil(self.batch_size) }
    }

    pub(crate) fn batches_per_epoch(&self, all: u64) -> u64 {
        self.batches(self.samples(all, 0))
    }

    pub(crate) fn rest(&self, all: u64, place: Place) -> Rest {
        let n_samples = self.samples(all, place.taken);
        Rest { place, n_samples, n_batches: self.batches(n_samples) }
    }

    /// The samples of a rest in their order, in an endless repetition of it: its position in that tells samples their epoch.
    pub(crate) fn dataset(&self, source: Source, rest: &Rest) -> Dataset {
        let dataset = self.order.of(Dataset::new(source));
        let dataset = if rest.place.taken > 0 { dataset.skip(rest.place.taken) } else { dataset };
        let dataset = dataset.shard(self.rank, self.world_size).take(rest.n_samples);
        let end = rest.place.epoch.saturating_add(1).saturating_mul(rest.n_samples);
        dataset.repeat_forever().take(end)
    }

    pub(crate) fn batched(&self, mapped: Mapped, rest: &Rest) -> Batched {
        let batched = mapped.batch(self.batch_size as usize).at_most(rest.n_batches);
        if self.drop_last { batched.drop_remainder() } else { batched }
    }

    /// The place after this many samples of a rest, `n_given` of its batches.
    pub(crate) fn place_after(&self, rest: &Rest, n_samples: u64, n_given: u64) -> Place {
        if n_given >= rest.n_batches || n_samples >= rest.n_samples {
            return Place { epoch: rest.place.epoch + 1, taken: 0 };
        }
        Place { taken: rest.place.taken + n_samples * self.world_size, ..rest.place }
    }
}
