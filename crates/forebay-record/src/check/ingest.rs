//! The summaries of an ingest cell.

use forebay_units::{Summary, median};

use super::{Checked, is_close, no_repeats, same, same_cache, same_known, same_spread};
use crate::{IngestCell, IngestRepeat};

const FROM: &str = "repeats give";

pub(crate) fn check(cell: &IngestCell) -> Checked {
    if cell.samples.is_empty() {
        return no_repeats("images_per_s", cell.images_per_s);
    }
    let rates: Vec<f64> = cell.samples.iter().map(IngestRepeat::images_per_s).collect();
    let Some(rate) = Summary::of(&rates) else { return Ok(()) };
    same("images_per_s", cell.images_per_s, rate.median, FROM)?;
    let bytes: Vec<f64> = cell.samples.iter().map(IngestRepeat::mb_per_s).collect();
    same_known("mb_per_s", Some(cell.mb_per_s), median(&bytes), FROM)?;
    same_spread(cell.spread, &rates)?;
    let with_images = cell.samples.iter().filter(|repeat| repeat.images > 0);
    let cpu: Vec<f64> = with_images.map(|repeat| repeat.cpu_s / repeat.images as f64 * 1000.0).collect();
    same_known("cpu_s_per_1000", Some(cell.cpu_s_per_1000), median(&cpu), FROM)?;
    let failed = cell.samples.iter().map(|repeat| repeat.failed).max().unwrap_or(0);
    // Repeats without an image are not kept, but their failures count.
    if cell.empty_repeats == 0 || cell.failed_samples < failed {
        same("failed_samples", cell.failed_samples as f64, failed as f64, FROM)?;
    }
    same_cache(&cell.medium)?;
    of_the_typical(cell, rate.median)
}

/// The times are those of the repeat nearest to the median; of an even number, two are equally near.
fn of_the_typical(cell: &IngestCell, rate: f64) -> Checked {
    let distance = |repeat: &IngestRepeat| (repeat.images_per_s() - rate).abs();
    let least = cell.samples.iter().map(distance).fold(f64::INFINITY, f64::min);
    let is_typical = |repeat: &&IngestRepeat| distance(repeat) <= least + super::ROUNDING * rate;
    let agrees = |repeat: &IngestRepeat| is_close(cell.wall_s, repeat.wall_s) && is_close(cell.wait_s, repeat.wait_s);
    let typical: Vec<&IngestRepeat> = cell.samples.iter().filter(is_typical).collect();
    // With whole numbers, several repeats may have the same rate.
    let Some(first) = typical.iter().find(|repeat| agrees(repeat)).or(typical.first()) else { return Ok(()) };
    same("wall_s", cell.wall_s, first.wall_s, FROM)?;
    same("wait_s", cell.wait_s, first.wait_s, FROM)?;
    let activities = cell.worker_time.keys().chain(first.worker_time.keys());
    activities.into_iter().try_for_each(|name| {
        let of = |times: &std::collections::BTreeMap<String, f64>| times.get(name).copied().unwrap_or(0.0);
        same(&format!("worker_time.{name}"), of(&cell.worker_time), of(&first.worker_time), FROM)
    })
}
