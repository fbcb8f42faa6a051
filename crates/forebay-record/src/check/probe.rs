//! The summaries of a probe cell.

use forebay_units::{Summary, median};

use super::{Checked, no_repeats, same, same_cache, same_known, same_spread};
use crate::{ProbeCell, ProbeRepeat};

const FROM: &str = "repeats give";

pub(crate) fn check(cell: &ProbeCell) -> Checked {
    if cell.samples.is_empty() {
        return no_repeats("mb_per_s", cell.mb_per_s);
    }
    let rates: Vec<f64> = cell.samples.iter().map(ProbeRepeat::mb_per_s).collect();
    let Some(rate) = Summary::of(&rates) else { return Ok(()) };
    same("mb_per_s", cell.mb_per_s, rate.median, FROM)?;
    let requests: Vec<f64> = cell.samples.iter().map(ProbeRepeat::iops).collect();
    same_known("iops", Some(cell.iops), median(&requests), FROM)?;
    same_spread(cell.spread, &rates)?;
    same_cache(&cell.medium)?;
    if cell.latency_us.is_known() { latencies(cell) } else { Ok(()) }
}

/// A percentile is the upper bound of its bucket, or the maximum, which is exact and in the last bucket.
fn latencies(cell: &ProbeCell) -> Checked {
    const FROM: &str = "the histogram gives";
    let total: u64 = cell.histogram.iter().map(|bucket| bucket.n).sum();
    let Some(last) = cell.histogram.last().filter(|_| total > 0) else { return Ok(()) };
    let of = &cell.latency_us;
    let before = cell.histogram.iter().rev().nth(1).map_or(0.0, |bucket| bucket.upto_us);
    if !(of.max >= before && of.max <= last.upto_us) {
        return same("latency_us.max", of.max, last.upto_us, FROM);
    }
    for (name, written, share) in
        [("p50", of.p50, 0.5), ("p90", of.p90, 0.9), ("p99", of.p99, 0.99), ("p999", of.p999, 0.999)]
    {
        let wanted = (share * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let holds = cell.histogram.iter().find(|bucket| {
            seen += bucket.n;
            seen >= wanted
        });
        let derived = holds.map_or(of.max, |bucket| bucket.upto_us.min(of.max));
        same(&format!("latency_us.{name}"), written, derived, FROM)?;
    }
    Ok(())
}
