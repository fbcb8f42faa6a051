//! The table of `forebay checkpoint bench`: how long training stands still, until when a state is safe, and beside each
//! rate the ceiling of the storage it goes to.

use std::fmt::Write;

use forebay_record::{Cell, CheckpointCell, Record, TierKind};
use forebay_units::{count, group_digits};

use crate::basis;
use crate::ingest::rate;
use crate::number::{brief_seconds, bytes, percent, times};
use crate::rated;
use crate::table::{Align, Table};

/// The record as text: a heading, a table, sentences, notes.
pub fn checkpoint(record: &Record<CheckpointCell>) -> String {
    let mut out = head(record);
    if record.cells.is_empty() {
        out.push_str("nothing was measured\n");
    } else {
        let _ = write!(out, "\n{}", table(&record.cells).render());
        let said = sentences(&record.cells);
        let _ = writeln!(out, "\n{}", said.join("\n"));
        out.push_str(&basis::lines(&record.cells));
    }
    for note in &record.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// What was saved, where to, on which machine.
fn head(record: &Record<CheckpointCell>) -> String {
    let environment = &record.environment;
    let mut words = Vec::new();
    if let Some(cell) = record.cells.first() {
        let state = if cell.state.is_empty() { bytes(cell.bytes) } else { cell.state.clone() };
        let tensors = if cell.state.contains("tensor") || cell.n_tensors == 0 {
            String::new()
        } else {
            format!(" in {}", count(cell.n_tensors, "tensor"))
        };
        let on = cell.device.as_ref().map_or(String::new(), |device| format!(" on {device}"));
        words.push(state + &tensors + &on);
    }
    for (what, place) in places(&record.cells) {
        words.push(format!("{what} {place}"));
    }
    if let Some(cpu) = &environment.cpu {
        words.push(format!("{} cores of {cpu}", environment.n_cores));
    }
    words.extend(environment.data_file_system.clone());
    if words.is_empty() { String::new() } else { words.join("; ") + "\n" }
}

/// The last tier and the first, as far as they have names.
fn places(cells: &[CheckpointCell]) -> Vec<(&'static str, &str)> {
    let last = cells.iter().map(|cell| cell.medium.storage.as_str()).find(|place| !place.is_empty());
    let first = cells
        .iter()
        .filter_map(|cell| cell.burst.as_ref())
        .map(|burst| burst.storage.as_str())
        .find(|place| !place.is_empty());
    [last.map(|place| ("to", place)), first.map(|place| ("burst buffer", place))].into_iter().flatten().collect()
}

fn table(cells: &[CheckpointCell]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("mode", Left),
        ("format", Left),
        ("MB", Right),
        ("stall", Right),
        ("durable, first", Right),
        ("last tier", Right),
        ("±", Right),
        ("MB/s", Right),
        ("of ceiling", Right),
        ("restore MB/s", Right),
        ("of ceiling", Right),
        ("copy", Right),
        ("stall/copy", Right),
        ("memory", Right),
    ]);
    for cell in cells {
        let seconds = |value: Option<f64>| value.map_or("–".to_owned(), brief_seconds);
        let is_async = cell.mode == "async";
        table.row(vec![
            cell.mode.clone(),
            cell.format.clone(),
            group_digits((cell.bytes as f64 / 1e6).round() as u64),
            basis::marked(brief_seconds(cell.stall_s), cell.disturbed),
            seconds(cell.durable_fast_s),
            seconds(cell.durable_slow_s),
            cell.spread.map_or("–".to_owned(), percent),
            cell.save_mb_per_s().map_or("–".to_owned(), rate),
            share(cell.save_efficiency(), cell.ceiling_mb_per_s),
            cell.restore_mb_per_s().map_or("–".to_owned(), rate),
            share(cell.restore_efficiency(), cell.read_ceiling_mb_per_s),
            seconds(cell.copy_s.filter(|_| is_async)),
            cell.stall_over_copy().map_or("–".to_owned(), times),
            cell.memory_bytes.map_or("–".to_owned(), bytes),
        ]);
    }
    table
}

/// "93 % of 3,100", never clamped.
fn share(share: Option<f64>, ceiling: Option<f64>) -> String {
    share.zip(ceiling).map_or("–".to_owned(), |(share, ceiling)| format!("{} of {}", percent(share), rate(ceiling)))
}

