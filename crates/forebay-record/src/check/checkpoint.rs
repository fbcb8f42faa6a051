//! The summaries of a checkpoint cell.

use forebay_units::median;

use super::{Checked, same_known, same_spread};
use crate::{CheckpointCell, CheckpointSample};

const FROM: &str = "saves give";

pub(crate) fn check(cell: &CheckpointCell) -> Checked {
    let of =
        |pick: fn(&CheckpointSample) -> Option<f64>| -> Vec<f64> { cell.samples.iter().filter_map(pick).collect() };
    let fast = of(|save| save.durable_fast_s);
    same_known("stall_s", Some(cell.stall_s), median(&of(|save| Some(save.stall_s))), FROM)?;
    same_known("durable_fast_s", cell.durable_fast_s, median(&fast), FROM)?;
    same_known("durable_slow_s", cell.durable_slow_s, median(&of(|save| save.durable_slow_s)), FROM)?;
    same_known("restore_s", cell.restore_s, median(&of(|save| save.restore_s)), FROM)?;
    if fast.is_empty() { Ok(()) } else { same_spread(cell.spread, &fast) }
}
