//! The lazy description of a pipeline, which `iter()` starts.

use std::sync::Arc;

use forebay_storage::Storage;
use forebay_units::{Clock, Fnv, SystemClock};

use crate::error::Error;
use crate::iterator::Batches;
use crate::map::{Map, MapFn, Sample, Wants};
use crate::source::{Packing, Source};
use crate::stage::{Chain, Interleave, Repeat, Shuffle, ShuffleBuffer, ShuffleGroups, Skip, Split, Stage, Take};
use crate::stage_cache::CacheAt;
use crate::state::State;

/// Samples in an order. [`Batched::iter`] is the first to read any.
#[derive(Clone)]
pub struct Dataset {
    pub(crate) source: Source,
    pub(crate) chain: Chain,
    raw_cache: Option<CacheAt>,
    /// The first stage that is invalid at its position. Reported when iteration starts, so the builder needs no
    /// `Result`.
    refused: Option<(&'static str, String)>,
    shuffled_whole: bool,
    /// Samples and groups that the order may be in the middle of at a time.
    pub(crate) window: (u64, u64),
}

impl Dataset {
    /// All samples of a source, in the source's order.
    pub fn new(source: Source) -> Self {
        let chain = Chain::new(Arc::clone(&source.index));
        Self { source, chain, raw_cache: None, refused: None, shuffled_whole: false, window: (0, 1) }
    }

    pub(crate) fn then(mut self, name: &'static str, stage: impl Stage + 'static) -> Self {
        if self.refused.is_none() {
            self.refused = stage.refuse(&self.chain).map(|reason| (name, reason));
        }
        self.chain.push(Arc::new(stage));
        self
    }

    /// Shuffles the whole epoch, differently in each epoch.
    #[must_use]
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.shuffled_whole = true;
        self.then("shuffle", Shuffle { seed })
    }

    /// Shuffles within a sliding buffer of `size` samples. It buffers indices, so a large buffer needs little memory.
    #[must_use]
    pub fn shuffle_buffer(mut self, size: usize, seed: u64) -> Self {
        self.window.0 = self.window.0.saturating_add(size as u64);
        self.then("shuffle_buffer", ShuffleBuffer { seed, size })
    }

    /// Shuffles the groups (shards or class folders); the samples of a group stay together.
    #[must_use]
    pub fn shuffle_groups(self, seed: u64) -> Self {
        self.then("shuffle_groups", ShuffleGroups { seed })
    }

    /// Alternates between `cycle` groups, taking `block` samples from each in turn. This changes only the order; reads
    /// run in parallel on [`Mapped::threads`] and [`Mapped::readers`], which read neighbouring samples of a shard at
    /// once.
    #[must_use]
    pub fn interleave(mut self, cycle: usize, block: usize) -> Self {
        self.window.1 = self.window.1.saturating_mul(cycle as u64);
        self.then("interleave", Interleave { cycle, block })
    }

    /// All samples except the `n` that `seed` selects for [`held_out`](Self::held_out), which are the same in every
    /// epoch.
    #[must_use]
    pub fn hold_out(self, n: u64, seed: u64) -> Self {
        self.then("hold_out", Split { seed, n, chosen: false })
    }

    /// Only the `n` samples that [`hold_out`](Self::hold_out) leaves out.
    #[must_use]
    pub fn held_out(self, n: u64, seed: u64) -> Self {
        self.then("held_out", Split { seed, n, chosen: true })
    }

    #[must_use]
    pub fn take(self, n: u64) -> Self {
        self.then("take", Take { n })
    }

    #[must_use]
    pub fn skip(self, n: u64) -> Self {
        self.then("skip", Skip { n })
    }

    /// `n` consecutive epochs; batches may span their boundaries.
    #[must_use]
    pub fn repeat(self, n: u64) -> Self {
        self.then("repeat", Repeat { n: Some(n) })
    }

    #[must_use]
    pub fn repeat_forever(self) -> Self {
        self.then("repeat_forever", Repeat { n: None })
    }

    /// Keeps the samples' bytes after the first read.
    #[must_use]
    pub fn cache(mut self, at: CacheAt) -> Self {
        self.raw_cache = Some(at);
        self
    }

