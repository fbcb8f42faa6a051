//! The table of a probe.

use std::fmt::Write;

use forebay_record::{CacheState, Engine, ProbeCell, ProbeMode, Record};
use forebay_units::{Bytes, group_digits};

use crate::basis;
use crate::number::{UNKNOWN, finite};
use crate::table::{Align, Table};

const MODES: [ProbeMode; 4] =
    [ProbeMode::SequentialWrite, ProbeMode::SequentialRead, ProbeMode::RandomRead, ProbeMode::Files];

/// The record as a table with the best of each mode and its notes.
pub fn probe(record: &Record<ProbeCell>) -> String {
    let mut out = head(record);
    if record.cells.is_empty() {
        out.push_str("nothing was measured\n");
    } else {
        out.push_str(&table(&record.cells));
        out.push('\n');
        out.push_str(&best(&record.cells));
        out.push_str(&legend(&record.cells));
        out.push_str(&basis::lines(&record.cells));
    }
    for note in &record.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn head(record: &Record<ProbeCell>) -> String {
    let mut parts = Vec::new();
    if !record.dataset.path.is_empty() {
        parts.push(record.dataset.path.clone());
    }
    parts.extend(record.environment.data_file_system.clone());
    if let Some(runs) = record.cells.iter().map(|cell| cell.samples.len()).max() {
        parts.push(format!("median of {runs} run{}", if runs == 1 { "" } else { "s" }));
    }
    if parts.is_empty() { String::new() } else { format!("{}\n\n", parts.join("; ")) }
}

fn table(cells: &[ProbeCell]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("mode", Left),
        ("engine", Left),
        ("block", Right),
        ("depth", Right),
        ("MB/s", Right),
        ("±", Right),
        ("IOPS", Right),
        ("p50 µs", Right),
        ("p90", Right),
        ("p99", Right),
        ("p99.9", Right),
        ("max", Right),
        ("cache", Left),
    ]);
    for cell in cells {
        let latency = &cell.latency_us;
        table.row(vec![
            mode(cell.mode).to_owned(),
            engine(cell.engine).to_owned(),
            block(cell),
            cell.depth.to_string(),
            basis::marked(number(cell.mb_per_s), cell.disturbed),
            cell.spread.map_or("–".to_owned(), |spread| finite(spread * 100.0, |share| format!("{share:.1} %"))),
            number(cell.iops),
            number(latency.p50),
            number(latency.p90),
            number(latency.p99),
            number(latency.p999),
            number(latency.max),
            cell.medium.cache.map_or("–", CacheState::name).to_owned(),
        ]);
    }
    table.render()
}

/// The fastest cell of each mode, in a sentence.
fn best(cells: &[ProbeCell]) -> String {
    let mut out = String::new();
    for wanted in MODES {
        let of_mode = cells.iter().filter(|cell| cell.mode == wanted && cell.disturbed.is_none());
        let Some(cell) = of_mode.max_by(|a, b| a.mb_per_s.total_cmp(&b.mb_per_s)) else { continue };
        let block = cell.block.map_or(String::new(), |_| format!("{}, ", block(cell)));
        let rate = match wanted {
            ProbeMode::Files => format!("{} MB/s, {} files/s", number(cell.mb_per_s), number(cell.iops)),
            _ => format!("{} MB/s", number(cell.mb_per_s)),
        };
        let cache = cell
            .medium
            .cache
            .filter(|state| *state != CacheState::Cold)
            .map_or(String::new(), |state| format!(", {}", state.name()));
        let (mode, engine) = (mode(wanted), engine(cell.engine));
        let _ = writeln!(out, "{mode}: {rate} ({engine}, {block}depth {}{cache})", cell.depth);
    }
    out
}

fn legend(cells: &[ProbeCell]) -> String {
    let mut out = "MB = 10^6 bytes; ".to_owned();
    if cells.iter().any(|cell| cell.spread.is_some()) {
        out.push_str("± is half the range of the runs; ");
    }
    out.push_str("latencies are those of single requests over all kept runs");
    if cells.iter().any(|cell| !cell.latency_us.is_known()) {
        out.push_str("; an emulated device takes writes ahead as a drive's cache does, so that single ones have none");
    }
    if cells.iter().any(|cell| cell.mode == ProbeMode::SequentialWrite) {
        out.push_str("; a write's rate includes its fsync");
    }
    out.push_str(".\n");
    let mut mixes: Vec<&String> = cells.iter().filter_map(|cell| cell.mix.as_ref()).collect();
    mixes.dedup();
    for mix in mixes {
        let _ = writeln!(out, "Sizes: {mix}.");
    }
    if let Some(tier) = cells.iter().find_map(|cell| cell.medium.tier.as_ref()) {
        let kind = cells.iter().find_map(|cell| cell.medium.kind).map_or("emulated", |kind| kind.describe());
        let _ = writeln!(out, "The tier {tier} is {kind}; cold and warm speak of the real disk below it.");
    }
    out
}

