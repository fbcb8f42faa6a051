//! What all loaders have in common: one pipeline per epoch, its place, its waits, its memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::{Duration, Instant};

use forebay_pipeline::{BatchMemory, Batched, Batches, Dataset, Error, Mapped, Source, State, Threads};
use forebay_units::PathText;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::lending::Lending;
use crate::order::{Order, Place, Rest, Share};
use crate::patience::{SLICE, part_with};
use crate::process::Own;
use crate::spec::Common;
use crate::stats::Totals;
use crate::tensor::Memory;

/// A batch on its way to Python.
pub(crate) struct Taken {
    pub(crate) memory: Arc<Memory>,
    /// Bytes from one sample to the next.
    pub(crate) slot_bytes: usize,
    pub(crate) labels: Vec<i64>,
    /// The samples' indices in the data.
    pub(crate) samples: Vec<u32>,
}

/// What a kind of loader does: how samples are made, and what Python sees of a batch.
pub(crate) trait Kind: Send + Sync {
    fn mapped(&self, dataset: Dataset) -> Mapped;

    fn present<'py>(&self, py: Python<'py>, batch: Taken) -> PyResult<Bound<'py, PyAny>>;

    /// An iteration has ended; what it prepared and nobody took is gone.
    fn ended(&self) {}
}

/// The native half of a loader.
#[pyclass(frozen, subclass, module = "forebay._forebay")]
pub(crate) struct Feed {
    source: Source,
    root: PathBuf,
    share: Share,
    prefetch: usize,
    skip_errors: bool,
    kind: Box<dyn Kind>,
    inner: Own<Mutex<Inner>>,
}

struct Inner {
    /// Where the running iteration has come to, or the last one came to.
    place: Place,
    /// Whether the next iteration goes on from there; otherwise it begins an epoch.
    resumes: bool,
    /// Counts iterations: an older one may not go on.
    generation: u64,
    running: Option<Running>,
    threads: Threads,
    lending: Lending,
    /// A batch that `ready` found and `next` has not given yet.
    looked_up: Option<PyResult<Step>>,
    totals: Totals,
}

/// Memory that batches are made in, alive as long as this is.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Ring(Own<BatchMemory>);

#[pymethods]
impl Ring {
    #[getter]
    fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.0.n_bytes()
    }
}

/// The pipeline of an epoch.
struct Running {
    batches: Batches,
    rest: Rest,
    /// The position at which the rest begins, in the order that repeats it.
    start: u64,
    n_given: u64,
    /// When the consumer got the last batch, to know what prefetch could have hidden.
    given_at: Option<Instant>,
}

/// What a step of waiting came to.
enum Step {
    Ready(Taken),
    Wait,
    End,
}

impl Feed {
    pub(crate) fn new(common: &Common, source: Source, order: Order, kind: Box<dyn Kind>) -> PyResult<Self> {
        let share = Share {
            rank: common.rank,
            world_size: common.world_size,
            batch_size: common.batch_size as u64,
            drop_last: common.drop_last,
            order,
        };
        let inner = Inner {
            place: Place::default(),
            resumes: false,
            generation: 0,
            running: None,
            threads: if common.threads == 0 { Threads::Auto } else { Threads::Fixed(common.threads) },
            lending: Lending::new(common.ahead),
            looked_up: None,
            totals: Totals::default(),
        };
        let (root, inner) = (common.root(), Own::new(Mutex::new(inner)));
        let (prefetch, skip_errors) = (common.prefetch, common.skip_errors);
        let feed = Self { source, root, share, prefetch, skip_errors, kind, inner };
        if feed.share.batches_per_epoch(feed.n_samples()) == 0 {
            let (n, of) = (feed.n_samples(), feed.share.world_size);
            let said = format!("{n} samples over {of} ranks make no batch of {}", feed.share.batch_size);
            return Err(PyValueError::new_err(format!("{said}: give a smaller batch_size, or drop_last=False")));
        }
        Ok(feed)
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
}

#[pymethods]
impl Feed {
    /// Batches of an epoch.
    fn batches_per_epoch(&self) -> u64 {
        self.share.batches_per_epoch(self.n_samples())
    }

    #[getter]
    fn n_samples(&self) -> u64 {
        self.source.n_samples() as u64
    }

    /// What the data is packed in.
    #[getter]
    fn packing(&self) -> &'static str {
        self.source.packing()
    }

    /// Notes on the data: files left out, damaged shards.
    #[getter]
    fn notes(&self) -> Vec<String> {
        let damaged = self.source.damaged().iter().map(|damaged| {
            let (path, n) = (damaged.path.escaped(), damaged.n_samples_before);
            format!("{path} is damaged after {n} samples; only these are used: {}", damaged.error)
        });
        self.source.notes().iter().cloned().chain(self.source.left_out().note()).chain(damaged).collect()
    }

