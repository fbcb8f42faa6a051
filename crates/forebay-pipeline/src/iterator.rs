//! The running pipeline from the consumer's side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay_storage::Ahead;
use forebay_units::Bytes;

use crate::batch::{Batch, BatchMemory};
use crate::dataset::{Batched, ErrorPolicy};
use crate::error::Error;
use crate::exec::activity::{Ledger, Times};
use crate::exec::blocks::Blocks;
use crate::exec::dispatch::{ClaimSize, Dispatch};
use crate::exec::fetch::Fetcher;
use crate::exec::pool::Pool;
use crate::exec::ring::{Ring, SlotState};
use crate::exec::roster::Roster;
use crate::exec::tuner::{Tuner, Tuning};
use crate::exec::worker::{Exchange, Shared};
use crate::exec::{self, ahead};
use crate::source::{Packing, Source};
use crate::stage_cache::Cache;
use crate::state::State;
use crate::stats::{Meter, Stats};

/// Maximum number of samples of a shard per claim.
const RUN_SAMPLES: usize = 64;
/// Compressed shards kept decompressed: those of the usual interleave and the next ones.
const EXPANDED_SHARDS: usize = 8;

/// How long the consumer waits for a batch.
#[derive(Clone, Copy)]
enum Patience<'a> {
    Forever,
    Until(&'a AtomicBool),
    /// To a moment.
    Till(Instant),
    /// Not at all, but it wants to be woken.
    Woken,
    Never,
}

/// An iterator over batches. Dropping it at any moment joins all its threads.
pub struct Batches {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    caches: Vec<Arc<Cache>>,
    batch: usize,
    prefetch: u64,
    /// Maximum number of batches to give.
    at_most: u64,
    drop_remainder: bool,
    errors: ErrorPolicy,
    one_hot: Option<usize>,
    fingerprint: u64,
    first_position: u64,
    /// The end of the last batch given, in slots.
    given: u64,
    gathered: Gathered,
    /// When a missing batch was first requested, and the workers' times at that moment.
    asked: Option<(u64, Times)>,
    tuner: Option<Tuner>,
    started_ns: u64,
    /// Ends the reads ahead, if there are any.
    stop: Option<Box<dyn Fn() + Send + Sync>>,
    stats: Stats,
}

#[derive(Default)]
struct Gathered {
    start: u64,
    /// The first slot that has not been examined.
    scan: u64,
    places: Vec<i64>,
    labels: Vec<i64>,
    samples: Vec<u32>,
}

impl Batches {
    pub(crate) fn start(plan: &Batched, position: u64) -> Result<Self, Error> {
        let mapped = &plan.mapped;
        let source = mapped.dataset.source.clone();
        let mut order = mapped.dataset.chain.open(0);
        order.skip(position);
        let (raw, made) = open_caches(plan)?;
        let pool = Pool::of(plan);
        let batch = plan.slots_per_batch();
        let is_cached = raw.is_some() || made.is_some();
        let ahead =
            if is_cached { None } else { ahead::announce(plan, &source, position, 2 * pool.claiming * RUN_SAMPLES) };
        let (source, stop) = match ahead {
            Some(Ahead { storage, stop }) => (source.with_storage(storage), Some(stop)),
            None => (source, None),
        };
        let ring =
            Ring::new(plan.n_buffers(), batch, mapped.map.sample_bytes()).map_err(|error| no_memory(plan, &error))?;
        let (clock, started_ns) = (Arc::clone(&plan.clock), plan.clock.now_ns());
        let shared = Arc::new(Shared {
            dispatch: Dispatch::new(ring, order, plan.first_limit(), pool.active),
            map: Arc::clone(&mapped.map),
            clock,
            ledgers: (0..pool.claiming + pool.decoders).map(|_| Arc::new(Ledger::new(started_ns))).collect(),
            deterministic: mapped.deterministic,
            claim_size: ClaimSize { samples: claim_samples(&source).max(mapped.map.group()), sharers: pool.claiming },
            first_position: position,
            epoch_len: mapped.dataset.chain.repeated(),
            made: made.clone(),
            roster: Roster::default(),
            exchange: Exchange::new(pool.claiming, pool.claiming + 2 * pool.decoders),
            source: source.clone(),
        });
        let memory = Arc::new(exec::recent::Recent::new(shards_in_memory(&source, mapped.mapped_shards)));
        let blocks = Blocks::of(plan, &pool).map(Arc::new);
        let fetcher = || {
            let (raw, made) = (raw.clone(), made.clone());
            Fetcher::new(source.clone(), raw, made, Arc::clone(&memory), mapped.mapped_shards, blocks.clone())
        };
        let threads = pool.spawn(&shared, fetcher)?;
        Ok(Self {
            threads,
            caches: raw.into_iter().chain(made).collect(),
            batch,
            prefetch: plan.prefetch as u64,
            at_most: plan.at_most,
            drop_remainder: plan.drop_remainder,
            errors: mapped.errors,
            one_hot: mapped.one_hot,
            fingerprint: plan.fingerprint(),
            first_position: position,
            given: 0,
            gathered: Gathered::default(),
            asked: None,
            tuner: pool.tuned.then(|| Tuner::new(pool.claiming)),
            started_ns,
            stop,
            stats: Stats { n_threads: shared.ledgers.len(), ..Stats::default() },
            shared,
        })
    }

