//! Every rule of the verdict with its evidence, or with the reason why it could not look.

use forebay_record::{TraceCell, TraceRule};
use forebay_units::{Bytes, count, format_seconds, group_digits};

use crate::rules::{CHECKPOINTS, Case, HARDLY, Loop, MOST, cpu_share, has_idle_cores, percent, workers_wanted};

const LARGE: f64 = 0.30;
const SMALL_READ: u64 = 128 << 10;
/// Beyond this, what the devices moved is more than the calls asked for.
const AMPLIFIED: f64 = 1.3;
/// Bytes that the kernel counted and no event explains, as a share.
const UNEXPLAINED: f64 = 0.05;
/// Below this, pages of programs and libraries, which devices deliver without calls, are too much of what was read.
const MUCH: u64 = 500_000_000;
const LITTLE: &str = "less than 500 MB of data was read, so pages of programs and libraries would mislead";

/// All rules in their order.
pub(crate) fn rules(cell: &TraceCell, case: &Case<'_>, seen: Option<Loop>) -> Vec<TraceRule> {
    let rule = |id: &str, name: &str, found: Result<(bool, String), &str>, advice: &str| {
        let (applies, evidence) = match found {
            Ok((applies, evidence)) => (Some(applies), evidence),
            Err(why) => (None, why.to_owned()),
        };
        let advice = if applies == Some(true) { advice.to_owned() } else { String::new() };
        TraceRule { id: id.to_owned(), name: name.to_owned(), applies, evidence, advice, gain_s: None }
    };
    let waits = seen.ok_or(NO_LOOP);
    let is_bound = waits.map(|seen| seen.share >= HARDLY);
    let of_what = seen.map_or("", |seen| seen.of_what());
    let io = waits.and_then(|seen| seen.io_share.ok_or(NO_FETCH));
    vec![
        rule("R0", "waits for data", waits.map(|s| (s.share >= HARDLY, waited(s))), "see the rules that apply below"),
        rule(
            "R1",
            "storage is the limit",
            storage(case, is_bound, io, of_what),
            "faster storage, a cache, fewer bytes",
        ),
        rule("R2", "too few workers", workers(case, cell, is_bound, io), "more workers or threads"),
        rule("R3", "no prefetch", prefetch(case, is_bound), case.how_to_prefetch()),
        rule("R4", "decoding is the limit", decoding(case, is_bound, io, of_what), "cheaper decoding, more cores"),
        rule("R5", "many metadata calls", metadata(cell, case, waits), "pack the samples into few large files"),
        rule("R6", "small random reads", small_reads(cell), "larger records, shuffled by shard"),
        rule("R7", "the page cache misses", cache(case, cell), "a memory limit or other programs take the cache"),
        rule("R8", "more is read than asked for", amplified(cell, case), "a smaller read-ahead for random reads"),
        rule("R9", "data comes by mapping", mapped(cell, case), "madvise, or read calls"),
        rule("R10", "checkpoints stall the run", checkpoints(cell), "save asynchronously or to a faster device"),
        rule("R15", "something was not seen", unseen(cell), "read the verdict with care"),
    ]
}

const NO_LOOP: &str = "no training loop was marked: not Python, or a framework without a hook";
const NO_FETCH: &str = "neither fetches nor calls on data during waits were seen";
const NOT_BOUND: &str = "the loop hardly waits";

type Found<'a> = Result<(bool, String), &'a str>;

fn waited(seen: Loop) -> String {
    let up_to = seen.loop_s / (seen.loop_s - seen.wait_s);
    let faster = if up_to.is_finite() { format!("; without waits, {up_to:.2}× as fast") } else { String::new() };
    format!("{} of {} ({}){faster}", format_seconds(seen.wait_s), format_seconds(seen.loop_s), percent(seen.share))
}

fn storage<'a>(case: &Case<'_>, is_bound: Result<bool, &'a str>, io: Result<f64, &'a str>, of: &str) -> Found<'a> {
    let (is_bound, io) = (is_bound?, io?);
    let busy = case.facts.disk_busy.map_or("–".to_owned(), percent);
    let evidence = format!("{} of {of} is calls on files; busiest disk {busy}", percent(io));
    if !is_bound {
        return Ok((false, format!("{NOT_BOUND}; {evidence}")));
    }
    Ok((io > MOST, evidence))
}

