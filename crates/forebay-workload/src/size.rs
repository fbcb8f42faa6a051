//! MLPerf Storage's rule for the size of a dataset: 500 steps, and five times the memory of the hosts.

use crate::Workload;

/// How big a dataset must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// Samples for 500 steps of every accelerator.
    pub samples_for_steps: u64,
    /// Samples of five times the memory of all hosts.
    pub samples_for_memory: u64,
    /// Files to make.
    pub files: u64,
    /// Bytes of their samples.
    pub bytes: u64,
    /// Subfolders that are advised above 10,000 files; 0: none.
    pub subfolders: u64,
}

/// The rule.
pub fn mlperf(workload: &Workload, accelerators: u64, hosts: u64, host_memory_bytes: u64) -> Size {
    let _ = (workload, accelerators, hosts, host_memory_bytes);
    unimplemented!()
}
