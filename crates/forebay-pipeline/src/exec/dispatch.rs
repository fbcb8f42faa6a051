//! Distributing work: which sample goes into which slot, and how far ahead of the consumer.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::activity::{Activity, Stopwatch};
use super::ring::{Ring, SlotState};
use crate::error::{FailedSample, SampleError};
use crate::source::{Index, Packing};
use crate::stage::Sequence;

/// Adjacent samples of a shard are read together up to this many bytes.
const RUN_BYTES: u64 = 1 << 20;

const NOBODY: u64 = u64::MAX;
/// Interval at which a stoppable consumer checks its flag; setting the flag does not wake it.
const LOOK_FOR_STOP: Duration = Duration::from_millis(50);

struct Desk {
    order: Box<dyn Sequence>,
    /// An index taken from the order but not yet handed out.
    held: Option<u32>,
    next: u64,
    /// Slots below this one may be claimed.
    limit: u64,
    /// The limit if the ring had enough room.
    wanted: u64,
    /// Total number of slots, once the order has ended.
    end: Option<u64>,
    /// Slots below this one are free again.
    released: u64,
    /// Slots released out of order: start and end.
    released_early: BTreeMap<u64, u64>,
}

pub(crate) struct Dispatch {
    pub(crate) ring: Ring,
    desk: Mutex<Desk>,
    may_claim: Condvar,
    /// Where workers wait that the tuner has paused; separate, so a new batch does not wake them.
    rest_is_over: Condvar,
    /// The thread that waits for a slot. Unparking it takes no lock, since it might hold the lock while it is not
    /// running.
    consumer: Mutex<Option<Thread>>,
    awaited: AtomicU64,
    closed: AtomicBool,
    next_slot: AtomicU64,
    failures: Mutex<HashMap<u64, FailedSample>>,
    /// Workers with a lower number are active.
    pub(crate) active: AtomicUsize,
    pub(crate) bytes_read: AtomicU64,
    /// Requests to the storage.
    pub(crate) n_requests: AtomicU64,
}

/// Consecutive positions of the order, each with its slot.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    pub(crate) first_slot: u64,
    pub(crate) samples: Vec<u32>,
}

