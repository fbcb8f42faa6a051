//! Readers as a map of the pipeline: from a slot's number to locations in files, and from these to the slot's bytes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use forebay_dataset::{Files, ReadError, Reader, Step, Tools, Traffic};
use forebay_pipeline::{Activity, Map, MapWorker, Sample, SampleError, Stopwatch};
use forebay_units::random::hash;
use forebay_workload::Time;

use super::super::draw;
use super::Log;
use super::gate::{Gates, Room};
use super::nap::Nap;
use super::order::Order;
use super::processor::Processor;

/// Consecutive samples of one slot in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) file: u32,
    pub(super) samples: Range<u32>,
}

/// One accelerator's part of an epoch's order, cut into slots.
pub(super) struct Share {
    pub(super) order: Arc<Order>,
    pub(super) per_file: u64,
    /// Position in the order.
    pub(super) first: u64,
    pub(super) per_slot: u64,
}

impl Share {
    pub(super) fn runs(&self, slot: u32, out: &mut Vec<Run>) {
        out.clear();
        let first = self.first + u64::from(slot) * self.per_slot;
        for position in first..first + self.per_slot {
            let sample = self.order.at(position);
            let (file, sample) = ((sample / self.per_file) as u32, (sample % self.per_file) as u32);
            match out.last_mut() {
                Some(run) if run.file == file && run.samples.end == sample => run.samples.end += 1,
                _ => out.push(Run { file, samples: sample..sample + 1 }),
            }
        }
    }
}

pub(super) struct Common {
    pub(super) files: Arc<Files>,
    /// Per sample, in a batch.
    pub(super) sample_bytes: usize,
    pub(super) preprocess: Time,
    /// Samples already read, in the form they have in a batch, if the workload keeps them.
    pub(super) kept: Option<Kept>,
    /// No more samples will be taken.
    pub(super) is_ended: AtomicBool,
}

/// By file and number.
type ByPlace = HashMap<(u32, u32), Box<[u8]>>;

#[derive(Default)]
pub(super) struct Kept(Mutex<ByPlace>);

impl Kept {
    fn lock(&self) -> std::sync::MutexGuard<'_, ByPlace> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Succeeds only if the whole run is there.
    fn get(&self, run: &Run, out: &mut [u8], sample_bytes: usize) -> bool {
        let kept = self.lock();
        run.samples
            .clone()
            .zip(out.chunks_mut(sample_bytes))
            .all(|(sample, place)| kept.get(&(run.file, sample)).map(|bytes| place.copy_from_slice(bytes)).is_some())
    }

    fn put(&self, run: &Run, made: &[u8], sample_bytes: usize) {
        let mut kept = self.lock();
        for (sample, bytes) in run.samples.clone().zip(made.chunks(sample_bytes)) {
            kept.entry((run.file, sample)).or_insert_with(|| bytes.into());
        }
    }
}

/// For error messages.
pub(super) type NameOf = dyn Fn(&Run) -> String + Send + Sync;

pub(super) struct Stream {
    pub(super) common: Arc<Common>,
    pub(super) name_of: Arc<NameOf>,
    pub(super) share: Arc<Share>,
    pub(super) gates: Option<Arc<Gates>>,
    pub(super) log: Option<Arc<Log>>,
    /// The core of the emulated loader; `None` if readers use the machine's cores.
    pub(super) core: Option<Arc<Processor>>,
    /// For the times of preparation.
    pub(super) seed: u64,
}

impl Map for Stream {
    fn sample_bytes(&self) -> usize {
        self.common.sample_bytes * self.share.per_slot as usize
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        self.core.iter().for_each(|core| core.enter());
        Box::new(Worker {
            reader: self.common.files.reader(),
            common: Arc::clone(&self.common),
            name_of: Arc::clone(&self.name_of),
            share: Arc::clone(&self.share),
            gates: self.gates.clone(),
            log: self.log.clone(),
            core: self.core.clone(),
            nap: Nap::default(),
            seed: self.seed,
            runs: Vec::new(),
            traffic: Traffic::default(),
        })
    }

