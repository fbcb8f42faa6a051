//! What keeps one from trusting a result blindly.

use forebay_record::{
    CacheState, CheckpointCell, ExperimentSpec, IngestCell, Scale, Scaled, StudyCell, StudySpec, TierKind, TrainCell,
    WorkloadCell,
};
use forebay_units::{count, group_digits};

use super::alike;
use crate::environment::progress;
use crate::failures;
use crate::level;
use crate::limit::Place;
use crate::number::{brief_seconds, distinct, listed, percent, was};
use crate::order::Order;
use crate::rated;
use crate::run::Run;

/// Repeats that vary by more than this are worth a word.
const WIDE_SPREAD: f64 = 0.10;

/// Warnings of workloads that are said one by one.
const MAX_WARNINGS: usize = 6;

const MAX_DISTURBED: usize = 6;
/// Where nothing was left to judge.
const NEVER_QUIET: &str = "If the machine is never quiet, run it with FOREBAY_UNWATCHED=1: it is then judged as it is, and what other \
                           programs cost is part of its values.";

/// Rates from less time than this depend on when it began.
const SHORT_S: f64 = 1.0;

const MAX_ACCELERATORS: usize = 8;

/// Everything that a reader has to know, the weightiest first.
pub(super) fn caveats(run: &Run<'_>, places: &[Place<'_>]) -> Vec<String> {
    let found = [
        incomplete(run),
        failed(run),
        not_run(run),
        failures::counted(run),
        disturbed(run),
        cache(run),
        emulated(run),
        held_back(run),
        accelerator(run),
        few_cores(run, places),
        once(run),
        short(run),
        spread(run),
        quick(run),
        of_another_scale(run),
    ];
    warned(run).into_iter().chain(found.into_iter().flatten()).collect()
}

fn incomplete(run: &Run<'_>) -> Option<String> {
    let is_complete = run.study.is_complete();
    (!is_complete).then(|| format!("The study is not complete (cells: {}). Continue with --resume.", progress(run)))
}

fn failed(run: &Run<'_>) -> Option<String> {
    let mut failed = run.study.cells.iter().filter_map(|cell| Some((cell, cell.error.as_ref()?)));
    let (first, error) = failed.next()?;
    let n = 1 + failed.count() as u64;
    let which = if n == 1 { String::new() } else { "; the first: ".to_owned() + &first.id };
    let at = if n == 1 { format!(" ({})", first.id) } else { which };
    Some(format!("{} failed{at}: {error}.", count(n, "cell")))
}

/// Cells that the machine or the program is not made for, reason by reason.
fn not_run(run: &Run<'_>) -> Option<String> {
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for (cell, reason) in run.study.cells.iter().filter_map(|cell| Some((cell, cell.left_out.as_deref()?))) {
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cells)) => cells.push(run.name_of(cell)),
            None => by_reason.push((reason, vec![run.name_of(cell)])),
        }
    }
    let n: usize = by_reason.iter().map(|(_, cells)| cells.len()).sum();
    let said: Vec<String> =
        by_reason.iter().map(|(reason, cells)| format!("{} ({reason})", cells.join("; "))).collect();
    (n > 0).then(|| format!("{} {} left out: {}.", count(n as u64, "cell"), was(n as u64), said.join("; ")))
}

/// What changes the meaning of a workload's numbers, each kind of warning once with the number of cells it was given in.
fn warned(run: &Run<'_>) -> Vec<String> {
    let n_cells = run.cells_of::<WorkloadCell>().count();
    let warnings = run.cells_of::<WorkloadCell>().flat_map(|(_, cell)| &cell.totals.warnings);
    let warnings = alike::merged(warnings.map(String::as_str));
    if n_cells == 1 {
        return warnings.into_iter().map(|(warning, _)| format!("Warning: {warning}.")).collect();
    }
    let said = |(warning, n): &(String, u64)| format!("Warning: {warning} ({}).", count(*n, "cell"));
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    let mut all: Vec<String> = warnings.iter().take(MAX_WARNINGS).map(said).collect();
    all.extend((more > 0).then(|| format!("{}; the record has all.", count(more as u64, "more warning"))));
    all
}

fn disturbed(run: &Run<'_>) -> Option<String> {
    let (cells, causes): (Vec<&StudyCell>, Vec<String>) =
        run.study.cells.iter().filter_map(|cell| Some((cell, cell.disturbed()?.cause()))).unzip();
    let causes: Vec<String> =
        alike::merged(causes.iter().map(String::as_str)).into_iter().map(|(cause, _)| cause).collect();
    let n_measured = run.study.cells.iter().filter(|cell| cell.is_measured()).count();
    let which = match cells.len() {
        0 => return None,
        n if n == n_measured => return Some(format!("Disturbed: {}. {NEVER_QUIET}", listed(&causes))),
        1 => "1 cell was disturbed and is not judged".to_owned(),
        n => format!("{n} cells were disturbed and are not judged"),
    };
    let mut names: Vec<String> = cells.iter().take(MAX_DISTURBED).map(|cell| run.name_of(cell)).collect();
    names.extend((cells.len() > MAX_DISTURBED).then(|| format!("and {} more", cells.len() - MAX_DISTURBED)));
    Some(format!("{which}: {} ({}).", names.join("; "), listed(&causes)))
}

