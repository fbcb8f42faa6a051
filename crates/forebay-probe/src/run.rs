//! Running the plan.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay_record::{CacheState, Engine, Environment, ProbeCell, ProbeMode, Record};
use forebay_units::{Bytes, PathText};

use super::cell::{Measured, cell};
use super::error::Error;
use super::plan::{Combination, Plan, Unit};
use super::prepared_target::PreparedTarget;
use super::trial::{Repeated, Trial, Watch};

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Before anything is measured: what the user should know about the target.
    Remark {
        /// In words.
        text: String,
    },
    /// Before the first round: how many bytes all rounds will move at the most.
    Started {
        /// Written and read.
        bytes: u64,
    },
    /// A run begins.
    Run {
        /// What is being measured, in words: "random read, direct, depth 8, run 2 of 5".
        what: String,
    },
    /// Bytes moved since the last time.
    Advanced {
        /// How many.
        bytes: u64,
    },
}

/// Runs the plan. When `cancel` is set it stops at the next request and yields the cells it has. What it wrote is gone when
/// it returns.
///
/// # Errors
/// When the target cannot be used, or fails meanwhile.
pub fn run(
    plan: &Plan,
    environment: Environment,
    command_line: Vec<String>,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Record<ProbeCell>, Error> {
    let target = PreparedTarget::open(plan)?;
    let mut record = Record::new(command_line, environment);
    record.dataset.path = plan.target.escaped().into_owned();
    for text in &target.remarks {
        observe(Event::Remark { text: text.clone() });
    }
    record.notes.extend(target.remarks.iter().cloned());
    record.notes.extend(alignment_note(plan, &target));
    record.notes.extend(depth_note(plan, &target));
    let cells = plan.combinations(&target.engines, target.may_write());
    let planned: u64 = cells.iter().map(|cell| planned_bytes(plan, cell)).sum();
    let prepared = if target.may_write() { plan.prepared_bytes() } else { 0 };
    observe(Event::Started { bytes: planned * plan.runs as u64 + prepared });
    lay_out(plan, &target, observe, cancel)?;
    let trees = plant(plan, &target, observe, cancel)?;
    let trial = Trial { plan, target: &target, trees };
    let measured = rounds(&trial, &cells, observe, cancel)?;
    record.cells = cells.iter().zip(measured).filter_map(|(of, measured)| cell(plan, of, measured)).collect();
    if cancel.load(Ordering::Relaxed) {
        record.notes.push(match record.cells.as_slice() {
            [] => "interrupted before the first run that would be kept".to_owned(),
            _ => "interrupted: the runs finished before that are kept".to_owned(),
        });
    }
    record.notes.extend(cache_note(&record.cells));
    Ok(record)
}

fn rounds(
    trial: &Trial<'_>,
    cells: &[Combination],
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Vec<Measured>, Error> {
    let plan = trial.plan;
    let mut measured: Vec<Measured> = cells.iter().map(|_| Measured::default()).collect();
    for round in 0..plan.runs {
        for (of, kept) in cells.iter().zip(&mut measured) {
            observe(Event::Run { what: describe(of, round, plan.runs) });
            let mut left = planned_bytes(plan, of);
            let mut moved = |bytes: u64| {
                left = left.saturating_sub(bytes);
                observe(Event::Advanced { bytes });
            };
            let Repeated { repeat, evidence, latencies } =
                trial.run(of, round as u64, Watch { moved: &mut moved, cancel })?;
            if cancel.load(Ordering::Relaxed) {
                return Ok(measured);
            }
            // A run that ended by its time limit has less to do than was planned.
            observe(Event::Advanced { bytes: left });
            if round > 0 {
                kept.latencies.add(&latencies);
                kept.samples.push(repeat);
                kept.evidence.push(evidence);
            }
        }
    }
    Ok(measured)
}

/// Writes the file where no cell does, so that it can be read.
fn lay_out(
    plan: &Plan,
    target: &PreparedTarget,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<(), Error> {
    if !plan.modes.random || plan.modes.sequential || !target.may_write() {
        return Ok(());
    }
    observe(Event::Run { what: "writing the file".to_owned() });
    target.lay_out(plan.usable_size(), cancel, &mut |bytes| observe(Event::Advanced { bytes }))
}

fn plant(
    plan: &Plan,
    target: &PreparedTarget,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Vec<Vec<super::threads::Leaf>>, Error> {
    let mut trees = Vec::new();
    for (number, tree) in plan.trees.iter().enumerate().filter(|_| plan.modes.files) {
        observe(Event::Run { what: "making the files".to_owned() });
        trees.push(target.plant(tree, number, cancel, &mut |bytes| observe(Event::Advanced { bytes }))?);
    }
    Ok(trees)
}

/// Bytes that one run of a cell moves, unless its time limit ends it.
pub(super) fn planned_bytes(plan: &Plan, cell: &Combination) -> u64 {
    match cell.unit {
        Unit::File(tree) => plan.trees[tree].n_bytes(),
        _ => plan.usable_size(),
    }
}

fn describe(of: &Combination, round: usize, runs: usize) -> String {
    let mode = match of.mode {
        ProbeMode::SequentialWrite => "sequential write",
        ProbeMode::SequentialRead => "sequential read",
        ProbeMode::RandomRead => "random read",
        ProbeMode::Files => "files",
    };
    let engine = match of.engine {
        Engine::Sync => "sync",
        Engine::Direct => "direct",
        Engine::Uring => "uring",
    };
    let block = if let Unit::Block(block) = of.unit { format!(", {}", Bytes(block)) } else { String::new() };
    let run = if round == 0 { "warm-up".to_owned() } else { format!("run {round} of {}", runs - 1) };
    format!("{mode}, {engine}{block}, depth {}, {run}", of.depth)
}

fn alignment_note(plan: &Plan, target: &PreparedTarget) -> Option<String> {
    use super::plan::Sizes;
    let unit = target.alignment;
    let short = match &plan.sizes {
        Sizes::Fixed(sizes) => sizes.iter().any(|size| size % unit != 0),
        Sizes::Mix(mix) => mix.sizes().any(|size| size % unit != 0),
    };
    let direct = target.engines.iter().any(|engine| *engine != Engine::Sync);
    let concerns = plan.modes.random && direct && short;
    concerns.then(|| {
        format!("random requests past the page cache are rounded up to multiples of {unit} bytes, as this device needs")
    })
}

fn depth_note(plan: &Plan, target: &PreparedTarget) -> Option<String> {
    let concerns = plan.tier.is_some() && plan.modes.sequential && target.may_write();
    (concerns && plan.depths.iter().any(|depth| *depth > 1)).then(|| {
        "an emulated device takes one write after the other: its writes are measured with depth 1 alone".to_owned()
    })
}

fn cache_note(cells: &[ProbeCell]) -> Option<String> {
    let other = cells.iter().any(|cell| cell.medium.cache != Some(CacheState::Cold));
    other.then(|| {
        "what is marked warm or mixed did not move at least 95 % of its bytes from or to the device, or the kernel does not \
         tell: it is no ceiling of the device"
            .to_owned()
    })
}
