//! What else differs between two runs, and may explain why their rates do.

use forebay_record::{CacheState, Level};

use crate::level;
use crate::run::Run;

use super::Entry;

/// Takes settings out of the levels that each run keeps constant, but not at the same level; returns them.
pub(super) fn settings_apart(before: &mut [Entry], after: &mut [Entry]) -> Vec<(String, String, String)> {
    let mut factors: Vec<&String> = before.iter().chain(after.iter()).flat_map(|entry| entry.levels.keys()).collect();
    factors.sort_unstable();
    factors.dedup();
    let mut apart = Vec::new();
    for factor in factors {
        if let (Some(a), Some(b)) = (constant(before, factor), constant(after, factor))
            && a != b
        {
            let shown = |level: Option<&Level>| level.map_or("–".to_owned(), |level| level::bare(factor, level));
            apart.push((factor.clone(), shown(a), shown(b)));
        }
    }
    for entry in before.iter_mut().chain(after.iter_mut()) {
        entry.levels.retain(|factor, _| !apart.iter().any(|(taken, _, _)| taken == factor));
    }
    apart.into_iter().map(|(factor, a, b)| (level::words(&factor), a, b)).collect()
}

/// The level that all entries have of a factor, which may be none; `None` when they differ or there are no entries.
fn constant<'a>(entries: &'a [Entry], factor: &str) -> Option<Option<&'a Level>> {
    let first = entries.first()?.levels.get(factor);
    entries.iter().all(|entry| entry.levels.get(factor) == first).then_some(first)
}

pub(super) fn environment_differences(base: &Run<'_>, other: &Run<'_>) -> Vec<(String, String, String)> {
    let (a, b) = (facts(base), facts(other));
    let differing = a.into_iter().zip(b).filter(|((_, a), (_, b))| a != b);
    differing.map(|((what, a), (_, b))| (what.to_owned(), a, b)).collect()
}

/// What may explain a difference.
fn facts(run: &Run<'_>) -> Vec<(&'static str, String)> {
    let environment = run.environment();
    let known = |text: &Option<String>| text.clone().unwrap_or("–".to_owned());
    let tiers = run.head().tiers.iter().map(|tier| format!("{}: {}", tier.name, tier.kind.describe()));
    vec![
        ("dataset", crate::environment::dataset(run).unwrap_or("–".to_owned())),
        ("processor", known(&environment.cpu)),
        ("cores", environment.n_cores.to_string()),
        ("memory", environment.memory_bytes.map_or("–".to_owned(), crate::number::bytes)),
        ("kernel", known(&environment.kernel)),
        ("file system", known(&environment.data_file_system)),
        ("forebay", environment.version.clone()),
        ("privileges", if environment.root { "root" } else { "user" }.to_owned()),
        ("tiers", or_else("none", tiers.collect::<Vec<_>>().join("; "))),
        ("cache", cache(run)),
        ("repeats per cell", repeats(run)),
        ("number of cells", run.study.cells.len().to_string()),
    ]
}

/// The state of all cells, or how many are in which: a count alone would say no more than how many cells there are.
fn cache(run: &Run<'_>) -> String {
    let states: Vec<CacheState> = run.caches().collect();
    let counts = [CacheState::Cold, CacheState::Warm, CacheState::Mixed]
        .map(|wanted| (states.iter().filter(|state| **state == wanted).count(), wanted.name()));
    let found: Vec<_> = counts.into_iter().filter(|(n, _)| *n > 0).collect();
    match found.as_slice() {
        [] => "not measured".to_owned(),
        [(_, word)] => (*word).to_owned(),
        several => {
            let said: Vec<String> = several.iter().map(|(n, word)| format!("{n} {word}")).collect();
            format!("{} of {} cells", said.join(", "), states.len())
        }
    }
}

fn or_else(none: &str, text: String) -> String {
    if text.is_empty() { none.to_owned() } else { text }
}

fn repeats(run: &Run<'_>) -> String {
    let (least, most) = run.repeats().fold((usize::MAX, 0), |(least, most), n| (least.min(n), most.max(n)));
    match (least, most) {
        (usize::MAX, _) => "–".to_owned(),
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}
