//! A study like `chien-2018` with made-up but plausible values: four emulated tiers, 1 to 8 threads, with and without
//! decoding, on two cores.
//!
//! It is made as JSON and read as a record is, so that it stays a record of this version when fields are added.

use forebay_record::{AnyRecord, Series, StudyRun};
use forebay_report::NamedRun;
use serde_json::{Value, json};

pub(crate) const TIERS: [&str; 4] = ["hdd", "ssd", "optane", "lustre"];
pub(crate) const THREADS: [u64; 4] = [1, 2, 4, 8];
/// Megabytes an image.
const MB: f64 = 0.112;

/// What may be asked of the generator.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) repeats: usize,
    /// Every rate times this.
    pub(crate) speed: f64,
    /// Moves the noise.
    pub(crate) seed: u64,
}

pub(crate) const USUAL: Plan = Plan { repeats: 5, speed: 1.0, seed: 1 };

/// Noise of about one percent that is the same on every machine.
pub(crate) fn noise(seed: u64, place: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    ((x % 2001) as f64 / 1000.0 - 1.0) * 0.01
}

/// Images a second when they are only read.
fn read_rate(tier: &str, threads: u64) -> f64 {
    let i = threads.ilog2() as usize;
    match tier {
        "hdd" => [115.0, 188.0, 226.0, 262.0][i],
        "ssd" => [1_930.0, 2_120.0, 2_140.0, 2_140.0][i],
        "optane" => [5_020.0, 9_300.0, 11_900.0, 12_040.0][i],
        _ => [231.0, 457.0, 906.0, 1_795.0][i],
    }
}

/// Images a second when they are decoded, too: a core decodes 1,100, and there are two.
fn decode_rate(tier: &str, threads: u64) -> f64 {
    let alone = 1.0 / (1.0 / (read_rate(tier, threads) / threads as f64) + 1.0 / 1_100.0);
    (alone * threads as f64).min(2_190.0).min(read_rate(tier, threads) * 0.98)
}

pub(crate) fn rate(tier: &str, threads: u64, read_only: bool) -> f64 {
    if read_only { read_rate(tier, threads) } else { decode_rate(tier, threads) }
}

fn ceiling(tier: &str) -> (f64, f64) {
    match tier {
        "hdd" => (161.9, 131.0),
        "ssd" => (279.1, 194.2),
        "optane" => (1_571.0, 502.9),
        _ => (1_930.0, 870.0),
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn evidence(bytes: u64) -> Value {
    json!({"resident_before": 0.0, "block_bytes": bytes + 4096, "bytes_read": bytes})
}

fn worker_time(tier: &str, threads: u64, read_only: bool, images: f64, wall: f64) -> Value {
    let all = threads as f64 * wall;
    if read_only {
        return json!({"opening": all * 0.06, "reading": all * 0.9, "waiting_for_slot": all * 0.04});
    }
    // With more threads than cores a thread that decodes also waits for its turn.
    let turn = (threads as f64 / 2.0).max(1.0);
    let decoding = (images * 0.00079 * turn).min(all * 0.86);
    let resizing = decoding * 0.12;
    let rest = (all - decoding - resizing).max(all * 0.01);
    let waiting = if tier == "optane" { rest * 0.5 } else { rest * 0.03 };
    json!({
        "opening": (rest - waiting) * 0.05, "reading": (rest - waiting) * 0.95, "decoding": decoding,
        "resizing": resizing, "waiting_for_slot": waiting * 0.8, "idle": waiting * 0.2,
    })
}

pub(crate) fn ingest_cell(tier: &str, threads: u64, read_only: bool, plan: Plan) -> Value {
    let images = 1_024.0;
    let place = threads * 10 + u64::from(read_only) + 1_000 * tier.len() as u64;
    let rates: Vec<f64> = (0..plan.repeats as u64)
        .map(|i| rate(tier, threads, read_only) * plan.speed * (1.0 + noise(plan.seed, place + 7_919 * i)))
        .collect();
    let middle = median(&rates);
    let bytes = (images * MB * 1e6) as u64;
    let cpu = if read_only { 0.11 } else { 0.99 };
    let samples = rates.iter().map(|rate| {
        let wall = images / rate;
        json!({
            "images": 1_024, "failed": 0, "bytes": bytes, "wall_s": wall, "cpu_s": cpu * 1.024, "wait_s": wall * 0.96,
            "first_batch_s": 64.0 / rate, "worker_time": worker_time(tier, threads, read_only, images, wall),
            "stall_time": {}, "cache": "cold", "evidence": evidence(bytes),
        })
    });
    let samples: Vec<Value> = samples.collect();
    let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), r| (low.min(*r), high.max(*r)));
    json!({
        "threads": threads, "batch": 64, "prefetch": 1, "read_only": read_only,
        "output": if read_only { Value::Null } else { json!("224x224 f32 nhwc") },
        "storage": format!("local, buffered, shaped to {tier}"), "tier": tier, "tier_kind": "shaped", "cache": "cold",
        "images_per_s": middle, "mb_per_s": middle * MB, "spread": (high - low) / 2.0 / middle, "cpu_s_per_1000": cpu,
        "failed_samples": 0, "worker_time": worker_time(tier, threads, read_only, images, images / middle),
        "wait_s": images / middle * 0.96, "wall_s": images / middle, "floor_images_per_s": 1_200_000.0,
        "ceiling_mb_per_s": ceiling(tier).0, "ceiling_of": format!("the sequential-read ceiling of {tier}"), "samples": samples,
    })
}

