//! The threads: workers that read and decode, or separate readers and decoders.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

use forebay_storage::Buffer;
use forebay_units::Clock;

use super::activity::{Activity, Ledger, Stopwatch};
use super::dispatch::{Claim, ClaimSize, Dispatch};
use super::fetch::{Fetcher, Parcel};
use super::roster::Roster;
use crate::error::SampleError;
use crate::map::{Job, Map, MapWorker, Sample};
use crate::source::{Content, Source};
use crate::stage_cache::Cache;

/// State shared by all threads of an iterator.
pub(crate) struct Shared {
    pub(crate) dispatch: Dispatch,
    pub(crate) source: Source,
    pub(crate) map: Arc<dyn Map>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledgers: Vec<Arc<Ledger>>,
    /// Whether slots follow the order of the samples; otherwise they follow the order in which bytes arrive.
    pub(crate) deterministic: bool,
    pub(crate) claim_size: ClaimSize,
    /// The position in the order of slot 0.
    pub(crate) first_position: u64,
    /// Samples per epoch; `None` if there is one epoch.
    pub(crate) epoch_len: Option<u64>,
    pub(crate) made: Option<Arc<Cache>>,
    pub(crate) exchange: Exchange,
    pub(crate) roster: Roster,
}

impl Shared {
    fn watch(&self, ledger: usize) -> Stopwatch {
        Stopwatch::new(Arc::clone(&self.ledgers[ledger]), Arc::clone(&self.clock))
    }

    fn fetch(&self, fetcher: &mut Fetcher, parcel: &mut Parcel, watch: &mut Stopwatch) {
        let moved = fetcher.fetch(parcel, watch);
        self.dispatch.bytes_read.fetch_add(moved, Ordering::Relaxed);
        self.dispatch.n_requests.fetch_add(fetcher.take_requests(), Ordering::Relaxed);
    }

    /// Makes and publishes all samples of the parcel.
    fn make_all(&self, parcel: &Parcel, worker: &mut Box<dyn MapWorker>, scratch: &mut Buffer, watch: &mut Stopwatch) {
        if self.map.group() > 1 {
            return self.make_group(parcel, worker, scratch, watch);
        }
        for (i, sample) in parcel.claim.samples.iter().enumerate() {
            if self.dispatch.is_closed() {
                return;
            }
            let slot = self.slot_of(parcel, i);
            // SAFETY: this worker holds the claim on the slot, and finishes it only below.
            let memory = unsafe { self.dispatch.ring.slot_mut(slot) };
            let outcome = match self.recall(*sample, memory, scratch) {
                Some(outcome) => outcome,
                None => {
                    let position = self.first_position + parcel.claim.first_slot + i as u64;
                    let which = (*sample, self.epoch_of(position));
                    self.make(which, parcel.bytes(i), memory, worker, scratch, watch)
                }
            };
            self.dispatch.finish(slot, *sample, outcome, &self.source.index);
        }
    }