    /// The position after the last batch given.
    ///
    /// # Errors
    /// In first-come order, where the next sample is not determined.
    pub fn state(&self) -> Result<State, Error> {
        if !self.shared.deterministic {
            let reason = "not available in first-come order: the next sample is not determined".to_owned();
            return Err(Error::Plan { stage: "state", reason });
        }
        let position = self.first_position + self.given;
        Ok(State { version: State::VERSION, fingerprint: self.fingerprint, position })
    }

    /// The memory of all batches, for callers that register (pin) its pages with a device.
    pub fn memory(&self) -> BatchMemory {
        BatchMemory { shared: Arc::clone(&self.shared) }
    }

    /// The tuner's findings so far, if it is in use.
    pub fn tuning(&self) -> Option<&Tuning> {
        self.tuner.as_ref().map(Tuner::tuning)
    }

    pub fn stats(&self) -> Stats {
        let now = self.shared.clock.now_ns();
        let mut stats = self.stats.clone();
        stats.wall_ns = now - self.started_ns;
        stats.other_ns = stats.wall_ns - stats.wait_ns;
        stats.bytes_read = self.bytes_read();
        stats.n_requests = self.shared.dispatch.n_requests.load(Ordering::Relaxed);
        stats.worker_time = self.worker_time(now);
        stats.scheduled = self.shared.roster.scheduled();
        stats.tuning = self.tuner.as_ref().map(|tuner| tuner.tuning().clone());
        stats.cache_failure = self.caches.iter().find_map(|cache| cache.failure());
        stats
    }

    /// What the workers did so far while the consumer waited.
    pub fn stall_time(&self) -> Times {
        self.stats.stall_time
    }

    /// Bytes moved from storage so far, including those of unfinished batches.
    pub fn bytes_read(&self) -> u64 {
        self.shared.dispatch.bytes_read.load(Ordering::Relaxed)
    }

    /// The same count, readable from another thread.
    pub fn meter(&self) -> Meter {
        Meter(Arc::clone(&self.shared))
    }

    fn worker_time(&self, now_ns: u64) -> Times {
        let mut sum = Times::default();
        self.shared.ledgers.iter().for_each(|ledger| sum.add(&ledger.read(now_ns)));
        sum
    }