/// What the columns are, what the modes come to beside each other, and what the numbers stand beside.
fn sentences(cells: &[CheckpointCell]) -> Vec<String> {
    let mut said = vec![
        "Times are medians and count from the moment a save is asked for: until training goes on (stall), until it survives a \
         power cut on the first tier it is written to, and until it does on the last."
            .to_owned(),
    ];
    said.push(
        "MB = 10^6 bytes of the state; MB/s is until durable on the first tier, and of a restore with every byte verified."
            .to_owned(),
    );
    said.extend(shorter(cells));
    said.extend(ceilings(cells));
    if let Some(cell) = cells.iter().find(|cell| cell.stall_over_copy().is_some()) {
        let which = match cell.device {
            Some(_) => "from the device into memory that is locked for it",
            None => "in memory that was touched before",
        };
        said.push(format!("A copy is a plain one of the state {which}: the floor of an async stall."));
    }
    if cells.iter().any(|cell| cell.memory_bytes.is_some()) {
        said.push(
            "Memory is the most that saving took beyond the state itself, and beyond the copies that the benchmark keeps to \
             restore into and to compare with."
                .to_owned(),
        );
    }
    said.extend(tiers(cells));
    said
}

/// How much shorter each other mode stalls than a direct save of the same state in the same format.
fn shorter(cells: &[CheckpointCell]) -> Vec<String> {
    let of = |cell: &CheckpointCell| {
        let is_base = |other: &&CheckpointCell| {
            let alike =
                (&other.format, other.bytes, &other.medium.tier) == (&cell.format, cell.bytes, &cell.medium.tier);
            other.mode == "direct" && cell.mode != "direct" && alike
        };
        let base = cells.iter().find(is_base).filter(|base| base.disturbed.or(cell.disturbed).is_none())?;
        let ratio = Some(base.stall_s / cell.stall_s).filter(|ratio| ratio.is_finite() && *ratio > 0.0)?;
        let said =
            if ratio >= 1.0 { format!("{} shorter", times(ratio)) } else { format!("{} longer", times(1.0 / ratio)) };
        let (before, after) = (brief_seconds(base.stall_s), brief_seconds(cell.stall_s));
        Some(format!("A stall of {} is {said} than one of direct ({}: {before} → {after}).", cell.mode, cell.format))
    };
    cells.iter().filter_map(of).collect()
}

/// What the shares are of, or that they are not known.
fn ceilings(cells: &[CheckpointCell]) -> Vec<String> {
    let mut said = Vec::new();
    if cells.iter().any(|cell| cell.ceiling_mb_per_s.is_some()) {
        said.push(
            "The ceiling of a save is what the tier that is written first takes without us: O_DIRECT, then a sync."
                .to_owned(),
        );
    } else {
        said.push("The storage's ceiling was not measured: how near the saves come to it is not known.".to_owned());
    }
    if cells.iter().any(|cell| cell.read_ceiling_mb_per_s.is_some()) {
        said.push("The ceiling of a restore is what the tier that is read gives without us.".to_owned());
    }
    if cells.iter().any(is_too_short) {
        said.push("A save or restore of less than 10 ms is too short to be set beside a ceiling.".to_owned());
    }
    said
}

/// Whether a ceiling is known and a share of it is not.
fn is_too_short(cell: &CheckpointCell) -> bool {
    let saved = cell.save_mb_per_s().and(cell.ceiling_mb_per_s).is_some() && cell.save_efficiency().is_none();
    let restored = cell.restore_mb_per_s().and(cell.read_ceiling_mb_per_s).is_some();
    saved || (restored && cell.restore_efficiency().is_none())
}

fn tiers(cells: &[CheckpointCell]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for cell in cells {
        for medium in cell.media() {
            let how = medium.kind.unwrap_or(TierKind::Shaped).describe();
            let sentence = medium.tier.as_ref().map(|tier| format!("The tier {tier} is {how}."));
            said.extend(sentence.filter(|sentence| !said.contains(sentence)));
        }
        let held_back = rated::of_checkpoint(cell);
        said.extend(held_back.map(|tier| format!("{}, {}: {}", cell.mode, cell.format, tier.sentence())));
    }
    said
}

#[cfg(test)]
mod tests;
