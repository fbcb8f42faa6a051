//! Runs all cells of a probe, and adds notes on the validity of the results.

use forebay_measure::{Event, Observer, Rounds};
use forebay_record::{CacheState, Engine, ProbeCell, ProbeMode, Record};
use forebay_units::{Bytes, PathText};

use super::cell::{Measured, cell};
use super::error::Error;
use super::plan::{Combination, Plan, Unit};
use super::prepared_target::PreparedTarget;
use super::settings::Kind;
use super::trial::Trial;

/// Runs the plan. If cancelled, it stops at the next request and returns the finished cells. Its files are removed
/// before it returns.
///
/// # Errors
/// If the target cannot be used, or fails meanwhile.
pub fn run(plan: &Plan, mut record: Record<ProbeCell>, observer: Observer<'_>) -> Result<Record<ProbeCell>, Error> {
    let target = PreparedTarget::open(plan)?;
    record.dataset.path = plan.target.escaped().into_owned();
    target.remarks.iter().for_each(|text| observer.tell(Event::Remark { text: text.clone() }));
    record.notes.extend(target.remarks.iter().cloned());
    record.notes.extend(alignment_note(plan, &target));
    record.notes.extend(depth_note(plan, &target));
    let cells = plan.combinations(&target.engines, target.may_write());
    let planned: u64 = cells.iter().map(|cell| planned_bytes(plan, cell)).sum();
    let prepared = if target.may_write() { plan.prepared_bytes() } else { 0 };
    observer.tell(Event::Planned { images: 0, bytes: planned * plan.runs as u64 + prepared });
    lay_out(plan, &target, observer)?;
    let trees = plant(plan, &target, observer)?;
    let rounds = Rounds { warmups: 1, repeats: plan.runs.saturating_sub(1), unit: "run", until: None };
    let of_cell = |cell| Trial { plan, target: &target, trees: &trees, cell };
    let ran = rounds.run(&mut cells.iter().map(of_cell).collect::<Vec<_>>(), observer)?;
    let made = |((of, kept), disturbed)| Some(ProbeCell { disturbed, ..cell(plan, of, Measured::new(kept))? });
    record.cells = cells.iter().zip(ran.cells).zip(ran.disturbed).filter_map(made).collect();
    record.notes.extend(ran.is_cut.then(|| rounds.interrupted(record.cells.len())));
    record.notes.extend(cache_note(&record.cells));
    Ok(record)
}

/// Writes the file to be read, if no cell writes it.
fn lay_out(plan: &Plan, target: &PreparedTarget, observer: Observer<'_>) -> Result<(), Error> {
    if !plan.is_laid_out() || !target.may_write() {
        return Ok(());
    }
    observer.tell(Event::phase("writing the file"));
    let mut moved = |bytes| observer.tell(Event::Moved { images: 0, bytes });
    target.lay_out(plan.usable_size(), observer.cancel, &mut moved)
}

fn plant(
    plan: &Plan,
    target: &PreparedTarget,
    observer: Observer<'_>,
) -> Result<Vec<Vec<super::threads::Leaf>>, Error> {
    let mut trees = Vec::new();
    for (number, tree) in plan.trees.iter().enumerate() {
        observer.tell(Event::phase("making the files"));
        let mut moved = |bytes| observer.tell(Event::Moved { images: 0, bytes });
        trees.push(target.plant(tree, number, observer.cancel, &mut moved)?);
    }
    Ok(trees)
}

/// Upper bound for one run of a cell; the time limit may end it earlier.
pub(super) fn planned_bytes(plan: &Plan, cell: &Combination) -> u64 {
    match cell.unit {
        Unit::File(tree) => plan.trees[tree].n_bytes(),
        _ => plan.usable_size(),
    }
}

pub(super) fn describe(of: &Combination) -> String {
    let mode = match of.mode {
        ProbeMode::SequentialWrite => "sequential write",
        ProbeMode::SequentialRead => "sequential read",
        ProbeMode::RandomRead => "random read",
        ProbeMode::Files => "files",
    };
    let block = if let Unit::Block(block) = of.unit { format!(", {}", Bytes(block)) } else { String::new() };
    format!("{mode}, {}{block}, depth {}", of.engine.name(), of.depth)
}

fn alignment_note(plan: &Plan, target: &PreparedTarget) -> Option<String> {
    let unit = target.alignment;
    let mut pieces = plan.settings.pieces().into_iter().filter_map(|piece| piece.mix());
    let short = pieces.any(|mix| mix.sizes().any(|size| size % unit != 0));
    let direct = target.engines.iter().any(|engine| *engine != Engine::Sync);
    let concerns = plan.settings.does(Kind::Random) && direct && short;
    concerns.then(|| {
        format!(
            "random requests past the page cache are rounded up to multiples of {unit} bytes, as this device requires"
        )
    })
}

fn depth_note(plan: &Plan, target: &PreparedTarget) -> Option<String> {
    let concerns = plan.tier.is_some() && plan.settings.does(Kind::Sequential) && target.may_write();
    (concerns && plan.settings.depth.iter().any(|depth| *depth > 1))
        .then(|| "an emulated device serializes writes, so they are measured only at depth 1".to_owned())
}

fn cache_note(cells: &[ProbeCell]) -> Option<String> {
    let other = cells.iter().any(|cell| cell.medium.cache != Some(CacheState::Cold));
    other.then(|| {
        "cells marked warm or mixed are not a ceiling of the device: less than 95 % of their bytes moved to or from it, or the \
         kernel does not report it"
            .to_owned()
    })
}
