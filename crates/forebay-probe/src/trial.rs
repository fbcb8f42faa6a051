//! One cell of a probe on its target, and one timed run of it.

use std::borrow::Cow;
use std::fs::File;
use std::path::PathBuf;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay_measure::cold::{self, Before};
use forebay_measure::{Done, Event, Observer, random};
use forebay_record::{CacheEvidence, Engine, ProbeMode, ProbeRepeat};
use forebay_storage::{Local, Mode, Shaped, Storage, cache};
use forebay_units::Histogram;

use super::error::{Context, Error};
use super::files_ring;
use super::mix::Mix;
use super::plan::{Combination, Plan, SEED, TIME_LIMIT, Unit};
use super::prepared_target::PreparedTarget;
use super::requests::{Request, Requests};
use super::ring::{self, Direction};
use super::run::{describe, planned_bytes};
use super::threads::{self, Leaf};
use super::workers::{self, Done as Worked, Shared};

pub(super) struct Trial<'a> {
    pub(super) plan: &'a Plan,
    pub(super) target: &'a PreparedTarget,
    pub(super) trees: &'a [Vec<Leaf>],
    pub(super) cell: &'a Combination,
}

impl forebay_measure::Trial for Trial<'_> {
    type Repeat = Repeated;
    type Error = Error;

    fn name(&self) -> String {
        describe(self.cell)
    }

    /// Writes need neither eviction nor inspection.
    fn files(&self) -> (Cow<'_, [PathBuf]>, bool) {
        let files = match (self.cell.mode, &self.cell.unit) {
            (ProbeMode::SequentialWrite, _) => Cow::Borrowed([].as_slice()),
            (_, Unit::File(tree)) => self.trees[*tree].iter().map(|leaf| leaf.path.clone()).collect(),
            _ => Cow::Borrowed(slice::from_ref(&self.target.file)),
        };
        (files, true)
    }

    fn repeat(&mut self, round: u64, before: &Before, observer: Observer<'_>) -> Result<Done<Self::Repeat>, Error> {
        let mut left = planned_bytes(self.plan, self.cell);
        let mut moved = |bytes: u64| {
            left = left.saturating_sub(bytes);
            observer.tell(Event::Moved { images: 0, bytes });
        };
        let repeat = self.run(round, before, Watch { moved: &mut moved, cancel: observer.cancel })?;
        if !observer.is_cancelled() {
            // A run that hit its time limit moved less than planned.
            observer.tell(Event::Moved { images: 0, bytes: left });
        }
        Ok(Done::Whole(repeat))
    }
}

struct Watch<'a> {
    moved: &'a mut dyn FnMut(u64),
    cancel: &'a AtomicBool,
}