impl Claim {
    /// Copies samples `range` of another claim.
    pub(crate) fn take_part(&mut self, whole: &Self, range: std::ops::Range<usize>) {
        self.first_slot = whole.first_slot + range.start as u64;
        self.samples.clear();
        self.samples.extend_from_slice(&whole.samples[range]);
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimSize {
    /// Maximum number of samples that are fetched together.
    pub(crate) samples: usize,
    /// Number of workers that share the claimable samples, so none takes all of them.
    pub(crate) sharers: usize,
}

impl Dispatch {
    pub(crate) fn new(ring: Ring, order: Box<dyn Sequence>, limit: u64, active: usize) -> Self {
        let (wanted, released_early) = (limit, BTreeMap::new());
        let desk = Desk { order, held: None, next: 0, limit, wanted, end: None, released: 0, released_early };
        Self {
            ring,
            desk: Mutex::new(desk),
            may_claim: Condvar::new(),
            rest_is_over: Condvar::new(),
            consumer: Mutex::new(None),
            awaited: AtomicU64::new(NOBODY),
            closed: AtomicBool::new(false),
            next_slot: AtomicU64::new(0),
            failures: Mutex::new(HashMap::new()),
            active: AtomicUsize::new(active),
            bytes_read: AtomicU64::new(0),
            n_requests: AtomicU64::new(0),
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("no holder of this lock panics")
    }

    /// The next piece of work for worker `number`, or `false` if none is left.
    pub(crate) fn claim(
        &self,
        number: usize,
        size: ClaimSize,
        index: &Index,
        claim: &mut Claim,
        watch: &mut Stopwatch,
    ) -> bool {
        claim.samples.clear();
        let mut desk = match self.desk.try_lock() {
            Ok(desk) => desk,
            Err(_) => {
                watch.enter(Activity::WaitingForSlot);
                self.desk()
            }
        };
        loop {
            if self.closed.load(Ordering::Relaxed) || desk.end.is_some() {
                return false;
            }
            let resting = number >= self.active.load(Ordering::Relaxed);
            if !resting && desk.next < desk.limit {
                break;
            }
            watch.enter(if resting { Activity::Idle } else { Activity::WaitingForSlot });
            let signal = if resting { &self.rest_is_over } else { &self.may_claim };
            desk = signal.wait(desk).expect("no holder of this lock panics");
        }
        claim.first_slot = desk.next;
        desk.take_run(size, index, &mut claim.samples);
        if desk.end.is_some() {
            drop(desk);
            self.wake_all();
            self.wake_consumer();
        }
        !claim.samples.is_empty()
    }

    /// In first-come order, a sample gets its slot only when its bytes have arrived.
    pub(crate) fn next_slot(&self) -> u64 {
        self.next_slot.fetch_add(1, Ordering::Relaxed)
    }

    /// Publishes a slot and wakes the consumer if it waits for this one.
    pub(crate) fn finish(&self, slot: u64, sample: u32, outcome: Result<i64, SampleError>, index: &Index) {
        match outcome {
            Ok(label) => self.ring.finish(slot, sample, label, SlotState::Good),
            Err(error) => {
                let (name, error) = match error {
                    SampleError::Of { name, error } => (name, *error),
                    error => (index.name_of(sample), error),
                };
                let failed = FailedSample { index: sample, name, error };
                self.failures.lock().expect("no holder of this lock panics").insert(slot, failed);
                self.ring.finish(slot, sample, 0, SlotState::Hole);
            }
        }
        if self.awaited.load(Ordering::SeqCst) == slot {
            self.wake_consumer();
        }
    }

    fn wake_all(&self) {
        self.may_claim.notify_all();
        self.rest_is_over.notify_all();
    }

    fn wake_consumer(&self) {
        if let Some(consumer) = &*self.consumer.lock().expect("no holder of this lock panics") {
            consumer.unpark();
        }
    }

    pub(crate) fn take_failure(&self, slot: u64) -> FailedSample {
        let mut failures = self.failures.lock().expect("no holder of this lock panics");
        failures.remove(&slot).expect("a hole is published after its failure was filed")
    }

    /// Blocks until `slot` is finished, the order is known to end before it, or `stop` is set.
    pub(crate) fn wait_for(&self, slot: u64, stop: Option<&AtomicBool>) {
        self.register(slot);
        while self.is_missing(slot) {
            match stop {
                None => thread::park(),
                Some(stop) if stop.load(Ordering::Relaxed) => break,
                // Setting the flag wakes nobody.
                Some(_) => thread::park_timeout(LOOK_FOR_STOP),
            }
        }
        self.awaited.store(NOBODY, Ordering::SeqCst);
    }

    /// The same, but until a moment.
    pub(crate) fn wait_till(&self, slot: u64, end: Instant) {
        self.register(slot);
        while self.is_missing(slot) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
        self.awaited.store(NOBODY, Ordering::SeqCst);
    }

    /// Registers the calling thread to be unparked when `slot` is finished or the order is known to end before it;
    /// returns `false` if that is already the case.
    pub(crate) fn wake_for(&self, slot: u64) -> bool {
        self.register(slot);
        let is_missing = self.is_missing(slot);
        if !is_missing {
            self.awaited.store(NOBODY, Ordering::SeqCst);
        }
        is_missing
    }

    /// Whether the slot requested last is still missing. The thread to unpark must be the calling one.
    pub(crate) fn awaits_still(&self) -> bool {
        let slot = self.awaited.load(Ordering::SeqCst);
        if slot == NOBODY {
            return false;
        }
        self.register(slot);
        self.is_missing(slot)
    }

    fn register(&self, slot: u64) {
        *self.consumer.lock().expect("no holder of this lock panics") = Some(thread::current());
        self.awaited.store(slot, Ordering::SeqCst);
    }

    fn is_missing(&self, slot: u64) -> bool {
        self.ring.state(slot) == SlotState::Pending && self.end().is_none_or(|end| slot < end)
    }

    /// Total number of slots, once known.
    pub(crate) fn end(&self) -> Option<u64> {
        self.desk().end
    }

    /// Lets workers claim slots below `wanted`: at once as far as the ring has room, later as it gets more. Returns the
    /// new limit.
    pub(crate) fn raise_limit(&self, wanted: u64) -> u64 {
        let mut desk = self.desk();
        desk.wanted = desk.wanted.max(wanted);
        self.make_use_of_room(&mut desk);
        desk.limit
    }

    fn make_use_of_room(&self, desk: &mut Desk) {
        let limit = desk.wanted.min(desk.released + self.ring.capacity());
        if limit > desk.limit {
            desk.limit = limit;
            self.may_claim.notify_all();
        }
    }

    /// Releases slots `start..end` for reuse, once all slots before them are released. Wakes workers that wait for
    /// room.
    pub(crate) fn release(&self, start: u64, end: u64) {
        let mut desk = self.desk();
        desk.released_early.insert(start, end);
        while let Some(first) = desk.released_early.first_entry()
            && *first.key() == desk.released
        {
            desk.released = desk.released_early.pop_first().map_or(desk.released, |(_, end)| end);
        }
        self.make_use_of_room(&mut desk);
    }

    pub(crate) fn set_active(&self, n: usize) {
        let _desk = self.desk();
        self.active.store(n, Ordering::Relaxed);
        self.wake_all();
    }

    /// Stops handing out work and wakes sleeping workers, which then end.
    pub(crate) fn close(&self) {
        let _desk = self.desk();
        self.closed.store(true, Ordering::Relaxed);
        self.wake_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

impl Desk {
    fn pop(&mut self) -> Option<u32> {
        self.held.take().or_else(|| self.order.next())
    }

    /// Takes the next samples: several files, or neighbouring samples of a shard.
    fn take_run(&mut self, size: ClaimSize, index: &Index, out: &mut Vec<u32>) {
        // Half of an equal share: claims shrink towards the end, so all workers finish together.
        let parts = if size.sharers > 1 { 2 * size.sharers } else { 1 };
        let share = ((self.limit - self.next) as usize / parts).max(1);
        let most = size.samples.min(share);
        let mut bytes = 0;
        while out.len() < most {
            let Some(sample) = self.pop() else {
                if out.is_empty() {
                    self.end = Some(self.next);
                }
                break;
            };
            if let Some(last) = out.last()
                && !matches!(index.packing, Packing::Files | Packing::Streamed)
                && (!lies_behind(index, *last, sample) || bytes >= RUN_BYTES)
            {
                self.held = Some(sample);
                break;
            }
            bytes += index.places.get(sample as usize).map_or(0, |place| place.len);
            out.push(sample);
        }
        self.next += out.len() as u64;
    }
}

fn lies_behind(index: &Index, first: u32, second: u32) -> bool {
    let (first, second) = (&index.places[first as usize], &index.places[second as usize]);
    first.file == second.file && first.offset + first.len == second.offset
}