/// Cells that a cold measurement was asked of and that were not proven cold; a record alone does not say what was asked.
fn cache(run: &Run<'_>) -> Option<String> {
    let states: Vec<CacheState> = run.caches().collect();
    let n = |wanted| states.iter().filter(|state| **state == wanted).count();
    let (warm, mixed, all) = (n(CacheState::Warm), n(CacheState::Mixed), states.len());
    // A workload warns of the page cache itself.
    let is_said = run.cells_of::<WorkloadCell>().any(|(_, cell)| warns_of_cache(cell));
    if warm + mixed == 0 || is_said {
        return None;
    }
    let shaped = run.head().tiers.iter().any(|tier| tier.kind == TierKind::Shaped);
    let but = if shaped { " The delays of the emulated device were applied all the same." } else { "" };
    if warm == all {
        return Some(match shaped {
            true => format!("Your files were in memory.{but}"),
            false => "The bytes came from memory: these are warm rates, not disk rates.".to_owned(),
        });
    }
    let parts: Vec<String> = [(warm, "came from memory"), (mixed, "came partly from memory or could not be checked")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, said)| format!("{n} {said}"))
        .collect();
    if all == 1 {
        return Some(format!(
            "The run is not proven cold: its bytes came partly from memory, or the cache could not be checked.{but}"
        ));
    }
    let cells = if all == run.study.cells.len() { "cells" } else { "cells that moved data" };
    Some(format!("Of {all} {cells}, not all are proven cold: {}.{but}", listed(&parts)))
}

fn warns_of_cache(cell: &WorkloadCell) -> bool {
    cell.totals.warnings.iter().any(|warning| warning.contains("came from the page cache"))
}

fn emulated(run: &Run<'_>) -> Option<String> {
    let named = |kind: TierKind| -> Vec<&str> {
        run.head().tiers.iter().filter(|tier| tier.kind == kind).map(|tier| tier.name.as_str()).collect()
    };
    let mut parts = Vec::new();
    for kind in [TierKind::Shaped, TierKind::Kernel] {
        let names = named(kind);
        if !names.is_empty() {
            let is = if names.len() == 1 { "is" } else { "are" };
            let what = match (kind, names.len()) {
                (TierKind::Kernel, 2..) => "loop devices throttled by the kernel",
                _ => kind.describe(),
            };
            parts.push(format!("{} {is} {what}", listed(&names)));
        }
    }
    (!parts.is_empty()).then(|| format!("Emulated devices: {}.", parts.join("; ")))
}

/// Emulated tiers that took checkpoints and that the disk below was too slow for.
fn held_back(run: &Run<'_>) -> Option<String> {
    let trained = run.cells_of::<TrainCell>().filter_map(|(of, cell)| Some((of, rated::of_train(cell)?)));
    let saved = run.cells_of::<CheckpointCell>().filter_map(|(of, cell)| Some((of, rated::of_checkpoint(cell)?)));
    let mut found: Vec<_> = trained.chain(saved).collect();
    let order = Order::of(run);
    found.sort_by(|a, b| order.compare(a.0, b.0));
    let mut tiers: Vec<&str> = found.iter().map(|(_, tier)| tier.tier).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let is = if tiers.len() == 1 { "promises" } else { "promise" };
    let (first, rates) = found.first().map(|(of, tier)| (level::all(&of.factors), tier.rates()))?;
    let first = if first.is_empty() { first } else { format!(", {first}") };
    Some(format!(
        "The underlying disk was slower than {} {is} ({rates}{first}): the stalls of {} are due to the disk.",
        listed(&tiers),
        count(found.len() as u64, "cell")
    ))
}

/// An accelerator that only takes its time.
fn accelerator(run: &Run<'_>) -> Option<String> {
    let mut cells: Vec<_> = run.cells_of::<TrainCell>().collect();
    let order = Order::of(run);
    cells.sort_by(|a, b| order.compare(a.0, b.0));
    let mut named = distinct(cells.iter().filter_map(|(_, cell)| cell.accelerator.clone()));
    let more = named.len().saturating_sub(MAX_ACCELERATORS);
    if more > 0 {
        named.truncate(MAX_ACCELERATORS);
        named.push(format!("{more} more"));
    }
    let trained = run.cells_of::<TrainCell>().filter(|(_, cell)| cell.accelerator.is_none()).count();
    let which = if trained > 0 { "In some cells no" } else { "No" };
    (!named.is_empty())
        .then(|| format!("{which} network was trained: the accelerator was emulated ({}).", listed(&named)))
}

