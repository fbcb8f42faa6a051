//! DLIO's PyTorch loader, imitated: who makes which batch when, in which order files are read, and how long a batch takes.
//!
//! There every worker of a process makes a whole batch, the workers take turns, each begins its next when the one it made is
//! taken, and all share a core, so that a batch takes its time by its bytes and by who else is at work. Here a thread is a worker,
//! and the core is emulated. The loader reads files in order whatever the shuffles say, and DLIO gives files of one configuration
//! the same sizes always: which rank has the large ones is no chance, and all ranks wait for it at the barrier.

use forebay_workload::{Shuffle, Workload};

/// The workload as that loader would read it, decoding so many megabytes a second in each process.
pub(super) fn imitate(workload: &mut Workload, mb_per_s: f64) {
    let reader = &mut workload.reader;
    let workers = reader.read_threads.max(1);
    (reader.read_threads, reader.computation_threads) = (workers, 1);
    // Each worker has so many batches to do at a time, one after the other.
    reader.prefetch_size = workers.saturating_mul(reader.prefetch_size.div_ceil(workers).max(1));
    (reader.file_shuffle, reader.sample_shuffle) = (Shuffle::Off, Shuffle::Off);
    reader.decode_bytes_per_s = Some(mb_per_s * 1e6);
    workload.dataset.sides = workload.dataset.dlio_sides();
}
