//! A record of `forebay train` as a study: usually a single cell, whose steps are then the points of the figures.

use forebay_record::{FigureKind, FigureSpec, Level, Levels, Record, Step, StudyCell, StudyRun, TierKind, TrainCell};

use super::differing;
use super::single::{bare_cell, figure, finish, tier_notes};

/// Levels that are said of a cell even where all have the same; of an emulated accelerator also the device.
const ALWAYS: [&str; 6] = ["model", "tier", "batch", "threads", "prefetch", "device"];

/// The levels of a train cell: what tells it from others of its kind.
pub(crate) fn levels_of_train(cell: &TrainCell) -> Levels {
    let integer = |value: u64| Level::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let mut levels = Levels::new();
    levels.insert("batch".to_owned(), integer(cell.batch));
    levels.insert("steps".to_owned(), integer(cell.totals.n_steps));
    if cell.synthetic {
        levels.insert("synthetic".to_owned(), Level::Flag(true));
    } else {
        levels.insert("threads".to_owned(), integer(cell.threads));
        levels.insert("prefetch".to_owned(), integer(cell.prefetch));
    }
    if cell.threads_auto {
        levels.insert("threads_auto".to_owned(), Level::Flag(true));
    }
    if cell.device_prefetch > 0 {
        levels.insert("device_prefetch".to_owned(), integer(cell.device_prefetch));
    }
    for (name, text) in [
        ("model", cell.model.as_ref()),
        ("device", Some(&cell.device)),
        ("precision", cell.precision.as_ref()),
        ("optimizer", cell.optimizer.as_ref()),
        ("storage", Some(&cell.storage)),
        ("tier", cell.tier.as_ref()),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            levels.insert(name.to_owned(), Level::Text(text.clone()));
        }
    }
    if let Some(saved) = &cell.checkpoints {
        levels.insert("checkpoint_every".to_owned(), integer(saved.every));
        for (name, text) in [
            ("checkpoint_mode", Some(&saved.mode)),
            ("checkpoint_format", Some(&saved.format)),
            ("checkpoint_tier", saved.tier.as_ref()),
            ("burst_tier", saved.burst_tier.as_ref()),
        ] {
            levels.extend(text.map(|text| (name.to_owned(), Level::Text(text.clone()))));
        }
    }
    if let Some(step) = cell.resumed_from {
        levels.insert("resumed_from".to_owned(), integer(step));
    }
    levels
}

/// The tiers that a cell reads from and saves to, and how each is emulated.
fn tiers(cell: &TrainCell) -> Vec<(String, Option<TierKind>)> {
    let read = cell.tier.clone().map(|tier| (tier, cell.tier_kind));
    let saved = cell.checkpoints.as_ref();
    let slow = saved.and_then(|of| Some((of.tier.clone()?, of.tier_kind)));
    let fast = saved.and_then(|of| Some((of.burst_tier.clone()?, of.burst_tier_kind)));
    [read, fast, slow].into_iter().flatten().collect()
}

pub(super) fn of_train(record: &Record<TrainCell>) -> StudyRun {
    let n_always = if record.cells.iter().any(|cell| cell.model.is_some()) { ALWAYS.len() - 1 } else { ALWAYS.len() };
    let levels = differing(record.cells.iter().map(levels_of_train).collect(), &ALWAYS[..n_always]);
    let cells = record.cells.iter().zip(levels).map(|(cell, levels)| StudyCell {
        train: Some(Box::new(cell.clone())),
        ..bare_cell("train", Step::Train, levels)
    });
    let tiers = record.cells.iter().flat_map(tiers);
    finish(record, title(record), cells.collect(), figures(record), tier_notes(tiers))
}

fn title(record: &Record<TrainCell>) -> String {
    let model = record.cells.first().and_then(|cell| cell.model.as_deref());
    let what = model.map_or("Training".to_owned(), |model| format!("Training {model}"));
    match record.dataset.path.as_str() {
        "" if record.cells.iter().any(|cell| cell.synthetic) => format!("{what} on synthetic batches"),
        "" => what,
        path => format!("{what} on {path}"),
    }
}

fn figures(record: &Record<TrainCell>) -> Vec<FigureSpec> {
    let mut figures = Vec::new();
    let x = Some("batch");
    if record.cells.len() > 1 {
        figures.push(figure("wall-clock", "Wall clock", FigureKind::Bars, &["wall_s", "images_per_s"], x));
    }
    figures.push(figure("time", "Where the accelerator's time went", FigureKind::Time, &[], x));
    figures.push(figure("steps", "Step by step", FigureKind::Steps, &[], x));
    let saved = || record.cells.iter().filter_map(|cell| cell.checkpoints.as_ref());
    if saved().any(|saved| !saved.saves.is_empty()) {
        figures.push(figure("checkpoints", "Every checkpoint", FigureKind::Checkpoints, &[], None));
    }
    if saved().any(|saved| !saved.traffic.is_empty()) {
        figures.push(figure("traffic", "What checkpoints wrote and read when", FigureKind::Traffic, &[], None));
    }
    if record.cells.iter().any(|cell| cell.reads.as_ref().is_some_and(|reads| !reads.mb.is_empty())) {
        figures.push(figure("reads", "What was read when", FigureKind::Reads, &[], x));
    }
    if record.cells.iter().any(|cell| !cell.totals.worker_time.is_empty()) {
        figures.push(figure("workers", "Where the workers' time went", FigureKind::Workers, &[], x));
    }
    figures
}
