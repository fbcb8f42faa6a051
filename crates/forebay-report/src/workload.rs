//! A record of `forebay workload run` as text.

use forebay_record::{Record, WorkloadCell};

/// The text.
pub fn workload(record: &Record<WorkloadCell>) -> String {
    let _ = record;
    unimplemented!()
}
