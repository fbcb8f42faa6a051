//! DLIO's result files, for its tools: `summary.json` by the first process, `<rank>_output.json` and
//! `<rank>_per_epoch_stats.json` for every accelerator (a rank of DLIO), and the workload in `.hydra`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use forebay_record::{Record, WorkloadCell, WorkloadSave};
use forebay_workload::{Workload, dlio, metric};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cell::Known;
use super::rank_report::RankReport;
use super::run::Error;
use super::times::{Epoch, Evaluated, Saved};
use super::totals::{blocks, dlio_of};
use crate::local_time;
use forebay_ranks::{Failed, Ranks};

const GIB: f64 = (1_u64 << 30) as f64;

/// Only the first process has it.
type All<'a> = (&'a Record<WorkloadCell>, &'a [RankReport]);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Whole {
    n_hosts: u64,
    /// Per checkpoint number, over all accelerators.
    save_bytes: BTreeMap<u64, u64>,
}

impl Whole {
    /// Computed by the first process and broadcast.
    pub(super) fn agree(ranks: &dyn Ranks, all: Option<&[RankReport]>) -> Result<Self, Failed> {
        let all = all.unwrap_or_default();
        let hosts: BTreeSet<&str> = all.iter().map(|report| report.process.host.as_str()).collect();
        let mut whole = Self { n_hosts: hosts.len() as u64, save_bytes: BTreeMap::new() };
        for saved in all.iter().flat_map(|report| &report.saves) {
            *whole.save_bytes.entry(saved.number).or_insert(0) += saved.bytes;
        }
        let bytes = ranks.broadcast(serde_json::to_vec(&whole).expect("plain numbers are JSON"))?;
        Ok(serde_json::from_slice(&bytes).expect("ranks of one version write the same JSON"))
    }
}

/// Creates the folder if it is missing.
pub(super) fn write(
    out: &Path,
    known: &Known<'_>,
    setting: Setting,
    report: &RankReport,
    all: Option<All<'_>>,
) -> Result<(), Error> {
    let failed = |source| Error::Shared(forebay_measure::Error::Io { what: "making", path: out.to_owned(), source });
    std::fs::create_dir_all(out).map_err(failed)?;
    let time = setting;
    let accelerators: BTreeSet<u64> = report.epochs.iter().map(|epoch| epoch.accelerator).collect();
    let saving: BTreeSet<u64> = report.saves.iter().map(|saved| saved.accelerator).collect();
    for accelerator in accelerators.union(&saving) {
        let output = output(known, &time, report, *accelerator);
        write_json(&out.join(format!("{accelerator}_output.json")), &output)?;
        let stats = stats(&time, report, *accelerator);
        write_json(&out.join(format!("{accelerator}_per_epoch_stats.json")), &stats)?;
    }
    let Some((record, all)) = all else { return Ok(()) };
    write_hydra(&out.join(".hydra"), known, record)?;
    write_json(&out.join("summary.json"), &summary(known, &time, record, all))
}

/// Hydra's files of a DLIO run, from which tools read the batch size and the number of epochs.
fn write_hydra(dir: &Path, known: &Known<'_>, record: &Record<WorkloadCell>) -> Result<(), Error> {
    let plan = known.plan;
    let text = |path: &Path| path.display().to_string();
    // Actual locations, not those of the workload's file.
    let mut workload = plan.workload.clone();
    workload.storage_root.clear();
    workload.dataset.data_folder = text(&plan.data);
    workload.output_folder = plan.out.as_deref().map(text);
    if plan.keeps_checkpoints {
        workload.checkpoint.folder = text(&plan.checkpoints.dir);
    }
    let is_override = |word: &&String| word.trim_start_matches('+').starts_with("workload.") && word.contains('=');
    let overrides: Vec<String> = record.command_line.iter().filter(is_override).cloned().collect();
    std::fs::create_dir_all(dir)
        .map_err(|source| Error::Shared(forebay_measure::Error::Io { what: "making", path: dir.to_owned(), source }))?;
    let overrides = dlio::overrides_yaml(&workload.name, &overrides);
    for (name, text) in [("config.yaml", dlio::config_yaml(&workload)), ("overrides.yaml", overrides)] {
        let path = dir.join(name);
        std::fs::write(&path, text)
            .map_err(|source| Error::Shared(forebay_measure::Error::Io { what: "writing", path, source }))?;
    }
    Ok(())
}

fn write_json(path: &Path, value: &Value) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).expect("a value has only text keys");
    std::fs::write(path, text + "\n")
        .map_err(|source| Error::Shared(forebay_measure::Error::Io { what: "writing", path: path.to_owned(), source }))
}

#[derive(Debug)]
pub(super) struct Setting {
    pub(super) started_at: SystemTime,
    pub(super) whole: Whole,
}

