//! A latency histogram that many threads can write without locks.
//!
//! Buckets are log-linear: 16 per power of two, so a quantile is off by at most 1/16 of its value, over the whole
//! range from 1 ns to centuries in 8 KB.

use std::sync::atomic::{AtomicU64, Ordering};

const STEPS_LOG2: u32 = 4;
const STEPS: usize = 1 << STEPS_LOG2;
const N_BUCKETS: usize = STEPS * (64 - STEPS_LOG2 as usize + 1);

#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: (0..N_BUCKETS).map(|_| AtomicU64::new(0)).collect(), max: AtomicU64::new(0) }
    }
}

impl Histogram {
    pub fn record(&self, value: u64) {
        self.buckets[bucket_of(value)].fetch_add(1, Ordering::Relaxed);
        self.max.fetch_max(value, Ordering::Relaxed);
    }

    /// Counts all values of another histogram here too.
    pub fn add(&self, other: &Self) {
        for (into, from) in self.buckets.iter().zip(&other.buckets) {
            let n = from.load(Ordering::Relaxed);
            if n > 0 {
                into.fetch_add(n, Ordering::Relaxed);
            }
        }
        self.max.fetch_max(other.max.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The buckets that are not empty, smallest values first: the largest value each can hold, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        counts.enumerate().filter(|(_, n)| *n > 0).map(|(bucket, n)| (upper_bound(bucket), n))
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.load(Ordering::Relaxed)).sum()
    }

    /// The largest value, exact; `None` when nothing was counted.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.max.load(Ordering::Relaxed))
    }

    /// The `q`-quantile (0 to 1), too high by at most 1/16 of its value; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let wanted = (q.clamp(0.0, 1.0) * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (i, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.load(Ordering::Relaxed);
            if seen >= wanted {
                return Some(upper_bound(i).min(self.max.load(Ordering::Relaxed)));
            }
        }
        self.max()
    }
}

fn bucket_of(value: u64) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let power = 63 - value.leading_zeros();
    let step = (value >> (power - STEPS_LOG2)) as usize & (STEPS - 1);
    (power - STEPS_LOG2 + 1) as usize * STEPS + step
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let power = (bucket / STEPS) as u32 + STEPS_LOG2 - 1;
    let step = (bucket % STEPS) as u64;
    let width = 1u64 << (power - STEPS_LOG2);
    (1u64 << power) + step * width + (width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_known_series() {
        let h = Histogram::default();
        (1..=1000).for_each(|v| h.record(v));
        assert_eq!(h.count(), 1000);
        assert_eq!(h.max(), Some(1000));
        let median = h.quantile(0.5).unwrap();
        assert!((500..=531).contains(&median), "{median}");
        assert_eq!(h.quantile(1.0), Some(1000));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn a_sum_holds_the_values_of_both_and_its_buckets_hold_every_value() {
        let (one, two) = (Histogram::default(), Histogram::default());
        [3, 3, 1_000].into_iter().for_each(|v| one.record(v));
        [3, 70_000].into_iter().for_each(|v| two.record(v));
        one.add(&two);
        assert_eq!((one.count(), one.max()), (5, Some(70_000)));
        let buckets: Vec<(u64, u64)> = one.buckets().collect();
        assert_eq!(buckets, [(3, 3), (1_023, 1), (73_727, 1)]);
        assert_eq!(Histogram::default().buckets().count(), 0);
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(value in any::<u64>()) {
            let bucket = bucket_of(value);
            prop_assert!(bucket < N_BUCKETS);
            prop_assert!(upper_bound(bucket) >= value);
            prop_assert!(bucket == 0 || upper_bound(bucket - 1) < value);
        }
    }
}