fn workers<'a>(
    case: &Case<'_>,
    cell: &TraceCell,
    is_bound: Result<bool, &'a str>,
    io: Result<f64, &'a str>,
) -> Found<'a> {
    let (is_bound, io) = (is_bound?, io?);
    let who = match case.workers {
        Some(n) => count(n, "worker"),
        None => {
            let of = case.threads().ok_or("the loader did not say how many workers it has")?;
            format!("{:.1} cores of computing during waits", of.cpu_ns as f64 / of.wait_ns as f64)
        }
    };
    let idle = has_idle_cores(case).ok_or("the job's processor time is not known")?;
    let has_room = if io > MOST { case.facts.disk_busy.is_some_and(|busy| busy < MOST) } else { idle };
    let cpu = cpu_share(case).map_or("–".to_owned(), percent);
    let wanted = workers_wanted(cell, case).map(|n| format!("; {n} would keep up")).unwrap_or_default();
    Ok((is_bound && case.workers != Some(0) && has_room, format!("{who}, cores {cpu} busy{wanted}")))
}

fn prefetch<'a>(case: &Case<'_>, is_bound: Result<bool, &'a str>) -> Found<'a> {
    let is_bound = is_bound?;
    let prefetches = case.prefetches().ok_or("when the loader reads was not seen")?;
    let how = match case.workers {
        Some(0) => "the loop fetches its batches itself".to_owned(),
        Some(n) => format!("{} prepare batches ahead", count(n, "worker")),
        None => {
            let ahead = case.ahead().map_or("–".to_owned(), percent);
            format!("{ahead} of the time of calls on data is while the loop computes")
        }
    };
    Ok((is_bound && !prefetches, how))
}

fn decoding<'a>(case: &Case<'_>, is_bound: Result<bool, &'a str>, io: Result<f64, &'a str>, of: &str) -> Found<'a> {
    let (is_bound, io) = (is_bound?, io?);
    let cpu = cpu_share(case).map_or("–".to_owned(), percent);
    Ok((is_bound && io <= MOST, format!("{} of {of} is computation; cores {cpu} busy", percent(1.0 - io))))
}

fn metadata<'a>(cell: &TraceCell, case: &Case<'_>, waits: Result<Loop, &'a str>) -> Found<'a> {
    let waits = waits?;
    let Some(fetch) = cell.fetch.as_ref().filter(|fetch| fetch.seconds > 0.0) else {
        let of = case.threads().ok_or(NO_FETCH)?;
        let share = of.meta_ns / (of.calls_ns + of.cpu_ns as f64);
        let evidence = format!("opens and metadata take {} of {}", percent(share), waits.of_what());
        return Ok((waits.share >= HARDLY && share > LARGE, evidence));
    };
    let meta_s = fetch.open_s + fetch.meta_s;
    let per_sample = fetch.samples.filter(|n| *n > 0).map(|n| fetch.meta_calls as f64 / n as f64);
    let share = meta_s / fetch.seconds;
    let said = per_sample.map_or("–".to_owned(), |n| format!("{n:.1}"));
    let evidence = format!("opens and metadata take {} of the fetches' time, {said} calls per sample", percent(share));
    Ok((waits.share >= HARDLY && share > LARGE, evidence))
}

fn small_reads(cell: &TraceCell) -> Found<'static> {
    let data = cell
        .classes
        .iter()
        .find(|class| class.name == "data" && class.reads > 0)
        .ok_or("no data file was read by calls")?;
    let median = median_size(cell).ok_or("no data file was read by calls")?;
    let jumps = 1.0 - data.sequential_reads as f64 / data.reads as f64;
    Ok((
        median < SMALL_READ && jumps > MOST,
        format!("median read below {}, {} of reads jump", Bytes(median + 1), percent(jumps)),
    ))
}

fn median_size(cell: &TraceCell) -> Option<u64> {
    let half = cell.sizes.iter().map(|size| size.reads).sum::<u64>().div_ceil(2);
    let mut seen = 0;
    cell.sizes
        .iter()
        .find(|size| {
            seen += size.reads;
            seen >= half
        })
        .map(|size| size.at_most)
}

