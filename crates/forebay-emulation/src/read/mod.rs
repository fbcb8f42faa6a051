//! Samples: the readers of `forebay-dataset` as workers of a pipeline, in an epoch's order, with their times.

#[cfg(test)]
mod columnar;
mod gate;
mod nap;
mod order;
mod processor;
mod stream;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use forebay_dataset::{Files, NO_HDF5, Unit, is_built_in};
use forebay_pipeline::{Batches, Dataset, Source, Threads};
use forebay_storage::Storage;
use forebay_units::PathText;
use forebay_workload::{Loader, Part, Workload};

use self::gate::Gates;
use self::order::{Order, share};
use self::processor::Processor;
use self::stream::{Common, Kept, Share, Stream};
use super::run::Error;

pub(crate) use self::nap::Nap;
pub(crate) use self::order::Seeds;
pub(crate) use forebay_dataset::Traffic;

/// One part of the data, ready to be distributed to accelerators.
pub(crate) struct Samples {
    common: Arc<Common>,
    files: Arc<Files>,
    reader: forebay_workload::Reader,
    batch: u64,
    /// The last order requested; all accelerators of an epoch share it.
    order: Mutex<Option<(Seeds, Arc<Order>)>>,
}

/// Called by readers with the file's number, the sample within it, and what was read for it: nothing if it was in
/// memory.
pub(crate) type Log = dyn Fn(u32, u32, Traffic) + Send + Sync;

pub(crate) struct Access {
    /// Counts bytes, and emulates a device if requested.
    pub(crate) storage: Arc<dyn Storage>,
    /// The folder that holds `train` and `valid`.
    pub(crate) data: PathBuf,
    /// Whether to verify checksums.
    pub(crate) verify: bool,
}

/// The error for data that does not match the workload.
pub(crate) fn refused(what: String) -> Error {
    forebay_pipeline::Error::Source { what, source: None }.into()
}

impl Samples {
    /// Checks that all files exist, and indexes those that need it.
    pub(crate) fn open(workload: &Workload, part: Part, access: Access) -> Result<Self, Error> {
        let Access { storage, data, verify } = access;
        if !is_built_in(workload.dataset.format) {
            return Err(refused(NO_HDF5.to_owned()));
        }
        let found = Files::find(workload, part, storage, data, verify);
        let files = Arc::new(found.map_err(|error| refused(error.to_string()))?);
        let reader = workload.reader.clone();
        let batch = match part {
            Part::Train => reader.batch_size,
            Part::Eval => reader.batch_size_eval,
        };
        let common = Common {
            sample_bytes: delivered_bytes(workload, &files),
            files: Arc::clone(&files),
            preprocess: reader.preprocess_time,
            kept: reader.in_memory.then(Kept::default),
            is_ended: AtomicBool::new(false),
        };
        Ok(Self { common: Arc::new(common), files, reader, batch: batch.max(1), order: Mutex::new(None) })
    }

    pub(crate) fn n_samples(&self) -> u64 {
        self.files.n_files() * self.per_file()
    }

    pub(crate) fn n_files(&self) -> u64 {
        self.files.n_files()
    }

    pub(crate) fn path_of(&self, file: u32) -> PathBuf {
        self.files.path_of(file)
    }

    fn per_file(&self) -> u64 {
        self.files.dataset().n_samples_per_file.max(1)
    }

    /// Per sample, in a batch.
    pub(crate) fn sample_bytes(&self) -> usize {
        self.common.sample_bytes
    }

    /// `n_steps` whole batches of accelerator `accelerator`'s share of an epoch, in the order drawn from `seeds`. `log`
    /// is called for every sample.
    pub(crate) fn batches(
        &self,
        (accelerator, of): (u64, u64),
        seeds: impl Into<Seeds>,
        n_steps: u64,
        log: Option<Arc<Log>>,
    ) -> Result<Batches, Error> {
        let seeds = seeds.into();
        let positions = share(self.n_samples(), accelerator, of);
        let n_samples = n_steps * self.batch;
        if n_samples > positions.end - positions.start {
            let each = positions.end - positions.start;
            return Err(refused(format!(
                "{n_steps} steps need {n_samples} samples, but each of {of} accelerators has {each}"
            )));
        }
        let order = self.order(seeds);
        let per_slot = self.per_slot(&order);
        let share = Arc::new(Share { order, per_file: self.per_file(), first: positions.start, per_slot });
        let n_slots = u32::try_from(n_samples / per_slot)
            .map_err(|_| refused(format!("one accelerator cannot take {n_samples} samples per epoch")))?;
        let gates = self.gates();
        let n_threads = self.reader.read_threads.max(1) + gates.as_ref().map_or(0, |_| self.reader.computation_threads);
        let core = self.reader.decode_bytes_per_s.map(|rate| Arc::new(Processor::new(rate, n_threads)));
        let (common, seed) = (Arc::clone(&self.common), seeds.samples);
        let (name_of, slots) = (self.name_of(), Arc::clone(&share));
        let stream = Stream { common, name_of: Arc::clone(&name_of), share, gates, log, core, seed };
        // A failure outside a run (a panic) is named after the first run of its slot.
        let name_of = move |slot| {
            let mut runs = Vec::new();
            slots.runs(slot, &mut runs);
            runs.first().map_or_else(String::new, |run| name_of(run))
        };
        // An accelerator copies a batch that it takes into its own memory, which frees the slot.
        let pipeline = Dataset::new(Source::streamed(n_slots, per_slot as usize, name_of))
            .map(stream)
            .threads(Threads::Fixed(n_threads as usize))
            .batch(self.batch as usize)
            .prefetch(self.reader.n_ahead() as usize)
            .hold(0)
            .drop_remainder();
        Ok(pipeline.iter()?)
    }

