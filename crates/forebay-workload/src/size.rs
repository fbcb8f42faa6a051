//! MLPerf Storage's rule for the size of a dataset: at least 500 steps, and five times the memory of the hosts.

use crate::{Format, Part, Workload};

/// Steps per accelerator that the rule requires.
const STEPS: u64 = 500;

/// Required ratio of data to host memory.
const MEMORIES: u64 = 5;

/// Number of files above which the rule advises subfolders, and files per subfolder.
const FILES_PER_FOLDER: u64 = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// Samples for 500 steps of every accelerator.
    pub samples_for_steps: u64,
    /// Samples of five times the memory of all hosts.
    pub samples_for_memory: u64,
    pub files: u64,
    pub bytes: u64,
    /// Advised number of subfolders above 10,000 files; 0 for none.
    pub subfolders: u64,
}

/// Applies the rule.
///
/// Memory is rounded down to whole samples, and samples are rounded up to whole files, at least one. MLPerf's own tool
/// rounds files down, so its result may lack up to one file's samples. Bytes are computed from the configured record
/// length, which varying data meets only on average.
pub fn mlperf(workload: &Workload, accelerators: u64, hosts: u64, host_memory_bytes: u64) -> Size {
    let dataset = &workload.dataset;
    let record = stated_bytes(workload);
    let samples_for_steps = STEPS * workload.reader.batch_size * accelerators;
    let memory = hosts as f64 * host_memory_bytes as f64 * MEMORIES as f64;
    let samples_for_memory = (memory / record).floor() as u64;
    let files = samples_for_steps.max(samples_for_memory).div_ceil(dataset.n_samples_per_file).max(1);
    let bytes = (files as f64 * dataset.n_samples_per_file as f64 * record) as u64;
    let subfolders = if files > FILES_PER_FOLDER { files.div_ceil(FILES_PER_FOLDER) } else { 0 };
    Size { samples_for_steps, samples_for_memory, files, bytes, subfolders }
}

/// Bytes of a record as configured, not of the square it is made as; for columns, the whole row.
fn stated_bytes(workload: &Workload) -> f64 {
    let dataset = &workload.dataset;
    match dataset.format == Format::Parquet && !dataset.parquet.columns.is_empty() {
        true => dataset.shape_of(Part::Train, 0).sample_bytes as f64,
        false => dataset.mean_read_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Dataset, Reader};

    const GIB: u64 = 1 << 30;

    fn unet3d() -> Workload {
        let dataset = Dataset {
            record_length_bytes: 146_600_628.0,
            record_length_bytes_stdev: 68_341_808.0,
            ..Dataset::default()
        };
        Workload { dataset, reader: Reader { batch_size: 7, ..Reader::default() }, ..Workload::default() }
    }

    #[test]
    fn little_memory_leaves_the_steps_to_decide() {
        let size = mlperf(&unet3d(), 8, 1, 64 * GIB);
        assert_eq!((size.samples_for_steps, size.samples_for_memory), (28_000, 2343));
        assert_eq!((size.files, size.subfolders), (28_000, 3));
        assert_eq!(size.bytes, 28_000 * 146_600_628);
    }

    #[test]
    fn much_memory_decides_and_files_hold_whole_samples() {
        let mut workload = unet3d();
        workload.dataset.n_samples_per_file = 10;
        let size = mlperf(&workload, 1, 4, 512 * GIB);
        assert_eq!(size.samples_for_memory, 4 * 512 * 5 * GIB / 146_600_628);
        assert_eq!(size.files, size.samples_for_memory.div_ceil(10));
        workload.dataset.n_samples_per_file = 4096;
        assert_eq!(mlperf(&workload, 1, 1, GIB).files, 1, "3,500 samples");
        assert_eq!(size.subfolders, 0);
    }

    #[test]
    fn a_record_counts_as_stated_and_a_row_with_all_its_columns() {
        let resnet50 = crate::builtin::find("resnet50").unwrap().checked().workload;
        assert_eq!(mlperf(&resnet50, 1, 1, 512 * GIB).samples_for_memory, 23_973_289);
        let dlrm = crate::builtin::find("dlrm_b200").unwrap().checked().workload;
        assert_eq!(mlperf(&dlrm, 1, 1, 512 * GIB).samples_for_memory, 512 * 5 * GIB / 761);
    }
}
