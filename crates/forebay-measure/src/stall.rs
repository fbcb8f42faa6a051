//! Attributes waits to their causes.
//!
//! Without prefetch, the part of a wait that the computation before it could have hidden is charged to the missing prefetch. The rest is
//! split by what the workers did meanwhile. Decoding that idle cores without a worker could have done is charged to too few threads.
//!
//! A reading thread is not always blocked: it also copies from memory or waits for a core. The scheduler's counters tell how much of the
//! reading was neither; only that is charged to the storage. Sleeps that emulate a workload's preprocessing, and waits of threads for one
//! another, are neither reading nor decoding.

use forebay_pipeline::{Activity, Scheduled, Times};
use forebay_record::{ByCause, Cause};
use serde::{Deserialize, Serialize};

/// Seconds per cause.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Causes {
    pub storage: f64,
    pub decode: f64,
    pub threads: f64,
    pub prefetch: f64,
    pub order: f64,
    pub cores: f64,
    pub preprocess: f64,
    pub other: f64,
}

impl Causes {
    pub fn add(&mut self, more: &Self) {
        self.storage += more.storage;
        self.decode += more.decode;
        self.threads += more.threads;
        self.prefetch += more.prefetch;
        self.order += more.order;
        self.cores += more.cores;
        self.preprocess += more.preprocess;
        self.other += more.other;
    }

    /// Cores and preprocessing appear only if they are not zero: not every kind of run can measure them.
    pub fn by_cause(&self) -> ByCause {
        let always = [
            (Cause::Storage, self.storage),
            (Cause::Decode, self.decode),
            (Cause::Threads, self.threads),
            (Cause::Prefetch, self.prefetch),
            (Cause::Order, self.order),
            (Cause::Other, self.other),
        ];
        let rare = [(Cause::Cores, self.cores), (Cause::Preprocess, self.preprocess)];
        always.into_iter().chain(rare.into_iter().filter(|(_, seconds)| *seconds > 0.0)).collect()
    }
}

/// Nanoseconds of the workers, by what they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    pub storage: f64,
    pub decode: f64,
    order: f64,
    preprocess: f64,
    reading: f64,
    decoding: f64,
}

/// Fractions of opening and reading; the rest was spent copying on a core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Waiting for the storage.
    pub blocked: f64,
    /// Runnable, waiting for a core.
    pub queued: f64,
}

impl Work {
    pub fn of(times: &Times) -> Self {
        let sum = |activities: &[Activity]| activities.iter().map(|a| times.ns(*a)).sum::<u64>() as f64;
        Self {
            // A decoder that waits for bytes waits for the storage; a reader that waits for a decoder, for decoding.
            storage: sum(&[Activity::Opening, Activity::Reading, Activity::WaitingForBytes]),
            decode: sum(&[
                Activity::Decoding,
                Activity::DecodingOnGpu,
                Activity::Resizing,
                Activity::WaitingForDecoder,
            ]),
            order: sum(&[Activity::WaitingForSlot]),
            preprocess: sum(&[Activity::Preprocessing]),
            reading: sum(&[Activity::Opening, Activity::Reading]),
            // On a core: a thread that waits for the GPU needs none.
            decoding: sum(&[Activity::Decoding, Activity::Resizing]),
        }
    }

    /// How threads spent opening and reading. Decoding never blocks, so any time it did not run it waited for a core; the rest of the
    /// scheduler's counts belongs to opening and reading. Those counts also include work between two samples, so the difference may
    /// be negative and is clamped to a fraction.
    pub fn split(&self, scheduled: Scheduled) -> Split {
        if self.reading <= 0.0 {
            return Split { blocked: 1.0, queued: 0.0 };
        }
        let (running, waiting) = (scheduled.running_ns as f64, scheduled.waiting_ns as f64);
        let copying = (running - self.decoding).clamp(0.0, self.reading);
        let decoding_waited = (self.decoding - running).max(0.0);
        let queued = (waiting - decoding_waited).clamp(0.0, self.reading - copying);
        Split { blocked: (self.reading - copying - queued) / self.reading, queued: queued / self.reading }
    }

    /// Charges only this fraction of opening and reading to the storage, the rest to decoding.
    #[must_use]
    pub fn with_blocked(self, share: f64) -> Self {
        let moved = self.storage * (1.0 - share);
        Self { storage: self.storage - moved, decode: self.decode + moved, ..self }
    }

    pub fn busy_s(&self) -> f64 {
        (self.storage + self.decode) / 1e9
    }

