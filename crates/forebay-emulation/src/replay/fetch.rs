//! One fetch: the calls of a batch on its files, then the work that the job did beside them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay_measure::Context;
use forebay_units::random::{Random, hash};
use forebay_units::{Clock, SystemClock};
use forebay_workload::replay::{FileOrder, Reading, ReplayFiles, ReplayLoader, part_of};

use super::super::read::Nap;
use super::super::run::Error;
use super::data::Found;

/// Files that a worker keeps open between visits.
const MAX_OPEN: usize = 256;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Done {
    pub(super) opens: u64,
    pub(super) reads: u64,
    pub(super) bytes: u64,
    /// Calls on attributes.
    pub(super) attributes: u64,
    pub(super) io_ns: u64,
    pub(super) decode_ns: u64,
    /// When the batch is with the loop, on the run's clock.
    pub(super) ready_ns: u64,
}

impl Done {
    pub(super) fn add(&mut self, other: &Self) {
        self.opens += other.opens;
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.attributes += other.attributes;
        self.io_ns += other.io_ns;
        self.decode_ns += other.decode_ns;
    }
}

/// Files of an entry with their order in a pass.
struct Set<'a> {
    files: &'a ReplayFiles,
    found: &'a [Found],
    /// Empty where they are visited by name.
    order: Vec<u32>,
    /// Visits before this pass.
    first_visit: u64,
    /// Where each file is read on.
    positions: &'a [AtomicU64],
}

/// The fetches of one pass of a loader.
pub(super) struct Pass<'a> {
    pub(super) loader: &'a ReplayLoader,
    /// Fetches before this pass, and of all passes of the loader.
    pub(super) first: u64,
    pub(super) all: u64,
    sets: Vec<Set<'a>>,
    clock: Arc<SystemClock>,
}

/// A loader's files, over all its passes.
pub(super) struct Files {
    pub(super) found: Vec<Vec<Found>>,
    positions: Vec<Vec<AtomicU64>>,
}

impl Files {
    pub(super) fn new(found: Vec<Vec<Found>>) -> Self {
        let zeros = |files: &Vec<Found>| files.iter().map(|_| AtomicU64::new(0)).collect();
        let positions = found.iter().map(zeros).collect();
        Self { found, positions }
    }
}

impl<'a> Pass<'a> {
    /// `number` counts the passes of this loader, of which there are `n`.
    pub(super) fn new(
        loader: &'a ReplayLoader,
        files: &'a Files,
        (number, n): (u64, u64),
        clock: &Arc<SystemClock>,
    ) -> Self {
        let (first, all) = (number * loader.steps, n * loader.steps);
        let set = |(set, of): (usize, &'a ReplayFiles)| {
            let (found, positions) = (files.found[set].as_slice(), files.positions[set].as_slice());
            let mut order = Vec::new();
            if of.order == FileOrder::Random {
                order.extend(0..found.len() as u32);
                Random::new(hash(hash(number) ^ set as u64)).shuffle(&mut order);
            }
            Set { files: of, found, order, first_visit: until(of.visits, first, all), positions }
        };
        let sets = loader.files.iter().enumerate();
        Self { loader, first, all, sets: sets.map(set).collect(), clock: Arc::clone(clock) }
    }

    /// Sleeps until a moment of the run's clock.
    pub(super) fn sleep_until(&self, deadline_ns: u64, stop: &AtomicBool) {
        Nap::default().sleep(deadline_ns.saturating_sub(self.clock.now_ns()) as f64 / 1e9, stop);
    }
}

/// The sum of the first `i` of `n` parts.
fn until(total: u64, i: u64, n: u64) -> u64 {
    (u128::from(total) * u128::from(i) / u128::from(n.max(1))) as u64
}

/// What a worker keeps from fetch to fetch.
#[derive(Default)]
pub(super) struct Worker {
    nap: Nap,
    room: Vec<u8>,
    open: HashMap<(usize, u32), File>,
}

impl Worker {
    /// Makes batch `step` of the pass.
    pub(super) fn fetch(&mut self, pass: &Pass<'_>, step: u64, stop: &AtomicBool) -> Result<Done, Error> {
        let number = pass.first + step;
        let mut done = Done::default();
        let begin_ns = pass.clock.now_ns();
        let mut left = [part_of(pass.loader.stats, number, pass.all), part_of(pass.loader.fstats, number, pass.all)];
        for (set, of) in pass.sets.iter().enumerate() {
            for visit in until(of.files.visits, number, pass.all)..until(of.files.visits, number + 1, pass.all) {
                self.visit(set, of, visit, &mut left, &mut done)?;
                if stop.load(Ordering::Relaxed) {
                    return Ok(done);
                }
            }
        }
        let read_ns = pass.clock.now_ns();
        let list = &pass.loader.decode_s;
        self.nap.sleep(list[(number % list.len() as u64) as usize], stop);
        let end_ns = pass.clock.now_ns();
        (done.io_ns, done.decode_ns) = (read_ns - begin_ns, end_ns - read_ns);
        done.ready_ns = end_ns + (pass.loader.handover_s * 1e9) as u64;
        Ok(done)
    }