impl Trial<'_> {
    fn run(&self, run: u64, before: &Before, watch: Watch<'_>) -> Result<Repeated, Error> {
        match (self.cell.mode, &self.cell.unit) {
            (ProbeMode::SequentialWrite, Unit::Block(block)) => self.write(*block, run, watch),
            (ProbeMode::SequentialRead, Unit::Block(block)) => {
                let requests = Requests::Sequential { block: *block, size: self.plan.usable_size() };
                self.read(*block, &requests, before, watch)
            }
            (_, Unit::Block(block)) => self.read_random(&Mix::of_one(*block), run, before, watch),
            (_, Unit::Mix(mix)) => self.read_random(mix, run, before, watch),
            (_, Unit::File(tree)) => self.read_files(*tree, run, before, watch),
        }
    }

    fn write(&self, block: u64, run: u64, watch: Watch<'_>) -> Result<Repeated, Error> {
        let requests = Requests::Sequential { block, size: self.plan.usable_size() };
        let before = cache::block_bytes_written();
        let done = match self.shaped() {
            Some(device) => {
                let writer = threads::object_writer(device.create(&self.target.file)?, block, &requests, run);
                workers::run(vec![writer], Shared::new(watch.cancel, None), || Ok(()), watch.moved)?
            }
            None => self.write_file(block, &requests, run, watch)?,
        };
        let block_bytes = before.and_then(|start| Some(cache::block_bytes_written()?.saturating_sub(start)));
        let evidence = CacheEvidence { resident_before: None, block_bytes, bytes_read: done.bytes };
        Ok(repeat(done, evidence))
    }

    fn write_file(&self, block: u64, requests: &Requests, run: u64, watch: Watch<'_>) -> Result<Worked, Error> {
        let (path, cell) = (&self.target.file, self.cell);
        self.target.fresh_file(self.plan.usable_size())?;
        let workers = match cell.engine {
            Engine::Uring => {
                let file = threads::open(path, cell.engine, true, requests)?;
                vec![ring::worker(path, file, cell.depth, block, requests, Direction::Write(run))]
            }
            _ => threads::writers(path, cell.engine, cell.depth, block, requests, run)?,
        };
        let file = File::open(path).context("opening", path)?;
        let stopped = || watch.cancel.load(Ordering::Relaxed);
        // Cancelled data is discarded; a sync would only take time.
        let sync = || if stopped() { Ok(()) } else { file.sync_all().context("syncing", path) };
        workers::run(workers, Shared::new(watch.cancel, None), sync, watch.moved)
    }

    fn read_random(&self, mix: &Mix, run: u64, before: &Before, watch: Watch<'_>) -> Result<Repeated, Error> {
        let unit = if self.cell.engine == Engine::Sync { 1 } else { self.target.alignment };
        let mix = mix.aligned(unit);
        let mut random = random(SEED, run);
        let requests = Requests::random(&mix, self.plan.usable_size(), &mut random);
        self.read(mix.largest(), &requests, before, watch)
    }

    fn read(&self, largest: u64, requests: &Requests, before: &Before, watch: Watch<'_>) -> Result<Repeated, Error> {
        let (path, cell) = (&self.target.file, self.cell);
        let device = self.shaped();
        let workers = match (&device, cell.engine) {
            (Some(device), _) => threads::object_readers(device, path, cell.depth, requests)?,
            (None, Engine::Uring) => {
                let file = threads::open(path, cell.engine, false, requests)?;
                vec![ring::worker(path, file, cell.depth, largest, requests, Direction::Read)]
            }
            (None, _) => threads::readers(path, cell.engine, cell.depth, largest, requests)?,
        };
        let limit = (cell.mode != ProbeMode::SequentialRead).then_some(TIME_LIMIT);
        let done = workers::run(workers, Shared::new(watch.cancel, limit), || Ok(()), watch.moved)?;
        let evidence = cold::conclude(before, done.bytes);
        Ok(repeat(done, evidence))
    }

    fn read_files(&self, tree: usize, run: u64, before: &Before, watch: Watch<'_>) -> Result<Repeated, Error> {
        let (leaves, cell) = (&self.trees[tree], self.cell);
        let numbers = leaves.iter().enumerate().map(|(number, leaf)| Request { offset: number as u64, len: leaf.len });
        let mut pieces: Vec<Request> = numbers.collect();
        random(SEED, run).shuffle(&mut pieces);
        let requests = Requests::Random { pieces, next: AtomicUsize::new(0) };
        let largest = self.plan.trees[tree].largest();
        let device = self.shaped();
        let workers = match (&device, cell.engine) {
            (Some(device), _) => threads::file_object_readers(device, leaves, cell.depth, &requests),
            (None, Engine::Uring) => vec![files_ring::worker(leaves, cell.depth, largest, &requests)],
            (None, _) => threads::file_readers(leaves, cell.engine, cell.depth, largest, &requests),
        };
        let done = workers::run(workers, Shared::new(watch.cancel, Some(TIME_LIMIT)), || Ok(()), watch.moved)?;
        let evidence = cold::conclude(before, done.bytes);
        Ok(repeat(done, evidence))
    }

    /// In-process emulation above the file system, with the engine's way of reading.
    fn shaped(&self) -> Option<Shaped<Local>> {
        let mode = if self.cell.engine == Engine::Sync { Mode::Buffered } else { Mode::Direct };
        self.plan.tier.as_ref().map(|profile| Shaped::new(Local::new(mode), profile.clone()))
    }
}

pub(super) struct Repeated {
    pub(super) repeat: ProbeRepeat,
    pub(super) evidence: CacheEvidence,
    pub(super) latencies: Histogram,
}

fn repeat(done: Worked, evidence: CacheEvidence) -> Repeated {
    let repeat =
        ProbeRepeat { bytes: done.bytes, n_requests: done.latencies.count(), wall_s: done.wall_s, cpu_s: done.cpu_s };
    Repeated { repeat, evidence, latencies: done.latencies }
}
