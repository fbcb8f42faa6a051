//! The data of workloads: files of records in every format, seeded down to the bytes, incompressible, made in parallel, resumable.

use std::path::Path;

use forebay_workload::Workload;

use crate::{Control, Result};

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MadeRecords {
    /// Files that were written.
    pub n_written: u64,
    /// Files that were there already, whole.
    pub n_kept: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Makes the files of rank `rank` of `ranks` (every `ranks`-th) below `dir`, into `train` and `valid`. Files that are there and whole are kept, so that it goes on where it stopped.
///
/// # Errors
/// When the folder holds data of another workload, or cannot be written to, or is full.
pub fn make_records(
    workload: &Workload,
    dir: &Path,
    rank: u64,
    ranks: u64,
    control: &Control<'_>,
) -> Result<MadeRecords> {
    let _ = (workload, dir, rank, ranks, control);
    unimplemented!()
}
