//! What a probe says: the most that each storage gives, and how long a request takes.

use forebay_record::{Cell, ProbeCell, ProbeMode, StudyCell};

use crate::level;
use crate::number::{distinct, listed, microseconds, quantity};
use crate::run::Run;

const MAX_TIERS: usize = 6;

type Probe<'a> = (&'a StudyCell, &'a ProbeCell);

fn tier((cell, probe): &Probe<'_>) -> Option<String> {
    cell.level("tier").map(ToString::to_string).or_else(|| probe.medium.tier.clone())
}

/// The tiers in the order of their cells; one without a name where nothing names any.
fn tiers(run: &Run<'_>) -> Vec<Option<String>> {
    distinct(run.cells_of::<ProbeCell>().map(|probe| tier(&probe)))
}

fn best<'a>(run: &'a Run<'a>, of: &Option<String>, mode: ProbeMode) -> Option<Probe<'a>> {
    let sound = run.cells_of::<ProbeCell>().filter(|(_, probe)| probe.mode == mode && probe.mb_per_s.is_finite());
    sound.filter(|probe| tier(probe) == *of).max_by(|(_, a), (_, b)| a.mb_per_s.total_cmp(&b.mb_per_s))
}

/// The most that each tier gave in each way: one's best says nothing of another.
pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    let tiers = tiers(run);
    let said: Vec<String> = tiers.iter().take(MAX_TIERS).filter_map(|tier| of_tier(run, tier)).collect();
    let more = tiers.len().saturating_sub(MAX_TIERS);
    let more =
        if more > 0 { format!("; and {}", forebay_units::count(more as u64, "more tier")) } else { String::new() };
    (!said.is_empty()).then(|| format!("Best rates: {}{more}.", said.join("; ")))
}

fn of_tier(run: &Run<'_>, tier: &Option<String>) -> Option<String> {
    let mut parts = Vec::new();
    for (mode, said) in [
        (ProbeMode::SequentialRead, "sequential read"),
        (ProbeMode::RandomRead, "random read"),
        (ProbeMode::SequentialWrite, "sequential write"),
    ] {
        if let Some((_, cell)) = best(run, tier, mode) {
            parts.push(format!("{said} {} MB/s", quantity(cell.mb_per_s)));
        }
    }
    if let Some((_, cell)) = best(run, tier, ProbeMode::Files) {
        parts.push(format!("{} small files per second", quantity(cell.iops)));
    }
    let name = tier.as_ref().map(|tier| format!("{tier} ")).unwrap_or_default();
    (!parts.is_empty()).then(|| format!("{name}{}", listed(&parts)))
}

/// The settings that gave the most, and the latency there; for a study with other results a line is enough.
pub(super) fn findings(run: &Run<'_>, alone: bool) -> Vec<String> {
    if !alone {
        return Vec::new();
    }
    let modes = [ProbeMode::SequentialRead, ProbeMode::RandomRead, ProbeMode::SequentialWrite, ProbeMode::Files];
    let tiers = tiers(run);
    let all = tiers.iter().take(MAX_TIERS).flat_map(|tier| modes.map(|mode| best(run, tier, mode)));
    all.flatten().map(sentence).collect()
}

fn sentence((of, cell): Probe<'_>) -> String {
    let latency = &cell.latency_us;
    let mut levels = Cell::levels(cell);
    levels.extend(of.level("tier").map(|tier| ("tier".to_owned(), tier.clone())));
    let mut text = format!("Fastest: {}: {} requests/s", level::all(&levels), quantity(cell.iops));
    if latency.p50 > 0.0 && latency.p99.is_finite() {
        text.push_str(&format!(", p50 {}, p99 {}", microseconds(latency.p50), microseconds(latency.p99)));
    }
    text + "."
}