fn probe_cell(tier: &str, mode: &str, rate: f64, seed: u64) -> Value {
    let bytes = 268_435_456u64;
    let sample = |i: u64| {
        // The middle one is the rate itself.
        let rate = rate * (1.0 + [0.004, -0.006, 0.0, 0.007, -0.003][((i + seed) % 5) as usize]);
        json!({
            "bytes": bytes, "n_requests": 256, "wall_s": bytes as f64 / 1e6 / rate, "cpu_s": 0.03, "cache": "cold",
            "evidence": evidence(bytes),
        })
    };
    let samples: Vec<Value> = (0..5).map(sample).collect();
    let us = 1.048_576e6 / rate;
    json!({
        "mode": mode, "engine": "direct", "block": 1_048_576, "depth": 1, "mb_per_s": rate, "iops": rate / 1.048576,
        "spread": 0.0065, "latency_us": {"p50": us, "p90": us * 1.1, "p99": us * 1.4, "p999": us * 3.1, "max": us * 3.1},
        "histogram": [
            {"upto_us": us * 0.9, "n": 20}, {"upto_us": us, "n": 130}, {"upto_us": us * 1.1, "n": 82},
            {"upto_us": us * 1.4, "n": 22}, {"upto_us": us * 3.1, "n": 2},
        ],
        "cache": "cold", "tier": tier, "tier_kind": "shaped", "samples": samples,
    })
}

fn head(n_cells: usize) -> Value {
    let tier = |name: &str, mb: &str| json!({"name": name, "kind": "shaped", "description": format!("profile {name}, {mb} MB/s")});
    json!({
        "line": "head", "schema": "forebay-record/1", "command": "study",
        "command_line": ["forebay", "study", "run", "chien-2018", "--scale", "quick", "--out", "my runs/chien"],
        "environment": environment(), "spec": spec(), "scale": "quick", "n_cells": n_cells,
        "tiers": [tier("hdd", "163/133"), tier("ssd", "280/195"), tier("optane", "1603/512"), tier("lustre", "1969/992")],
        "notes": ["the tiers are shaped in this process: bringing up throttled loop devices needs root"],
    })
}

pub(crate) fn environment() -> Value {
    json!({
        "version": "0.2.0", "started_at": "2026-11-15T17:03:00Z", "cpu": "AMD EPYC 7763 64-Core Processor", "n_cores": 2,
        "memory_bytes": 8_000_000_000u64, "kernel": "6.18.0", "data_file_system": "ext4 on /dev/vda", "root": false,
    })
}

fn published(experiment: &str, metric: &str, at: Value, value: f64, within: Option<f64>, source: &str) -> Value {
    json!({
        "experiment": experiment, "metric": metric, "at": at, "value": value, "within": within, "source": source,
    })
}

