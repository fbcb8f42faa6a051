//! How the storage answers to more requests in flight: from the profile of an emulated device, or measured for a second or two.
//!
//! A run sees one concurrency. Workers that wait for the storage look alike whether the device is at its limit or idle between their
//! requests; only another concurrency tells the two apart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_measure::cold;
use forebay_pipeline::{Activity, Batched, Dataset, ReadOnly, Source, Threads};
use forebay_plan::{Curve, Point};
use forebay_storage::Profile;

use crate::supply::{self, Order};

/// Requests in flight that are tried.
const LEVELS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// A level takes at least this long and this many samples, and at most twice the time.
const LEVEL: Duration = Duration::from_millis(150);
const LEVEL_SAMPLES: u64 = 48;
/// All levels together.
const BUDGET: Duration = Duration::from_millis(2_000);
/// Parts of a level whose rates give its error.
const PARTS: usize = 5;
/// A doubling that gains less, twice in a row, is the end.
const FLAT: f64 = 1.03;
/// More files take too long to evict before each level.
const MOST_EVICTED: usize = 20_000;
/// An order of its own: the reads do not follow those of the run.
const SEED: u64 = 0x5eed_0f1e;

/// Samples whose sizes are looked up.
const MOST_WEIGHTS: usize = 1_024;
/// Part of a sample's time on a core that does not depend on its size.
const FIXED: f64 = 0.2;
/// Part of a read's time that grows with the size: between a disk's 0.1 and a flash drive's 0.8.
pub(crate) const READ_BY_SIZE: f64 = 0.4;

/// Relative costs of samples, by their sizes.
pub(crate) fn weights(source: &Source) -> Vec<f64> {
    // The size of an object takes a request.
    let most = if supply::is_remote(source) { 0 } else { MOST_WEIGHTS };
    let sizes: Vec<f64> = source.sizes(most).into_iter().map(|size| size as f64).collect();
    let mean = sizes.iter().sum::<f64>() / sizes.len().max(1) as f64;
    if mean > 0.0 { sizes.iter().map(|size| FIXED + (1.0 - FIXED) * size / mean).collect() } else { Vec::new() }
}

/// The rates of an emulated device, by its profile.
pub(crate) fn of_profile(profile: &Profile, bytes_per_sample: f64) -> Option<Curve> {
    let point = |n: usize| Point {
        in_flight: n as f64,
        per_s: profile.files_per_s(bytes_per_sample.round() as u64, n),
        error: 0.0,
    };
    Curve::new(LEVELS.map(point))
}

/// One concurrency: threads of which each waits so long for a sample.
pub(crate) fn seen(threads: usize, blocked_s: f64) -> Option<Curve> {
    Curve::new([Point { in_flight: threads as f64, per_s: threads as f64 / blocked_s, error: 0.1 }])
}

/// Reads samples in this order with more and more threads; `enough` samples per second end it early. `None` where no level gave a rate, or
/// cold files cannot be made cold again in time.
pub(crate) fn measure(source: &Source, order: Order, is_cold: bool, enough: f64, cancel: &AtomicBool) -> Option<Curve> {
    if is_cold && source.files().len() > MOST_EVICTED {
        return None;
    }
    let (start, mut points) = (Instant::now(), Vec::<Point>::new());
    for (i, n) in LEVELS.into_iter().enumerate() {
        if cancel.load(Ordering::Relaxed) || start.elapsed() > BUDGET {
            break;
        }
        cold::prepare(source.files(), is_cold).ok()?;
        let order = Order { seed: SEED + i as u64, ..order.without_window() };
        let Some(point) = level(source, n, order, is_cold, cancel) else { break };
        points.push(point);
        let gains = points.windows(2).map(|pair| pair[1].per_s / pair[0].per_s).collect::<Vec<_>>();
        let is_flat = gains.len() >= 2 && gains[gains.len() - 2..].iter().all(|gain| *gain < FLAT);
        if is_flat || point.per_s > enough {
            break;
        }
    }
    Curve::new(points)
}

