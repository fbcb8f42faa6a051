//! `forebay study run --dry-run`: shows the plan with its data, bytes and estimated times.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use forebay_record::Step;
use forebay_study::{CellPlan, DatasetSource, Estimate, Estimator, Making, Places, Plan, Remaining, Task, spaces};
use forebay_units::{Bytes, PathText, count, format_seconds, group_digits};

use super::{about, find_placement};
use crate::output::{Outcome, done, remark};

/// The text for an experiment whose cost is unknown before it runs.
const NOT_KNOWN: &str = "bytes and time unknown";

pub(super) fn show(plan: &Plan, data: &Path, rest: &Remaining, is_resumed: bool) -> Result<Outcome> {
    let places = Places::new(plan, data);
    for dataset in &plan.datasets {
        if let DatasetSource::Path(path) = &dataset.source {
            remark(&format!("listing {}", path.escaped()));
        }
    }
    let estimator = Estimator::new(plan, &places);
    let cells = count(plan.cells.len() as u64, "cell");
    let left = in_order(plan, rest);
    let so_far = if is_resumed { done_words(rest) } else { String::new() };
    let mut text = format!("{} at the {} scale: {cells}{so_far}\n\n", plan.spec.name, plan.scale.name());
    if is_resumed {
        text.push_str(&cell_lines(plan, rest));
    }
    let rows = experiments(plan, &left, &estimator);
    let total = sum(rows.iter().map(|row| row.1));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let unknown = probes_without_sum(plan);
    // The samples of a workload are not necessarily images.
    let of_workloads = plan.cells.iter().all(|cell| cell.work.step() == Step::Workload);
    let unit = if of_workloads { "samples" } else { "images" };
    for ((name, estimate), experiment) in rows.iter().zip(&plan.spec.experiments) {
        let is_open = unknown.contains(&experiment.name.as_str()) && *estimate == Estimate::default();
        let what = if is_open { NOT_KNOWN.to_owned() } else { describe(estimate, unit) };
        let _ = writeln!(text, "{name:<width$}  {what}");
    }
    let _ = writeln!(text, "{:<width$}  {}{}", "together", describe(&total, unit), without(&unknown));
    text.push('\n');
    text.push_str(&data_lines(plan, &left, &places, &estimator));
    text.push_str(&left_out_lines(plan));
    for tier in plan.tier_notes(&find_placement) {
        let _ = writeln!(text, "tier {}: {}, {}", tier.name, tier.kind.describe(), tier.description);
    }
    text.push_str(&space_lines(&left, &places));
    let (from, without) = match of_workloads {
        true => ("the workloads' compute times and their tiers' profiles".to_owned(), "reading and decoding"),
        false => {
            let decode = format_seconds(estimator.decode_s());
            (format!("the tiers' profiles and {decode} to decode an image of 112 KB"), "work between repeats")
        }
    };
    let _ = writeln!(text, "Times are estimated from {from}. They exclude {without} and storage without a profile.");
    if plan.cells.iter().any(|cell| cell.work.step() == Step::Train) {
        text.push_str(
            "A network counts with the step time of its emulated accelerator, or with no time if there is none.\n",
        );
    }
    done(&text)
}

/// The cells to run, by experiment.
fn in_order<'a>(plan: &'a Plan, rest: &Remaining) -> Vec<&'a CellPlan> {
    let mut numbers = rest.cells.clone();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| &plan.cells[number]).collect()
}

fn done_words(rest: &Remaining) -> String {
    let kinds = [(rest.n_failed, "failed"), (rest.n_left_out, "left out")].into_iter().filter(|(n, _)| *n > 0);
    let kinds: Vec<String> = kinds.map(|(n, word)| format!("{n} {word}")).collect();
    let of_these = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    format!(", {} done{of_these}, {} to run", rest.n_done, rest.cells.len())
}

/// One line per cell: finished cells, then the cells to run in their order.
fn cell_lines(plan: &Plan, rest: &Remaining) -> String {
    let mut text = String::new();
    let left: HashSet<&str> = rest.cells_of(plan).map(|cell| cell.id.as_str()).collect();
    for cell in plan.cells.iter().filter(|cell| !left.contains(cell.id.as_str())) {
        let _ = writeln!(text, "done: {}", cell.id);
    }
    for cell in rest.cells_of(plan).filter(|cell| cell.left_out.is_none()) {
        let _ = writeln!(text, "to run: {}", cell.id);
    }
    text.push('\n');
    text
}

/// Experiments with random or file probes, whose bytes depend on the storage's speed.
fn probes_without_sum(plan: &Plan) -> Vec<&str> {
    let is_open = |cell: &CellPlan| match &cell.work.task {
        Task::Probe(settings) => !settings.is_sequential(),
        _ => false,
    };
    let has_open = |name: &str| plan.cells.iter().any(|cell| cell.experiment == name && is_open(cell));
    plan.spec.experiments.iter().map(|experiment| experiment.name.as_str()).filter(|name| has_open(name)).collect()
}

