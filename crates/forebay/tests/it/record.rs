//! The record of an ingest run, as a script reads it.

use serde_json::Value;

use crate::dir::Dir;

/// Runs ingest and takes its record from stdout.
pub(crate) fn of(dir: &Dir, flags: &str) -> Value {
    let stdout = dir.met(&format!("ingest {flags} --json -"));
    let record = serde_json::from_str(&stdout);
    record.unwrap_or_else(|error| panic!("stdout is not pure JSON: {error}\n{stdout}"))
}

/// The first cell of the record of a run.
pub(crate) fn cell_of(dir: &Dir, flags: &str) -> Value {
    of(dir, flags)["cells"][0].take()
}

/// What a reader must know of a run.
pub(crate) fn notes(record: &Value) -> Vec<&str> {
    record["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
}

pub(crate) fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} is no number: {value}"))
}

/// Images a second of the fastest repeat: a busy machine only ever slows one down.
pub(crate) fn best_rate(cell: &Value) -> f64 {
    let rates = cell["samples"].as_array().unwrap().iter();
    rates.map(|sample| number(sample, "images") / number(sample, "wall_s")).fold(0.0, f64::max)
}

/// All seconds of the workers.
pub(crate) fn worker_seconds(cell: &Value) -> f64 {
    cell["worker_time"].as_object().unwrap().values().map(|seconds| seconds.as_f64().unwrap()).sum()
}

/// Name and reason of the samples that failed, in the record's order.
pub(crate) fn failures(cell: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let failures = cell["failures"].as_array().unwrap();
    failures.iter().map(|failure| (text(&failure["name"]), text(&failure["reason"]))).collect()
}
