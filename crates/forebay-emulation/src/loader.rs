//! Emulates DLIO's PyTorch loader: which worker makes which batch and when, the order of files, and the time of a
//! batch.
//!
//! In that loader, every worker of a process makes whole batches, in turn, and begins its next one when the last is
//! taken. All workers share a core, so the time of a batch depends on its bytes and on the number of active workers.
//! Here a thread is a worker, and the core is emulated. The loader reads files in order despite all shuffle settings,
//! and DLIO gives the files of a configuration the same sizes every time: the same rank gets the large ones in every
//! run, and all ranks wait for it at the barrier.

use forebay_workload::{Shuffle, Workload};

/// `mb_per_s` is the decoding rate of one process.
pub(super) fn imitate(workload: &mut Workload, mb_per_s: f64) {
    let reader = &mut workload.reader;
    let workers = reader.read_threads.max(1);
    (reader.read_threads, reader.computation_threads) = (workers, 1);
    // Each worker prefetches this many batches, one after the other.
    reader.prefetch_size = workers.saturating_mul(reader.prefetch_size.div_ceil(workers).max(1));
    (reader.file_shuffle, reader.sample_shuffle) = (Shuffle::Off, Shuffle::Off);
    reader.decode_bytes_per_s = Some(mb_per_s * 1e6);
    workload.dataset.sides = workload.dataset.dlio_sides();
}
