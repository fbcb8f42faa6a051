//! Emulates DLIO's PyTorch loader: which worker makes which batch when, in which order files are read, and how long a batch takes.
//!
//! There, every worker of a process makes whole batches, in turn, and begins its next one when the last is taken. All workers share a core,
//! so the time of a batch depends on its bytes and on who else is working. Here a thread is a worker, and the core is emulated. The loader
//! reads files in order whatever the shuffles say, and DLIO always gives files of one configuration the same sizes: the same rank gets the
//! large ones in every run, and all ranks wait for it at the barrier.

use forebay_workload::{Shuffle, Workload};

/// `mb_per_s` is what one process decodes.
pub(super) fn imitate(workload: &mut Workload, mb_per_s: f64) {
    let reader = &mut workload.reader;
    let workers = reader.read_threads.max(1);
    (reader.read_threads, reader.computation_threads) = (workers, 1);
    // Each worker has this many batches to make, one after the other.
    reader.prefetch_size = workers.saturating_mul(reader.prefetch_size.div_ceil(workers).max(1));
    (reader.file_shuffle, reader.sample_shuffle) = (Shuffle::Off, Shuffle::Off);
    reader.decode_bytes_per_s = Some(mb_per_s * 1e6);
    workload.dataset.sides = workload.dataset.dlio_sides();
}
