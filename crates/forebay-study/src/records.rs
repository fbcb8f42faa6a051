//! The data of workload cells: its folder, whether it exists, and its size. Cells with the same dataset share it.

use std::path::Path;

use forebay_storage::Profile;
use forebay_units::{Bytes, Fnv};
use forebay_workload::{Dataset, Part, Workload};

use super::estimate::Estimate;
use super::steps::WorkloadTask;

/// Format and number of files for people, and a hash of all settings that determine the bytes.
pub(super) fn folder_name(workload: &Workload) -> String {
    let dataset = &workload.dataset;
    // These settings do not change the bytes.
    let alike =
        Dataset { data_folder: String::new(), keep_files: true, record_length_bytes_resize: 0, ..dataset.clone() };
    let hash = Fnv::of(format!("{alike:?}").as_bytes());
    format!("{}-{}-{:08x}", dataset.format.name(), dataset.n_files_train, (hash ^ (hash >> 32)) as u32)
}

/// Checks names only: a file gets its name once it is complete.
pub(super) fn are_there(workload: &Workload, dir: &Path) -> bool {
    let dataset = &workload.dataset;
    let all = |part: Part| (0..dataset.n_files(part)).all(|i| dir.join(dataset.path_of(part, i)).exists());
    dir.exists() && all(Part::Train) && all(Part::Eval)
}

/// Samples for training and evaluation.
pub(super) fn n_samples(workload: &Workload) -> u64 {
    let files = workload.dataset.n_files_train.saturating_add(workload.dataset.n_files_eval);
    files.saturating_mul(workload.dataset.n_samples_per_file)
}

/// An estimate; 0 for a format this build cannot write, whose cells are left out.
pub(super) fn expected_bytes(workload: &Workload) -> Bytes {
    Bytes(forebay_dataset::records_room(&workload.dataset).unwrap_or(0))
}

/// Bytes of all checkpoints, which are removed after the cell.
pub(super) fn saved_bytes(task: &WorkloadTask) -> Bytes {
    let planned = task.read().ok().and_then(|workload| {
        let is_saved = workload.workflow.checkpoint;
        forebay_workload::Plan::new(&workload, task.settings.all_accelerators()).ok().filter(|_| is_saved)
    });
    planned.map_or(Bytes(0), |plan| Bytes(plan.checkpoint_bytes.saturating_mul(plan.checkpoints)))
}

/// The time is a lower bound: the largest of computation, preprocessing, decoding in an emulated loader, and the emulated
/// device.
pub(super) fn estimate(task: &WorkloadTask, profile: Option<&Profile>, rounds: u64) -> Estimate {
    let Ok(workload) = task.read() else { return Estimate::default() };
    let accelerators = task.settings.all_accelerators();
    let Ok(plan) = forebay_workload::Plan::new(&workload, accelerators) else { return Estimate::default() };
    let epochs = if workload.workflow.train { workload.train.epochs } else { 0 };
    let evaluations = plan.evaluations.len() as u64;
    let images =
        plan.samples_train.saturating_mul(epochs).saturating_add(plan.samples_eval.saturating_mul(evaluations));
    let trained = plan.bytes_train.saturating_mul(epochs);
    let read = Bytes(trained.saturating_add(plan.bytes_eval.saturating_mul(evaluations)));
    let reader = &workload.reader;
    let of_each = images as f64 / accelerators as f64;
    let prepare_s = of_each * reader.preprocess_time.mean() / reader.read_threads.max(1) as f64;
    let decode_s = reader.decode_bytes_per_s.map_or(0.0, |rate| read.0 as f64 / accelerators as f64 / rate);
    let device_s = profile.map_or(0.0, |profile| read.0 as f64 / profile.read_bytes_per_s as f64);
    let seconds = plan.compute_s.max(prepare_s).max(decode_s).max(device_s);
    Estimate {
        images: images.saturating_mul(rounds),
        read: Bytes(read.0.saturating_mul(rounds)),
        written: Bytes(saved_bytes(task).0.saturating_mul(rounds)),
        seconds: Some(seconds * rounds as f64),
    }
}