    fn visit(
        &mut self,
        set: usize,
        of: &Set<'_>,
        visit: u64,
        left: &mut [u64; 2],
        done: &mut Done,
    ) -> Result<(), Error> {
        let files = of.files;
        let at = (visit - of.first_visit) % of.found.len() as u64;
        let index = of.order.get(at as usize).copied().unwrap_or(at as u32);
        let Found { path, bytes } = &of.found[index as usize];
        let [stats, fstats] = std::mem::take(left);
        for _ in 0..stats {
            fs::metadata(path).context("asking for", path)?;
        }
        let opens = part_of(files.opens, visit, files.visits) > 0;
        let key = (set, index);
        if opens || !self.open.contains_key(&key) {
            if self.open.len() >= MAX_OPEN {
                self.open.clear();
            }
            self.open.insert(key, File::open(path).context("opening", path)?);
            done.opens += 1;
        }
        let file = &self.open[&key];
        for _ in 0..fstats {
            file.metadata().context("asking for", path)?;
        }
        done.attributes += stats + fstats;
        let read = read(of, visit, (index, *bytes), file, &mut self.room, done);
        read.context("reading", path)?;
        if files.opens == files.visits {
            self.open.remove(&key);
        }
        Ok(())
    }
}

/// The reads of a visit: its bytes in equal parts, then those that find the end of the file.
fn read(
    of: &Set<'_>,
    visit: u64,
    (index, size): (u32, u64),
    file: &File,
    room: &mut Vec<u8>,
    done: &mut Done,
) -> std::io::Result<()> {
    let files = of.files;
    let n_full = files.reads - files.empty_reads;
    let reads = until(n_full, visit, files.visits)..until(n_full, visit + 1, files.visits);
    let n = reads.end - reads.start;
    let wanted: u64 = match files.reading {
        Reading::Whole if n == 0 => 0,
        Reading::Whole => size,
        _ => until(files.bytes_read, reads.end, n_full) - until(files.bytes_read, reads.start, n_full),
    };
    let mut at = match files.reading {
        Reading::Whole => 0,
        Reading::Sequential => of.positions[index as usize].fetch_add(wanted, Ordering::Relaxed) % size.max(1),
        Reading::Random => {
            let places = (size / wanted.max(1)).max(1);
            Random::new(hash(visit)).below(places) * wanted
        }
    };
    for i in 0..n {
        let length = part_of(wanted, i, n);
        if at + length > size {
            at = 0;
        }
        if room.len() < length as usize {
            room.resize(length as usize, 0);
        }
        let got = file.read_at(&mut room[..length as usize], at)?;
        done.reads += 1;
        done.bytes += got as u64;
        at += length;
    }
    let n_empty = part_of(files.empty_reads, visit, files.visits);
    for _ in 0..n_empty {
        done.bytes += file.read_at(&mut [0], size)? as u64;
        done.reads += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums over two passes of three fetches, each of which must have a third.
    fn sums(files: ReplayFiles) -> Done {
        let dir = tempfile::tempdir().unwrap();
        let found: Vec<Found> = (0..files.files)
            .map(|n| Found { path: dir.path().join(n.to_string()), bytes: 1_000 })
            .inspect(|file| fs::write(&file.path, [7; 1_000]).unwrap())
            .collect();
        let loader = ReplayLoader {
            steps: 3,
            stats: 7,
            fstats: 12,
            compute_s: vec![0.0],
            decode_s: vec![0.0],
            files: vec![files],
            ..ReplayLoader::default()
        };
        let (files, clock) = (Files::new(vec![found]), Arc::default());
        let (mut worker, mut all) = (Worker::default(), Done::default());
        for number in 0..2 {
            let pass = Pass::new(&loader, &files, (number, 2), &clock);
            for step in 0..3 {
                all.add(&worker.fetch(&pass, step, &AtomicBool::new(false)).unwrap());
            }
        }
        all
    }

    fn files() -> ReplayFiles {
        ReplayFiles {
            files: 6,
            visits: 12,
            opens: 12,
            reads: 25,
            empty_reads: 12,
            bytes_read: 12_000,
            ..ReplayFiles::default()
        }
    }

    #[test]
    fn whole_files_are_opened_and_read_as_often_as_traced() {
        for order in [FileOrder::Sequential, FileOrder::Random] {
            let done = sums(ReplayFiles { order, ..files() });
            assert_eq!((done.opens, done.reads, done.bytes, done.attributes), (12, 25, 12_000, 19), "{order:?}");
        }
    }

    #[test]
    fn parts_of_open_files_sum_to_the_traced_bytes() {
        for reading in [Reading::Sequential, Reading::Random] {
            let done = sums(ReplayFiles { reading, opens: 0, reads: 29, bytes_read: 3_457, files: 2, ..files() });
            assert_eq!((done.opens, done.reads, done.bytes), (2, 29, 3_457), "{reading:?}");
        }
    }
}
