//! The account of a workload's run: where the accelerators' time went, their use in three definitions, and what changes the
//! meaning of these numbers.

use std::fmt::Write;

use forebay_record::{CacheState, Cause, Judged, Quantiles, Record, WorkloadCell, WorkloadSave, WorkloadTotals};
use forebay_units::{count, format_seconds, group_digits, median};

use crate::basis;
use crate::ingest::{emulated, failed};
use crate::number::{brief_seconds, bytes, capital, given, quantity, seconds};
use crate::table::{Align, Table};
use crate::train::{lever, percent};

/// A wait that is shown as 0.001 s at least.
const SHORTEST_WAIT_S: f64 = 0.001;

/// The record as text: a heading, warnings, tables, sentences, notes.
pub fn workload(record: &Record<WorkloadCell>) -> String {
    let mut out = String::new();
    if record.cells.is_empty() {
        out.push_str("nothing was measured\n");
    }
    let accounts: Vec<String> = record.cells.iter().map(|cell| account(record, cell)).collect();
    out.push_str(&accounts.join("\n"));
    out.push_str(&basis::lines(&record.cells));
    for note in &record.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn account(record: &Record<WorkloadCell>, cell: &WorkloadCell) -> String {
    let totals = &cell.totals;
    let mut out = format!("{}\n{}\n", data(record, cell), setting(cell));
    out.extend(machine(record).map(|line| line + "\n"));
    for warning in &totals.warnings {
        let _ = writeln!(out, "WARNING: {warning}");
    }
    if totals.steps > 0 {
        let _ = write!(out, "\n{}\n{}", time(cell), utilisation(cell));
        out.extend(limits(cell).into_iter().map(|line| line + "\n"));
        let _ = write!(out, "\n{}\n{}", rates(cell).join("\n"), steps(totals));
        out.extend(stall(totals).map(|table| format!("\n{}", table.render())));
        out.push('\n');
    } else if totals.au_dlio.is_some() {
        // Of a run whose times of steps are lost, what was printed is left.
        out.extend(limits(cell).into_iter().chain(printed(cell)).map(|line| line + "\n"));
    }
    let said = saves(cell).into_iter().chain(saved_in(cell)).chain(evaluated(totals)).chain(resources(totals));
    out.extend(said.map(|line| line + "\n"));
    if totals.steps > 0 && cell.made_by.is_none() && cell.disturbed.is_none() {
        let _ = writeln!(out, "{}", lever(&cell.lever));
    }
    if let Some(tier) = &cell.medium.tier {
        let _ = writeln!(out, "{}", emulated(tier, cell.medium.kind));
    }
    out.push_str(&failed(cell.failures.len() as u64, &cell.failures));
    out
}

/// What was read, and how.
fn data(record: &Record<WorkloadCell>, cell: &WorkloadCell) -> String {
    let mut words = vec![cell.workload.clone()];
    if cell.n_files > 0 {
        let files = count(cell.n_files, format!("{} file", cell.format).trim_start());
        let each = match cell.samples_per_file {
            1 => "a sample".to_owned(),
            n => format!("{} samples", group_digits(n)),
        };
        // What somebody else measured may not say how long they are.
        let length = Some(cell.record_length_bytes as u64).filter(|length| *length > 0);
        let length = length.map(|length| format!(" of {}", bytes(length))).unwrap_or_default();
        words.push(format!("{files} of {each}{length}"));
    }
    let place = Some(record.dataset.path.as_str());
    let read = [place, Some(cell.medium.storage.as_str()), cell.medium.cache.map(CacheState::name)];
    words.extend(read.into_iter().flatten().filter(|word| !word.is_empty()).map(str::to_owned));
    words.extend(cell.made_by.as_ref().map(|by| format!("measured by {by}")));
    words.join("; ")
}

/// Who took it, how fast, how often.
fn setting(cell: &WorkloadCell) -> String {
    let totals = &cell.totals;
    let processes = match totals.ranks {
        1 => "1 process".to_owned(),
        n => format!("{} processes", group_digits(n)),
    };
    let mut words = vec![format!("{} in {processes}", count(totals.accelerators, "accelerator"))];
    if cell.steps_per_epoch > 0 {
        let epochs = count(cell.epochs, "epoch");
        words.push(format!("{epochs} of {} of {}", count(cell.steps_per_epoch, "step"), group_digits(cell.batch)));
        if cell.made_by.is_none() || !cell.format.is_empty() {
            words.push(format!("{} of computing a step", format_seconds(cell.computation_s)));
            words.push(format!("{}, prefetch {}", count(cell.read_threads, "read thread"), cell.prefetch));
        }
    }
    words.extend(Some(&cell.order).filter(|order| !order.is_empty()).cloned());
    words.join("; ")
}

fn machine(record: &Record<WorkloadCell>) -> Option<String> {
    let environment = &record.environment;
    let cpu = environment.cpu.as_ref().map(|cpu| format!("{} of {cpu}", count(environment.n_cores, "core")));
    let system = environment.data_file_system.as_ref().map(|system| format!("data on {system}"));
    let words: Vec<String> = cpu.into_iter().chain(system).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Where the accelerators' time went; the parts below the first line sum to it.
fn time(cell: &WorkloadCell) -> String {
    let totals = &cell.totals;
    let mut table = Table::new(&[("time", Align::Left), ("seconds", Align::Right), ("share", Align::Right)]);
    let name = if totals.accelerators > 1 { "all accelerators" } else { "total" };
    for (name, value) in [
        (name, totals.accelerator_s),
        ("  compute", totals.compute_s),
        ("  wait for data", totals.wait_s),
        ("  barrier", totals.barrier_s),
        ("  checkpoint", totals.checkpoint_s),
        ("  other", totals.other_s),
    ] {
        // DLIO does not time its barriers.
        let is_known = cell.made_by.is_none() || name != "  barrier";
        let (seconds, share) = (format!("{value:.3}"), share(value, totals.accelerator_s));
        let [seconds, share] = [seconds, share].map(|text| if is_known { text } else { "–".to_owned() });
        table.row(vec![name.to_owned(), seconds, share]);
    }
    table.render()
}

fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { percent(part / whole) } else { "–".to_owned() }
}

fn utilisation(cell: &WorkloadCell) -> String {
    let mut table = Table::new(&[("AU", Align::Left), ("share", Align::Right), ("computing over", Align::Left)]);
    let totals = &cell.totals;
    for (name, value, over) in [
        ("whole epochs", totals.au_epoch, "the whole time of the epochs: what an accelerator is used"),
        ("steady", totals.au_steady, "the same without the wait for the first batch of every epoch"),
        ("as DLIO", totals.au_dlio, "what DLIO takes: without the first step of every epoch; for comparison"),
    ] {
        table.row(vec![name.to_owned(), points(value), over.to_owned()]);
    }
    table.render()
}

/// A share in percent.
fn points(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), percent)
}