fn few_cores(run: &Run<'_>, places: &[Place<'_>]) -> Option<String> {
    let n_cores = run.environment().n_cores;
    let decodes = places.iter().any(|place| !place.read_only);
    let most = run.cells_of::<IngestCell>().map(|(_, cell)| cell.threads).max().unwrap_or(0);
    (n_cores > 0 && decodes && most > n_cores).then(|| {
        format!("The machine has {}: more threads than cores speed up reading, not decoding.", count(n_cores, "core"))
    })
}

fn once(run: &Run<'_>) -> Option<String> {
    let n: Vec<usize> = run.repeats().collect();
    let once = n.iter().filter(|n| **n < 2).count();
    let which = match once {
        0 => return None,
        all if all == n.len() => "Every cell was measured once, so the spread is unknown".to_owned(),
        1 => "1 cell was measured once".to_owned(),
        some => format!("{some} cells were measured once"),
    };
    let so = match n.len() {
        1 => String::new(),
        _ => format!("; differences of up to {} may be noise", percent(run.noise())),
    };
    Some(format!("{which}{so}."))
}

/// Cells whose repeats together took less than a second.
fn short(run: &Run<'_>) -> Option<String> {
    let ingested = run.cells_of::<IngestCell>().map(|(_, cell)| cell.samples.iter().map(|one| one.wall_s).sum());
    let trained = run.cells_of::<TrainCell>().map(|(_, cell)| match cell.samples.as_slice() {
        [] => cell.totals.wall_s,
        runs => runs.iter().map(|one| one.wall_s).sum::<f64>(),
    });
    let all: Vec<f64> = ingested.chain(trained).collect();
    let short: Vec<f64> = all.iter().copied().filter(|s| *s < SHORT_S).collect();
    let least = brief_seconds(short.iter().copied().reduce(f64::min)?);
    Some(match (all.len(), short.len()) {
        (1, _) => format!("The measurement took {least}: too short for a rate to rely on."),
        (n, some) if n == some => format!("Every cell was measured for less than a second (the shortest for {least})."),
        (_, 1) => format!("1 cell was measured for less than a second ({least})."),
        (_, some) => format!("{some} cells were measured for less than a second (the shortest for {least})."),
    })
}

fn spread(run: &Run<'_>) -> Option<String> {
    let wide: Vec<f64> = run.spreads().filter(|spread| spread.is_finite() && *spread > WIDE_SPREAD).collect();
    let most = wide.iter().copied().fold(0.0, f64::max);
    let (cells, vary) =
        if wide.len() == 1 { ("1 cell".to_owned(), "varies") } else { (format!("{} cells", wide.len()), "vary") };
    (!wide.is_empty()).then(|| {
        format!(
            "Between repeats, {cells} {vary} by more than ±{} (at most ±{}): smaller differences there are noise.",
            percent(WIDE_SPREAD),
            percent(most)
        )
    })
}

fn quick(run: &Run<'_>) -> Option<String> {
    let is_smaller = run.spec().source.is_some() && differs_by_scale(run.spec());
    let scale = run.head().scale;
    (run.is_study() && scale != Scale::Full && is_smaller)
        .then(|| format!("This is the {} scale: the same experiments as published, with fewer bytes.", scale.name()))
}

/// Published values that ours cannot be set beside at this scale.
fn of_another_scale(run: &Run<'_>) -> Option<String> {
    let scale = run.head().scale;
    let n = run.spec().references.iter().filter(|reference| !reference.is_of(scale)).count() as u64;
    let other = if scale == Scale::Full { Scale::Quick } else { Scale::Full };
    (run.is_study() && n > 0).then(|| {
        format!(
            "{} only valid at the {} scale and not shown here.",
            if n == 1 {
                "1 published value is".to_owned()
            } else {
                format!("{} published values are", group_digits(n))
            },
            other.name()
        )
    })
}

/// Whether a study says one thing at the quick scale and another at the full one.
fn differs_by_scale(spec: &StudySpec) -> bool {
    let of_experiment = |experiment: &ExperimentSpec| {
        let rules = experiment.rules.iter().flat_map(|rule| rule.set.values());
        is_each(&experiment.repeats)
            || is_each(&experiment.warmups)
            || experiment.factors.values().any(is_each)
            || experiment.settings.values().chain(rules).any(is_each)
    };
    spec.datasets.iter().filter_map(|dataset| dataset.count.as_ref()).any(is_each)
        || spec.experiments.iter().any(of_experiment)
}

fn is_each<T: PartialEq>(value: &Scaled<T>) -> bool {
    matches!(value, Scaled::Each { quick, full, .. } if quick != full)
}
