//! What a traced job says: its verdict, the rules that apply, and what was not seen.

use forebay_record::{TraceBytes, TraceCell, TracePhase};
use forebay_units::{count, format_seconds, group_digits};

use crate::number::{bytes, listed, percent};
use crate::run::Run;

const MAX_UNSEEN: usize = 5;
const MAX_PHASES: usize = 8;

pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    run.cells_of::<TraceCell>().next().map(|(_, cell)| cell.verdict.clone())
}

pub(super) fn findings(run: &Run<'_>) -> Vec<String> {
    run.cells_of::<TraceCell>().flat_map(|(_, cell)| of_one(cell)).collect()
}

fn of_one(cell: &TraceCell) -> Vec<String> {
    let mut said = Vec::new();
    if !cell.limit.evidence.is_empty() && cell.totals.wait_s.is_some() {
        said.push(format!("Limit: {}. Evidence: {}.", cell.limit.name, cell.limit.evidence.join("; ")));
    }
    said.push(calls(cell));
    said.extend(fetches(cell));
    said.extend(saves(cell));
    said.extend(phases(cell));
    said.extend(
        cell.rules
            .iter()
            .filter(|rule| rule.applies == Some(true) && rule.id != "R0")
            .map(|rule| format!("{} ({}): {}. What helps: {}.", rule.id, rule.name, rule.evidence, rule.advice)),
    );
    said.extend(reconciled("read", "reading", cell.read.as_ref()));
    said.extend(reconciled("written", "writing", cell.written.as_ref()));
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

fn calls(cell: &TraceCell) -> String {
    let totals = &cell.totals;
    format!(
        "{} read {} in {} and wrote {} in {}; {}, {}.",
        several(totals.processes, "process"),
        bytes(totals.bytes_read),
        count(totals.reads, "call"),
        bytes(totals.bytes_written),
        count(totals.writes, "call"),
        count(totals.opens, "open"),
        count(totals.fsyncs, "sync"),
    )
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

/// The same bytes as three parties count them.
fn reconciled(done: &str, doing: &str, of: Option<&TraceBytes>) -> Option<String> {
    let of = of.filter(|of| of.kernel > 0)?;
    let seen = of.calls + of.other;
    let rest = match of.kernel.checked_sub(seen) {
        Some(unseen) => {
            format!("{} in no event (the loader of programs, buffers of streams, programs not seen)", bytes(unseen))
        }
        None => format!("{} more in events (streams hand out bytes that were buffered)", bytes(seen - of.kernel)),
    };
    Some(format!(
        "Bytes {done}: calls on files {}, pipes and sockets {}, the kernel's count of all {doing} {}: {rest}; devices {}.",
        bytes(of.calls),
        bytes(of.other),
        bytes(of.kernel),
        bytes(of.devices),
    ))
}

/// For words that take more than an s.
fn several(n: u64, what: &str) -> String {
    if n == 1 { count(n, what) } else { format!("{} {what}es", group_digits(n)) }
}
