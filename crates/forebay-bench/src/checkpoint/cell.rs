//! From what was measured to a cell.

use forebay_checkpoint::{Counts, Mode};
use forebay_record::{CheckpointCell, CheckpointSample, TierKind};
use forebay_units::{Summary, median};

use super::bare::Rates;
use super::plan::mode_name;
use super::site::Site;
use super::values::Values;
use super::{Place, Plan};

/// All that was measured of one mode and format.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) samples: Vec<CheckpointSample>,
    pub(super) rates: Vec<Rates>,
    pub(super) copies_s: Vec<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) counts: Counts,
}

/// The cell of a mode and a format.
pub(super) fn cell(
    plan: &Plan,
    site: &Site,
    values: &Values,
    mode: Mode,
    format: &str,
    measured: Measured,
) -> CheckpointCell {
    let of =
        |pick: fn(&CheckpointSample) -> Option<f64>| -> Vec<f64> { measured.samples.iter().filter_map(pick).collect() };
    let durable_fast = of(|sample| sample.durable_fast_s);
    let spread = Summary::of(&durable_fast).filter(|summary| summary.n > 1);
    let rates = |pick: fn(&Rates) -> f64| median(&measured.rates.iter().map(pick).collect::<Vec<_>>());
    let (storage, tier) = described(&site.places().slow, &plan.places.slow);
    let burst = site.places().fast.as_ref().zip(plan.places.fast.as_ref()).map(|(own, given)| described(own, given));
    let (burst_storage, burst_tier) = burst.unzip();
    let (tier, tier_kind) = tier.unzip();
    let (burst_tier, burst_tier_kind) = burst_tier.flatten().unzip();
    CheckpointCell {
        mode: mode_name(mode).to_owned(),
        format: format.to_owned(),
        state: values.what.clone(),
        device: values.device(),
        n_tensors: values.n_tensors(),
        bytes: values.bytes().len() as u64,
        storage,
        tier,
        tier_kind,
        burst_storage,
        burst_tier,
        burst_tier_kind,
        stall_s: median(&of(|sample| Some(sample.stall_s))).unwrap_or_default(),
        durable_fast_s: median(&durable_fast),
        durable_slow_s: median(&of(|sample| sample.durable_slow_s)),
        restore_s: median(&of(|sample| sample.restore_s)),
        ceiling_mb_per_s: rates(|rates| rates.write),
        read_ceiling_mb_per_s: rates(|rates| rates.read),
        copy_s: median(&measured.copies_s),
        memory_bytes: measured.memory_bytes,
        skipped: measured.counts.skipped,
        waited: measured.counts.waited,
        spread: spread.map(|summary| (summary.max - summary.min) / 2.0 / summary.median),
        samples: measured.samples,
    }
}

/// How a place is reached, and the device that is emulated there.
fn described(own: &Place, given: &Place) -> (String, Option<(String, TierKind)>) {
    let shaped = given.shaped.as_ref().map(|profile| (profile.name.clone(), TierKind::Shaped));
    let kernel = given.kernel.as_ref().map(|profile| (profile.name.clone(), TierKind::Kernel));
    (format!("{}: {}", given.dir.display(), own.fs().description()), shaped.or(kernel))
}