    fn description(&self) -> Option<String> {
        None // Its samples are never cached in files.
    }
}

struct Worker {
    common: Arc<Common>,
    name_of: Arc<NameOf>,
    share: Arc<Share>,
    reader: Box<dyn Reader>,
    gates: Option<Arc<Gates>>,
    log: Option<Arc<Log>>,
    core: Option<Arc<Processor>>,
    nap: Nap,
    seed: u64,
    runs: Vec<Run>,
    /// What it has read and the pipeline has not collected yet.
    traffic: Traffic,
}

impl MapWorker for Worker {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        let Self { common, reader, gates, log, traffic, runs, .. } = self;
        self.share.runs(sample.index, runs);
        if self.core.is_some() {
            watch.enter(Activity::Idle);
        }
        let work = self.core.as_ref().map(|core| core.begin(sample.index));
        let mut room = Room::new(gates.as_deref());
        let mut enter = |activity| {
            room.enter(activity, watch);
            watch.enter(activity);
        };
        let before = *traffic;
        let mut on_step = |step| enter(activity_of(step));
        let mut tools = Tools::new(&mut on_step, traffic);
        let mut rest = slot;
        for run in runs {
            let (now, later) = rest.split_at_mut(run.samples.len() * common.sample_bytes);
            let made = common.make(run, now, reader.as_mut(), &mut tools);
            let named = |error| SampleError::Of { name: (self.name_of)(run), error: Box::new(sample_error(error)) };
            let traffic = made.map_err(named)?;
            if let Some(log) = log {
                note(log.as_ref(), run, traffic);
            }
            rest = later;
        }
        if let Some(work) = work {
            enter(Activity::Preprocessing);
            work.decode(traffic.since(before).asked);
        }
        if !common.preprocess.is_zero() {
            enter(Activity::Preprocessing);
            let first = u64::from(sample.index) * self.share.per_slot;
            let seconds: f64 = (first..first + self.share.per_slot)
                .map(|i| draw::seconds(&common.preprocess, hash(self.seed ^ hash(self.share.first + i))))
                .sum();
            // Emulates the workload's own work on a sample.
            self.nap.sleep(seconds, &common.is_ended);
        }
        Ok(())
    }

    fn take_moved(&mut self) -> u64 {
        std::mem::take(&mut self.traffic).moved
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.core.iter().for_each(|core| core.leave());
    }
}

impl Common {
    /// Returns what was read.
    fn make(
        &self,
        run: &Run,
        out: &mut [u8],
        reader: &mut dyn Reader,
        tools: &mut Tools<'_>,
    ) -> Result<Traffic, ReadError> {
        if let Some(kept) = &self.kept
            && kept.get(run, out, self.sample_bytes)
        {
            return Ok(Traffic::default());
        }
        let before = tools.traffic();
        reader.read(run.file, run.samples.clone(), out, tools)?;
        if let Some(kept) = &self.kept {
            kept.put(run, out, self.sample_bytes);
        }
        Ok(tools.traffic().since(before))
    }
}

fn activity_of(step: Step) -> Activity {
    match step {
        Step::Opening => Activity::Opening,
        Step::Reading => Activity::Reading,
        Step::Decoding => Activity::Decoding,
    }
}

fn sample_error(error: ReadError) -> SampleError {
    match error {
        ReadError::Storage(error) => error.into(),
        ReadError::Format(error) => error.into(),
        other => SampleError::Refused(other.to_string()),
    }
}

/// Divides what was read for several samples at once among them; the first gets the remainder.
fn note(log: &Log, run: &Run, traffic: Traffic) {
    let n = run.samples.len() as u64;
    for (i, sample) in run.samples.clone().enumerate() {
        let part = |bytes: u64| bytes / n + if i == 0 { bytes % n } else { 0 };
        log(run.file, sample, Traffic { asked: part(traffic.asked), moved: part(traffic.moved) });
    }
}