    /// Announces that no more samples will be taken: readers cut emulated waits short.
    pub(super) fn end(&self) {
        self.common.is_ended.store(true, Ordering::Relaxed);
    }

    fn order(&self, seeds: Seeds) -> Arc<Order> {
        let mut last = self.order.lock().expect("no holder of this lock panics");
        if let Some((known, order)) = &*last
            && *known == seeds
        {
            return Arc::clone(order);
        }
        let how = (self.reader.file_shuffle, self.reader.sample_shuffle);
        // PyTorch's loader is the only one without a shuffle buffer: it shuffles everything.
        let window = match self.reader.loader {
            Loader::Tensorflow | Loader::Dali | Loader::NativeDali => self.reader.shuffle_size,
            Loader::Pytorch | Loader::Synthetic => 0,
        };
        let order = Arc::new(Order::new(self.files.n_files(), self.per_file(), how, window, seeds));
        *last = Some((seeds, Arc::clone(&order)));
        order
    }

    /// Number of samples that one thread makes together: several if they are small or from one piece of a file; a
    /// divisor of the batch. The workers of an emulated loader make whole batches.
    fn per_slot(&self, order: &Order) -> u64 {
        if self.reader.decode_bytes_per_s.is_some() {
            return self.batch;
        }
        let together = match self.files.unit() {
            _ if !order.keeps_neighbours() && self.per_file() > 1 => small_together(self.sample_bytes()),
            Unit::Sample if self.per_file() == 1 => 1,
            Unit::Sample => small_together(self.sample_bytes()),
            Unit::Group(samples) => samples,
            Unit::File => self.per_file(),
        };
        (1..=self.batch.min(together.max(1))).rev().find(|n| self.batch.is_multiple_of(*n)).unwrap_or(1)
    }

    /// Only needed if several threads compute and there is work to compute.
    fn gates(&self) -> Option<Arc<Gates>> {
        let computes = self.files.dataset().decodes() || !self.reader.preprocess_time.is_zero();
        let apart = self.reader.computation_threads > 1 && self.reader.read_threads > 0 && computes;
        apart.then(|| Arc::new(Gates::new(self.reader.read_threads, self.reader.computation_threads)))
    }

    fn name_of(&self) -> Arc<stream::NameOf> {
        let files = Arc::clone(&self.files);
        Arc::new(move |run: &stream::Run| {
            let (first, last) = (run.samples.start, run.samples.end - 1);
            let which = if first == last { first.to_string() } else { format!("{first} to {last}") };
            format!("{which} of {}", files.path_of(run.file).escaped())
        })
    }
}

/// Enough samples that claiming and publishing them costs only a few percent.
fn small_together(sample_bytes: usize) -> u64 {
    (SLOT_BYTES / sample_bytes.max(1)).max(1) as u64
}

/// Below this, making a sample costs no more than handing it over.
const SLOT_BYTES: usize = 128 << 10;

/// Size of a sample in a batch: transformed, resized, or its own; the mean for varying sizes.
fn delivered_bytes(workload: &Workload, files: &Files) -> usize {
    let (reader, dataset) = (&workload.reader, &workload.dataset);
    let bytes = if !reader.transformed_dims.is_empty() {
        reader.transformed_dims.iter().product::<u64>() * reader.transformed_element.bytes()
    } else if dataset.record_length_bytes_resize > 0 {
        dataset.record_length_bytes_resize
    } else if let Some(bytes) = files.sample_bytes() {
        bytes
    } else if !dataset.record_dims.is_empty() {
        dataset.record_dims.iter().product::<u64>() * dataset.element.bytes()
    } else {
        let side = dataset.record_length_bytes.max(1.0).sqrt() as u64;
        side * side * dataset.element.bytes()
    };
    bytes.max(1) as usize
}
