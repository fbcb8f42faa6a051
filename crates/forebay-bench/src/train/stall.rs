//! What a wait is charged to.
//!
//! Without prefetch, the part of a wait that fits behind the computation before it is charged to the missing prefetch:
//! that much would have been hidden. The rest is charged by what the workers did meanwhile. Of the decoding, the part that
//! cores without a worker could have taken over is charged to too few threads.

use std::collections::BTreeMap;

use forebay_pipeline::{Activity, Times};

/// Seconds of waiting by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Causes {
    pub(super) storage: f64,
    pub(super) decode: f64,
    pub(super) threads: f64,
    pub(super) prefetch: f64,
    pub(super) order: f64,
    pub(super) other: f64,
}

impl Causes {
    pub(super) fn by_name(&self) -> BTreeMap<String, f64> {
        let named = [
            ("storage", self.storage),
            ("decode", self.decode),
            ("threads", self.threads),
            ("prefetch", self.prefetch),
            ("order", self.order),
            ("other", self.other),
        ];
        named.into_iter().map(|(name, seconds)| (name.to_owned(), seconds)).collect()
    }
}

/// Nanoseconds that workers spent on what a wait can be charged to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Work {
    pub(super) storage: f64,
    pub(super) decode: f64,
    order: f64,
}

impl Work {
    pub(super) fn of(times: &Times) -> Self {
        let sum = |activities: &[Activity]| activities.iter().map(|a| times.ns(*a)).sum::<u64>() as f64;
        Self {
            // A decoder that waits for bytes waits for the storage; a reader that waits for a decoder, for decoding.
            storage: sum(&[Activity::Opening, Activity::Reading, Activity::WaitingForBytes]),
            decode: sum(&[Activity::Decoding, Activity::Resizing, Activity::WaitingForDecoder]),
            order: sum(&[Activity::WaitingForSlot]),
        }
    }

    /// Reading and decoding, in seconds.
    pub(super) fn busy_s(&self) -> f64 {
        (self.storage + self.decode) / 1e9
    }

    fn total(&self) -> f64 {
        self.storage + self.decode + self.order
    }
}

/// What all waits of a run are charged to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Charges {
    pub(super) causes: Causes,
    /// The share of the cores that have no worker.
    unused: f64,
}

impl Charges {
    pub(super) fn new(threads: usize, cores: usize) -> Self {
        let unused = 1.0 - threads.min(cores) as f64 / cores as f64;
        Self { causes: Causes::default(), unused }
    }

    /// Charges a wait, of which `hidden_ns` would not have been there with prefetch, by what the workers did meanwhile.
    pub(super) fn add(&mut self, wait_ns: u64, hidden_ns: u64, stall: &Times) {
        let causes = &mut self.causes;
        let hidden = hidden_ns.min(wait_ns);
        causes.prefetch += hidden as f64 / 1e9;
        let rest = (wait_ns - hidden) as f64 / 1e9;
        let work = Work::of(stall);
        if work.total() == 0.0 {
            // Threads that are being started, or that the data's end has sent home.
            causes.other += rest;
            return;
        }
        let part = |ns: f64| rest * ns / work.total();
        causes.storage += part(work.storage);
        causes.decode += part(work.decode) * (1.0 - self.unused);
        causes.threads += part(work.decode) * self.unused;
        causes.order += part(work.order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(entries: &[(Activity, u64)]) -> Times {
        entries.iter().copied().collect()
    }

    fn sum(causes: &Causes) -> f64 {
        causes.by_name().values().sum()
    }

    #[test]
    fn a_wait_is_charged_by_what_the_workers_did_and_in_full() {
        let mut charges = Charges::new(2, 2);
        charges.add(1_000_000_000, 0, &times(&[(Activity::Reading, 300), (Activity::Decoding, 100)]));
        assert_eq!((charges.causes.storage, charges.causes.decode), (0.75, 0.25));
        charges.add(2_000_000_000, 0, &times(&[(Activity::WaitingForSlot, 5), (Activity::Idle, 50)]));
        assert_eq!(charges.causes.order, 2.0);
        charges.add(500_000_000, 0, &times(&[(Activity::Idle, 50)]));
        assert_eq!((charges.causes.other, sum(&charges.causes)), (0.5, 3.5));
    }

    #[test]
    fn what_prefetch_would_have_hidden_is_charged_to_its_absence() {
        let mut charges = Charges::new(1, 1);
        charges.add(3_000_000_000, 2_000_000_000, &times(&[(Activity::Opening, 9)]));
        charges.add(1_000_000_000, 2_000_000_000, &times(&[(Activity::Opening, 9)]));
        assert_eq!((charges.causes.prefetch, charges.causes.storage, sum(&charges.causes)), (3.0, 1.0, 4.0));
    }

    #[test]
    fn decoding_that_idle_cores_could_do_is_charged_to_too_few_threads() {
        let mut charges = Charges::new(2, 8);
        charges.add(4_000_000_000, 0, &times(&[(Activity::Decoding, 1)]));
        assert_eq!((charges.causes.decode, charges.causes.threads), (1.0, 3.0));
        assert_eq!(Charges::new(16, 8).unused, 0.0, "more threads than cores are not too few");
    }
}