    /// The file of a sample, by its index in the data.
    fn name_of(&self, sample: u32) -> PyResult<String> {
        match u64::from(sample) < self.n_samples() {
            true => Ok(self.source.name_of(sample)),
            false => Err(PyValueError::new_err(format!("there is no sample {sample} of {}", self.n_samples()))),
        }
    }

    /// Starts an iteration, at the saved place or else at the next epoch; returns its number.
    fn begin(&self, py: Python<'_>) -> PyResult<u64> {
        let inner = self.inner.check("loader")?;
        py.detach(|| {
            let mut inner = lock(inner);
            self.stop(&mut inner);
            inner.generation += 1;
            if !std::mem::take(&mut inner.resumes) && inner.place.taken > 0 {
                inner.place = Place { epoch: inner.place.epoch + 1, taken: 0 };
            }
            inner.totals = Totals::default();
            inner.lending.n_copied = 0;
            self.start(&mut inner, None).map(|()| inner.generation)
        })
    }

    /// The next batch of an iteration; `None` at its end.
    fn next<'py>(&self, py: Python<'py>, generation: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let inner = self.inner.check("loader")?;
        loop {
            let step = py.detach(|| self.step(&mut lock(inner), generation, SLICE))?;
            match step {
                Step::Ready(taken) => return self.kind.present(py, taken).map(Some),
                Step::Wait => py.check_signals()?,
                Step::End => return Ok(None),
            }
        }
    }

    /// Whether `next` would return at once.
    fn ready(&self, py: Python<'_>, generation: u64) -> PyResult<bool> {
        let inner = self.inner.check("loader")?;
        Ok(py.detach(|| {
            let mut inner = lock(inner);
            match self.step(&mut inner, generation, Duration::ZERO) {
                Ok(Step::Wait) => false,
                found => {
                    inner.looked_up = Some(found);
                    true
                }
            }
        }))
    }

    /// The memory of the batches of a running iteration.
    fn ring(&self, generation: u64) -> PyResult<Option<Ring>> {
        let inner = lock(self.inner.check("loader")?);
        let running = inner.running.as_ref().filter(|_| inner.generation == generation);
        Ok(running.map(|running| Ring(Own::new(running.batches.memory()))))
    }

    /// Ends an iteration: stops its threads. What it has given counts as taken.
    fn end(&self, py: Python<'_>, generation: u64) {
        let Ok(inner) = self.inner.check("loader") else { return };
        py.detach(|| {
            let mut inner = lock(inner);
            if inner.generation == generation {
                self.stop(&mut inner);
            }
        });
    }

    /// The epoch and the samples that all ranks together have taken of it.
    fn place(&self) -> PyResult<(u64, u64)> {
        let inner = lock(self.inner.check("loader")?);
        Ok((inner.place.epoch, inner.place.taken))
    }

    /// Continues from a place in the next iteration.
    fn set_place(&self, py: Python<'_>, epoch: u64, taken: u64) -> PyResult<()> {
        if taken >= self.n_samples() {
            let said = format!("the state is at sample {taken} of an epoch of {}", self.n_samples());
            return Err(PyValueError::new_err(said));
        }
        let inner = self.inner.check("loader")?;
        py.detach(|| {
            let mut inner = lock(inner);
            self.stop(&mut inner);
            inner.generation += 1;
            inner.place = Place { epoch, taken };
            inner.resumes = true;
        });
        Ok(())
    }

    /// Identifies samples, labels and their order in the data, wherever it lies.
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| format!("{:016x}", self.source.fingerprint_below(&self.root)))
    }

    /// What the running iteration has done, or the last one did.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.inner.check("loader")?;
        py.detach(|| lock(inner).survey()).to_dict(py, lock(inner).lending.n_copied)
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().expect("no holder of this lock panics")
}

impl Feed {
    /// Ends the running iteration; the place stays.
    fn stop(&self, inner: &mut Inner) {
        inner.looked_up = None;
        inner.stop();
        self.kind.ended();
    }

