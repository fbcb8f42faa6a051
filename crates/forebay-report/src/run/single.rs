//! Records of single commands as studies of one experiment.

use std::collections::BTreeMap;

use forebay_record::{
    Cell, Design, Engine, ExperimentSpec, FigureKind, FigureSpec, Level, Levels, Measured, Record, SCHEMA, Scale,
    Scaled, Step, StudyCell, StudyHead, StudyRun, StudySpec, TierKind, TierNote,
};

use super::differing;
use super::titled::{Titled, figure};

/// The record as a study over whatever its cells differ in.
pub(super) fn study_of<C: Titled>(record: &Record<C>) -> StudyRun
where
    Measured: From<C>,
{
    let name = C::STEP.name();
    let levels = differing(record.cells.iter().map(Cell::levels).collect(), &C::always(record));
    let cells: Vec<StudyCell> = record
        .cells
        .iter()
        .zip(levels)
        .map(|(cell, levels)| cell_of(C::STEP, C::shown(levels), cell.clone().into()))
        .collect();
    let mut figures = if cells.is_empty() { Vec::new() } else { C::figures(record) };
    figures.iter_mut().for_each(|figure| figure.experiment = Some(name.to_owned()));
    if !cells.is_empty() && record.series.as_ref().is_some_and(|series| !series.is_empty()) {
        figures.push(figure("trace", "Machine activity during the run", FigureKind::Trace, &[], None));
    }
    let spec = spec(C::STEP, C::title(record), figures);
    let head = StudyHead {
        schema: SCHEMA.to_owned(),
        command: name.to_owned(),
        command_line: record.command_line.clone(),
        environment: record.environment.clone(),
        spec,
        scale: Scale::Full,
        n_cells: cells.len() as u64,
        data: None,
        tiers: tier_notes(record),
        notes: record.notes.clone(),
    };
    StudyRun { head, cells, resumed: Vec::new(), series: record.series.clone() }
}

fn spec(step: Step, title: String, figures: Vec<FigureSpec>) -> StudySpec {
    let experiment = ExperimentSpec {
        name: step.name().to_owned(),
        run: step,
        dataset: None,
        design: Design::Factorial,
        repeats: Scaled::Both(0),
        warmups: Scaled::Both(0),
        factors: orders(step),
        settings: [].into(),
        rules: Vec::new(),
    };
    StudySpec {
        name: step.name().to_owned(),
        title,
        source: None,
        about: String::new(),
        seed: 0,
        datasets: Vec::new(),
        workloads: Vec::new(),
        tiers: Vec::new(),
        experiments: vec![experiment],
        references: Vec::new(),
        figures,
        limits: Vec::new(),
    }
}

/// Modes of checkpoints in the order in which they are shown.
const MODES: [&str; 3] = ["direct", "burst", "async"];

/// Factors whose levels are shown in an order of their own.
fn orders(step: Step) -> BTreeMap<String, Scaled<Vec<Level>>> {
    let (factor, names) =
        if step == Step::Checkpoint { ("mode", MODES) } else { ("engine", Engine::ALL.map(Engine::name)) };
    [(factor.to_owned(), Scaled::Both(names.map(|name| Level::Text(name.to_owned())).into()))].into()
}

fn cell_of(step: Step, factors: Levels, measured: Measured) -> StudyCell {
    let levels: Vec<String> = factors.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
    StudyCell {
        id: format!("{}/{}", step.name(), levels.join("/")),
        experiment: step.name().to_owned(),
        step,
        factors,
        started_at: String::new(),
        elapsed_s: 0.0,
        error: None,
        left_out: None,
        measured: Some(measured),
        notes: Vec::new(),
    }
}

/// A tier that a record names was emulated in process when the record, of an older version, does not say how.
fn tier_notes<C: Cell>(record: &Record<C>) -> Vec<TierNote> {
    let mut notes: Vec<TierNote> = Vec::new();
    for medium in record.cells.iter().flat_map(Cell::media) {
        let Some(name) = medium.tier.clone() else { continue };
        if !notes.iter().any(|note| note.name == name) {
            let kind = medium.kind.unwrap_or(TierKind::Shaped);
            notes.push(TierNote { name, kind, description: String::new() });
        }
    }
    notes
}