    /// Reads through another storage, such as a shaped or counted one.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.source = self.source.with_storage(storage);
        self
    }

    /// Whether any sample can be reached with a single read; false for compressed shards.
    pub fn packing_is_seekable(&self) -> bool {
        !matches!(self.source.index.packing, Packing::CompressedTfRecord(_) | Packing::CompressedTar(_))
    }

    /// Number of samples; `None` if endless.
    pub fn n_samples(&self) -> Option<u64> {
        self.chain.len()
    }

    /// The order: the samples' indices, without reading any sample.
    pub fn order(&self) -> impl Iterator<Item = u32> + use<> {
        let mut sequence = self.chain.open(0);
        std::iter::from_fn(move || sequence.next())
    }

    pub fn map(self, map: impl Map + 'static) -> Mapped {
        Mapped {
            dataset: self,
            map: Arc::new(map),
            threads: Threads::Fixed(1),
            readers: 0,
            deterministic: true,
            errors: ErrorPolicy::Fail,
            made_cache: None,
            one_hot: None,
            mapped_shards: false,
            block_bytes: None,
        }
    }

    /// Makes samples of `sample_bytes` bytes with a function that writes each one into its slot. Each thread gets a
    /// clone of the function.
    pub fn map_fn<F>(self, sample_bytes: usize, function: F) -> Mapped
    where
        F: Fn(Sample<'_>, &mut [u8]) -> Result<(), String> + Clone + Send + Sync + 'static,
    {
        self.map(MapFn { sample_bytes, function })
    }

    fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.bytes(self.chain.describe().as_bytes());
        hash.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    Fixed(usize),
    /// Tuned at run time; see [`Tuning`](crate::Tuning). With separate readers: one per core.
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorPolicy {
    /// The iterator yields the error in the sample's place and then continues.
    Fail,
    /// The sample is left out and counted; the first `keep` failures are kept.
    Ignore { keep: usize },
}

/// A dataset and the processing of its samples.
#[derive(Clone)]
pub struct Mapped {
    pub(crate) dataset: Dataset,
    pub(crate) map: Arc<dyn Map>,
    pub(crate) threads: Threads,
    pub(crate) readers: usize,
    pub(crate) deterministic: bool,
    pub(crate) errors: ErrorPolicy,
    made_cache: Option<CacheAt>,
    pub(crate) one_hot: Option<usize>,
    pub(crate) mapped_shards: bool,
    pub(crate) block_bytes: Option<u64>,
}

/// Failures that `ignore_errors` keeps with their reasons. Later ones are only counted, to bound the memory.
const KEPT_FAILURES: usize = 100;

impl Mapped {
    /// Number of worker threads; 1 by default.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Number of threads that only read, ahead of the decoding threads; with 0 (the default) every thread does both.
    /// Cold files need many readers; decoding needs one thread per core.
    #[must_use]
    pub fn readers(mut self, n: usize) -> Self {
        self.readers = n;
        self
    }

    /// Delivers samples in the order in which their bytes arrive. A slow sample then delays no other, but the order is
    /// not deterministic and the iterator's state cannot be saved.
    #[must_use]
    pub fn first_come(mut self) -> Self {
        self.deterministic = false;
        self
    }

    /// Leaves out and counts samples that fail; keeps name and reason of the first hundred.
    #[must_use]
    pub fn ignore_errors(mut self) -> Self {
        self.errors = ErrorPolicy::Ignore { keep: KEPT_FAILURES };
        self
    }

    /// Keeps the samples after `map`, so later epochs skip reading and decoding.
    #[must_use]
    pub fn cache(mut self, at: CacheAt) -> Self {
        self.made_cache = Some(at);
        self
    }

    /// Delivers labels also as one-hot rows of `classes` values.
    #[must_use]
    pub fn one_hot(mut self, classes: usize) -> Self {
        self.one_hot = Some(classes);
        self
    }

    /// Maps pre-decoded shards into memory instead of reading them.
    #[must_use]
    pub fn map_shards(mut self) -> Self {
        self.mapped_shards = true;
        self
    }

    /// Reads uncompressed shards in blocks of about `bytes`, and keeps each block until its samples were handed out: large
    /// sequential reads, for orders that interleave shards and shuffle in a window. Needs memory for a few windows of samples.
    /// Files and compressed shards are read as without it.
    #[must_use]
    pub fn read_blocks(mut self, bytes: u64) -> Self {
        self.block_bytes = Some(bytes);
        self
    }

    /// Batches of `n` samples; the last one may be smaller.
    pub fn batch(self, n: usize) -> Batched {
        Batched {
            mapped: self,
            batch: n,
            drop_remainder: false,
            prefetch: 0,
            hold: 1,
            at_most: u64::MAX,
            clock: Arc::new(SystemClock::default()),
        }
    }
}

/// A complete pipeline. [`iter`](Self::iter) may be called more than once; each call starts its own threads.
#[derive(Clone)]
pub struct Batched {
    pub(crate) mapped: Mapped,
    pub(crate) batch: usize,
    pub(crate) drop_remainder: bool,
    pub(crate) prefetch: usize,
    pub(crate) hold: usize,
    pub(crate) at_most: u64,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Batched {
    /// Drops a last batch that is not full.
    #[must_use]
    pub fn drop_remainder(mut self) -> Self {
        self.drop_remainder = true;
        self
    }

    /// Number of batches prepared ahead of the consumer. With 0, workers run only while the consumer waits.
    #[must_use]
    pub fn prefetch(mut self, n: usize) -> Self {
        self.prefetch = n;
        self
    }

    /// Ends after `n` batches; samples beyond them are not made.
    #[must_use]
    pub fn at_most(mut self, n: u64) -> Self {
        self.at_most = n;
        self
    }

    /// Number of slots that may be filled before the consumer asks for the first batch.
    pub(crate) fn first_limit(&self) -> u64 {
        (self.prefetch as u64).min(self.at_most) * self.slots_per_batch() as u64
    }

    /// Slots per batch; fewer than samples if samples share slots.
    pub(crate) fn slots_per_batch(&self) -> usize {
        self.batch / self.mapped.dataset.source.index.samples_per_slot()
    }

    /// Number of batches that the consumer may hold in addition to those prepared ahead; 1 by default. With 0, a held
    /// batch counts as one of those prepared ahead, which is enough for a consumer that copies each batch and drops it
    /// at once.
    #[must_use]
    pub fn hold(mut self, n: usize) -> Self {
        self.hold = n;
        self
    }

    /// Number of batches that the ring has memory for.
    pub(crate) fn n_buffers(&self) -> usize {
        self.prefetch.saturating_add(self.hold).max(1)
    }

    /// Measures waits and work with another clock, such as a manual one in tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// If the stages do not fit together, or the memory for the batches cannot be allocated.
    pub fn iter(&self) -> Result<Batches, Error> {
        self.iter_at(0)
    }

    /// Starts the threads at the next sample after a saved state.
    ///
    /// # Errors
    /// As for [`iter`](Self::iter), and if another pipeline saved the state.
    pub fn iter_from(&self, state: &State) -> Result<Batches, Error> {
        if state.version != State::VERSION {
            return Err(Error::State { reason: format!("version {} is not supported", state.version) });
        }
        if state.fingerprint != self.fingerprint() {
            return Err(Error::State {
                reason: "it belongs to a pipeline with a different source, seeds or stages".to_owned(),
            });
        }
        self.iter_at(state.position)
    }

    fn iter_at(&self, position: u64) -> Result<Batches, Error> {
        self.check()?;
        Batches::start(self, position)
    }

    /// Identifies what the order depends on: source and stages. Pipelines with equal fingerprints can exchange states.
    pub fn fingerprint(&self) -> u64 {
        self.mapped.dataset.fingerprint()
    }

    /// The cache of samples as read, and the fingerprint that identifies them.
    pub(crate) fn raw_cache(&self) -> Option<(&CacheAt, u64)> {
        let dataset = &self.mapped.dataset;
        dataset.raw_cache.as_ref().map(|at| (at, dataset.source.index.fingerprint()))
    }

    /// The cache of finished samples, and the fingerprint that identifies them.
    pub(crate) fn made_cache(&self) -> Option<(&CacheAt, u64)> {
        let mut hash = Fnv(self.mapped.dataset.source.index.fingerprint());
        hash.bytes(self.mapped.map.description().unwrap_or_default().as_bytes());
        self.mapped.made_cache.as_ref().map(|at| (at, hash.0))
    }

    fn check(&self) -> Result<(), Error> {
        let dataset = &self.mapped.dataset;
        if let Some((stage, reason)) = &dataset.refused {
            return Err(Error::Plan { stage, reason: reason.clone() });
        }
        if self.batch == 0 {
            return Err(Error::Plan { stage: "batch", reason: "must be at least 1".to_owned() });
        }
        let per_slot = dataset.source.index.samples_per_slot();
        if !self.batch.is_multiple_of(per_slot) {
            let reason = format!("{} samples are not a multiple of the {per_slot} samples per slot", self.batch);
            return Err(Error::Plan { stage: "batch", reason });
        }
        if self.mapped.threads == Threads::Fixed(0) {
            return Err(Error::Plan { stage: "threads", reason: "must be at least 1".to_owned() });
        }
        if matches!(self.mapped.made_cache, Some(CacheAt::File { .. })) && self.mapped.map.description().is_none() {
            let reason = "a later run cannot identify a closure's samples in a file; implement Map with a \
                          description, cache in memory, or cache before map()";
            return Err(Error::Plan { stage: "cache", reason: reason.to_owned() });
        }
        if self.mapped.made_cache.is_some() && self.mapped.map.varies() {
            let reason = "finished samples differ from epoch to epoch: cache before map()";
            return Err(Error::Plan { stage: "cache", reason: reason.to_owned() });
        }
        if self.mapped.one_hot == Some(0) {
            return Err(Error::Plan { stage: "one_hot", reason: "must be at least 1".to_owned() });
        }
        if dataset.source.n_samples() > u32::MAX as usize {
            return Err(Error::Plan { stage: "source", reason: "at most 2^32 samples are supported".to_owned() });
        }
        if self.mapped.map.sample_bytes() == 0 {
            return Err(Error::Plan { stage: "map", reason: "samples must have at least one byte".to_owned() });
        }
        if self.mapped.map.wants() == Wants::Image && !dataset.source.image_candidates.is_empty() {
            return Err(dataset.source.several_images());
        }
        if !dataset.packing_is_seekable() && dataset.shuffled_whole {
            let reason = "a compressed shard can only be read as a whole, so a full shuffle would decompress it for every \
                          sample; use shuffle_groups, interleave and shuffle_buffer";
            return Err(Error::Plan { stage: "shuffle", reason: reason.to_owned() });
        }
        Ok(())
    }
}