    fn total(&self) -> f64 {
        self.storage + self.decode + self.order + self.preprocess
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Charges {
    /// Includes the wait for the first batch.
    pub all: Causes,
    /// Without the wait for the first batch, which no prefetch can hide.
    pub later: Causes,
    /// Fraction of the cores without a worker.
    unused: f64,
}

impl Charges {
    pub fn new(threads: usize, cores: usize) -> Self {
        let unused = 1.0 - threads.min(cores) as f64 / cores as f64;
        Self { all: Causes::default(), later: Causes::default(), unused }
    }

    /// Attributes a wait by what the workers did meanwhile; prefetch would have hidden `hidden_ns` of it.
    pub fn add(&mut self, wait_ns: u64, hidden_ns: u64, stall: &Times, is_first: bool) {
        let unused = self.unused;
        self.all.charge(wait_ns, hidden_ns, stall, unused);
        if !is_first {
            self.later.charge(wait_ns, hidden_ns, stall, unused);
        }
    }

    /// Keeps only the blocked fraction with the storage; the rest is a matter of cores.
    #[must_use]
    pub fn with_split(self, split: Split) -> Self {
        let unused = self.unused;
        Self { all: self.all.with_split(split, unused), later: self.later.with_split(split, unused), unused }
    }
}

impl Causes {
    fn charge(&mut self, wait_ns: u64, hidden_ns: u64, stall: &Times, unused: f64) {
        let hidden = hidden_ns.min(wait_ns);
        self.prefetch += hidden as f64 / 1e9;
        let rest = (wait_ns - hidden) as f64 / 1e9;
        let work = Work::of(stall);
        if work.total() == 0.0 {
            // No worker ran: threads are being started, or the data has ended.
            self.other += rest;
            return;
        }
        let part = |ns: f64| rest * ns / work.total();
        self.storage += part(work.storage);
        self.decode += part(work.decode) * (1.0 - unused);
        self.threads += part(work.decode) * unused;
        self.order += part(work.order);
        self.preprocess += part(work.preprocess);
    }

    fn with_split(self, split: Split, unused: f64) -> Self {
        let moved = self.storage * (1.0 - split.blocked - split.queued);
        Self {
            storage: self.storage * split.blocked,
            cores: self.cores + self.storage * split.queued,
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
        causes.by_cause().values().sum()
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
        // Decoding ran for all of its two seconds, reading ran for one and waited for a core for two.
        let split = work.split(Scheduled { running_ns: 3_000_000_000, waiting_ns: 2_000_000_000 });
        assert_eq!(split, Split { blocked: 0.5, queued: 1.0 / 3.0 });
        assert_eq!(work.split(Scheduled { running_ns: 9_000_000_000, waiting_ns: 0 }).blocked, 0.0);
        let blocked = work.with_blocked(0.5);
        assert_eq!((blocked.storage, blocked.decode), (3e9, 5e9));
        let mut charges = Charges::new(1, 2);
        charges.add(8_000_000_000, 0, &times(&[(Activity::Reading, 6), (Activity::Decoding, 2)]), false);
        let causes = charges.with_split(Split { blocked: 0.5, queued: 0.25 }).all;
        assert_eq!((causes.storage, causes.cores, causes.decode, causes.threads), (3.0, 1.5, 1.75, 1.75));
    }

    #[test]
    fn reading_that_is_blocked_is_the_storages_although_decoding_waits_for_cores() {
        // A cold run on a busy machine: hardly anything ran.
        let work = Work::of(&times(&[(Activity::Reading, 700), (Activity::Decoding, 190)]));
        let split = work.split(Scheduled { running_ns: 100, waiting_ns: 90 });
        assert_eq!(split, Split { blocked: 1.0, queued: 0.0 });
    }

    #[test]
    fn sleeps_and_waits_for_other_threads_are_not_the_storages() {
        let slept = times(&[(Activity::Reading, 1_000), (Activity::Decoding, 1_000), (Activity::Preprocessing, 8_000)]);
        let on_cores = Scheduled { running_ns: 2_000, waiting_ns: 0 };
        assert_eq!(Work::of(&slept).split(on_cores).blocked, 0.0, "what was read came from memory");
        let waited = times(&[(Activity::Reading, 1_000), (Activity::WaitingForBytes, 3_000)]);
        assert_eq!(Work::of(&waited).split(Scheduled { running_ns: 250, waiting_ns: 0 }).blocked, 0.75);
        let mut charges = Charges::new(1, 1);
        charges.add(10_000_000_000, 0, &slept, false);
        assert_eq!((charges.all.preprocess, charges.all.decode, sum(&charges.all)), (8.0, 1.0, 10.0));
    }
}
