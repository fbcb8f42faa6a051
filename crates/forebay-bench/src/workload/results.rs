//! DLIO's own result files, so that what reads them goes on working: `summary.json` by the first process, `<rank>_output.json` and
//! `<rank>_per_epoch_stats.json` for every accelerator, which are DLIO's ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use forebay_record::{Record, WorkloadCell, WorkloadSave};
use forebay_workload::{Workload, metric};
use serde_json::{Map, Value, json};

use super::cell::Known;
use super::run::Error;
use super::times::{Epoch, Saved};
use super::told::Told;
use super::totals::{blocks, dlio_of};
use crate::local_time;

const GIB: f64 = (1_u64 << 30) as f64;

/// The first process's view of all of them.
type All<'a> = (&'a Record<WorkloadCell>, &'a [Told]);

/// Writes this process's files into a folder, which is made where it is not there.
pub(super) fn write(
    out: &Path,
    known: &Known<'_>,
    started_at: SystemTime,
    told: &Told,
    all: Option<All<'_>>,
) -> Result<(), Error> {
    let failed = |source| Error::Io { what: "making", path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(failed)?;
    let time = Times { started_at };
    let accelerators: BTreeSet<u64> = told.epochs.iter().map(|epoch| epoch.accelerator).collect();
    let saving: BTreeSet<u64> = told.saves.iter().map(|saved| saved.accelerator).collect();
    for accelerator in accelerators.union(&saving) {
        let output = output(known, told, *accelerator);
        write_json(&out.join(format!("{accelerator}_output.json")), &output)?;
        let stats = stats(&time, told, *accelerator);
        write_json(&out.join(format!("{accelerator}_per_epoch_stats.json")), &stats)?;
    }
    match all {
        Some((record, all)) => write_json(&out.join("summary.json"), &summary(known, &time, record, all)),
        None => Ok(()),
    }
}

fn write_json(path: &Path, value: &Value) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).expect("a value has only text keys");
    std::fs::write(path, text + "\n").map_err(|source| Error::Io { what: "writing", path: path.to_owned(), source })
}

/// Moments of the run as DLIO writes them: local time, to the microsecond.
struct Times {
    started_at: SystemTime,
}

impl Times {
    fn at(&self, ns: u64) -> String {
        local_time::iso(self.started_at + Duration::from_nanos(ns))
    }

    /// Start, end and duration of something.
    fn span(&self, start_ns: u64, end_ns: u64) -> Map<String, Value> {
        let mut span = Map::new();
        span.insert("start".to_owned(), self.at(start_ns).into());
        span.insert("end".to_owned(), self.at(end_ns).into());
        span.insert("duration".to_owned(), format!("{:.2}", (end_ns - start_ns) as f64 / 1e9).into());
        span
    }
}

/// What a host is, in DLIO's keys.
fn host(known: &Known<'_>, told: &Told) -> Map<String, Value> {
    let mut host = Map::new();
    host.insert("host_memory_GB".to_owned(), told.memory_bytes.map(|bytes| bytes as f64 / GIB).into());
    host.insert("host_cpu_count".to_owned(), told.n_online.into());
    host.insert("host_processor_name".to_owned(), "".into());
    host.insert("potential_caching".to_owned(), caches(known, told, 1).into());
    host
}

/// Whether a host's share of the data fits in its memory, as a number.
fn caches(known: &Known<'_>, told: &Told, n_hosts: u64) -> u8 {
    let bytes = known.totals.bytes_train / n_hosts.max(1);
    u8::from(told.memory_bytes.is_some_and(|memory| bytes <= memory))
}

/// `<rank>_output.json`.
fn output(known: &Known<'_>, told: &Told, accelerator: u64) -> Value {
    let mut file = host(known, told);
    file.insert("hostname".to_owned(), told.process.host.clone().into());
    for epoch in told.epochs.iter().filter(|epoch| epoch.accelerator == accelerator) {
        file.insert(epoch.epoch.to_string(), epoch_output(known, epoch));
    }
    file.into()
}

