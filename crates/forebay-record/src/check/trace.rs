//! The summaries of a traced job.

use super::{Checked, same};
use crate::TraceCell;

const FROM: &str = "operations give";

/// The share is derived, so only sums over operations have a second writing. Bytes of dropped events are in both.
pub(crate) fn check(cell: &TraceCell) -> Checked {
    if cell.operations.is_empty() {
        return Ok(());
    }
    let sum = |of: fn(&crate::TraceFile) -> u64| cell.classes.iter().map(of).sum::<u64>();
    // A file whose events were dropped has no class.
    if cell.totals.lost_events > 0 {
        return Ok(());
    }
    same("bytes_read", cell.totals.bytes_read as f64, sum(|class| class.bytes_read) as f64, "classes give")?;
    same("bytes_written", cell.totals.bytes_written as f64, sum(|class| class.bytes_written) as f64, "classes give")?;
    let calls: u64 = cell.operations.iter().map(|operation| operation.calls).sum();
    let totals = &cell.totals;
    let least = totals.reads + totals.writes + totals.opens + totals.fsyncs;
    if calls < least { same("reads", least as f64, calls as f64, FROM) } else { Ok(()) }
}
