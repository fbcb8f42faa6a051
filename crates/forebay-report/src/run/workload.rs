//! A record of `forebay workload run` as a study of one cell.

use forebay_record::{Record, StudyRun, WorkloadCell};

pub(super) fn of_workload(record: &Record<WorkloadCell>) -> StudyRun {
    let _ = record;
    unimplemented!()
}
