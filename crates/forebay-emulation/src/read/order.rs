//! Order of samples: a function of the seed and the position alone, so every accelerator knows its share of billions without a list.
//!
//! Files and samples are shuffled by permutations of numbers. Accelerator `a` of `n` reads the `a`-th of `n` equal
//! ranges of the order: ranges are disjoint and cover all but a remainder smaller than `n`.

use forebay_units::random::hash;
use forebay_workload::Shuffle;

#[derive(Debug)]
pub(crate) struct Order {
    n_samples: u64,
    per_file: u64,
    files: Option<Permutation>,
    samples: Samples,
}

#[derive(Debug)]
enum Samples {
    InOrder,
    Whole(Permutation),
    Windows { size: u64, seed: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seeds {
    pub(crate) files: u64,
    pub(crate) samples: u64,
}

impl Seeds {
    #[must_use]
    pub(crate) fn plus(self, epoch: u64) -> Self {
        Self { files: self.files.wrapping_add(epoch), samples: self.samples.wrapping_add(epoch) }
    }
}

impl From<u64> for Seeds {
    fn from(seed: u64) -> Self {
        Self { files: seed, samples: seed }
    }
}

impl Order {
    /// Samples are shuffled after the files, within windows of `window` samples (0: all of them).
    pub(crate) fn new(
        n_files: u64,
        per_file: u64,
        (file_shuffle, sample_shuffle): (Shuffle, Shuffle),
        window: u64,
        seeds: impl Into<Seeds>,
    ) -> Self {
        let seeds = seeds.into();
        let n_samples = n_files * per_file;
        let (by_file, by_sample) = (file_shuffle != Shuffle::Off, sample_shuffle != Shuffle::Off);
        let samples = match (by_sample, window > 0) {
            (false, _) => Samples::InOrder,
            (true, false) => Samples::Whole(Permutation::new(n_samples, hash(seeds.samples))),
            (true, true) => Samples::Windows { size: window, seed: hash(seeds.samples) },
        };
        let files = by_file.then(|| Permutation::new(n_files, hash(seeds.files ^ FILES)));
        Self { n_samples, per_file, files, samples }
    }

    /// Index of the sample, counted over all files.
    pub(crate) fn at(&self, position: u64) -> u64 {
        let position = match &self.samples {
            Samples::InOrder => position,
            Samples::Whole(permutation) => permutation.at(position),
            Samples::Windows { size, seed } => {
                let first = position - position % size;
                let size = (*size).min(self.n_samples - first);
                first + scramble(size, hash(seed ^ first), position - first)
            }
        };
        match &self.files {
            None => position,
            Some(files) => files.at(position / self.per_file) * self.per_file + position % self.per_file,
        }
    }

    /// Whether neighbours in a file are mostly neighbours in the order.
    pub(crate) fn keeps_neighbours(&self) -> bool {
        matches!(self.samples, Samples::InOrder)
    }
}

/// Separates the seed of the files' order from that of the samples'.
const FILES: u64 = 0x5f69_6c65_735f_5f5f;

pub(crate) fn share(n_samples: u64, accelerator: u64, of: u64) -> std::ops::Range<u64> {
    let each = n_samples / of.max(1);
    accelerator * each..(accelerator + 1) * each
}

/// Up to this size a permutation is drawn and stored; beyond, it is computed.
const LISTED: u64 = 1 << 16;

#[derive(Debug)]
pub(crate) enum Permutation {
    Listed(Vec<u32>),
    Computed { n: u64, seed: u64 },
}

impl Permutation {
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        if n > LISTED {
            return Self::Computed { n, seed };
        }
        let mut items: Vec<u32> = (0..n as u32).collect();
        let mut state = seed;
        for i in (1..items.len()).rev() {
            state = hash(state);
            // The upper part of a product of 64 by 17 bits: uniform to one part in 2^47.
            let j = ((u128::from(state) * (i as u128 + 1)) >> 64) as usize;
            items.swap(i, j);
        }
        Self::Listed(items)
    }

    pub(crate) fn at(&self, position: u64) -> u64 {
        match self {
            Self::Listed(items) => u64::from(items[position as usize]),
            Self::Computed { n, seed } => scramble(*n, *seed, position),
        }
    }
}

/// Four rounds already look random; two more cost little.
const ROUNDS: u64 = 6;

/// A Feistel network on the next even number of bits, applied again until the result is below `n`.
fn scramble(n: u64, seed: u64, position: u64) -> u64 {
    let half = (64 - n.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut x = position;
    loop {
        let (mut left, mut right) = (x >> half, x & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (hash(seed ^ (right << 3) ^ round) & mask));
        }
        x = (left << half) | right;
        if x < n {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ON: Shuffle = Shuffle::Seed;
    const OFF: Shuffle = Shuffle::Off;

    fn all(order: &Order) -> Vec<u64> {
        (0..order.n_samples).map(|position| order.at(position)).collect()
    }

    #[test]
    fn without_a_shuffle_samples_come_as_they_lie() {
        assert_eq!(all(&Order::new(3, 4, (OFF, OFF), 1024, 1)), (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn shuffled_files_keep_their_samples_together_and_in_order() {
        let order = all(&Order::new(50, 3, (ON, OFF), 1024, 1));
        for file in order.chunks(3) {
            assert!(file[0] % 3 == 0 && file[1] == file[0] + 1 && file[2] == file[0] + 2, "{file:?}");
        }
        assert_ne!(order, (0..150).collect::<Vec<_>>());
    }

    #[test]
    fn within_windows_samples_stay_near_their_shuffled_file() {
        let order = Order::new(100, 10, (ON, ON), 20, 7);
        let files_only = Order::new(100, 10, (ON, OFF), 20, 7);
        for window in 0..50 {
            let of = |order: &Order| (window * 20..(window + 1) * 20).map(|p| order.at(p)).collect::<BTreeSet<_>>();
            assert_eq!(of(&order), of(&files_only));
        }
        assert_ne!(all(&order), all(&files_only));
        assert_ne!(all(&Order::new(100, 10, (ON, ON), 0, 7))[..20], all(&order)[..20]);
        let alone = all(&Order::new(100, 10, (OFF, ON), 20, 7));
        assert!(alone.chunks(20).zip(0..).all(|(window, i)| window.iter().all(|sample| sample / 20 == i)));
        assert_ne!(alone, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_shuffle_leaves_few_samples_near_where_they_were() {
        for n in [1000, LISTED + 1000] {
            let permutation = Permutation::new(n, 3);
            let near = (0..n).filter(|p| permutation.at(*p).abs_diff(*p) < n / 100).count() as f64 / n as f64;
            assert!((0.01..0.04).contains(&near), "{near} of {n} within a hundredth of their place");
            let rising = (1..n).filter(|p| permutation.at(*p) == permutation.at(p - 1) + 1).count();
            assert!(rising < 10, "{rising} pairs of {n} kept together");
        }
    }

    #[test]
    fn the_order_of_files_hangs_on_its_own_seed_alone() {
        let order = |files, samples| {
            let order = all(&Order::new(40, 5, (ON, ON), 5, Seeds { files, samples }));
            order.iter().map(|sample| sample / 5).collect::<Vec<_>>()
        };
        assert_eq!(order(7, 1), order(7, 2), "windows of a file each");
        assert_ne!(order(7, 1), order(8, 1));
    }

    #[test]
    fn another_seed_is_another_order_and_the_same_seed_the_same() {
        let order = |seed| all(&Order::new(40, 5, (OFF, ON), 1024, seed));
        assert_eq!(order(5), order(5));
        assert_ne!(order(5), order(6));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_order_is_a_permutation_and_shares_are_disjoint_and_cover(
            n_files in 1_u64..400, per_file in 1_u64..9, window in 0_u64..100, seed: u64, files: bool, samples: bool, of in 1_u64..9,
        ) {
            let how = (if files { ON } else { OFF }, if samples { Shuffle::Random } else { OFF });
            let order = Order::new(n_files, per_file, how, window, seed);
            let n = n_files * per_file;
            let seen: BTreeSet<u64> = all(&order).into_iter().collect();
            prop_assert_eq!(&seen, &(0..n).collect::<BTreeSet<_>>());
            let mut shared = BTreeSet::new();
            for accelerator in 0..of {
                for position in share(n, accelerator, of) {
                    prop_assert!(shared.insert(order.at(position)));
                }
            }
            prop_assert!(n - (shared.len() as u64) < of);
        }

        #[test]
        fn a_computed_permutation_is_one(n in 1_u64..3000, seed: u64) {
            let seen: BTreeSet<u64> = (0..n).map(|position| scramble(n, seed, position)).collect();
            prop_assert_eq!(seen.len() as u64, n);
            prop_assert!(seen.iter().all(|x| *x < n));
        }
    }
}
