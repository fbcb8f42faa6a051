//! What a traced job says: its verdict, the rules that apply, and what was not seen.

use forebay_record::{TraceBytes, TraceCell, TracePhase, TraceRule};
use forebay_units::{count, format_seconds, group_digits};

use crate::number::{bytes, capital, listed, percent};
use crate::run::Run;

const MAX_UNSEEN: usize = 5;
const MAX_PHASES: usize = 8;
/// Bytes that calls and kernel do not agree on are worth a sentence from this share on, and above this number.
const UNEXPLAINED: f64 = 0.05;
const FEW_BYTES: u64 = 1_000_000;

pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    run.cells_of::<TraceCell>().next().map(|(_, cell)| cell.verdict.clone())
}

pub(super) fn findings(run: &Run<'_>) -> Vec<String> {
    run.cells_of::<TraceCell>().flat_map(|(_, cell)| of_one(cell)).collect()
}

fn of_one(cell: &TraceCell) -> Vec<String> {
    let mut said = Vec::new();
    // The headline has the first.
    if cell.limit.evidence.len() > 1 && cell.totals.wait_s.is_some() {
        said.push(match cell.limit.name.as_str() {
            "unknown" => format!("What limits it is not known: {}.", cell.limit.evidence.join("; ")),
            name => format!("Limit: {name}. Evidence: {}.", cell.limit.evidence.join("; ")),
        });
    }
    said.push(calls(cell));
    said.extend(fetches(cell));
    said.extend(saves(cell));
    said.extend(phases(cell));
    said.extend(cell.rules.iter().filter(|rule| rule.applies == Some(true) && rule.id != "R0").map(found));
    said.extend(unexplained("read", cell.read.as_ref()));
    said.extend(unexplained("written", cell.written.as_ref()));
    if !cell.not_seen.is_empty() {
        let more = cell.not_seen.len().saturating_sub(MAX_UNSEEN);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let shown = &cell.not_seen[..cell.not_seen.len().min(MAX_UNSEEN)];
        said.push(format!("Not seen: {}{more}.", shown.join("; ")));
    }
    if cell.totals.lost_events > 0 {
        let n = count(cell.totals.lost_events, "event");
        said.push(format!(
            "{n} were lost because there was no room; totals include their calls and bytes, tables of files do not."
        ));
    }
    said
}

fn found(rule: &TraceRule) -> String {
    let gain = rule.gain_s.map(|gain_s| format!(", at most {} less", format_seconds(gain_s))).unwrap_or_default();
    format!("{} ({}): {}. What helps: {}{gain}.", capital(&rule.name), rule.id, rule.evidence, rule.advice)
}

fn calls(cell: &TraceCell) -> String {
    let totals = &cell.totals;
    format!(
        "{} read {} in {}{} and wrote {} in {}; {}, {}.",
        several(totals.processes, "process"),
        bytes(totals.bytes_read),
        count(totals.reads, "call"),
        of_what(cell),
        bytes(totals.bytes_written),
        count(totals.writes, "call"),
        count(totals.opens, "open"),
        count(totals.fsyncs, "sync"),
    )
}

/// Which files the bytes that were read are of, and how many came from devices: " (242 MB of data files, …)".
fn of_what(cell: &TraceCell) -> String {
    let of = |is_own: bool| -> u64 {
        cell.classes.iter().filter(|class| class.is_own() == is_own).map(|class| class.bytes_read).sum()
    };
    let mut parts = vec![format!("{} from files of the job", bytes(of(true)))];
    parts.extend((of(false) > 0).then(|| format!("{} from Python, libraries and the system", bytes(of(false)))));
    let parts = (!cell.classes.is_empty()).then(|| parts.join(", "));
    let devices = cell.read.as_ref().map(|read| format!("devices delivered {}", bytes(read.devices)));
    let parts: Vec<String> = parts.into_iter().chain(devices).collect();
    if parts.is_empty() || cell.totals.bytes_read == 0 { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Where the time of the workers went.
fn fetches(cell: &TraceCell) -> Option<String> {
    let fetch = cell.fetch.as_ref().filter(|fetch| fetch.seconds > 0.0)?;
    let who = match fetch.workers {
        0 => "The loop itself".to_owned(),
        n => several(n, "worker process"),
    };
    let parts = [
        ("opening", fetch.open_s),
        ("reading", fetch.read_s),
        ("on metadata", fetch.meta_s),
        ("decoding and other work", fetch.compute_s),
    ];
    let parts: Vec<String> =
        parts.iter().map(|(what, seconds)| format!("{} {what}", percent(seconds / fetch.seconds))).collect();
    Some(format!(
        "{who} fetched {} in {}: {}.",
        several(fetch.batches, "batch"),
        format_seconds(fetch.seconds),
        listed(&parts)
    ))
}

fn saves(cell: &TraceCell) -> Option<String> {
    let saves: Vec<_> = cell.saves.iter().filter(|save| !save.is_restore).collect();
    let seconds: f64 = saves.iter().map(|save| save.seconds).sum();
    let written: u64 = saves.iter().map(|save| save.bytes).sum();
    (!saves.is_empty()).then(|| {
        format!(
            "{} took {} and wrote {}.",
            count(saves.len() as u64, "checkpoint"),
            format_seconds(seconds),
            bytes(written)
        )
    })
}

fn phases(cell: &TraceCell) -> Option<String> {
    let one = |phase: &TracePhase| {
        let steps = if phase.steps > 0 { format!(", {}", count(phase.steps, "step")) } else { String::new() };
        let waited =
            if phase.wait_s > 0.0 { format!(", waited {}", format_seconds(phase.wait_s)) } else { String::new() };
        format!("{} {}{steps}{waited}", phase.name, format_seconds(phase.seconds))
    };
    let shown: Vec<String> = cell.phases.iter().take(MAX_PHASES).map(one).collect();
    let more = match cell.phases.len().saturating_sub(MAX_PHASES) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    (!shown.is_empty()).then(|| format!("Phases: {}{more}.", shown.join("; ")))
}

/// Bytes that the kernel counted and no event explains, or the other way round, where they are too many to pass over.
fn unexplained(done: &str, of: Option<&TraceBytes>) -> Option<String> {
    let of = of.filter(|of| of.kernel > 0)?;
    let seen = of.calls + of.other;
    let share = of.kernel.abs_diff(seen) as f64 / of.kernel as f64;
    (share > UNEXPLAINED && of.kernel.abs_diff(seen) > FEW_BYTES).then(|| match of.kernel.checked_sub(seen) {
        Some(unseen) => format!(
            "Not seen by the trace: {} of the {} that the kernel counted as {done} (the loader of programs, buffers of streams, \
             programs not seen).",
            bytes(unseen),
            bytes(of.kernel)
        ),
        None => format!(
            "The kernel counted {} as {done}, calls were given {}: streams hand out bytes that were buffered.",
            bytes(of.kernel),
            bytes(seen)
        ),
    })
}

/// For words that take more than an s.
fn several(n: u64, what: &str) -> String {
    if n == 1 { count(n, what) } else { format!("{} {what}es", group_digits(n)) }
}