fn spec() -> Value {
    let mut references = Vec::new();
    for (tier, read, write) in
        [("hdd", 163.0, 133.14), ("ssd", 280.55, 195.05), ("optane", 1603.06, 511.78), ("lustre", 1968.618, 991.914)]
    {
        references.push(published(
            "table-1",
            "read_mb_per_s",
            json!({"tier": tier}),
            read,
            Some(0.1),
            "Table I, max read",
        ));
        references.push(published(
            "table-1",
            "write_mb_per_s",
            json!({"tier": tier}),
            write,
            Some(0.1),
            "Table I, max write",
        ));
    }
    for (threads, value) in [(2, 1.65), (4, 1.95), (8, 2.3)] {
        let at = |read_only: bool| json!({"tier": "hdd", "threads": threads, "read_only": read_only});
        references.push(published("ingest", "speed_up", at(true), value, Some(0.15), "Section VII, HDD"));
        references.push(published("ingest", "speed_up", at(false), value, None, "Section VII, HDD"));
    }
    references.push(published(
        "ingest",
        "speed_up",
        json!({"tier": "lustre", "threads": 8, "read_only": true}),
        7.8,
        Some(0.15),
        "Section VII, Lustre",
    ));
    json!({
        "name": "chien-2018", "title": "Characterizing deep-learning I/O workloads: the micro-benchmark",
        "source": "S. W. D. Chien et al.: Characterizing Deep-Learning I/O Workloads in TensorFlow, PDSW-DISCS 2018",
        "about": "How many images a second can a hard disk, a flash drive, an Optane card and a Lustre file system feed to \
                  training, and how much of that is won by reading with more threads?",
        "seed": 2018,
        "dataset": [{"name": "imagenet", "make": "imagenet", "count": {"quick": 2048, "full": 16384}}],
        "tier": TIERS.map(|name| json!({"name": name, "profile": name})),
        "experiment": [
            {"name": "table-1", "run": "probe", "factors": {"tier": TIERS}},
            {"name": "ingest", "run": "ingest", "dataset": "imagenet",
             "factors": {"tier": TIERS, "threads": THREADS, "read_only": [false, true]}, "settings": {"batch": 64, "cold": true}},
        ],
        "reference": references,
        "figure": figures(),
    })
}

fn figures() -> Value {
    json!([
        {"id": "table-1", "title": "Table I: what the devices give without a pipeline", "kind": "table", "experiment": "table-1",
         "metrics": ["read_mb_per_s", "write_mb_per_s"], "x": "tier",
         "caption": "One file written and read from end to end. These are the ceilings for everything below."},
        {"id": "fig-4", "title": "Figure 4: reading, decoding and resizing", "kind": "bars", "experiment": "ingest",
         "metrics": ["images_per_s", "mb_per_s"], "x": "tier", "series": "threads", "at": {"read_only": false},
         "caption": "The whole input pipeline. The hard disk flattens, Lustre goes on; on the fast devices the cores are the limit."},
        {"id": "fig-5", "title": "Figure 5: reading only", "kind": "bars", "experiment": "ingest",
         "metrics": ["images_per_s", "mb_per_s"], "x": "tier", "series": "threads", "at": {"read_only": true},
         "caption": "The same files read and thrown away. What is higher here than in figure 4 was lost to decoding there."},
        {"id": "speed-up-read", "title": "Speed-up by threads, reading only", "kind": "speed-up", "experiment": "ingest",
         "metrics": ["images_per_s"], "x": "threads", "series": "tier", "at": {"read_only": true},
         "caption": "Open marks are the paper's values. Threads help where latency is what one waits for."},
        {"id": "speed-up-decode", "title": "Speed-up by threads, decoding", "kind": "speed-up", "experiment": "ingest",
         "metrics": ["images_per_s"], "x": "threads", "series": "tier", "at": {"read_only": false}},
        {"id": "efficiency", "title": "How much of each device is used", "kind": "efficiency", "experiment": "ingest",
         "metrics": ["efficiency"], "x": "tier", "series": "threads", "at": {"read_only": true}},
        {"id": "workers", "title": "Where the threads' time went", "kind": "workers", "experiment": "ingest",
         "x": "tier", "series": "threads", "at": {"read_only": false}},
        {"id": "trace", "title": "What the disks did meanwhile", "kind": "trace"},
    ])
}

