//! DLIO's PyTorch loader, imitated by the time that samples take.
//!
//! There every worker of a process makes a whole batch, so that as many batches as there are workers are under way at once and
//! are done at about the same time; and the workers share a core. Here threads take a sample each: as many threads as there are
//! samples under way, which share a core that is emulated. Towards the end of an epoch fewer have work, and each is faster.

use forebay_workload::{Time, Workload};

use super::mean_sample_bytes;

/// The workload as that loader would read it, decoding so many megabytes a second in each process.
pub(super) fn imitate(mut workload: Workload, accelerators: u64, mb_per_s: f64) -> Workload {
    let reader = &mut workload.reader;
    let workers = reader.read_threads.max(1);
    let n_samples = workload.dataset.n_files_train.saturating_mul(workload.dataset.n_samples_per_file);
    let steps = (n_samples / reader.batch_size.max(1) / accelerators.max(1)).max(1);
    // Each worker has so many batches to do at a time, one after the other.
    let ahead = workers.saturating_mul(reader.prefetch_size.div_ceil(workers).max(1));
    let seconds = mean_sample_bytes(&workload.dataset) / (mb_per_s * 1e6);
    reader.read_threads = workers.min(steps).saturating_mul(reader.batch_size);
    reader.prefetch_size = ahead;
    reader.preprocess_time = Time::Normal { mean: seconds, stdev: 0.0 };
    reader.prepares_on_one_core = true;
    workload
}