    /// The same, for a map that takes several samples at a time.
    fn make_group(
        &self,
        parcel: &Parcel,
        worker: &mut Box<dyn MapWorker>,
        scratch: &mut Buffer,
        watch: &mut Stopwatch,
    ) {
        let (mut jobs, mut slots) = (Vec::with_capacity(parcel.claim.samples.len()), Vec::new());
        watch.enter(Activity::Decoding);
        for (i, sample) in parcel.claim.samples.iter().enumerate() {
            if self.dispatch.is_closed() {
                return;
            }
            let slot = self.slot_of(parcel, i);
            // SAFETY: as in `make_all`; each slot has one job.
            let memory = unsafe { self.dispatch.ring.slot_mut(slot) };
            let outcome = match self.recall(*sample, memory, scratch) {
                Some(outcome) => outcome,
                None => match parcel.bytes(i).and_then(|stored| self.content(*sample, stored)) {
                    Err(error) => Err(error),
                    Ok(content) => {
                        let epoch = self.epoch_of(self.first_position + parcel.claim.first_slot + i as u64);
                        let sample = Sample { index: *sample, epoch, label: content.label, bytes: content.bytes };
                        jobs.push(Job { sample, slot: memory, outcome: Ok(()) });
                        slots.push(slot);
                        continue;
                    }
                },
            };
            self.dispatch.finish(slot, *sample, outcome, &self.source.index);
        }
        if jobs.is_empty() {
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| worker.map_group(&mut jobs, watch)));
        self.dispatch.bytes_read.fetch_add(worker.take_moved(), Ordering::Relaxed);
        let panic = outcome.err().map(|panic| message_of(panic.as_ref()));
        if panic.is_some() {
            *worker = self.map.worker();
        }
        for (Job { sample, slot: memory, outcome }, slot) in jobs.into_iter().zip(slots) {
            let outcome = match &panic {
                Some(message) => Err(SampleError::Panicked(message.clone())),
                None => outcome.map(|()| self.keep(sample.index, sample.label, memory, scratch)),
            };
            self.dispatch.finish(slot, sample.index, outcome, &self.source.index);
        }
    }

    fn slot_of(&self, parcel: &Parcel, i: usize) -> u64 {
        match self.deterministic {
            true => parcel.claim.first_slot + i as u64,
            false => self.dispatch.next_slot(),
        }
    }

    fn content<'a>(&'a self, sample: u32, stored: &'a [u8]) -> Result<Content<'a>, SampleError> {
        self.source.index.unpack(sample, stored, self.map.wants())
    }

    /// Stores a finished sample if there is a cache for it. Returns its label.
    fn keep(&self, index: u32, label: i64, slot: &[u8], scratch: &mut Buffer) -> i64 {
        if let Some(made) = &self.made {
            scratch.resize(8 + slot.len());
            scratch.as_mut_slice()[..8].copy_from_slice(&label.to_le_bytes());
            scratch.as_mut_slice()[8..].copy_from_slice(slot);
            made.put(index, scratch.as_slice());
        }
        label
    }

    /// The cached finished sample; its label is stored in front of it.
    fn recall(&self, sample: u32, slot: &mut [u8], scratch: &mut Buffer) -> Option<Result<i64, SampleError>> {
        match self.made.as_ref()?.get(sample, scratch) {
            Ok(false) => None,
            Err(error) => Some(Err(error)),
            Ok(true) => match scratch.as_slice().split_first_chunk::<8>() {
                Some((label, bytes)) if bytes.len() == slot.len() => {
                    slot.copy_from_slice(bytes);
                    Some(Ok(i64::from_le_bytes(*label)))
                }
                _ => Some(Err(SampleError::Refused("the cache holds a different entry for this sample".to_owned()))),
            },
        }
    }

    fn epoch_of(&self, position: u64) -> u64 {
        self.epoch_len.map_or(0, |len| position / len.max(1))
    }

    fn make(
        &self,
        (index, epoch): (u32, u64),
        stored: Result<&[u8], SampleError>,
        slot: &mut [u8],
        worker: &mut Box<dyn MapWorker>,
        scratch: &mut Buffer,
        watch: &mut Stopwatch,
    ) -> Result<i64, SampleError> {
        watch.enter(Activity::Decoding);
        let content = self.content(index, stored?)?;
        let sample = Sample { index, epoch, label: content.label, bytes: content.bytes };
        let outcome = catch_unwind(AssertUnwindSafe(|| worker.map(sample, slot, watch)));
        self.dispatch.bytes_read.fetch_add(worker.take_moved(), Ordering::Relaxed);
        match outcome {
            Ok(outcome) => outcome?,
            Err(panic) => {
                // The panic may have corrupted the worker; replace it.
                *worker = self.map.worker();
                return Err(SampleError::Panicked(message_of(panic.as_ref())));
            }
        }
        Ok(self.keep(index, content.label, slot, scratch))
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "no message".to_owned())
}

pub(crate) fn run_fused(shared: &Shared, number: usize, mut fetcher: Fetcher) {
    let _entry = shared.roster.enter();
    let mut watch = shared.watch(number);
    let mut worker = shared.map.worker();
    let mut parcel = Parcel::default();
    let mut scratch = Buffer::default();
    let mut claim = Claim::default();
    let mut pace = Pace::default();
    let unit = shared.claim_size.samples;
    loop {
        let size = ClaimSize { samples: unit * pace.units, ..shared.claim_size };
        if !shared.dispatch.claim(number, size, &shared.source.index, &mut claim, &mut watch) {
            break;
        }
        let start = shared.clock.now_ns();
        let n = claim.samples.len();
        for first in (0..n).step_by(unit) {
            parcel.claim.take_part(&claim, first..(first + unit).min(n));
            shared.fetch(&mut fetcher, &mut parcel, &mut watch);
            shared.make_all(&parcel, &mut worker, &mut scratch, &mut watch);
        }
        pace.observe(shared.clock.now_ns() - start, n.div_ceil(unit));
    }
    watch.enter(Activity::Idle);
}

