//! A record of `forebay checkpoint bench` as a study over modes and formats.

use forebay_record::{CheckpointCell, FigureKind, FigureSpec, Level, Levels, Record, Step, StudyCell, StudyRun};

use super::differing;
use super::single::{bare_cell, figure, finish, tier_notes};

/// The levels of a checkpoint cell: what tells it from others of its kind.
pub(crate) fn levels_of_checkpoint(cell: &CheckpointCell) -> Levels {
    let mut levels = Levels::new();
    for (name, text) in [
        ("mode", Some(&cell.mode)),
        ("format", Some(&cell.format)),
        ("state", Some(&cell.state)),
        ("storage", Some(&cell.storage)),
        ("tier", cell.tier.as_ref()),
        ("burst_storage", cell.burst_storage.as_ref()),
        ("burst_tier", cell.burst_tier.as_ref()),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            levels.insert(name.to_owned(), Level::Text(text.clone()));
        }
    }
    levels
}

pub(super) fn of_checkpoint(record: &Record<CheckpointCell>) -> StudyRun {
    let mut levels = differing(record.cells.iter().map(levels_of_checkpoint).collect(), &["mode", "format"]);
    // What a mode without a first tier lacks is told by the mode.
    let always_with_mode = ["burst_storage", "burst_tier"];
    levels.iter_mut().for_each(|levels| levels.retain(|factor, _| !always_with_mode.contains(&factor.as_str())));
    let cells = record.cells.iter().zip(levels).map(|(cell, levels)| StudyCell {
        checkpoint: Some(Box::new(cell.clone())),
        ..bare_cell("checkpoint", Step::Checkpoint, levels)
    });
    let tiers = record.cells.iter().flat_map(|cell| {
        let slow = cell.tier.clone().map(|tier| (tier, cell.tier_kind));
        [slow, cell.burst_tier.clone().map(|tier| (tier, cell.burst_tier_kind))]
    });
    let title = match record.cells.first().map(|cell| cell.state.as_str()).unwrap_or_default() {
        "" => "Checkpoints".to_owned(),
        state => format!("Checkpoints of {state}"),
    };
    finish(record, title, cells.collect(), figures(record), tier_notes(tiers.flatten()))
}

fn figures(record: &Record<CheckpointCell>) -> Vec<FigureSpec> {
    let by_mode = |id: &str, title: &str, kind: FigureKind, metric: &[&str]| {
        let mut spec = figure(id, title, kind, metric, Some("mode"));
        spec.series = Some("format".to_owned());
        spec
    };
    let has = |of: fn(&CheckpointCell) -> Option<f64>| record.cells.iter().any(|cell| of(cell).is_some());
    let mut figures = vec![by_mode("stall", "How long training stands still", FigureKind::Bars, &["stall_s"])];
    if has(|cell| cell.durable_fast_s) {
        figures.push(by_mode("saves", "Until it survives a power cut", FigureKind::Bars, &["save_mb_per_s"]));
    }
    if has(|cell| cell.ceiling_mb_per_s) {
        figures.push(by_mode("ceiling", "Saving, as a share of the ceiling", FigureKind::Efficiency, &[]));
    }
    if has(|cell| cell.restore_s) {
        figures.push(by_mode("restores", "Reading it back, verified", FigureKind::Bars, &["restore_mb_per_s"]));
    }
    figures
}
