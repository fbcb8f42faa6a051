//! Reads records of schema 1 as if they were of schema 2.
//!
//! In schema 1 the medium's fields were beside the settings, cache states and evidence in every repeat, a workload's shares were
//! percentages, a cause had two names, and a study's cell had a field per experiment.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{SCHEMA, Step, StudyLine};

const BEFORE: &str = "forebay-record/1";

pub(crate) fn is_known(schema: &str) -> bool {
    [SCHEMA, BEFORE].contains(&schema)
}

pub(crate) fn from_record<R: DeserializeOwned>(schema: &str, step: Step, text: &str) -> serde_json::Result<R> {
    if schema != BEFORE {
        return serde_json::from_str(text);
    }
    let mut record: Value = serde_json::from_str(text)?;
    record["schema"] = SCHEMA.into();
    for cell in record.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten() {
        of_cell(step, cell);
    }
    serde_json::from_value(record)
}

pub(crate) fn from_line(schema: &str, line: &str) -> serde_json::Result<StudyLine> {
    if schema != BEFORE {
        return serde_json::from_str(line);
    }
    let mut value: Value = serde_json::from_str(line)?;
    // A later version may have resumed the run: then lines of this schema follow a head of the old one.
    let is_before =
        |line: &&mut Map<String, Value>| line.get("line") == Some(&"cell".into()) && !line.contains_key("measured");
    if let Some(cell) = value.as_object_mut().filter(is_before) {
        of_study_cell(cell);
    }
    serde_json::from_value(value)
}

/// The field named after the experiment becomes `measured`.
fn of_study_cell(cell: &mut Map<String, Value>) {
    for step in Step::ALL {
        let name = if step == Step::Inspect { "inspection" } else { step.name() };
        let Some(mut measured) = cell.remove(name).filter(|found| !found.is_null() && *found != Value::Array(vec![]))
        else {
            continue;
        };
        match &mut measured {
            Value::Array(cells) => cells.iter_mut().for_each(|cell| of_cell(step, cell)),
            one => of_cell(step, one),
        }
        cell.insert("measured".to_owned(), [(step.name().to_owned(), measured)].into_iter().collect());
    }
}

fn of_cell(step: Step, cell: &mut Value) {
    let Some(cell) = cell.as_object_mut() else { return };
    match step {
        Step::Inspect | Step::Trace => return,
        Step::Checkpoint => with_tiers(cell),
        Step::Ingest | Step::Probe | Step::Workload => with_medium(cell, false),
        Step::Train => with_medium(cell, true),
    }
    if let Some(saved) = cell.get_mut("checkpoints").and_then(Value::as_object_mut) {
        with_tiers(saved);
    }
    if step == Step::Workload {
        of_workload(cell);
    }
}

/// Moves the medium's fields into one object. A training's cache state was that of one of its runs.
fn with_medium(cell: &mut Map<String, Value>, is_of_one: bool) {
    let mut medium = taken(cell, [("storage", "storage"), ("tier", "tier"), ("tier_kind", "kind"), ("cache", "cache")]);
    let mut evidence: Vec<Value> = Vec::new();
    let own = cell.remove("evidence");
    for repeat in cell.get_mut("samples").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(repeat) = repeat.as_object_mut() else { continue };
        let state = repeat.remove("cache").unwrap_or_default();
        evidence.extend(repeat.remove("evidence").filter(|_| !state.is_null()));
        if is_of_one && !state.is_null() && Some(&state) != medium.get("cache") {
            medium.insert("cache".to_owned(), "mixed".into());
        }
    }
    if evidence.is_empty() {
        evidence.extend(own.filter(|_| medium.get("cache").is_some_and(|state| !state.is_null())));
    }
    medium.insert("evidence".to_owned(), evidence.into());
    cell.insert("medium".to_owned(), medium.into());
}

fn with_tiers(cell: &mut Map<String, Value>) {
    let medium = taken(cell, [("storage", "storage"), ("tier", "tier"), ("tier_kind", "kind")]);
    let burst = [("burst_storage", "storage"), ("burst_tier", "tier"), ("burst_tier_kind", "kind")];
    let burst = taken(cell, burst);
    cell.insert("medium".to_owned(), medium.into());
    if !burst.is_empty() {
        cell.insert("burst".to_owned(), burst.into());
    }
}

/// Skips fields that are missing or null.
fn taken<const N: usize>(cell: &mut Map<String, Value>, names: [(&str, &str); N]) -> Map<String, Value> {
    let known = names.into_iter().filter_map(|(old, new)| Some((new.to_owned(), cell.remove(old)?)));
    known.filter(|(_, value)| !value.is_null()).collect()
}

/// Percentages become fractions, and the wait for a slot gets its name from training.
fn of_workload(cell: &mut Map<String, Value>) {
    of_workload_totals(cell);
    for name in ["runs", "epochs_of"] {
        for part in cell.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            part.as_object_mut().into_iter().for_each(of_workload_totals);
        }
    }
    for judged in cell.get_mut("judged").and_then(Value::as_array_mut).into_iter().flatten() {
        for name in ["value", "limit"] {
            judged.get_mut(name).into_iter().for_each(percent_to_share);
        }
    }
    if let Some(lever) = cell.get_mut("lever").and_then(|lever| lever.get_mut("name")).filter(|name| *name == "queue") {
        *lever = "order".into();
    }
    if let Some(place) = cell.get_mut("checkpoint_place").and_then(Value::as_object_mut) {
        let medium = taken(place, [("file_system", "storage"), ("tier", "tier"), ("tier_kind", "kind")]);
        place.insert("medium".to_owned(), medium.into());
    }
}

fn of_workload_totals(totals: &mut Map<String, Value>) {
    for name in ["au_epoch", "au_steady", "au_dlio", "au_eval"] {
        totals.get_mut(name).into_iter().for_each(percent_to_share);
    }
    if let Some(causes) = totals.get_mut("stall_by_cause").and_then(Value::as_object_mut) {
        let queue = causes.remove("queue");
        causes.extend(queue.map(|seconds| ("order".to_owned(), seconds)));
    }
}

fn percent_to_share(value: &mut Value) {
    if let Some(percent) = value.as_f64() {
        *value = (percent / 100.0).into();
    }
}
