//! What a wait is charged to.
//!
//! Without prefetch, the part of a wait that fits behind the computation before it is charged to the missing prefetch:
//! that much would have been hidden. The rest is charged by what the workers did meanwhile. Of the decoding, the part that
//! cores without a worker could have taken over is charged to too few threads.
//!
//! A thread that reads is not always blocked: it copies from memory, or waits for a core. What the scheduler counted for the
//! threads says how much of their reading was neither; only that is the storage's.

use std::collections::BTreeMap;

use forebay_pipeline::{Activity, Scheduled, Times};

/// Seconds of waiting by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Causes {
    pub(crate) storage: f64,
    pub(crate) decode: f64,
    pub(crate) threads: f64,
    pub(crate) prefetch: f64,
    pub(crate) order: f64,
    pub(crate) other: f64,
}

impl Causes {
    pub(crate) fn by_name(&self) -> BTreeMap<String, f64> {
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
pub(crate) struct Work {
    pub(crate) storage: f64,
    pub(crate) decode: f64,
    order: f64,
}

impl Work {
    pub(crate) fn of(times: &Times) -> Self {
        let sum = |activities: &[Activity]| activities.iter().map(|a| times.ns(*a)).sum::<u64>() as f64;
        Self {
            // A decoder that waits for bytes waits for the storage; a reader that waits for a decoder, for decoding.
            storage: sum(&[Activity::Opening, Activity::Reading, Activity::WaitingForBytes]),
            decode: sum(&[Activity::Decoding, Activity::Resizing, Activity::WaitingForDecoder]),
            order: sum(&[Activity::WaitingForSlot]),
        }
    }

    /// The share of opening and reading for which threads were blocked: of all their work, what they neither ran nor waited
    /// for a core. The scheduler also counts what they did between two samples, so that what is left may be below nothing;
    /// a share is not.
    pub(crate) fn blocked_share(&self, scheduled: Scheduled) -> f64 {
        let on_processors = (scheduled.running_ns + scheduled.waiting_ns) as f64;
        let blocked = self.storage + self.decode - on_processors;
        if self.storage > 0.0 { (blocked / self.storage).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// The same with only that share of opening and reading charged to the storage.
    #[must_use]
    pub(crate) fn with_blocked(self, share: f64) -> Self {
        let moved = self.storage * (1.0 - share);
        Self { storage: self.storage - moved, decode: self.decode + moved, ..self }
    }

    /// Reading and decoding, in seconds.
    pub(crate) fn busy_s(&self) -> f64 {
        (self.storage + self.decode) / 1e9
    }

    fn total(&self) -> f64 {
        self.storage + self.decode + self.order
    }
}

/// What the waits of a run are charged to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Charges {
    /// All of them.
    pub(crate) all: Causes,
    /// Those after the first batch, which nothing can hide.
    pub(crate) later: Causes,
    /// The share of the cores that have no worker.
    unused: f64,
}

impl Charges {
    pub(crate) fn new(threads: usize, cores: usize) -> Self {
        let unused = 1.0 - threads.min(cores) as f64 / cores as f64;
        Self { all: Causes::default(), later: Causes::default(), unused }
    }

    /// Charges a wait, of which `hidden_ns` would not have been there with prefetch, by what the workers did meanwhile.
    pub(crate) fn add(&mut self, wait_ns: u64, hidden_ns: u64, stall: &Times, is_first: bool) {
        let unused = self.unused;
        self.all.add(wait_ns, hidden_ns, stall, unused);
        if !is_first {
            self.later.add(wait_ns, hidden_ns, stall, unused);
        }
    }

    /// Of what is charged to the storage, only this share was spent blocked; the rest was a matter of processors.
    #[must_use]
    pub(crate) fn with_blocked(self, share: f64) -> Self {
        let unused = self.unused;
        Self { all: self.all.with_blocked(share, unused), later: self.later.with_blocked(share, unused), unused }
    }
}

impl Causes {
    fn add(&mut self, wait_ns: u64, hidden_ns: u64, stall: &Times, unused: f64) {
        let hidden = hidden_ns.min(wait_ns);
        self.prefetch += hidden as f64 / 1e9;
        let rest = (wait_ns - hidden) as f64 / 1e9;
        let work = Work::of(stall);
        if work.total() == 0.0 {
            // Threads that are being started, or that the data's end has sent home.
            self.other += rest;
            return;
        }
        let part = |ns: f64| rest * ns / work.total();
        self.storage += part(work.storage);
        self.decode += part(work.decode) * (1.0 - unused);
        self.threads += part(work.decode) * unused;
        self.order += part(work.order);
    }

    fn with_blocked(self, share: f64, unused: f64) -> Self {
        let moved = self.storage * (1.0 - share);
        Self {
            storage: self.storage * share,
            decode: self.decode + moved * (1.0 - unused),
            threads: self.threads + moved * unused,
            ..self
        }
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
        charges.add(1_000_000_000, 0, &times(&[(Activity::Reading, 300), (Activity::Decoding, 100)]), true);
        assert_eq!((charges.all.storage, charges.all.decode), (0.75, 0.25));
        assert_eq!(charges.later, Causes::default(), "the first wait is apart");
        charges.add(2_000_000_000, 0, &times(&[(Activity::WaitingForSlot, 5), (Activity::Idle, 50)]), false);
        assert_eq!((charges.all.order, charges.later.order), (2.0, 2.0));
        charges.add(500_000_000, 0, &times(&[(Activity::Idle, 50)]), false);
        assert_eq!((charges.all.other, sum(&charges.all), sum(&charges.later)), (0.5, 3.5, 2.5));
    }

    #[test]
    fn what_prefetch_would_have_hidden_is_charged_to_its_absence() {
        let mut charges = Charges::new(1, 1);
        charges.add(3_000_000_000, 2_000_000_000, &times(&[(Activity::Opening, 9)]), false);
        charges.add(1_000_000_000, 2_000_000_000, &times(&[(Activity::Opening, 9)]), false);
        assert_eq!((charges.all.prefetch, charges.all.storage, sum(&charges.all)), (3.0, 1.0, 4.0));
    }

    #[test]
    fn decoding_that_idle_cores_could_do_is_charged_to_too_few_threads() {
        let mut charges = Charges::new(2, 8);
        charges.add(4_000_000_000, 0, &times(&[(Activity::Decoding, 1)]), false);
        assert_eq!((charges.all.decode, charges.all.threads), (1.0, 3.0));
        assert_eq!(Charges::new(16, 8).unused, 0.0, "more threads than cores are not too few");
    }

    #[test]
    fn a_thread_that_reads_and_is_not_blocked_waits_for_no_storage() {
        let work = Work::of(&times(&[(Activity::Reading, 6_000_000_000), (Activity::Decoding, 2_000_000_000)]));
        // Of eight seconds, five were spent on or waiting for a core.
        let share = work.blocked_share(Scheduled { running_ns: 3_000_000_000, waiting_ns: 2_000_000_000 });
        assert_eq!(share, 0.5);
        assert_eq!(work.blocked_share(Scheduled { running_ns: 9_000_000_000, waiting_ns: 0 }), 0.0);
        let work = work.with_blocked(share);
        assert_eq!((work.storage, work.decode), (3e9, 5e9));
        let mut charges = Charges::new(1, 2);
        charges.add(8_000_000_000, 0, &times(&[(Activity::Reading, 6), (Activity::Decoding, 2)]), false);
        let causes = charges.with_blocked(0.5).all;
        assert_eq!((causes.storage, causes.decode, causes.threads), (3.0, 2.5, 2.5));
    }
}