fn mode(mode: ProbeMode) -> &'static str {
    match mode {
        ProbeMode::SequentialWrite => "sequential write",
        ProbeMode::SequentialRead => "sequential read",
        ProbeMode::RandomRead => "random read",
        ProbeMode::Files => "files",
    }
}

fn engine(engine: Engine) -> &'static str {
    match engine {
        Engine::Sync => "sync",
        Engine::Direct => "direct",
        Engine::Uring => "uring",
    }
}

/// A block in the binary unit that divides it.
fn block(cell: &ProbeCell) -> String {
    match cell.block {
        None if cell.mode == ProbeMode::Files => "file".to_owned(),
        None => "mix".to_owned(),
        Some(bytes) if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        Some(bytes) if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        Some(bytes) => Bytes(bytes).to_string(),
    }
}

/// A number, or a dash where there is none.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    if value < 100.0 { format!("{value:.1}") } else { group_digits(value.round() as u64) }
}

#[cfg(test)]
mod tests {
    use forebay_record::Medium;

    use super::*;
    use forebay_record::{Environment, Latency, TierKind};

    fn cell(mode: ProbeMode, block: Option<u64>, depth: u64, mb_per_s: f64) -> ProbeCell {
        ProbeCell {
            mode,
            engine: Engine::Direct,
            block,
            mix: block.is_none().then(|| "4K/50:64K/50".to_owned()),
            depth,
            mb_per_s,
            iops: 1234.4,
            spread: Some(0.021),
            latency_us: Latency { p50: 61.2, p90: 80.0, p99: 150.0, p999: 1_200.4, max: 9_000.0 },
            histogram: Vec::new(),
            medium: Medium { cache: Some(CacheState::Cold), ..Medium::default() },
            samples: Vec::new(),
            disturbed: None,
        }
    }

    #[test]
    fn the_table_has_every_number_and_the_best_of_each_mode_follows() {
        let mut record = Record::new(Vec::new(), Environment::default());
        record.cells = vec![
            cell(ProbeMode::SequentialRead, Some(1 << 20), 1, 1_900.0),
            cell(ProbeMode::SequentialRead, Some(1 << 20), 8, 3_210.4),
            cell(ProbeMode::RandomRead, None, 8, 96.25),
        ];
        let text = probe(&record);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines[..4],
            [
                "mode             engine  block  depth   MB/s      ±   IOPS  p50 µs   p90  p99  p99.9    max  cache",
                "sequential read  direct  1 MiB      1  1,900  2.1 %  1,234    61.2  80.0  150  1,200  9,000  cold",
                "sequential read  direct  1 MiB      8  3,210  2.1 %  1,234    61.2  80.0  150  1,200  9,000  cold",
                "random read      direct    mix      8   96.2  2.1 %  1,234    61.2  80.0  150  1,200  9,000  cold",
            ],
            "{text}"
        );
        assert_eq!(lines[5], "sequential read: 3,210 MB/s (direct, 1 MiB, depth 8)");
        assert_eq!(lines[6], "random read: 96.2 MB/s (direct, depth 8)");
        assert!(text.ends_with("over all kept runs.\nSizes: 4K/50:64K/50.\n"), "{text}");
    }

    #[test]
    fn files_of_two_lengths_are_told_apart_and_unknown_latencies_are_dashes() {
        let mut record = Record::new(Vec::new(), Environment::default());
        record.cells = vec![cell(ProbeMode::Files, Some(4096), 1, 50.0), cell(ProbeMode::Files, Some(64_000), 1, 60.0)];
        record.cells[1].latency_us = Latency::UNKNOWN;
        let text = probe(&record);
        let rows: Vec<Vec<&str>> = text.lines().skip(3).take(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0][2..4], ["4", "KiB"], "{text}");
        assert_eq!(rows[1][2..4], ["64.0", "KB"], "{text}");
        assert_eq!(rows[1][9..14], ["–"; 5], "{text}");
        assert!(text.contains("; an emulated device takes writes ahead as a drive's cache does"), "{text}");
    }

    #[test]
    fn what_is_not_cold_and_what_is_emulated_is_said() {
        let mut record = Record::new(Vec::new(), Environment::default());
        let mut warm = cell(ProbeMode::Files, None, 1, 50.0);
        warm.medium.cache = Some(CacheState::Warm);
        (warm.medium.tier, warm.medium.kind) = (Some("hdd".to_owned()), Some(TierKind::Shaped));
        record.cells = vec![warm];
        let text = probe(&record);
        assert!(text.contains("\nfiles: 50.0 MB/s, 1,234 files/s (direct, depth 1, warm)\n"), "{text}");
        assert!(text.contains("\nThe tier hdd is shaped in this process; cold and warm speak of"), "{text}");
        record.cells.clear();
        assert_eq!(probe(&record), "nothing was measured\n");
    }
}