pub(crate) fn cell(experiment: &str, step: &str, factors: &Value, elapsed_s: f64) -> Value {
    let levels: Vec<String> =
        factors.as_object().unwrap().iter().map(|(f, l)| format!("{f}={}", l.to_string().replace('"', ""))).collect();
    json!({
        "line": "cell", "id": format!("{experiment}/{}", levels.join("/")), "experiment": experiment, "step": step,
        "factors": factors, "started_at": "2026-11-15T17:04:00Z", "elapsed_s": elapsed_s,
    })
}

/// The lines of the record.
pub(crate) fn lines(plan: Plan) -> Vec<Value> {
    let mut cells = Vec::new();
    for tier in TIERS {
        let mut line = cell("table-1", "probe", &json!({"tier": tier}), 6.2);
        let (read, write) = ceiling(tier);
        line["probe"] = json!([
            probe_cell(tier, "sequential-read", read, plan.seed),
            probe_cell(tier, "sequential-write", write, plan.seed + 1),
        ]);
        cells.push(line);
    }
    for tier in TIERS {
        for read_only in [false, true] {
            for threads in THREADS {
                let factors = json!({"read_only": read_only, "threads": threads, "tier": tier});
                let mut line = cell("ingest", "ingest", &factors, 4.1);
                line["ingest"] = ingest_cell(tier, threads, read_only, plan);
                cells.push(line);
            }
        }
    }
    let mut lines = vec![head(cells.len())];
    lines.extend(cells);
    lines
}

pub(crate) fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A series of so many seconds over the cells of a record.
pub(crate) fn series(cells: &[Value], n: usize) -> Series {
    let value = |i: usize| {
        let cell = &cells[i * cells.len() / n];
        let mb = cell["ingest"]["mb_per_s"].as_f64().unwrap_or(400.0);
        (mb * (1.0 + 8.0 * noise(3, i as u64)), cell["ingest"]["read_only"].as_bool() == Some(false))
    };
    let column = |name: &str, of: &dyn Fn(usize) -> Option<f64>| json!({"name": name, "values": (0..n).map(of).collect::<Vec<_>>()});
    let marks = cells
        .iter()
        .enumerate()
        .map(|(i, cell)| json!({"time_s": (i * n) as f64 / cells.len() as f64, "what": cell["id"]}));
    let late: Vec<f64> = (0..n).map(|i| if i == 40 || i == 97 { 0.8 } else { 0.002 }).collect();
    let series = json!({
        "started_at": "2026-11-15T17:03:00Z", "interval_s": 1.0, "time_s": (1..=n).map(|i| i as f64).collect::<Vec<_>>(),
        "late_s": late,
        "columns": [
            column("cpu.user_percent", &|i| Some(if value(i).1 { 88.0 + 300.0 * noise(5, i as u64) } else { 11.0 })),
            column("cpu.system_percent", &|i| Some(4.0 + 100.0 * noise(6, i as u64))),
            column("cpu.iowait_percent", &|i| Some(if value(i).1 { 2.0 } else { 40.0 + 400.0 * noise(7, i as u64) })),
            column("disk.vda.read_bytes_per_s", &|i| (i != 70).then(|| value(i).0 * 1e6)),
            column("disk.vda.write_bytes_per_s", &|i| Some(if i < n / 10 { 3.1e8 } else { 2.1e5 })),
            column("disk.vdb.read_bytes_per_s", &|_| Some(0.0)),
            column("disk.vdb.write_bytes_per_s", &|_| Some(0.0)),
            column("process.read_bytes_per_s", &|i| Some(value(i).0 * 0.995e6)),
            column("process.rchar_bytes_per_s", &|i| Some(value(i).0 * 1.004e6)),
        ],
        "marks": marks.collect::<Vec<_>>(),
    });
    serde_json::from_value(series).unwrap()
}

/// The run, its series inside.
pub(crate) fn run(name: &str, plan: Plan) -> NamedRun {
    let lines = lines(plan);
    let mut study = study(&lines);
    study.series = Some(series(&lines[1..], 150));
    NamedRun { name: name.to_owned(), record: AnyRecord::Study(Box::new(study)) }
}

pub(crate) fn study(lines: &[Value]) -> StudyRun {
    StudyRun::from_jsonl(&jsonl(lines)).unwrap().0
}
