//! A record of `forebay workload run` as a study: usually a single cell, whose epochs and steps are then the points of the
//! figures.

use forebay_record::{FigureKind, FigureSpec, Level, Levels, Record, Step, StudyCell, StudyRun, WorkloadCell};

use super::differing;
use super::single::{bare_cell, figure, finish, tier_notes};

/// Levels that are said of a cell even where all have the same.
const ALWAYS: [&str; 3] = ["workload", "accelerators", "tier"];

/// The levels of a workload cell: what tells it from others of its kind.
pub(crate) fn levels_of_workload(cell: &WorkloadCell) -> Levels {
    let integer = |value: u64| Level::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let mut levels = Levels::new();
    for (name, value) in [
        ("accelerators", cell.totals.accelerators),
        ("ranks", cell.totals.ranks),
        ("batch", cell.batch),
        ("epochs", cell.epochs),
        ("files", cell.n_files),
        ("prefetch", cell.prefetch),
        ("threads", cell.read_threads),
    ] {
        levels.insert(name.to_owned(), integer(value));
    }
    for (name, text) in [
        ("workload", Some(&cell.workload)),
        ("format", Some(&cell.format)),
        ("order", Some(&cell.order)),
        ("storage", Some(&cell.storage)),
        ("tier", cell.tier.as_ref()),
        ("made_by", cell.made_by.as_ref()),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            levels.insert(name.to_owned(), Level::Text(text.clone()));
        }
    }
    levels
}

pub(super) fn of_workload(record: &Record<WorkloadCell>) -> StudyRun {
    let levels = differing(record.cells.iter().map(levels_of_workload).collect(), &ALWAYS);
    let cells = record.cells.iter().zip(levels).map(|(cell, levels)| StudyCell {
        workload: Some(Box::new(cell.clone())),
        ..bare_cell("workload", Step::Workload, levels)
    });
    let tiers = record.cells.iter().filter_map(|cell| Some((cell.tier.clone()?, cell.tier_kind)));
    let title = match record.cells.first() {
        Some(cell) => match &cell.made_by {
            Some(by) => format!("Workload {}, measured by {by}", cell.workload),
            None => format!("Workload {}", cell.workload),
        },
        None => "Workload".to_owned(),
    };
    finish(record, title, cells.collect(), figures(record), tier_notes(tiers))
}

fn figures(record: &Record<WorkloadCell>) -> Vec<FigureSpec> {
    let has = |of: fn(&WorkloadCell) -> bool| record.cells.iter().any(of);
    let x = Some("accelerators");
    let mut figures = Vec::new();
    if has(|cell| !cell.epochs_of.is_empty()) {
        let title = "Accelerator utilisation, epoch by epoch";
        figures.push(figure("utilisation", title, FigureKind::Utilisation, &["au_epoch", "au_dlio"], Some("epoch")));
    }
    figures.push(figure("time", "Where the accelerators' time went", FigureKind::Time, &[], x));
    if has(|cell| cell.epochs_of.iter().any(|epoch| !epoch.load.is_empty())) {
        figures.push(figure("steps", "Step by step", FigureKind::Steps, &[], x));
    }
    if has(|cell| cell.reads.as_ref().is_some_and(|reads| !reads.mb.is_empty())) {
        figures.push(figure("reads", "What was read when", FigureKind::Reads, &[], x));
    }
    if has(|cell| !cell.worker_time.is_empty()) {
        figures.push(figure("workers", "Where the readers' time went", FigureKind::Workers, &[], x));
    }
    if has(|cell| !cell.saves.is_empty()) {
        figures.push(figure("saves", "Every checkpoint", FigureKind::Checkpoints, &[], None));
    }
    figures
}