/// Each value against what was asked of it.
fn limits(cell: &WorkloadCell) -> Vec<String> {
    let one = |judged: &Judged| {
        let name = match judged.what.as_str() {
            "au_epoch" => "AU over whole epochs",
            "au_steady" => "steady AU",
            "au_dlio" => "AU as DLIO",
            other => other,
        };
        let verdict = match (judged.value, judged.is_met) {
            (None, _) => "not known",
            (_, true) => "met",
            (_, false) => "MISSED",
        };
        let how = if judged.is_decisive { "the exit status goes by it" } else { "for comparison" };
        let (value, limit) = (points(judged.value), given(100.0 * judged.limit));
        format!("{name}: {value}, at least {limit} % asked for: {verdict} ({how})")
    };
    cell.judged.iter().map(one).collect()
}

fn rates(cell: &WorkloadCell) -> Vec<String> {
    let totals = &cell.totals;
    // What moved no byte has no rate of them: DLIO does not count.
    let moved = if totals.bytes_moved > 0 { quantity(totals.mb_per_s_moved) } else { "–".to_owned() };
    let device = totals.mb_per_s_device.map_or("–".to_owned(), quantity);
    let is_more = totals.mb_per_s_device.is_some_and(|device| device > totals.mb_per_s_moved);
    let from = if is_more { "given by block devices, with what was read ahead" } else { "of that from a block device" };
    let mut said = vec![format!(
        "{} samples/s; {moved} MB/s of data moved (10^6 bytes), {device} MB/s {from}",
        quantity(totals.samples_per_s)
    )];
    said.extend(printed(cell));
    if let Some(demand) = cell.demand_bytes_per_s {
        let all = demand * totals.accelerators as f64;
        let each = format!("An accelerator that never waits asks for {}/s", bytes(demand as u64));
        said.push(match totals.accelerators {
            1 => each,
            n => format!("{each}, {} of them for {}/s", group_digits(n), bytes(all as u64)),
        });
    }
    let first = brief_seconds(totals.first_batch_s);
    let since = totals.first_step_s.map(|at| format!("; the first step began {} after the start", brief_seconds(at)));
    said.push(format!("First batch of an epoch: {first} (mean){}", since.unwrap_or_default()));
    said
}

/// The rates that DLIO prints.
fn printed(cell: &WorkloadCell) -> Option<String> {
    let totals = &cell.totals;
    let samples = totals.dlio_samples_per_s?;
    let mib = totals.dlio_mib_per_s.map_or("–".to_owned(), quantity);
    let verb = if cell.made_by.is_some() { "DLIO printed" } else { "DLIO would print" };
    let why = match samples {
        ..=0.0 => "; it counts two steps fewer than there are, and of one or two an epoch that is no rate",
        _ => "",
    };
    Some(format!("{verb} {} samples/s and {mib} MiB/s, of the configured length{why}", quantity(samples)))
}

