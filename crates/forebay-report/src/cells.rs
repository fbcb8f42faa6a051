//! Every cell in a line: its value, how sure it is, where its bytes came from, and what it cost.

use forebay_record::{CacheEvidence, CacheState, IngestCell, ProbeCell, StudyCell};

use crate::data::{Data, Value};
use crate::level;
use crate::number::{microseconds, percent, quantity, seconds};
use crate::order::Order;
use crate::run::{Run, levels_of_probe};
use crate::table::Align::{Left, Right};

/// The table of an experiment's cells, or of all.
pub(crate) fn table(run: &Run<'_>, experiment: Option<&str>) -> Data {
    let mut data = Data::new(&[
        ("experiment", "experiment", Left),
        ("at", "cell", Left),
        ("images_per_s", "images/s", Right),
        ("mb_per_s", "MB/s", Right),
        ("iops", "requests/s", Right),
        ("spread", "±", Right),
        ("repeats", "repeats", Right),
        ("cache", "cache", Left),
        ("from_memory", "from memory", Right),
        ("resident_before", "in memory before", Right),
        ("cpu_s_per_1000", "CPU s/1,000", Right),
        ("efficiency", "of ceiling", Right),
        ("p99_us", "p99", Right),
        ("failed_samples", "failed samples", Right),
        ("elapsed_s", "took", Right),
        ("error", "failed", Left),
    ]);
    let mut cells: Vec<&StudyCell> =
        run.study.cells.iter().filter(|cell| experiment.is_none_or(|name| cell.experiment == name)).collect();
    let order = Order::of(run);
    cells.sort_by(|a, b| order.compare(a, b));
    for cell in cells {
        match (&cell.ingest, cell.probe.as_slice()) {
            (Some(ingest), _) if cell.error.is_none() => data.row(of_ingest(cell, ingest)),
            (_, probes @ [_, ..]) if cell.error.is_none() => {
                probes.iter().for_each(|probe| data.row(of_probe(cell, probe)))
            }
            _ => data.row(of_failed(cell)),
        }
    }
    data.hide_if_same("experiment");
    data
}

/// A cache state in a word.
pub(crate) fn cache(state: CacheState) -> &'static str {
    match state {
        CacheState::Cold => "cold",
        CacheState::Warm => "warm",
        CacheState::Mixed => "mixed",
    }
}

/// The shares of the repeats' bytes that came from memory, and that were there before: the largest of each.
fn evidence<'a>(repeats: impl Iterator<Item = &'a CacheEvidence> + Clone) -> [Value; 2] {
    let most = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(None, |most: Option<f64>, value| Some(most.map_or(value, |m| m.max(value))))
    };
    // Read-ahead may fetch more than was read; no byte came from memory then.
    let from_memory =
        most(&mut repeats.clone().filter_map(|evidence| evidence.from_memory().map(|share| share.max(0.0))));
    let before = most(&mut repeats.filter_map(|evidence| evidence.resident_before));
    [Value::maybe(from_memory, percent), Value::maybe(before, percent)]
}

fn took(cell: &StudyCell) -> Value {
    if cell.elapsed_s > 0.0 { Value::number(cell.elapsed_s, seconds) } else { Value::Unknown }
}

fn of_ingest(cell: &StudyCell, ingest: &IngestCell) -> Vec<Value> {
    let [from_memory, before] = evidence(ingest.samples.iter().map(|repeat| &repeat.evidence));
    vec![
        Value::text(cell.experiment.clone()),
        Value::text(level::all(&cell.factors)),
        Value::number(ingest.images_per_s, quantity),
        Value::number(ingest.mb_per_s, quantity),
        Value::Unknown,
        Value::maybe(ingest.spread, |spread| format!("{:.1} %", spread * 100.0)),
        Value::count(ingest.samples.len() as u64),
        Value::text(cache(ingest.cache)),
        from_memory,
        before,
        Value::number(ingest.cpu_s_per_1000, |seconds| format!("{seconds:.3}")),
        Value::maybe(cell.metric("efficiency").map(|metric| metric.value), percent),
        Value::Unknown,
        if ingest.failed_samples > 0 { Value::count(ingest.failed_samples) } else { Value::Unknown },
        took(cell),
        Value::Unknown,
    ]
}

fn of_probe(cell: &StudyCell, probe: &ProbeCell) -> Vec<Value> {
    let mut levels = levels_of_probe(probe);
    levels.extend(cell.factors.clone());
    let [from_memory, before] = evidence(probe.samples.iter().map(|repeat| &repeat.evidence));
    vec![
        Value::text(cell.experiment.clone()),
        Value::text(level::all(&levels)),
        Value::Unknown,
        Value::number(probe.mb_per_s, quantity),
        Value::number(probe.iops, quantity),
        Value::maybe(probe.spread, |spread| format!("{:.1} %", spread * 100.0)),
        Value::count(probe.samples.len() as u64),
        Value::text(cache(probe.cache)),
        from_memory,
        before,
        Value::Unknown,
        Value::Unknown,
        Value::number(probe.latency_us.p99, microseconds),
        Value::Unknown,
        took(cell),
        Value::Unknown,
    ]
}

fn of_failed(cell: &StudyCell) -> Vec<Value> {
    let mut row = vec![Value::Unknown; 16];
    row[0] = Value::text(cell.experiment.clone());
    row[1] = Value::text(level::all(&cell.factors));
    row[14] = took(cell);
    row[15] = Value::text(cell.error.clone().unwrap_or("nothing was measured".to_owned()));
    row
}