/// Number of units of work per claim: one if they take long, several if claiming would cost a noticeable share of the
/// time.
struct Pace {
    units: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { units: 1 }
    }
}

impl Pace {
    /// Target length of a claim. It keeps the cost of the dispatcher's lock, some 100 ns under contention, below a few
    /// percent.
    const CLAIM_NS: u64 = 50_000;
    const MOST: usize = 16;

    fn observe(&mut self, ns: u64, units: usize) {
        let each = (ns / units.max(1) as u64).max(1);
        self.units = ((Self::CLAIM_NS / each) as usize).clamp(1, Self::MOST);
    }
}

pub(crate) fn run_reader(shared: &Shared, number: usize, ledger: usize, mut fetcher: Fetcher) {
    let _entry = shared.roster.enter();
    let mut watch = shared.watch(ledger);
    loop {
        watch.enter(Activity::WaitingForDecoder);
        let Some(mut parcel) = shared.exchange.take_empty() else { break };
        if !shared.dispatch.claim(number, shared.claim_size, &shared.source.index, &mut parcel.claim, &mut watch) {
            break;
        }
        shared.fetch(&mut fetcher, &mut parcel, &mut watch);
        shared.exchange.give_full(parcel);
    }
    shared.exchange.reader_is_done();
    watch.enter(Activity::Idle);
}

pub(crate) fn run_decoder(shared: &Shared, ledger: usize) {
    let _entry = shared.roster.enter();
    let mut watch = shared.watch(ledger);
    let mut worker = shared.map.worker();
    let mut scratch = Buffer::default();
    loop {
        watch.enter(Activity::WaitingForBytes);
        let Some(parcel) = shared.exchange.take_full() else { break };
        shared.make_all(&parcel, &mut worker, &mut scratch, &mut watch);
        shared.exchange.give_empty(parcel);
    }
    watch.enter(Activity::Idle);
}

/// A fixed number of parcels that circulate, full or empty, between readers and decoders.
pub(crate) struct Exchange {
    inner: Mutex<Parcels>,
    has_full: Condvar,
    has_empty: Condvar,
}

struct Parcels {
    full: VecDeque<Parcel>,
    empty: Vec<Parcel>,
    readers: usize,
    closed: bool,
}

impl Exchange {
    pub(crate) fn new(readers: usize, parcels: usize) -> Self {
        let empty = (0..parcels).map(|_| Parcel::default()).collect();
        let inner = Parcels { full: VecDeque::new(), empty, readers, closed: false };
        Self { inner: Mutex::new(inner), has_full: Condvar::new(), has_empty: Condvar::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Parcels> {
        self.inner.lock().expect("no holder of this lock panics")
    }

    fn take_empty(&self) -> Option<Parcel> {
        let mut parcels = self.lock();
        while !parcels.closed && parcels.empty.is_empty() {
            parcels = self.has_empty.wait(parcels).expect("no holder of this lock panics");
        }
        if parcels.closed { None } else { parcels.empty.pop() }
    }

    fn give_full(&self, parcel: Parcel) {
        self.lock().full.push_back(parcel);
        self.has_full.notify_one();
    }

    fn take_full(&self) -> Option<Parcel> {
        let mut parcels = self.lock();
        loop {
            if parcels.closed {
                return None;
            }
            if let Some(parcel) = parcels.full.pop_front() {
                return Some(parcel);
            }
            if parcels.readers == 0 {
                return None;
            }
            parcels = self.has_full.wait(parcels).expect("no holder of this lock panics");
        }
    }

    fn give_empty(&self, parcel: Parcel) {
        self.lock().empty.push(parcel);
        self.has_empty.notify_one();
    }

    fn reader_is_done(&self) {
        self.lock().readers -= 1;
        self.has_full.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.has_full.notify_all();
        self.has_empty.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_units_are_claimed_one_by_one_and_short_ones_together() {
        let mut pace = Pace::default();
        pace.observe(1_000_000, 1);
        assert_eq!(pace.units, 1);
        pace.observe(16_000, 1);
        assert_eq!(pace.units, 3);
        pace.observe(3 * 500, 3);
        assert_eq!(pace.units, 16);
    }
}