fn steps(totals: &WorkloadTotals) -> String {
    use Align::Right;
    let mut table = Table::new(&[
        ("a step", Align::Left),
        ("mean", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("max", Right),
    ]);
    for (name, times) in [("wait for its batch", &totals.load), ("whole", &totals.step)] {
        let Quantiles { mean, p50, p90, p99, max } = *times;
        let times = [mean, p50, p90, p99, max].map(format_seconds);
        table.row(std::iter::once(name.to_owned()).chain(times).collect());
    }
    format!("\n{}", table.render())
}

/// What the waits are charged to, longest first; `None` without a wait worth the name.
fn stall(totals: &WorkloadTotals) -> Option<Table> {
    let waited = totals.wait_s + totals.barrier_s;
    let mut causes: Vec<(Cause, f64)> = totals.stall_by_cause.iter().map(|(cause, value)| (*cause, *value)).collect();
    causes.retain(|(_, value)| *value > 0.0);
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut table =
        Table::new(&[("waited for", Align::Left), ("seconds", Align::Right), ("of all waits", Align::Right)]);
    for (cause, value) in &causes {
        table.row(vec![cause.describe().to_owned(), format!("{value:.3}"), share(*value, waited)]);
    }
    (waited >= SHORTEST_WAIT_S && !causes.is_empty()).then_some(table)
}

/// Checkpoints and restores, each over its slowest rank.
fn saves(cell: &WorkloadCell) -> Vec<String> {
    let of = |is_restore: bool| cell.saves.iter().filter(|save| save.is_restore == is_restore).collect::<Vec<_>>();
    let one = |saves: Vec<&WorkloadSave>, what: &str| {
        let largest = saves.iter().map(|save| save.bytes).max()?;
        let times: Vec<f64> = saves.iter().map(|save| save.seconds).collect();
        let (typical, all) = (median(&times)?, times.iter().sum::<f64>());
        let moved: u64 = saves.iter().map(|save| save.bytes).sum();
        let is_known = moved > 0 && all > 0.0;
        let rate = if is_known { format!(", {}/s", bytes((moved as f64 / all) as u64)) } else { String::new() };
        let size = if is_known { format!(" of {}", bytes(largest)) } else { String::new() };
        let first: Vec<f64> = saves.iter().map(|save| save.seconds_rank_0).collect();
        let rank_0 = match (cell.totals.ranks, median(&first)) {
            (2.., Some(first)) => format!("; the first rank's {}, which is what DLIO gives", brief_seconds(first)),
            _ => String::new(),
        };
        let how = if what == "restore" || cell.made_by.is_some() { "" } else { durability(&saves) };
        let n = capital(&count(saves.len() as u64, what));
        let typical = brief_seconds(typical);
        let all = seconds(all);
        Some(format!("{n}{size}: {typical} each (median of the slowest rank), {all} in all{rate}{rank_0}{how}"))
    };
    [one(of(false), "checkpoint"), one(of(true), "restore")].into_iter().flatten().collect()
}

/// Where checkpoints went: their times and rates are of that place.
pub(crate) fn saved_in(cell: &WorkloadCell) -> Option<String> {
    let place = cell.checkpoint_place.as_ref().filter(|_| !cell.saves.is_empty())?;
    let with = match place.is_with_data {
        Some(true) => "; the file system of the data",
        Some(false) => "; not the file system of the data",
        None => "",
    };
    Some(format!("Checkpoints in {}{with}", place.describe()))
}

fn durability(saves: &[&WorkloadSave]) -> &'static str {
    let n_durable = saves.iter().filter(|save| save.is_durable).count();
    match n_durable {
        0 => "; not durable when they ended",
        n if n == saves.len() => "; durable when they ended",
        _ => "; some durable when they ended",
    }
}

fn evaluated(totals: &WorkloadTotals) -> Option<String> {
    (totals.eval_s > 0.0).then(|| {
        let of = match totals.accelerators {
            0 | 1 => String::new(),
            n => format!(" an accelerator, {} of all {n}", seconds(totals.eval_s)),
        };
        let each = totals.eval_s / totals.accelerators.max(1) as f64;
        let au = points(totals.au_eval);
        format!("Evaluation: {}{of}, beside the training time and its bytes; AU {au}", seconds(each))
    })
}

fn resources(totals: &WorkloadTotals) -> Option<String> {
    let peak = totals.peak_rss_bytes?;
    let each = match totals.accelerators {
        0 | 1 => String::new(),
        n => format!(", {} an accelerator", bytes(peak / n)),
    };
    let cpu = totals.cpu_s.map(|cpu| format!("; {} of the cores' time", seconds(cpu))).unwrap_or_default();
    Some(format!("Memory: {} at most{each}{cpu}", bytes(peak)))
}

#[cfg(test)]
mod tests;
