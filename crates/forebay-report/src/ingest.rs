//! The table of an ingest run.

use std::collections::BTreeMap;
use std::fmt::Write;

use forebay_record::{CacheState, DatasetNote, Failure, IngestCell, Record, TierKind};
use forebay_units::{count, group_digits};

use crate::basis;
use crate::number::{UNKNOWN, finite};
use crate::table::{Align, Table};

/// Failures shown in full.
const SHOWN_FAILURES: usize = 5;

/// The record as a table with its notes.
pub fn ingest(record: &Record<IngestCell>) -> String {
    let mut out = head(record);
    if record.cells.is_empty() {
        out.push_str("nothing was measured\n");
    } else {
        out.push_str(&table(&record.cells));
        out.push('\n');
        out.push_str(&legend(&record.cells));
        out.push_str(&basis::lines(&record.cells));
    }
    out.push_str(&failures(&record.cells));
    for note in &record.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn head(record: &Record<IngestCell>) -> String {
    let data = &record.dataset;
    if *data == DatasetNote::default() {
        // A record need not say what was read.
        return String::new();
    }
    let mut out = format!("{}: {}", data.path, count(data.n_samples, "sample"));
    if data.packing != "files" {
        let _ = write!(out, " in {}", count(data.n_files, &format!("{} shard", data.packing)));
    }
    if let Some(cell) = record.cells.first() {
        let what = match data.packing.as_str() {
            _ if cell.read_only => "read only",
            "tensor" => "read, convert",
            _ => "read, decode, resize",
        };
        let repeats = cell.samples.len();
        let output = cell.output.as_ref().map(|output| format!(" to {output}")).unwrap_or_default();
        let _ =
            write!(out, "; {what}{output}; batch {}, prefetch {}; {}", cell.batch, cell.prefetch, cell.medium.storage);
        let _ = write!(out, "; median of {repeats} repeat{}", if repeats == 1 { "" } else { "s" });
    }
    let environment = &record.environment;
    if let Some(cpu) = &environment.cpu {
        let _ = write!(out, "\n{} cores of {cpu}", environment.n_cores);
    }
    if let Some(file_system) = &environment.data_file_system {
        let _ = write!(out, ", {file_system}");
    }
    out.push_str("\n\n");
    out
}

fn table(cells: &[IngestCell]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("threads", Right),
        ("images/s", Right),
        ("±", Right),
        ("MB/s", Right),
        ("speed-up", Right),
        ("CPU s/1000", Right),
        ("cache", Left),
        ("failed", Right),
        ("workers' time", Left),
        ("harness floor", Right),
        ("of ceiling", Right),
    ]);
    let first = cells[0].images_per_s;
    for cell in cells {
        table.row(vec![
            format!("{}{}", cell.threads, if cell.threads_auto { " (auto)" } else { "" }),
            basis::marked(rate(cell.images_per_s), cell.disturbed),
            cell.spread.map_or("–".to_owned(), |spread| finite(spread * 100.0, |share| format!("{share:.1} %"))),
            finite(cell.mb_per_s, |rate| format!("{rate:.1}")),
            finite(cell.images_per_s / first, |ratio| format!("{ratio:.2}×")),
            finite(cell.cpu_s_per_1000, |seconds| format!("{seconds:.3}")),
            cell.medium.cache.map_or("–", CacheState::name).to_owned(),
            if cell.failed_samples == 0 { "–".to_owned() } else { group_digits(cell.failed_samples) },
            shares(&cell.worker_time),
            cell.floor_images_per_s.map_or("–".to_owned(), |floor| format!("{}/s", rate(floor))),
            ceiling(cell),
        ]);
    }
    table.render()
}

pub(crate) fn rate(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    if value < 100.0 { format!("{value:.1}") } else { group_digits(value.round() as u64) }
}

fn ceiling(cell: &IngestCell) -> String {
    match cell.ceiling_mb_per_s {
        Some(ceiling) => {
            finite(cell.mb_per_s / ceiling * 100.0, |share| format!("{share:.0} % of {} MB/s", rate(ceiling)))
        }
        None => "–".to_owned(),
    }
}

