//! The current activity of every worker, and since when.
//!
//! A worker owns a ledger: its current activity, when that began, and the total time per activity. Switching activities
//! costs one clock reading. The consumer reads all ledgers at the start and at the end of a wait and charges the stall
//! to the difference.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use forebay_units::Clock;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Activity {
    Opening,
    Reading,
    /// Checking and decoding a sample, or running the user's function.
    Decoding,
    /// Waiting for a GPU that decodes, resizes and augments samples.
    DecodingOnGpu,
    Resizing,
    /// Sleeping for the time that a workload specifies as processing time of a sample.
    Preprocessing,
    /// Waiting for a free slot: the consumer is slower, or there is no prefetch.
    WaitingForSlot,
    WaitingForBytes,
    /// A reader waiting for a decoder to return a buffer.
    WaitingForDecoder,
    /// Not needed: the data has ended, or the tuner has paused this thread.
    Idle,
}

impl Activity {
    /// All activities, in the order in which a sample passes them.
    pub const ALL: [Self; 10] = [
        Self::Opening,
        Self::Reading,
        Self::Decoding,
        Self::DecodingOnGpu,
        Self::Resizing,
        Self::Preprocessing,
        Self::WaitingForSlot,
        Self::WaitingForBytes,
        Self::WaitingForDecoder,
        Self::Idle,
    ];

    /// The name in records; it is stored, so it must not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Reading => "reading",
            Self::Decoding => "decoding",
            Self::DecodingOnGpu => "decoding_on_gpu",
            Self::Resizing => "resizing",
            Self::Preprocessing => "preprocessing",
            Self::WaitingForSlot => "waiting_for_slot",
            Self::WaitingForBytes => "waiting_for_bytes",
            Self::WaitingForDecoder => "waiting_for_decoder",
            Self::Idle => "idle",
        }
    }
}

const N: usize = Activity::ALL.len();

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times([u64; N]);

impl Times {
    pub fn ns(&self, activity: Activity) -> u64 {
        self.0[activity as usize]
    }

    pub fn total_ns(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Seconds by name, for records. Preprocessing and decoding on a GPU are included only if there was any.
    pub fn seconds(&self) -> BTreeMap<String, f64> {
        let is_rare = |a: Activity| matches!(a, Activity::Preprocessing | Activity::DecodingOnGpu);
        let is_named = |a: &&Activity| !is_rare(**a) || self.ns(**a) > 0;
        Activity::ALL.iter().filter(is_named).map(|a| (a.name().to_owned(), self.ns(*a) as f64 / 1e9)).collect()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
    }

    /// The time since an earlier snapshot.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut left = *self;
        left.0.iter_mut().zip(earlier.0).for_each(|(a, b)| *a = a.saturating_sub(b));
        left
    }
}

impl FromIterator<(Activity, u64)> for Times {
    fn from_iter<I: IntoIterator<Item = (Activity, u64)>>(entries: I) -> Self {
        let mut times = Self::default();
        entries.into_iter().for_each(|(activity, ns)| times.0[activity as usize] += ns);
        times
    }
}

/// The ledger of one worker. Only that worker writes it; the consumer reads it.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Ledger {
    /// Odd while the owner writes; a reader that sees a torn snapshot reads again.
    version: AtomicU32,
    doing: AtomicU8,
    since_ns: AtomicU64,
    spent_ns: [AtomicU64; N],
}

impl Ledger {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            version: AtomicU32::new(0),
            doing: AtomicU8::new(Activity::Idle as u8),
            since_ns: AtomicU64::new(now_ns),
            spent_ns: [const { AtomicU64::new(0) }; N],
        }
    }

    fn enter(&self, activity: Activity, now_ns: u64) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let spent = &self.spent_ns[usize::from(self.doing.load(Ordering::Relaxed))];
        let gone = now_ns.saturating_sub(self.since_ns.load(Ordering::Relaxed));
        spent.store(spent.load(Ordering::Relaxed) + gone, Ordering::Relaxed);
        self.doing.store(activity as u8, Ordering::Relaxed);
        self.since_ns.store(now_ns, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The times as of `now_ns`, including the running time of the current activity.
    pub(crate) fn read(&self, now_ns: u64) -> Times {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let doing = usize::from(self.doing.load(Ordering::Relaxed));
            let since = self.since_ns.load(Ordering::Relaxed);
            let mut times = Times::default();
            for (time, spent) in times.0.iter_mut().zip(&self.spent_ns) {
                *time = spent.load(Ordering::Relaxed);
            }
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && version == self.version.load(Ordering::Relaxed) {
                times.0[doing] += now_ns.saturating_sub(since);
                return times;
            }
            std::hint::spin_loop();
        }
    }
}

/// The writer of a worker's ledger; there is only one.
pub struct Stopwatch {
    ledger: Arc<Ledger>,
    clock: Arc<dyn Clock>,
    doing: Activity,
}

impl Stopwatch {
    pub(crate) fn new(ledger: Arc<Ledger>, clock: Arc<dyn Clock>) -> Self {
        Self { ledger, clock, doing: Activity::Idle }
    }

    /// Switches the worker to `activity`.
    pub fn enter(&mut self, activity: Activity) {
        if self.doing != activity {
            self.doing = activity;
            self.ledger.enter(activity, self.clock.now_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_units::ManualClock;
    use std::time::Duration;

    #[test]
    fn every_nanosecond_is_on_one_account() {
        let clock = Arc::new(ManualClock::default());
        let ledger = Arc::new(Ledger::new(0));
        let mut watch = Stopwatch::new(Arc::clone(&ledger), clock.clone());
        clock.advance(Duration::from_nanos(5));
        watch.enter(Activity::Reading);
        clock.advance(Duration::from_nanos(7));
        watch.enter(Activity::Decoding);
        clock.advance(Duration::from_nanos(11));
        let times = ledger.read(clock.now_ns());
        assert_eq!(times.ns(Activity::Idle), 5);
        assert_eq!(times.ns(Activity::Reading), 7);
        assert_eq!(times.ns(Activity::Decoding), 11);
        assert_eq!(times.total_ns(), clock.now_ns());
    }

    #[test]
    fn a_difference_of_two_pictures_is_the_time_between_them() {
        let clock = Arc::new(ManualClock::default());
        let ledger = Arc::new(Ledger::new(0));
        let mut watch = Stopwatch::new(Arc::clone(&ledger), clock.clone());
        watch.enter(Activity::Reading);
        clock.advance(Duration::from_nanos(100));
        let before = ledger.read(clock.now_ns());
        clock.advance(Duration::from_nanos(30));
        watch.enter(Activity::Resizing);
        clock.advance(Duration::from_nanos(12));
        let stall = ledger.read(clock.now_ns()).since(&before);
        assert_eq!((stall.ns(Activity::Reading), stall.ns(Activity::Resizing), stall.total_ns()), (30, 12, 42));
    }
}