fn without(unknown: &[&str]) -> String {
    match unknown {
        [] => String::new(),
        names => format!(", without the random and file probes of {}, whose bytes are unknown", names.join(", ")),
    }
}

/// One row per experiment: its name, cells and rounds, and the sum over its cells.
fn experiments(plan: &Plan, left: &[&CellPlan], estimator: &Estimator<'_>) -> Vec<(String, Estimate)> {
    let row = |experiment: &forebay_record::ExperimentSpec| {
        let cells: Vec<_> = left.iter().filter(|cell| cell.experiment == experiment.name).collect();
        let estimate = sum(cells.iter().map(|cell| estimator.cell(cell)));
        let (warmups, repeats) = (experiment.warmups.at(plan.scale), experiment.repeats.at(plan.scale));
        let n = count(cells.len() as u64, "cell");
        (format!("{} ({}): {n} × {warmups}+{repeats}", experiment.name, experiment.run.name()), estimate)
    };
    plan.spec.experiments.iter().map(row).collect()
}

/// The sum; of the seconds, only the known ones.
fn sum(estimates: impl Iterator<Item = Estimate>) -> Estimate {
    estimates.fold(Estimate::default(), |sum, one| Estimate {
        images: sum.images.saturating_add(one.images),
        read: Bytes(sum.read.0.saturating_add(one.read.0)),
        written: Bytes(sum.written.0.saturating_add(one.written.0)),
        seconds: match (sum.seconds, one.seconds) {
            (None, other) | (other, None) => other,
            (Some(a), Some(b)) => Some(a + b),
        },
    })
}

fn describe(estimate: &Estimate, unit: &str) -> String {
    let mut parts = Vec::new();
    if estimate.images > 0 {
        parts.push(match estimate.images {
            u64::MAX => format!("more than 10^19 {unit}"),
            n => format!("{} {unit}", group_digits(n)),
        });
    }
    if estimate.read > Bytes(0) {
        parts.push(format!("{} to read", size(estimate.read)));
    }
    if estimate.written > Bytes(0) {
        parts.push(format!("{} to write", size(estimate.written)));
    }
    parts.push(match estimate.seconds {
        Some(seconds) => format!("about {}", about(seconds)),
        None => "time unknown".to_owned(),
    });
    parts.join(", ")
}

/// A size, including sizes that overflow.
fn size(bytes: Bytes) -> String {
    if bytes.0 == u64::MAX { "more than 18 million TB".to_owned() } else { bytes.to_string() }
}

fn data_lines(plan: &Plan, left: &[&CellPlan], places: &Places<'_>, estimator: &Estimator<'_>) -> String {
    let mut text = String::new();
    for wanted in places.to_make(left.iter().copied()) {
        let (name, dir) = (&wanted.name, wanted.dir.escaped());
        let unit = if matches!(wanted.making, Making::Records(_)) { "sample" } else { "image" };
        let images = wanted.n_samples().map_or("–".to_owned(), |n| count(n, unit));
        let bytes = wanted.expected_bytes();
        let making = match (&wanted.making, estimator.making_s(&wanted)) {
            _ if wanted.is_there() => "exists".to_owned(),
            (Making::Pack { packing, of, .. }, _) => format!("to be packed from {of} as {}", packing.name()),
            (Making::Records(_), _) => "to be generated".to_owned(),
            (Making::Make(_), seconds) => format!("to be generated in about {}", about(seconds.unwrap_or(0.0))),
        };
        let _ = writeln!(text, "dataset {name}: {images}, about {bytes}, in {dir}, {making}");
    }
    for dataset in &plan.datasets {
        let DatasetSource::Path(path) = &dataset.source else { continue };
        let reading = left.iter().filter(|cell| cell.work.dataset() == Some(&dataset.name)).count();
        let (name, path) = (&dataset.name, path.as_path());
        let _ = writeln!(text, "dataset {name}: {}, {}", path.escaped(), count(reading as u64, "cell"));
    }
    text
}

/// The cells that are left out, by reason.
fn left_out_lines(plan: &Plan) -> String {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (cell, reason) in plan.cells.iter().filter_map(|cell| Some((cell, cell.left_out.as_deref()?))) {
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, ids)) => ids.push(&cell.id),
            None => by_reason.push((reason, vec![&cell.id])),
        }
    }
    let mut text = String::new();
    for (reason, ids) in by_reason {
        let _ = writeln!(text, "left out: {}: {reason}", ids.join(", "));
    }
    text
}

fn space_lines(left: &[&CellPlan], places: &Places<'_>) -> String {
    let mut text = String::new();
    for space in spaces(places, left.iter().copied()) {
        let free = space.available.map_or("–".to_owned(), |free| free.to_string());
        let fits = if space.check().is_ok() { "" } else { ": it does not fit" };
        let _ = writeln!(text, "space: {} needed at {}, {free} free{fits}", space.needed(), space.path.escaped());
    }
    text
}