/// The steps of one epoch, block by block.
fn epoch_output(known: &Known<'_>, epoch: &Epoch) -> Value {
    let workload = &known.plan.workload;
    let mut file: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut put = |key: &'static str, name: &str, value: Value| {
        file.entry(key).or_default().insert(name.to_owned(), value);
    };
    for (i, block) in blocks(epoch).iter().enumerate() {
        let name = format!("block{}", i + 1);
        let dlio = dlio_of_block(workload, known.totals.steps_per_epoch, block);
        let proc: Vec<f64> = block.load_s.iter().zip(&block.compute_s).map(|(load, compute)| load + compute).collect();
        put("load", &name, json!(block.load_s));
        put("proc", &name, json!(proc));
        put("compute", &name, json!(block.compute_s));
        put("throughput", &name, json!(dlio.samples_per_s));
        put("au", &name, json!(dlio.au));
    }
    if let Some(done) = &epoch.evaluated {
        let seconds = |ns: &[u64]| ns.iter().map(|ns| *ns as f64 / 1e9).collect::<Vec<f64>>();
        let (load, compute, wall_s) = (seconds(&done.load), seconds(&done.compute), done.wall_ns as f64 / 1e9);
        put("proc", "eval", json!(load.iter().zip(&compute).map(|(load, compute)| load + compute).collect::<Vec<_>>()));
        put("au", "eval", json!(metric::au_epoch(compute.iter().sum(), wall_s)));
        put("throughput", "eval", json!(done.samples as f64 / wall_s.max(1e-9)));
        put("load", "eval", json!(load));
        put("compute", "eval", json!(compute));
    }
    json!(file)
}

fn dlio_of_block(workload: &Workload, n_steps: u64, block: &metric::Block) -> metric::Dlio {
    let limits = &workload.limits;
    metric::dlio(block, workload.reader.batch_size, limits.exclude_start_steps, limits.exclude_end_steps, n_steps)
}

/// `<rank>_per_epoch_stats.json`. A run that only saves is DLIO's first epoch.
fn stats(time: &Times, told: &Told, accelerator: u64) -> Value {
    let mut file = Map::new();
    for epoch in told.epochs.iter().filter(|epoch| epoch.accelerator == accelerator) {
        let end_ns = epoch.evaluated.as_ref().map_or(0, |done| done.start_ns + done.wall_ns);
        let mut entry = time.span(epoch.start_ns, end_ns.max(epoch.start_ns + epoch.wall_ns()));
        for (i, block) in epoch.blocks.iter().enumerate() {
            entry.insert(format!("block{}", i + 1), time.span(block.start_ns, block.end_ns).into());
        }
        if let Some(done) = &epoch.evaluated {
            entry.insert("eval".to_owned(), time.span(done.start_ns, done.start_ns + done.wall_ns).into());
        }
        file.insert(epoch.epoch.to_string(), entry.into());
    }
    let (mut n_saved, mut n_loaded) = (BTreeMap::new(), BTreeMap::new());
    for saved in told.saves.iter().filter(|saved| saved.accelerator == accelerator) {
        let epoch = saved.epoch.max(1).to_string();
        let counts = if saved.is_restore { &mut n_loaded } else { &mut n_saved };
        let n: &mut u64 = counts.entry(epoch.clone()).or_insert(0);
        *n += 1;
        let name = format!("{}{n}", if saved.is_restore { "load_ckpt" } else { "save_ckpt" });
        let entry = file.entry(epoch).or_insert_with(|| Map::new().into());
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(name, checkpoint(time, saved));
        }
    }
    file.into()
}

fn checkpoint(time: &Times, saved: &Saved) -> Value {
    let mut span = time.span(saved.start_ns, saved.start_ns + saved.ns);
    span.insert("throughput".to_owned(), (saved.bytes as f64 / GIB / (saved.ns.max(1) as f64 / 1e9)).into());
    span.into()
}

/// `summary.json`.
fn summary(known: &Known<'_>, time: &Times, record: &Record<WorkloadCell>, all: &[Told]) -> Value {
    let workload = &known.plan.workload;
    let hosts: BTreeMap<&str, &Told> = all.iter().map(|told| (told.process.host.as_str(), told)).collect();
    let of_hosts = |value: &dyn Fn(&Told) -> Value| hosts.values().map(|told| value(told)).collect::<Vec<Value>>();
    let n_hosts = hosts.len().max(1) as u64;
    let ends = all.iter().flat_map(|told| {
        let epochs = told.epochs.iter().map(|epoch| {
            let evaluated = epoch.evaluated.as_ref().map_or(0, |done| done.start_ns + done.wall_ns);
            evaluated.max(epoch.start_ns + epoch.wall_ns())
        });
        epochs.chain(told.saves.iter().map(|saved| saved.start_ns + saved.ns))
    });
    json!({
        "start": time.at(0),
        "end": time.at(ends.max().unwrap_or(0)),
        "num_accelerators": known.totals.accelerators,
        "num_hosts": n_hosts,
        "hostname": all.first().map(|told| told.process.host.clone()).unwrap_or_default(),
        "metric": metrics(known, record, all),
        "num_files_train": workload.dataset.n_files_train,
        "num_files_eval": workload.dataset.n_files_eval,
        "num_samples_per_file": workload.dataset.n_samples_per_file,
        "host_cpu_count": of_hosts(&|told| told.n_online.into()),
        "host_processor_name": record.environment.cpu.clone().unwrap_or_default(),
        "potential_caching": of_hosts(&|told| caches(known, told, n_hosts).into()),
        "host_memory_GB": of_hosts(&|told| told.memory_bytes.map(|bytes| bytes as f64 / GIB).into()),
        "data_size_per_host_GB": known.totals.bytes_train as f64 / n_hosts as f64 / GIB,
        "epochs": workload.train.epochs,
    })
}