/// Samples per second with so many threads that only read.
fn level(source: &Source, threads: usize, order: Order, is_cold: bool, cancel: &AtomicBool) -> Option<Point> {
    let dataset = order.of(Dataset::new(source.clone()));
    // What was read once is no longer cold.
    let dataset = if is_cold { dataset } else { dataset.repeat(1_000) };
    let mapped = order.read(dataset.map(ReadOnly)).threads(Threads::Fixed(threads)).ignore_errors();
    let pipeline = mapped.batch(1).prefetch(4 * threads.max(4));
    let mut batches = pipeline.iter().ok()?;
    // The first of each thread are late by its start.
    for _ in 0..threads {
        batches.next_unless(cancel)?.ok()?;
    }
    let (start, mut n, mut marks) = (Instant::now(), 0_u64, Vec::new());
    while let Some(batch) = batches.next_unless(cancel) {
        n += batch.ok()?.len() as u64;
        let elapsed = start.elapsed();
        if elapsed >= LEVEL.mul_f64((marks.len() + 1) as f64 / PARTS as f64) {
            marks.push((elapsed.as_secs_f64(), n as f64));
        }
        if (elapsed >= LEVEL && n >= LEVEL_SAMPLES) || elapsed >= 2 * LEVEL {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let per_s = n as f64 / seconds;
    (n >= 8).then(|| Point { in_flight: threads as f64, per_s, error: error(&marks, per_s) })
}

/// Seconds per sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// On a core.
    pub(crate) cpu_s: f64,
    /// Waiting for a GPU that decodes.
    pub(crate) gpu_s: f64,
}

/// While the pipeline makes the same samples from memory again and again; `None` where the kernel does not count, or samples fail.
pub(crate) fn costs(again: &Batched, n_samples: u64, cancel: &AtomicBool) -> Option<Costs> {
    let mut batches = again.iter().ok()?;
    let mut pass = |least: Duration| {
        let (start, mut n) = (Instant::now(), 0);
        while n < n_samples || start.elapsed() < least {
            n += batches.next_unless(cancel)?.ok()?.len() as u64;
        }
        Some(batches.stats())
    };
    // The first pass brings the samples into memory.
    let (before, after) = (pass(Duration::ZERO)?, pass(LEVEL)?);
    let running_ns = after.scheduled?.running_ns - before.scheduled?.running_ns;
    let gpu_ns = after.worker_time.since(&before.worker_time).ns(Activity::DecodingOnGpu);
    let each_s = |ns: u64| ns as f64 / 1e9 / (after.n_samples - before.n_samples) as f64;
    Some(Costs { cpu_s: each_s(running_ns), gpu_s: each_s(gpu_ns) })
}

/// Relative standard error of the mean, from the rates of the parts.
fn error(marks: &[(f64, f64)], per_s: f64) -> f64 {
    let starts = std::iter::once((0.0, 0.0)).chain(marks.iter().copied());
    let rates: Vec<f64> =
        starts.zip(marks).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).filter(|rate| rate.is_finite()).collect();
    if rates.len() < 2 {
        return 0.2;
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (rates.len() - 1) as f64;
    (variance / rates.len() as f64).sqrt() / per_s
}

#[cfg(test)]
mod tests {
    use forebay_dataset::{Control, PackOptions, PackPlan, Packing, pack};
    use forebay_storage::{Mode, files};

    use super::*;
    use crate::train::tests::data;

    #[test]
    fn shards_are_measured_in_the_order_in_which_they_would_be_read() {
        let (dir, cancel) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let plan = PackPlan::new(&data(dir.path()), PackOptions::new(Packing::Tar)).unwrap();
        let shards = dir.path().join("shards");
        pack(&plan, &shards, &Control::default()).unwrap();
        let hdd: Profile = "hdd".parse().unwrap();
        let source = Source::discover(files(Mode::Buffered, Some(&hdd)), &shards).unwrap();
        let rate = |shuffle| {
            let order = Order { shuffle, interleave: None, seed: 0 };
            measure(&source, order, false, f64::INFINITY, &cancel).unwrap().rate(1.0)
        };
        let (single, streamed) = (rate(None), rate(Some(Order::WINDOW)));
        assert!(streamed > 4.0 * single, "a seek per sample or per MiB: {single} and {streamed}");
    }
}