    /// The next batch, or `None` as soon as `stop` is set; a later call continues with the same batch.
    pub fn next_unless(&mut self, stop: &AtomicBool) -> Option<Result<Batch, Error>> {
        match self.ask(Patience::Until(stop)) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => None,
        }
    }

    /// The next batch, or `Pending` after `patience`; a later call continues with the same batch. All of it counts as a
    /// wait.
    pub fn next_within(&mut self, patience: Duration) -> Poll<Option<Result<Batch, Error>>> {
        self.ask(Patience::Till(Instant::now() + patience))
    }

    /// The next batch if it is ready; otherwise requests it without waiting. Not counted as a wait.
    pub fn poll_next(&mut self) -> Poll<Option<Result<Batch, Error>>> {
        self.asked = None;
        self.gather(Patience::Never)
    }

    /// The next batch if it is ready; otherwise the calling thread is unparked when it should ask again, so one thread
    /// can wait for many iterators. The time from the first request to the batch counts as a wait, as it does inside
    /// `next`.
    ///
    /// Returns a finished batch without waking the workers, because that would take longer than everything else; call
    /// `go_on` for it.
    pub fn poll_waking(&mut self) -> Poll<Option<Result<Batch, Error>>> {
        if self.asked.is_some() && self.shared.dispatch.awaits_still() {
            return Poll::Pending;
        }
        self.ask(Patience::Woken)
    }

    /// Lets the workers continue to the end of the prefetch after the last batch given. Requesting the next batch does
    /// the same.
    pub fn go_on(&self) {
        let left = self.at_most - self.stats.n_batches;
        self.shared.dispatch.raise_limit(self.gathered.start + self.batch as u64 * self.prefetch.min(left));
    }

    fn ask(&mut self, patience: Patience<'_>) -> Poll<Option<Result<Batch, Error>>> {
        let (asked, before) = self.asked.take().unwrap_or_else(|| {
            let now = self.shared.clock.now_ns();
            (now, self.worker_time(now))
        });
        let outcome = self.gather(patience);
        if outcome.is_pending() && matches!(patience, Patience::Woken) {
            self.asked = Some((asked, before));
            return outcome;
        }
        let delivered = match &outcome {
            Poll::Ready(Some(Ok(batch))) => Some(batch.len()),
            _ => None,
        };
        self.account(asked, &before, delivered);
        outcome
    }

    /// Gathers samples until a batch is full, the data ends or the patience is exhausted.
    fn gather(&mut self, patience: Patience<'_>) -> Poll<Option<Result<Batch, Error>>> {
        if self.stats.n_batches == self.at_most {
            return Poll::Ready(None);
        }
        if !matches!(patience, Patience::Woken) {
            self.shared.dispatch.raise_limit(self.gathered.start + self.batch as u64 + self.ahead());
        }
        loop {
            if let Err(error) = self.look() {
                return Poll::Ready(Some(Err(error)));
            }
            if self.gathered.places.len() == self.batch {
                return Poll::Ready(Some(Ok(self.deliver())));
            }
            if self.shared.dispatch.end().is_some_and(|end| self.gathered.scan >= end) {
                let over = self.gathered.places.is_empty() || self.drop_remainder;
                return Poll::Ready(if over { None } else { Some(Ok(self.deliver())) });
            }
            let awaited = match self.make_room() {
                Ok(slot) => slot,
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            match patience {
                Patience::Forever => self.shared.dispatch.wait_for(awaited, None),
                Patience::Until(stop) if !stop.load(Ordering::Relaxed) => {
                    self.shared.dispatch.wait_for(awaited, Some(stop));
                }
                Patience::Till(end) if Instant::now() < end => self.shared.dispatch.wait_till(awaited, end),
                Patience::Woken if self.shared.dispatch.wake_for(awaited) => return Poll::Pending,
                Patience::Woken => (),
                Patience::Until(_) | Patience::Till(_) | Patience::Never => return Poll::Pending,
            }
        }
    }

    /// Number of samples to make ahead of the requested batch: none beyond the last batch.
    fn ahead(&self) -> u64 {
        let left = self.at_most - self.stats.n_batches - 1;
        self.batch as u64 * self.prefetch.min(left)
    }

    /// Takes in the finished slots.
    fn look(&mut self) -> Result<(), Error> {
        let Self { shared, gathered, .. } = self;
        let ring = &shared.dispatch.ring;
        while gathered.places.len() < self.batch {
            match ring.state(gathered.scan) {
                SlotState::Pending => break,
                SlotState::Good => {
                    gathered.places.push(ring.place(gathered.scan));
                    gathered.labels.push(ring.label(gathered.scan));
                    gathered.samples.push(ring.sample(gathered.scan));
                    gathered.scan += 1;
                }
                SlotState::Hole => {
                    let failed = shared.dispatch.take_failure(gathered.scan);
                    gathered.scan += 1;
                    let ErrorPolicy::Ignore { keep } = self.errors else { return Err(Error::Sample(failed)) };
                    self.stats.n_failed += 1;
                    if self.stats.failures.len() < keep {
                        self.stats.failures.push(failed);
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes room for more slots if holes used it up, and returns the slot to wait for.
    fn make_room(&mut self) -> Result<u64, Error> {
        let ahead = self.ahead();
        let dispatch = &self.shared.dispatch;
        let gathered = &mut self.gathered;
        let full = gathered.scan + (self.batch - gathered.places.len()) as u64;
        let mut limit = dispatch.raise_limit(full + ahead);
        let holes = gathered.scan - gathered.start > gathered.places.len() as u64;
        if limit < full && holes {
            dispatch.ring.compact(&mut gathered.places, gathered.scan);
            let start = gathered.scan - gathered.places.len() as u64;
            dispatch.release(gathered.start, start);
            gathered.start = start;
            limit = dispatch.raise_limit(full);
        }
        if limit <= gathered.scan {
            let held = (dispatch.ring.capacity() / self.batch as u64) as usize;
            return Err(Error::AllHeld { held });
        }
        // Do not wait beyond the end.
        let last = full.min(limit).min(dispatch.end().unwrap_or(u64::MAX)).max(gathered.scan + 1) - 1;
        let pending = dispatch.ring.state(last) == SlotState::Pending;
        Ok(if pending { last } else { gathered.scan })
    }

    fn deliver(&mut self) -> Batch {
        let gathered = &mut self.gathered;
        self.shared.dispatch.ring.compact(&mut gathered.places, gathered.scan);
        let slots = gathered.start..gathered.scan;
        gathered.start = gathered.scan;
        self.given = gathered.scan;
        let place = gathered.places[0];
        gathered.places.clear();
        let labels = std::mem::take(&mut gathered.labels);
        let samples = std::mem::take(&mut gathered.samples);
        self.stats.first_batch_ns.get_or_insert_with(|| self.shared.clock.now_ns() - self.started_ns);
        self.stats.n_batches += 1;
        self.stats.n_samples += (samples.len() * self.shared.source.index.samples_per_slot()) as u64;
        let one_hot = self.one_hot.map(|classes| one_hot(&labels, classes)).unwrap_or_default();
        Batch { shared: Arc::clone(&self.shared), place, slots, labels, samples, one_hot }
    }

    fn account(&mut self, asked_ns: u64, before: &Times, delivered: Option<usize>) {
        let now = self.shared.clock.now_ns();
        self.stats.wait_ns += now - asked_ns;
        let stall = self.worker_time(now).since(before);
        self.stats.stall_time.add(&stall);
        let Some(samples) = delivered else { return };
        if let Some(tuner) = &mut self.tuner
            && let Some(threads) = tuner.observe(now, self.stats.wait_ns, samples as u64)
        {
            self.shared.dispatch.set_active(threads);
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.ask(Patience::Forever) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => unreachable!("unlimited patience never returns Pending"),
        }
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.shared.dispatch.close();
        self.shared.exchange.close();
        if let Some(stop) = &self.stop {
            stop();
        }
        for thread in self.threads.drain(..) {
            // Workers catch the panics of samples. A panic of the worker itself is our bug and was already printed.
            let _ = thread.join();
        }
        self.caches.iter().for_each(|cache| cache.finish());
    }
}

fn no_memory(plan: &Batched, error: &std::io::Error) -> Error {
    let n_batches = plan.n_buffers();
    let each = Bytes((plan.slots_per_batch() as u64).saturating_mul(plan.mapped.map.sample_bytes() as u64));
    let reason = format!("cannot allocate its buffers ({n_batches} × {each}): {error}; lower batch or prefetch");
    Error::Plan { stage: "batch", reason }
}

fn one_hot(labels: &[i64], classes: usize) -> Vec<f32> {
    let mut rows = vec![0.0; labels.len() * classes];
    for (row, label) in rows.chunks_mut(classes).zip(labels) {
        // A missing label, or one outside the classes, is a row of zeros.
        if let Some(one) = usize::try_from(*label).ok().and_then(|label| row.get_mut(label)) {
            *one = 1.0;
        }
    }
    rows
}

type Caches = (Option<Arc<Cache>>, Option<Arc<Cache>>);

fn open_caches(plan: &Batched) -> Result<Caches, Error> {
    let n_samples = plan.mapped.dataset.source.n_samples();
    let open = |wanted: Option<(&crate::CacheAt, u64)>| {
        wanted.map(|(at, fingerprint)| Cache::new(at, n_samples, fingerprint).map(Arc::new)).transpose()
    };
    Ok((open(plan.raw_cache())?, open(plan.made_cache())?))
}

fn claim_samples(source: &Source) -> usize {
    match source.index.packing {
        Packing::Files => source.storage.read_many_preferred(),
        Packing::Streamed => 1,
        _ => RUN_SAMPLES,
    }
}

fn shards_in_memory(source: &Source, mapped: bool) -> usize {
    if mapped { source.files().len() } else { EXPANDED_SHARDS }
}
