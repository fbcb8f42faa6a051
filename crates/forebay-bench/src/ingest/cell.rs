//! Cells of the record: medians beside the raw values.

use forebay_pipeline::Stats;
use forebay_record::{CacheEvidence, CacheState, IngestCell, IngestRepeat, Medium, TierKind};
use forebay_storage::Profile;
use forebay_units::{Summary, count};

use super::plan::Plan;
use super::run::Error;
use super::trial::{Level, Repeated, Trial};
use crate::supply;

/// Finished repeats of one thread count.
pub(super) struct Repeats {
    /// Repeats that delivered images.
    samples: Vec<IngestRepeat>,
    evidence: Vec<CacheEvidence>,
    /// Repeats that delivered none and so measured nothing.
    n_empty: usize,
    /// Maximum over the repeats.
    n_failed: u64,
    /// Source of the reported failures: the last repeat without an image, otherwise the last repeat.
    stats: Option<Stats>,
}

impl Repeats {
    pub(super) fn new(finished: Vec<Repeated>) -> Self {
        let n_failed = finished.iter().map(|one| one.repeat.failed).max().unwrap_or(0);
        let told = finished.iter().rev().find(|one| one.repeat.images == 0).or(finished.last());
        let stats = told.map(|one| one.stats.clone());
        let n_finished = finished.len();
        let kept = finished.into_iter().filter(|one| one.repeat.images > 0);
        let (samples, evidence): (Vec<_>, Vec<_>) = kept.map(|one| (one.repeat, one.evidence)).unzip();
        Self { n_empty: n_finished - samples.len(), samples, evidence, n_failed, stats }
    }

    /// The error if repeats finished and none of them delivered an image.
    pub(super) fn failure(&self) -> Option<Error> {
        let stats = self.stats.as_ref().filter(|_| self.samples.is_empty())?;
        Some(all_failed(stats))
    }

    /// The note on repeats without an image.
    pub(super) fn note(&self, level: &Level<'_>) -> Option<String> {
        let first = self.stats.as_ref().filter(|_| self.n_empty > 0)?.failures.first();
        let why = first.map(|failed| format!(": {}: {}", failed.name, failed.reason())).unwrap_or_default();
        let n_finished = self.n_empty + self.samples.len();
        Some(format!(
            "with {}, {} of {} delivered no image and {} left out{why}",
            count(level.threads as u64, "thread"),
            self.n_empty,
            count(n_finished as u64, "repeat"),
            if self.n_empty == 1 { "is" } else { "are" },
        ))
    }
}

/// `None` if no finished repeat delivered images.
pub(super) fn cell(trial: &Trial<'_>, level: &Level<'_>, repeats: Repeats) -> Result<Option<IngestCell>, Error> {
    let Repeats { samples, evidence, n_empty, n_failed, stats } = repeats;
    let (Some(stats), false) = (stats, samples.is_empty()) else { return Ok(None) };
    let plan = trial.plan;
    let rate = summary(&samples, IngestRepeat::images_per_s);
    let typical = nearest(&samples, rate.median);
    let tier = tier_of(plan);
    let named = tier.map(|(profile, kind)| (profile.name.as_str(), kind));
    // Objects pass no page cache of this machine: they are neither cold nor warm.
    let evidence = if trial.is_remote() { Vec::new() } else { evidence };
    let medium = Medium::new(trial.storage_description.clone(), named, evidence);
    let ceiling = tier.filter(|(_, kind)| holds(*kind, medium.cache));
    Ok(Some(IngestCell {
        threads: level.threads as u64,
        threads_auto: level.auto,
        tried: supply::tried(level.tuning.as_ref()),
        readers: plan.settings.readers as u64,
        batch: plan.settings.batch as u64,
        prefetch: plan.settings.prefetch as u64,
        read_only: plan.settings.read_only,
        shuffle: plan.settings.shuffle.map(|order| order.to_string()),
        interleave: plan.settings.interleave.map(|order| order.to_string()),
        decode: trial.decoded_where(),
        output: trial.output().map(|spec| supply::describe_output(spec, trial.plan.settings.change())),
        medium,
        images_per_s: rate.median,
        mb_per_s: summary(&samples, IngestRepeat::mb_per_s).median,
        // The spread of a single repeat is unknown, not zero.
        spread: if samples.len() > 1 { rate.relative_spread() } else { None },
        cpu_s_per_1000: cpu_s_per_1000(&samples),
        failed_samples: n_failed,
        failures: supply::failures(&stats),
        worker_time: typical.worker_time.clone(),
        wait_s: typical.wait_s,
        wall_s: typical.wall_s,
        floor_images_per_s: Some(trial.floor(level.threads)?),
        ceiling_mb_per_s: ceiling.map(|(profile, _)| profile.read_bytes_per_s as f64 / 1e6),
        ceiling_of: ceiling.map(|(profile, kind)| describe_ceiling(profile, kind)),
        samples,
        empty_repeats: n_empty as u64,
        disturbed: None,
    }))
}

/// The in-process device if there are two, since it is the outer one.
fn tier_of(plan: &Plan) -> Option<(&Profile, TierKind)> {
    let shaped = plan.tier.as_ref().map(|profile| (profile, TierKind::Shaped));
    shaped.or_else(|| plan.kernel_tier.as_ref().map(|profile| (profile, TierKind::Kernel)))
}

/// Whether a tier's rate is an upper bound: the kernel limits reads from its device, not from memory.
fn holds(kind: TierKind, cache: Option<CacheState>) -> bool {
    kind != TierKind::Kernel || cache == Some(CacheState::Cold)
}

/// Describes the ceiling of a tier without a probe.
fn describe_ceiling(profile: &Profile, kind: TierKind) -> String {
    match kind {
        TierKind::Shaped => format!("the profile {} (sequential)", profile.name),
        _ => {
            let tenths = (profile.read_bytes_per_s as f64 / 1e5).round();
            format!("the read limit of the tier {} ({} MB/s)", profile.name, tenths / 10.0)
        }
    }
}

fn all_failed(stats: &Stats) -> Error {
    let first = stats.failures.first();
    Error::AllFailed {
        n_failed: stats.n_failed,
        name: first.map(|f| f.name.clone()).unwrap_or_default(),
        reason: first.map(|f| f.reason()).unwrap_or_default(),
    }
}

fn summary(samples: &[IngestRepeat], value: fn(&IngestRepeat) -> f64) -> Summary {
    let values: Vec<f64> = samples.iter().map(value).collect();
    Summary::of(&values).expect("at least one repeat, and no rate of it is NaN: its wall time is not zero")
}

fn cpu_s_per_1000(samples: &[IngestRepeat]) -> f64 {
    let values: Vec<f64> = samples.iter().map(|repeat| repeat.cpu_s / repeat.images as f64 * 1000.0).collect();
    Summary::of(&values).expect("every repeat of a cell has images").median
}

fn nearest(samples: &[IngestRepeat], rate: f64) -> &IngestRepeat {
    let distance = |repeat: &&IngestRepeat| (repeat.images_per_s() - rate).abs();
    samples.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("a cell has at least one repeat")
}