fn metrics(known: &Known<'_>, record: &Record<WorkloadCell>, all: &[Told]) -> Value {
    let mut metrics = Map::new();
    let epochs = || all.iter().flat_map(|told| &told.epochs);
    let length = known.plan.workload.dataset.record_length_bytes;
    let limit = 100.0 * known.plan.workload.limits.au;
    let train = epochs().filter_map(|epoch| {
        let dlio = dlio_of(&known.plan.workload, known.totals.steps_per_epoch, epoch)?;
        Some((epoch.epoch, dlio.au, dlio.samples_per_s))
    });
    put_phase(&mut metrics, "train", train, length, limit);
    let eval = epochs().filter_map(|epoch| {
        let done = epoch.evaluated.as_ref().filter(|done| done.wall_ns > 0)?;
        let wall_s = done.wall_ns as f64 / 1e9;
        let au = metric::au_epoch(done.compute.iter().sum::<u64>() as f64 / 1e9, wall_s)?;
        Some((epoch.epoch, au, done.samples as f64 / wall_s))
    });
    put_phase(&mut metrics, "eval", eval, length, limit);
    let saves = record.cells.iter().flat_map(|cell| &cell.saves);
    let (restores, saves): (Vec<_>, Vec<_>) = saves.partition(|save| save.is_restore);
    put_checkpoints(&mut metrics, "save", &saves);
    put_checkpoints(&mut metrics, "load", &restores);
    if let Some(save) = saves.first().or(restores.first()) {
        metrics.insert("checkpoint_size_GB".to_owned(), (save.bytes as f64 / GIB).into());
    }
    metrics.into()
}

/// Utilisation and rate by epoch, of each accelerator's, with their means and deviations over epochs.
fn put_phase(
    metrics: &mut Map<String, Value>,
    phase: &str,
    of: impl Iterator<Item = (u64, f64, f64)>,
    record_length: f64,
    limit: f64,
) {
    let mut by_epoch: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    of.for_each(|(epoch, au, rate)| by_epoch.entry(epoch).or_default().push((au, rate)));
    let au: Vec<f64> = by_epoch.values().map(|of| of.iter().map(|(au, _)| au).sum::<f64>() / of.len() as f64).collect();
    let rate: Vec<f64> = by_epoch.values().map(|of| of.iter().map(|(_, rate)| rate).sum()).collect();
    let (Some((au_mean, au_stdev)), Some((rate_mean, rate_stdev))) = (moments(&au), moments(&rate)) else { return };
    let mib = record_length / f64::from(1 << 20);
    let verdict = if au_mean >= limit { "success" } else { "fail" };
    let entries = [
        ("au_percentage", json!(au)),
        ("au_mean_percentage", json!(au_mean)),
        ("au_meet_expectation", json!(verdict)),
        ("au_stdev_percentage", json!(au_stdev)),
        ("throughput_samples_per_second", json!(rate)),
        ("throughput_mean_samples_per_second", json!(rate_mean)),
        ("throughput_stdev_samples_per_second", json!(rate_stdev)),
        ("io_mean_MB_per_second", json!(rate_mean * mib)),
        ("io_stdev_MB_per_second", json!(rate_stdev * mib)),
    ];
    metrics.extend(entries.map(|(key, value)| (format!("{phase}_{key}"), value)));
}

/// By DLIO's keys, but with the time of the slowest rank, as MLPerf Storage asks for.
fn put_checkpoints(metrics: &mut Map<String, Value>, what: &str, saves: &[&WorkloadSave]) {
    let taken: Vec<f64> = saves.iter().map(|save| save.seconds).collect();
    let rates: Vec<f64> = saves.iter().map(|save| save.bytes as f64 / GIB / save.seconds.max(1e-9)).collect();
    let (Some((rate, rate_stdev)), Some((time, time_stdev))) = (moments(&rates), moments(&taken)) else { return };
    let entries = [
        ("io_mean_GB_per_second", rate),
        ("io_stdev_GB_per_second", rate_stdev),
        ("duration_mean_seconds", time),
        ("duration_stdev_seconds", time_stdev),
    ];
    metrics.extend(entries.map(|(key, value)| (format!("{what}_checkpoint_{key}"), value.into())));
}

/// Mean and population deviation.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    Some((mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt()))
}