impl Setting {
    /// As in DLIO: local time, to the microsecond.
    fn at(&self, ns: u64) -> String {
        local_time::iso(self.started_at + Duration::from_nanos(ns))
    }

    fn span(&self, start_ns: u64, end_ns: u64) -> Map<String, Value> {
        let mut span = Map::new();
        span.insert("start".to_owned(), self.at(start_ns).into());
        span.insert("end".to_owned(), self.at(end_ns).into());
        span.insert("duration".to_owned(), format!("{:.2}", (end_ns - start_ns) as f64 / 1e9).into());
        span
    }
}

/// With DLIO's keys.
fn host(known: &Known<'_>, report: &RankReport, n_hosts: u64) -> Map<String, Value> {
    let entries = [
        ("host_memory_GB", report.memory_bytes.map(|bytes| bytes as f64 / GIB).into()),
        ("host_cpu_count", report.n_online.into()),
        ("host_processor_name", report.host.processor_name().into()),
        ("potential_caching", caches(known, report, n_hosts).into()),
        ("host_cpuinfo", json!(report.host.cpuinfo)),
        ("host_meminfo", json!(report.host.meminfo)),
        ("hostname", report.process.host.clone().into()),
    ];
    entries.map(|(key, value): (&str, Value)| (key.to_owned(), value)).into_iter().collect()
}

/// DLIO's `potential_caching`: 1 if a host's share of the data fits into its memory.
fn caches(known: &Known<'_>, report: &RankReport, n_hosts: u64) -> u8 {
    let bytes = known.totals.bytes_train / n_hosts.max(1);
    u8::from(report.memory_bytes.is_some_and(|memory| bytes <= memory))
}

/// Content of `<rank>_output.json`.
fn output(known: &Known<'_>, time: &Setting, report: &RankReport, accelerator: u64) -> Value {
    let mut file = host(known, report, time.whole.n_hosts);
    for epoch in report.epochs.iter().filter(|epoch| epoch.accelerator == accelerator) {
        let mut entry = epoch_output(known, epoch);
        let meminfo = report.host.meminfo_by_epoch.get(epoch.epoch as usize - 1);
        entry.insert("host_meminfo".to_owned(), json!(meminfo.unwrap_or(&report.host.meminfo)));
        entry.insert("start".to_owned(), time.at(epoch.start_ns).into());
        entry.insert("end".to_owned(), time.at(epoch.start_ns + epoch.wall_ns()).into());
        file.insert(epoch.epoch.to_string(), entry.into());
    }
    file.into()
}

/// Of the epoch and its evaluation.
fn end_ns(epoch: &Epoch) -> u64 {
    let evaluated = epoch.evaluated.as_ref().map_or(0, |done| done.start_ns + done.wall_ns);
    evaluated.max(epoch.start_ns + epoch.wall_ns())
}