/// The activities that took at least one percent, largest first.
fn shares(worker_time: &BTreeMap<String, f64>) -> String {
    let total: f64 = worker_time.values().sum();
    let mut parts: Vec<(&str, f64)> =
        worker_time.iter().map(|(name, seconds)| (short(name), seconds / total * 100.0)).collect();
    parts.retain(|(_, share)| *share >= 1.0);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = parts.iter().map(|(name, share)| format!("{name} {share:.0} %")).collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

fn short(activity: &str) -> &str {
    match activity {
        "opening" => "open",
        "reading" => "read",
        "decoding" => "decode",
        "resizing" => "resize",
        "preprocessing" => "preprocess",
        "waiting_for_slot" => "wait for consumer",
        "waiting_for_bytes" => "wait for bytes",
        "waiting_for_decoder" => "wait for decoder",
        other => other,
    }
}

fn legend(cells: &[IngestCell]) -> String {
    let mut out = "MB = 10^6 bytes moved from storage; CPU s/1000 is processor time per 1,000 images; ".to_owned();
    if cells.iter().any(|cell| cell.spread.is_some()) {
        out.push_str("± is half the range of the repeats; ");
    }
    out.push_str("the harness floor is the same pipeline on null storage without work.\n");
    for cell in cells.iter().filter(|cell| !cell.tried.is_empty()) {
        let tried = cell.tried.iter().map(|t| format!("{} at {}/s", t.threads, rate(t.images_per_s)));
        let _ = writeln!(out, "Auto chose {}; it tried {}.", cell.threads, tried.collect::<Vec<_>>().join(", "));
    }
    let mut ceilings: Vec<&String> = cells.iter().filter_map(|cell| cell.ceiling_of.as_ref()).collect();
    ceilings.dedup();
    for ceiling in ceilings {
        let _ = writeln!(out, "The ceiling is {ceiling}.");
    }
    if let Some((tier, kind)) = cells.iter().find_map(|cell| Some((cell.medium.tier.as_ref()?, cell.medium.kind))) {
        let _ = writeln!(out, "{}", emulated(tier, kind));
    }
    out
}

/// Who emulates a tier, in a sentence.
pub(crate) fn emulated(tier: &str, kind: Option<TierKind>) -> String {
    match kind {
        Some(TierKind::Kernel) => format!("The tier {tier} is {}.", TierKind::Kernel.describe()),
        _ => format!("The tier {tier} is emulated in this process; cold and warm speak of the real disk below it."),
    }
}

fn failures(cells: &[IngestCell]) -> String {
    let cell = cells.iter().find(|cell| cell.failed_samples > 0);
    cell.map(|cell| failed(cell.failed_samples, &cell.failures)).unwrap_or_default()
}

/// How many samples failed, and the first of them; nothing when none did. One that failed in several passes is named once.
pub(crate) fn failed(n_failed: u64, failures: &[Failure]) -> String {
    if n_failed == 0 {
        return String::new();
    }
    let samples = by_sample(failures);
    let mut out = failed_heading(n_failed, failures.len() as u64, samples.len() as u64);
    for (failure, n) in samples.iter().take(SHOWN_FAILURES) {
        let often = if *n > 1 { format!(" ({n} times)") } else { String::new() };
        let _ = writeln!(out, "  {}{often}: {}", failure.name, failure.reason);
    }
    // Those that the record does not name may be the same samples again.
    let unnamed = n_failed.saturating_sub(failures.len() as u64);
    let more = samples.len().saturating_sub(SHOWN_FAILURES) as u64 + unnamed;
    if more > 0 {
        let _ = writeln!(out, "  … and {} more; the record has up to 100 of them", group_digits(more));
    }
    out
}

/// The samples that failed in the order in which they first did, and how often each did.
fn by_sample(failures: &[Failure]) -> Vec<(&Failure, u64)> {
    let mut samples: Vec<(&Failure, u64)> = Vec::new();
    for failure in failures {
        match samples.iter_mut().find(|(known, _)| known.name == failure.name) {
            Some((_, n)) => *n += 1,
            None => samples.push((failure, 1)),
        }
    }
    samples
}

fn failed_heading(n_failed: u64, n_named: u64, n_samples: u64) -> String {
    let (samples, was) = (count(n_samples, "sample"), if n_samples == 1 { "was" } else { "were" });
    if n_samples == n_named {
        let was = if n_failed == 1 { "was" } else { "were" };
        return format!("{} failed and {was} left out:\n", count(n_failed, "sample"));
    }
    let in_all = count(n_failed, "time");
    match n_samples {
        _ if n_named < n_failed => format!("samples failed {in_all} and were left out:\n"),
        1 => format!("{samples} failed {in_all} and {was} left out:\n"),
        _ => format!("{samples} failed, {in_all} in all, and {was} left out:\n"),
    }
}

#[cfg(test)]
mod tests {
    use forebay_record::Medium;

    use super::*;
    use forebay_record::Environment;

    fn cell(threads: u64, images_per_s: f64) -> IngestCell {
        let worker_time = [("reading", 0.2), ("decoding", 0.7), ("resizing", 0.1), ("idle", 0.001)];
        IngestCell {
            threads,
            threads_auto: false,
            tried: Vec::new(),
            readers: 0,
            batch: 64,
            prefetch: 1,
            read_only: false,
            output: Some("224x224 f32 nhwc".to_owned()),
            medium: Medium {
                storage: "local, buffered".to_owned(),
                cache: Some(CacheState::Warm),
                ..Medium::default()
            },
            images_per_s,
            mb_per_s: images_per_s * 0.112,
            spread: Some(0.012),
            cpu_s_per_1000: 1.17,
            failed_samples: 0,
            failures: Vec::new(),
            worker_time: worker_time.map(|(name, seconds)| (name.to_owned(), seconds)).into(),
            wait_s: 1.0,
            wall_s: 1.1,
            floor_images_per_s: Some(1_250_000.0),
            ceiling_mb_per_s: None,
            ceiling_of: None,
            samples: Vec::new(),
            empty_repeats: 0,
            disturbed: None,
        }
    }

    #[test]
    fn the_table_shows_every_number_with_its_unit() {
        let mut record = Record::new(vec![], Environment::default());
        record.dataset.path = "photos".to_owned();
        record.dataset.packing = "files".to_owned();
        record.dataset.n_samples = 16_384;
        record.cells = vec![cell(1, 850.4), cell(2, 1_690.0)];
        let text = ingest(&record);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("photos: 16,384 samples; read, decode, resize to 224x224 f32 nhwc; batch 64"),
            "{text}"
        );
        let header = "threads  images/s      ±   MB/s  speed-up  CPU s/1000  cache  workers' time                        harness floor";
        assert_eq!(lines[2], header);
        let row = "      2     1,690  1.2 %  189.3     1.99×       1.170  warm   decode 70 %, read 20 %, resize 10 %    1,250,000/s";
        assert_eq!(lines[4], row);
    }

    #[test]
    fn a_ceiling_stands_beside_the_rate_and_is_named() {
        let mut record = Record::new(vec![], Environment::default());
        let mut cold = cell(8, 8_915.0);
        cold.ceiling_mb_per_s = Some(1_203.0);
        cold.ceiling_of = Some("the random-read ceiling of nvme0 (direct, depth 32)".to_owned());
        record.cells = vec![cold];
        let text = ingest(&record);
        assert!(text.contains("  83 % of 1,203 MB/s\n"), "{text}");
        assert!(text.contains("\nThe ceiling is the random-read ceiling of nvme0 (direct, depth 32).\n"), "{text}");
    }

    #[test]
    fn failures_are_named() {
        let mut bad = cell(1, 850.0);
        bad.failed_samples = 7;
        let failure = |i| forebay_record::Failure { name: format!("{i}.jpg"), reason: "empty".to_owned() };
        bad.failures = (0..7).map(failure).collect();
        let text = failures(&[bad]);
        assert!(text.starts_with("7 samples failed and were left out:\n  0.jpg: empty\n"), "{text}");
        assert!(text.ends_with("… and 2 more; the record has up to 100 of them\n"), "{text}");
    }

    #[test]
    fn a_sample_that_failed_in_several_passes_is_named_once() {
        let failure = |name: &str| Failure { name: name.to_owned(), reason: "empty".to_owned() };
        let wanted = "1 sample failed 2 times and was left out:\n  a.jpg (2 times): empty\n";
        assert_eq!(failed(2, &[failure("a.jpg"), failure("a.jpg")]), wanted);
        let three = [failure("a.jpg"), failure("b.jpg"), failure("a.jpg")];
        let wanted = "2 samples failed, 3 times in all, and were left out:\n  a.jpg (2 times): empty\n  b.jpg: empty\n";
        assert_eq!(failed(3, &three), wanted);
        let text = failed(200, &three);
        assert!(text.starts_with("samples failed 200 times and were left out:\n  a.jpg (2 times): "), "{text}");
        assert!(text.ends_with("  … and 197 more; the record has up to 100 of them\n"), "{text}");
    }
}