    /// Starts the pipeline for the rest of an epoch, or for what a ring that was given up has left of it.
    fn start(&self, inner: &mut Inner, given_up: Option<(Rest, u64, u64)>) -> PyResult<()> {
        let fresh = given_up.is_none();
        let (rest, position, n_given) = match given_up {
            Some(left) => left,
            None => {
                let mut rest = self.share.rest(self.n_samples(), inner.place);
                if rest.n_batches == 0 {
                    // What is left of the epoch makes no batch for this rank.
                    inner.place = Place { epoch: inner.place.epoch + 1, taken: 0 };
                    rest = self.share.rest(self.n_samples(), inner.place);
                }
                let position = rest.place.epoch.saturating_mul(rest.n_samples);
                (rest, position, 0)
            }
        };
        let mapped = self.kind.mapped(self.share.dataset(self.source.clone(), &rest)).threads(inner.threads);
        let mapped = if self.skip_errors { mapped.ignore_errors() } else { mapped };
        let batched: Batched = self.share.batched(mapped, &rest).prefetch(self.prefetch).hold(inner.lending.hold());
        let batched = batched.at_most(rest.n_batches - n_given);
        let state = State { version: State::VERSION, fingerprint: batched.fingerprint(), position };
        let batches = batched.iter_from(&state).map_err(|error| error::of_pipeline(&error))?;
        let start = rest.place.epoch.saturating_mul(rest.n_samples);
        inner.lending.new_ring();
        let given_at = if fresh { None } else { Some(Instant::now()) };
        inner.running = Some(Running { batches, rest, start, n_given, given_at });
        Ok(())
    }

    fn step(&self, inner: &mut Inner, generation: u64, patience: Duration) -> PyResult<Step> {
        if inner.generation != generation {
            let said = "this iteration is over: a newer one of the same loader, or a loaded state, has replaced it";
            return Err(PyRuntimeError::new_err(said));
        }
        if let Some(found) = inner.looked_up.take() {
            return found;
        }
        if inner.running.is_some() && inner.lending.is_full() {
            self.renew(inner)?;
        }
        let Some(running) = &mut inner.running else { return Ok(Step::End) };
        let (asked, before) = (Instant::now(), running.batches.stall_time());
        let outcome = running.batches.next_within(patience);
        let stall = running.batches.stall_time().since(&before);
        let waited = asked.elapsed().as_nanos() as u64;
        let computed = running.given_at.map_or(0, |given| asked.saturating_duration_since(given).as_nanos() as u64);
        let hidden = if self.prefetch == 0 { computed } else { 0 };
        let n_threads = match inner.threads {
            Threads::Fixed(n) => n,
            Threads::Auto => running.batches.tuning().map_or(1, |tuning| tuning.threads),
        };
        inner.totals.charge(waited, hidden, &stall, n_threads);
        match outcome {
            Poll::Pending => {
                // The rest of this wait follows the computation only in part; what was hidden is counted.
                running.given_at = None;
                Ok(Step::Wait)
            }
            Poll::Ready(None) => {
                inner.place = Place { epoch: running.rest.place.epoch + 1, taken: 0 };
                self.stop(inner);
                Ok(Step::End)
            }
            Poll::Ready(Some(Err(error))) => Err(error::of_pipeline(&error)),
            Poll::Ready(Some(Ok(batch))) => {
                running.n_given += 1;
                inner.place = running.place(&self.share).map_err(|error| error::of_pipeline(&error))?;
                let labels = batch.labels().to_vec();
                let samples = batch.samples().to_vec();
                let slot_bytes = batch.sample_bytes();
                let memory = inner.lending.take(batch);
                running.given_at = Some(Instant::now());
                Ok(Step::Ready(Taken { memory, slot_bytes, labels, samples }))
            }
        }
    }

    /// Leaves the ring to the batches that the consumer keeps and starts a new one.
    fn renew(&self, inner: &mut Inner) -> PyResult<()> {
        let Some(running) = inner.running.take() else { return Ok(()) };
        let state = running.batches.state().map_err(|error| error::of_pipeline(&error))?;
        inner.totals.add(running.batches.stats(), n_threads(inner.threads));
        let Running { batches, rest, n_given, .. } = running;
        part_with(batches);
        self.start(inner, Some((rest, state.position, n_given)))
    }
}

fn n_threads(threads: Threads) -> usize {
    match threads {
        Threads::Fixed(n) => n,
        Threads::Auto => 0,
    }
}

impl Running {
    /// The place after the batches that were given.
    fn place(&self, share: &Share) -> Result<Place, Error> {
        let n_samples = self.batches.state()?.position - self.start;
        Ok(share.place_after(&self.rest, n_samples, self.n_given))
    }
}

impl Inner {
    /// Ends the running iteration; the place stays.
    fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if let Some(tuning) = running.batches.tuning() {
            // The next epoch need not search again.
            if tuning.settled {
                self.threads = Threads::Fixed(tuning.best());
            }
        }
        self.totals.add(running.batches.stats(), n_threads(self.threads));
        part_with(running.batches);
    }

    fn survey(&mut self) -> Totals {
        let mut totals = self.totals.clone();
        if let Some(running) = &self.running {
            totals.add(running.batches.stats(), n_threads(self.threads));
        }
        totals
    }
}
