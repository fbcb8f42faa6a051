//! Cells of the record: medians beside the raw values.

use forebay_record::{CacheEvidence, Latency, LatencyBucket, Medium, ProbeCell, ProbeMode, ProbeRepeat, TierKind};
use forebay_units::{Histogram, Summary};

use super::plan::{Combination, Plan, Unit};
use super::trial::Repeated;

pub(super) struct Measured {
    samples: Vec<ProbeRepeat>,
    evidence: Vec<CacheEvidence>,
    latencies: Histogram,
}

impl Measured {
    pub(super) fn new(kept: Vec<Repeated>) -> Self {
        let latencies = Histogram::default();
        kept.iter().for_each(|one| latencies.add(&one.latencies));
        let (samples, evidence) = kept.into_iter().map(|one| (one.repeat, one.evidence)).unzip();
        Self { samples, evidence, latencies }
    }
}

/// `None` if no run of the cell was kept.
pub(super) fn cell(plan: &Plan, of: &Combination, measured: Measured) -> Option<ProbeCell> {
    let Measured { samples, evidence, latencies } = measured;
    samples.first()?;
    let rate = summary(&samples, ProbeRepeat::mb_per_s);
    let (block, mix) = match &of.unit {
        Unit::Block(block) => (Some(*block), None),
        Unit::Mix(mix) => (None, Some(mix.to_string())),
        Unit::File(tree) => (plan.trees[*tree].one_size(), Some(plan.trees[*tree].of.clone())),
    };
    // The emulated writer buffers like a drive's write cache, so its single writes have the latency of the disk below.
    let is_timed = plan.tier.is_none() || of.mode != ProbeMode::SequentialWrite;
    let buckets = latencies.buckets().filter(|_| is_timed);
    Some(ProbeCell {
        mode: of.mode,
        engine: of.engine,
        block,
        mix,
        depth: of.depth as u64,
        mb_per_s: rate.median,
        iops: summary(&samples, ProbeRepeat::iops).median,
        // The spread of a single run is unknown, not zero.
        spread: if samples.len() > 1 { rate.relative_spread() } else { None },
        latency_us: if is_timed { latency(&latencies) } else { Latency::UNKNOWN },
        histogram: buckets.map(|(upto, n)| LatencyBucket { upto_us: upto as f64 / 1e3, n }).collect(),
        medium: Medium::new(
            String::new(),
            plan.tier.as_ref().map(|profile| (profile.name.as_str(), TierKind::Shaped)),
            evidence,
        ),
        samples,
        disturbed: None,
    })
}

fn summary(samples: &[ProbeRepeat], value: fn(&ProbeRepeat) -> f64) -> Summary {
    let values: Vec<f64> = samples.iter().map(value).collect();
    Summary::of(&values).expect("at least one run, and no rate is NaN, because wall times are not zero")
}

fn latency(of: &Histogram) -> Latency {
    let us = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e3;
    let at = |share: f64| us(of.quantile(share));
    Latency { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: us(of.max()) }
}