fn epoch_output(known: &Known<'_>, epoch: &Epoch) -> Map<String, Value> {
    let workload = &known.plan.workload;
    let mut file: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut put = |name: &str, block: &metric::Block, dlio: metric::Dlio| {
        let proc: Vec<f64> = block.load_s.iter().zip(&block.compute_s).map(|(load, compute)| load + compute).collect();
        let entries = [
            ("load", json!(block.load_s)),
            ("proc", json!(proc)),
            ("compute", json!(block.compute_s)),
            ("throughput", json!(dlio.samples_per_s)),
            ("au", json!(dlio.au)),
        ];
        for (key, value) in entries {
            file.entry(key).or_default().insert(name.to_owned(), value);
        }
    };
    for (i, block) in blocks(epoch).iter().enumerate() {
        put(&format!("block{}", i + 1), block, dlio_of_block(workload, known.totals.steps_per_epoch, block));
    }
    if let Some(done) = epoch.evaluated.as_ref().filter(|done| done.wall_ns > 0) {
        let (block, dlio) = dlio_of_evaluation(known, done);
        put("eval", &block, dlio);
    }
    file.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

/// As DLIO computes it: utilisation is per block, the rate is all samples over the whole time.
fn dlio_of_evaluation(known: &Known<'_>, done: &Evaluated) -> (metric::Block, metric::Dlio) {
    let seconds = |ns: &[u64]| ns.iter().map(|ns| *ns as f64 / 1e9).collect::<Vec<f64>>();
    let wall_s = done.wall_ns as f64 / 1e9;
    let block = metric::Block { load_s: seconds(&done.load), compute_s: seconds(&done.compute), wall_s };
    let au = dlio_of_block(&known.plan.workload, known.totals.steps_eval, &block).au;
    (block, metric::Dlio { au, samples_per_s: done.samples as f64 / wall_s })
}

fn dlio_of_block(workload: &Workload, n_steps: u64, block: &metric::Block) -> metric::Dlio {
    let limits = &workload.limits;
    metric::dlio(block, workload.reader.batch_size, limits.exclude_start_steps, limits.exclude_end_steps, n_steps)
}

/// Content of `<rank>_per_epoch_stats.json`. DLIO counts a run that only saves as its first epoch.
fn stats(time: &Setting, report: &RankReport, accelerator: u64) -> Value {
    let mut file = Map::new();
    for epoch in report.epochs.iter().filter(|epoch| epoch.accelerator == accelerator) {
        // An evaluation follows its epoch.
        let mut entry = time.span(epoch.start_ns, epoch.start_ns + epoch.wall_ns());
        for (i, block) in epoch.blocks.iter().enumerate() {
            entry.insert(format!("block{}", i + 1), time.span(block.start_ns, block.end_ns).into());
        }
        if let Some(done) = &epoch.evaluated {
            entry.insert("eval".to_owned(), time.span(done.start_ns, done.start_ns + done.wall_ns).into());
        }
        file.insert(epoch.epoch.to_string(), entry.into());
    }
    let (mut n_saved, mut n_loaded) = (BTreeMap::new(), BTreeMap::new());
    for saved in report.saves.iter().filter(|saved| saved.accelerator == accelerator) {
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

fn checkpoint(time: &Setting, saved: &Saved) -> Value {
    let mut span = time.span(saved.start_ns, saved.start_ns + saved.ns);
    // DLIO divides the bytes of all ranks by each rank's own time.
    let bytes = time.whole.save_bytes.get(&saved.number).copied().unwrap_or(saved.bytes);
    span.insert("throughput".to_owned(), (bytes as f64 / GIB / (saved.ns.max(1) as f64 / 1e9)).into());
    span.into()
}

/// Content of `summary.json`.
fn summary(known: &Known<'_>, time: &Setting, record: &Record<WorkloadCell>, all: &[RankReport]) -> Value {
    let workload = &known.plan.workload;
    let hosts: BTreeMap<&str, &RankReport> = all.iter().map(|report| (report.process.host.as_str(), report)).collect();
    let of_hosts =
        |value: &dyn Fn(&RankReport) -> Value| hosts.values().map(|report| value(report)).collect::<Vec<Value>>();
    let n_hosts = time.whole.n_hosts.max(1);
    let ends = all.iter().flat_map(|report| {
        report.epochs.iter().map(end_ns).chain(report.saves.iter().map(|saved| saved.start_ns + saved.ns))
    });
    let first = all.first().map(|report| report.host.clone()).unwrap_or_default();
    json!({
        "start": time.at(0),
        "end": time.at(ends.max().unwrap_or(0)),
        "num_accelerators": known.totals.accelerators,
        "num_hosts": n_hosts,
        "hostname": all.first().map(|report| report.process.host.clone()).unwrap_or_default(),
        "metric": metrics(known, record, all),
        "num_files_train": workload.dataset.n_files_train,
        "num_files_eval": workload.dataset.n_files_eval,
        "num_samples_per_file": workload.dataset.n_samples_per_file,
        "host_cpu_count": of_hosts(&|report| report.n_online.into()),
        "host_processor_name": first.processor_name(),
        "potential_caching": of_hosts(&|report| caches(known, report, n_hosts).into()),
        "host_cpuinfo": first.cpuinfo,
        "host_meminfo": first.meminfo,
        "host_memory_GB": of_hosts(&|report| report.memory_bytes.map(|bytes| bytes as f64 / GIB).into()),
        "data_size_per_host_GB": known.totals.bytes_train as f64 / n_hosts as f64 / GIB,
        "epochs": workload.train.epochs,
    })
}

fn metrics(known: &Known<'_>, record: &Record<WorkloadCell>, all: &[RankReport]) -> Value {
    let mut metrics = Map::new();
    let epochs = || all.iter().flat_map(|report| &report.epochs);
    let length = known.plan.workload.dataset.record_length_bytes;
    // A stopped run has not completed the work that a threshold applies to: no utilisation would suffice.
    let is_stopped = all.iter().any(|report| report.is_stopped);
    let limit = if is_stopped { f64::INFINITY } else { 100.0 * known.plan.workload.limits.au };
    let train = epochs().filter_map(|epoch| {
        let dlio = dlio_of(&known.plan.workload, known.totals.steps_per_epoch, epoch)?;
        Some((epoch.epoch, dlio.au, dlio.samples_per_s))
    });
    put_phase(&mut metrics, "train", train, length, limit);
    let eval = epochs().filter_map(|epoch| {
        let done = epoch.evaluated.as_ref().filter(|done| done.wall_ns > 0)?;
        let (_, dlio) = dlio_of_evaluation(known, done);
        Some((epoch.epoch, dlio.au, dlio.samples_per_s))
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

/// Values per epoch and accelerator, with means and deviations over epochs.
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

/// DLIO's keys, but with the time of the slowest rank, as MLPerf Storage requires.
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

/// Population deviation.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    Some((mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt()))
}