fn cache(case: &Case<'_>, cell: &TraceCell) -> Found<'static> {
    let memory = case.facts.memory_bytes.ok_or("the machine's memory is not known")?;
    let read = cell.read.as_ref().filter(|read| read.calls > 0).ok_or("the kernel's counts are not known")?;
    if data_read(cell) < MUCH {
        return Err(LITTLE);
    }
    if case.n_epochs < 2 {
        return Err("fewer than two epochs were seen");
    }
    let missed = read.devices as f64 / (read.calls as f64).max(1.0);
    // The first epoch must read; the others need not.
    let expected = 1.0 / case.n_epochs as f64;
    let fits = case.data_bytes as f64 <= 0.8 * memory as f64;
    let evidence = format!(
        "{} of data in {} files, {} of memory; {} of the bytes came from devices over {}",
        Bytes(case.data_bytes),
        group_digits(case.data_files),
        Bytes(memory),
        percent(missed),
        count(case.n_epochs, "epoch")
    );
    Ok((fits && missed > expected + 0.1, evidence))
}

fn data_read(cell: &TraceCell) -> u64 {
    cell.classes
        .iter()
        .filter(|class| class.name == "data" || class.name == "output")
        .map(|class| class.bytes_read)
        .sum()
}

fn amplified(cell: &TraceCell, case: &Case<'_>) -> Found<'static> {
    let read = cell.read.as_ref().ok_or("the kernel's counts are not known")?;
    if data_read(cell) < MUCH {
        return Err(LITTLE);
    }
    if case.mapped_bytes > read.calls {
        return Err("most bytes came by mapping, whose requests are not calls");
    }
    let ratio = read.devices as f64 / read.calls as f64;
    Ok((ratio > AMPLIFIED, format!("devices {}, calls {}", Bytes(read.devices), Bytes(read.calls))))
}

fn mapped(cell: &TraceCell, case: &Case<'_>) -> Found<'static> {
    let faults = case.facts.major_faults.ok_or("page faults are not known")?;
    // Each brings at least a page, and usually a read-ahead of 128 KiB.
    let least = faults.saturating_mul(4_096);
    let evidence = format!("{} mapped, {} waited for a device", Bytes(case.mapped_bytes), count(faults, "page fault"));
    Ok((case.mapped_bytes > 0 && least as f64 > LARGE * cell.totals.bytes_read as f64 && faults > 1_000, evidence))
}

fn checkpoints(cell: &TraceCell) -> Found<'static> {
    let saves: Vec<_> = cell.saves.iter().filter(|save| !save.is_restore).collect();
    if saves.is_empty() {
        return Ok((false, "no checkpoint was saved".to_owned()));
    }
    let seconds: f64 = saves.iter().map(|save| save.seconds).sum();
    let share = seconds / cell.wall_s;
    Ok((
        share > CHECKPOINTS,
        format!(
            "{} took {} ({} of the run)",
            count(saves.len() as u64, "save"),
            format_seconds(seconds),
            percent(share)
        ),
    ))
}

fn unseen(cell: &TraceCell) -> Found<'static> {
    let mut said = Vec::new();
    if cell.totals.lost_events > 0 {
        said.push(format!("{} were lost", count(cell.totals.lost_events, "event")));
    }
    if !cell.not_seen.is_empty() {
        said.push(format!("{} ran unseen", count(cell.not_seen.len() as u64, "program")));
    }
    let gap = cell
        .read
        .as_ref()
        .map(|read| read.kernel.saturating_sub(read.calls + read.other) as f64 / (read.kernel as f64).max(1.0));
    let is_gap = gap.is_some_and(|gap| gap > UNEXPLAINED);
    said.extend(
        gap.map(|gap| format!("{} of the bytes that the kernel counted as read are in no event", percent(gap))),
    );
    let is_found = is_gap || cell.totals.lost_events > 0 || !cell.not_seen.is_empty();
    if said.is_empty() {
        return Err("the kernel's counts are not known");
    }
    Ok((is_found, said.join("; ")))
}
