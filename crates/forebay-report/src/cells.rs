//! Every cell in a line: its value, how sure it is, where its bytes came from, and what it cost.

use forebay_record::{
    CacheEvidence, CacheState, CheckpointCell, CheckpointPlace, IngestCell, Inspection, ProbeCell, StudyCell,
    TrainCell, WorkloadCell,
};
use forebay_units::Summary;

use crate::data::{Data, Value};
use crate::level;
use crate::number::{self, brief_seconds, microseconds, percent, quantity, seconds, times};
use crate::order::Order;
use crate::run::{self, Run, levels_of_probe};
use crate::saves;
use crate::stall;
use crate::table::Align::{Left, Right};

/// The table of an experiment's cells, or of all.
pub(crate) fn table(run: &Run<'_>, experiment: Option<&str>) -> Data {
    let mut data = Data::new(&[
        ("experiment", "experiment", Left),
        ("at", "cell", Left),
        ("wall_s", "wall clock", Right),
        ("images_per_s", "images/s", Right),
        ("samples_per_s", "samples/s", Right),
        ("mb_per_s", "MB/s", Right),
        ("iops", "requests/s", Right),
        ("spread", "±", Right),
        ("repeats", "repeats", Right),
        ("cache", "cache", Left),
        ("from_memory", "from memory", Right),
        ("resident_before", "in memory before", Right),
        ("cpu_s_per_1000", "CPU s/1,000", Right),
        ("efficiency", "of ceiling", Right),
        ("wait_s", "wait", Right),
        ("wait_share", "wait after 1st batch", Right),
        ("au_epoch", "AU", Right),
        ("au_steady", "AU, steady", Right),
        ("au_dlio", "AU as DLIO", Right),
        ("steps_per_epoch", "steps an epoch", Right),
        ("first_batch_s", "first batch", Right),
        ("barrier_s", "barriers", Right),
        ("mb_per_s_device", "MB/s from device", Right),
        ("dlio_mib_per_s", "MiB/s as DLIO", Right),
        ("io_cost_s", "cost of I/O", Right),
        ("bytes", "state", Right),
        ("stall_s", "stall", Right),
        ("durable_fast_s", "durable, first tier", Right),
        ("durable_slow_s", "durable, last tier", Right),
        ("save_mb_per_s", "saves, MB/s", Right),
        ("save_efficiency", "saves, of ceiling", Right),
        ("restore_mb_per_s", "restores, MB/s", Right),
        ("restore_efficiency", "restores, of ceiling", Right),
        ("stall_over_copy", "stall over a copy", Right),
        ("memory_bytes", "memory beyond the state", Right),
        ("checkpoints", "checkpoints", Right),
        ("checkpoint_s", "for checkpoints", Right),
        ("checkpoint_place", "checkpoints in", Left),
        ("drain_after_s", "drained after the end", Right),
        ("not_saved", "not saved", Right),
        ("resumed_from", "resumed from step", Right),
        ("lever", "lever", Left),
        ("n_samples", "samples", Right),
        ("total_bytes", "bytes", Right),
        ("median_bytes", "median size", Right),
        ("mean_bytes", "mean size", Right),
        ("p99_us", "p99", Right),
        ("failed_samples", "failed samples", Right),
        ("elapsed_s", "took", Right),
        ("error", "failed", Left),
        ("left_out", "left out", Left),
    ]);
    let mut cells: Vec<&StudyCell> =
        run.study.cells.iter().filter(|cell| experiment.is_none_or(|name| cell.experiment == name)).collect();
    let order = Order::of(run);
    cells.sort_by(|a, b| order.compare(a, b));
    for cell in cells {
        let known: Vec<Vec<(&str, Value)>> = match cell {
            _ if !cell.is_measured() => Vec::new(),
            StudyCell { workload: Some(workload), .. } => vec![of_workload(cell, workload)],
            StudyCell { ingest: Some(ingest), .. } => vec![of_ingest(cell, ingest)],
            StudyCell { train: Some(train), .. } => vec![of_train(cell, train)],
            StudyCell { checkpoint: Some(saved), .. } => vec![of_checkpoint(cell, saved)],
            StudyCell { inspection: Some(found), .. } => vec![of_inspection(found)],
            _ => cell.probe.iter().map(|probe| of_probe(cell, probe)).collect(),
        };
        let any = of_any(run, cell);
        if known.is_empty() {
            let why = match (&cell.error, &cell.left_out) {
                (Some(error), _) => ("error", Value::text(error.clone())),
                (None, Some(reason)) => ("left_out", Value::text(reason.clone())),
                (None, None) => ("error", Value::text("nothing was measured")),
            };
            data.row_of([any.clone(), vec![why]].concat());
        }
        known.into_iter().for_each(|known| data.row_of([any.clone(), known].concat()));
    }
    data.hide_if_same("experiment");
    // The share says as much to people.
    data.hide("wait_s");
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

/// What every cell has.
fn of_any(run: &Run<'_>, cell: &StudyCell) -> Vec<(&'static str, Value)> {
    let took = if cell.elapsed_s > 0.0 { Value::number(cell.elapsed_s, seconds) } else { Value::Unknown };
    vec![
        ("experiment", Value::text(cell.experiment.clone())),
        ("at", Value::text(run.name_of(cell))),
        ("elapsed_s", took),
    ]
}

fn spread(share: Option<f64>) -> Value {
    Value::maybe(share, |share| format!("{:.1} %", share * 100.0))
}

fn failed(n: u64) -> Value {
    if n > 0 { Value::count(n) } else { Value::Unknown }
}

fn of_ingest(cell: &StudyCell, ingest: &IngestCell) -> Vec<(&'static str, Value)> {
    let [from_memory, before] = evidence(ingest.samples.iter().map(|repeat| &repeat.evidence));
    vec![
        ("images_per_s", Value::number(ingest.images_per_s, quantity)),
        ("mb_per_s", Value::number(ingest.mb_per_s, quantity)),
        ("spread", spread(ingest.spread)),
        ("repeats", Value::count(ingest.samples.len() as u64)),
        ("cache", Value::text(cache(ingest.cache))),
        ("from_memory", from_memory),
        ("resident_before", before),
        ("cpu_s_per_1000", Value::number(ingest.cpu_s_per_1000, |seconds| format!("{seconds:.3}"))),
        ("efficiency", Value::maybe(cell.metric("efficiency").map(|metric| metric.value), percent)),
        ("failed_samples", failed(ingest.failed_samples)),
    ]
}

/// Every quantity is the median of the runs.
fn of_train(cell: &StudyCell, train: &TrainCell) -> Vec<(&'static str, Value)> {
    let [from_memory, before] = evidence(train.samples.iter().map(|run| &run.evidence));
    let totals = &train.totals;
    let median = |name: &str, show: fn(f64) -> String| Value::maybe(run::metric(cell, name).map(|of| of.value), show);
    vec![
        ("wall_s", median("wall_s", seconds)),
        ("images_per_s", median("images_per_s", quantity)),
        ("mb_per_s", if totals.bytes > 0 { median("mb_per_s", quantity) } else { Value::Unknown }),
        ("spread", spread(train.spread)),
        ("repeats", Value::count(train.samples.len() as u64)),
        ("cache", Value::text(totals.cache.map(cache).unwrap_or_default())),
        ("from_memory", from_memory),
        ("resident_before", before),
        ("wait_s", median("wait_s", seconds)),
        ("wait_share", median("wait_share", percent)),
        ("au_epoch", median("au_epoch", percent)),
        ("io_cost_s", median("io_cost_s", cost)),
        ("lever", Value::text(train.lever.name.clone())),
        ("failed_samples", failed(totals.failed)),
        ("resumed_from", train.resumed_from.map_or(Value::Unknown, Value::count)),
        ("checkpoints", train.checkpoints.as_ref().map_or(Value::Unknown, |of| Value::count(of.n_made()))),
        ("not_saved", train.checkpoints.as_ref().map_or(Value::Unknown, |of| failed(saves::not_saved(of)))),
        ("checkpoint_s", median("checkpoint_s", seconds)),
        ("stall_s", median("stall_s", brief_seconds)),
        ("drain_after_s", median("drain_after_s", seconds)),
    ]
}

/// The runs of a workload: medians, and of the one in the middle what is of one; times are of all accelerators together where
/// they are sums.
fn of_workload(cell: &StudyCell, workload: &WorkloadCell) -> Vec<(&'static str, Value)> {
    let [from_memory, before] = evidence(std::iter::once(&workload.evidence));
    let totals = &workload.totals;
    let value = |name: &str, show: fn(f64) -> String| Value::maybe(run::metric(cell, name).map(|of| of.value), show);
    let n_saves = workload.saves.iter().filter(|save| !save.is_restore).count() as u64;
    let place = workload.checkpoint_place.as_ref().filter(|_| !workload.saves.is_empty());
    vec![
        ("wall_s", value("wall_s", seconds)),
        ("samples_per_s", value("samples_per_s", quantity)),
        ("mb_per_s", value("mb_per_s_moved", quantity)),
        ("spread", spread(run::spread_of_workload(workload))),
        ("repeats", Value::count(workload.runs.len().max(1) as u64)),
        ("cache", Value::text(workload.cache.map(cache).unwrap_or_default())),
        ("from_memory", from_memory),
        ("resident_before", before),
        ("wait_s", Value::number(totals.wait_s, seconds)),
        ("au_epoch", value("au_epoch", percent)),
        ("au_steady", value("au_steady", percent)),
        ("au_dlio", value("au_dlio", percent)),
        ("steps_per_epoch", Value::count(workload.steps_per_epoch)),
        ("first_batch_s", value("first_batch_s", brief_seconds)),
        ("barrier_s", value("barrier_s", seconds)),
        ("mb_per_s_device", value("mb_per_s_device", quantity)),
        ("dlio_mib_per_s", value("dlio_mib_per_s", quantity)),
        ("checkpoints", if n_saves > 0 { Value::count(n_saves) } else { Value::Unknown }),
        ("checkpoint_s", if n_saves > 0 { Value::number(totals.checkpoint_s, seconds) } else { Value::Unknown }),
        ("checkpoint_place", Value::text(place.map(CheckpointPlace::describe).unwrap_or_default())),
        ("lever", Value::text(workload.lever.name.clone())),
        ("failed_samples", failed(workload.failures.len() as u64)),
    ]
}

fn of_checkpoint(cell: &StudyCell, saved: &CheckpointCell) -> Vec<(&'static str, Value)> {
    let median = |name: &str, show: fn(f64) -> String| Value::maybe(run::metric(cell, name).map(|of| of.value), show);
    let bytes = |n: u64| Value::Number(n as f64, number::bytes(n));
    vec![
        ("bytes", bytes(saved.bytes)),
        ("stall_s", median("stall_s", brief_seconds)),
        ("durable_fast_s", median("durable_fast_s", brief_seconds)),
        ("durable_slow_s", median("durable_slow_s", brief_seconds)),
        ("save_mb_per_s", median("save_mb_per_s", quantity)),
        ("save_efficiency", median("efficiency", percent)),
        ("restore_mb_per_s", median("restore_mb_per_s", quantity)),
        ("restore_efficiency", median("restore_efficiency", percent)),
        ("stall_over_copy", Value::maybe(stall::over_copy(saved), times)),
        ("memory_bytes", saved.memory_bytes.map_or(Value::Unknown, bytes)),
        ("spread", spread(saved.spread)),
        ("repeats", Value::count(saved.samples.len() as u64)),
    ]
}

/// A difference of two times: below a millisecond it is nothing.
fn cost(seconds: f64) -> String {
    match seconds.abs() {
        ..0.0005 => "0.000 s".to_owned(),
        size @ ..0.9995 => format!("{}{size:.3} s", if seconds < 0.0 { "−" } else { "" }),
        _ => format!("{} s", quantity(seconds)),
    }
}

fn of_inspection(found: &Inspection) -> Vec<(&'static str, Value)> {
    let size = |of: fn(&Summary) -> f64| {
        let value = found.sizes.as_ref().map(of);
        Value::maybe(value, |bytes| number::bytes(bytes.round() as u64))
    };
    vec![
        ("n_samples", Value::count(found.n_samples)),
        ("total_bytes", Value::Number(found.total_bytes.0 as f64, number::bytes(found.total_bytes.0))),
        ("median_bytes", size(|sizes| sizes.median)),
        ("mean_bytes", size(|sizes| sizes.mean)),
        ("failed_samples", failed(found.n_bad)),
    ]
}

fn of_probe(cell: &StudyCell, probe: &ProbeCell) -> Vec<(&'static str, Value)> {
    let mut levels = levels_of_probe(probe);
    levels.extend(cell.factors.clone());
    let [from_memory, before] = evidence(probe.samples.iter().map(|repeat| &repeat.evidence));
    vec![
        ("at", Value::text(level::all(&levels))),
        ("mb_per_s", Value::number(probe.mb_per_s, quantity)),
        ("iops", Value::number(probe.iops, quantity)),
        ("spread", spread(probe.spread)),
        ("repeats", Value::count(probe.samples.len() as u64)),
        ("cache", Value::text(cache(probe.cache))),
        ("from_memory", from_memory),
        ("resident_before", before),
        ("p99_us", Value::number(probe.latency_us.p99, microseconds)),
    ]
}
