//! Emulated tiers that were held back: an emulation cannot be faster than the disk below it, and where that gives much
//! less than the tier promises, what is measured is the disk.

use forebay_record::{CheckpointCell, TrainCell};

use crate::number::quantity;

/// A tier that gives less than this share of what it promises is held back.
const LEAST: f64 = 0.6;
/// What the syncs and the positioning of a save may take beside its bytes, in seconds.
const BESIDE_S: f64 = 0.05;

#[derive(Debug, PartialEq)]
pub(crate) struct HeldBack<'a> {
    pub(crate) tier: &'a str,
    gave_mb_per_s: f64,
    rated_mb_per_s: f64,
}

impl HeldBack<'_> {
    /// "34 of 512 MB/s".
    pub(crate) fn rates(&self) -> String {
        format!("{} of {} MB/s", quantity(self.gave_mb_per_s), quantity(self.rated_mb_per_s))
    }
}

/// Of a benchmark of checkpoints: nothing else is written while a save is.
pub(crate) fn of_checkpoint(cell: &CheckpointCell) -> Option<HeldBack<'_>> {
    let tier = first(&cell.mode, cell.burst_tier(), cell.medium.tier.as_deref());
    held_back(tier?, cell.bytes, cell.durable_fast_s?, cell.rated_mb_per_s?)
}

/// Of a training whose saves are durable when it goes on; one that goes on before waits for other things too.
pub(crate) fn of_train(cell: &TrainCell) -> Option<HeldBack<'_>> {
    let saved = cell.checkpoints.as_ref().filter(|saved| saved.mode != "async")?;
    let tier = first(&saved.mode, saved.burst_tier(), saved.medium.tier.as_deref());
    held_back(tier?, saved.bytes, saved.median_stall_s?, saved.rated_mb_per_s?)
}

/// The tier that is written first.
fn first<'a>(mode: &str, burst: Option<&'a str>, last: Option<&'a str>) -> Option<&'a str> {
    burst.filter(|_| mode != "direct").or(last)
}

fn held_back(tier: &str, bytes: u64, seconds: f64, rated_mb_per_s: f64) -> Option<HeldBack<'_>> {
    let mb = bytes as f64 / 1e6;
    let is_short = mb / rated_mb_per_s < LEAST * (seconds - BESIDE_S);
    is_short.then(|| HeldBack { tier, gave_mb_per_s: mb / seconds, rated_mb_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_held_back_when_its_bytes_take_much_longer_than_it_promises() {
        let of = |mb: u64, seconds| held_back("optane", mb * 1_000_000, seconds, 512.0);
        assert_eq!(of(48, 1.43).unwrap().rates(), "33.6 of 512 MB/s");
        assert_eq!(of(600, 1.3), None, "nearly what it promises");
        assert_eq!(of(600, 1.9), None, "62 % of it, and a moment for the syncs");
        assert!(of(600, 2.1).is_some());
        assert_eq!(of(3, 0.05), None, "a small state is syncs and little else");
    }

    #[test]
    fn the_tier_that_is_written_first_is_the_one() {
        assert_eq!(first("direct", Some("optane"), Some("hdd")), Some("hdd"));
        assert_eq!(first("async", Some("optane"), Some("hdd")), Some("optane"));
        assert_eq!(first("async", None, Some("hdd")), Some("hdd"));
        assert_eq!(first("burst", None, None), None, "a real device promises nothing");
    }
}
