//! A study of training with made-up but plausible values: four emulated tiers, 1 to 8 threads, with and without a batch
//! made ahead, several batch sizes, a dataset that was looked at, and synthetic batches beside files and shards.
//!
//! The times follow from two numbers a cell, the computing and the making of a batch, as they do in a real run.

use forebay_record::{AnyRecord, Series};
use forebay_report::NamedRun;
use serde_json::{Value, json};

use crate::chien::{self, THREADS, TIERS, cell, environment, median, noise};

/// The settings of a training.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub(crate) tier: Option<&'a str>,
    pub(crate) batch: u64,
    pub(crate) threads: u64,
    pub(crate) prefetch: u64,
    pub(crate) n_steps: u64,
    /// Seconds a step computes.
    pub(crate) compute_s: f64,
    /// Seconds that making a batch takes; `None` for synthetic batches.
    pub(crate) make_s: Option<f64>,
    pub(crate) bytes_per_image: u64,
    /// Whether a network was trained.
    pub(crate) model: Option<&'a str>,
    pub(crate) seed: u64,
}

/// With four decimals, as short as a record needs to be.
fn r(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Seconds that a batch of small images takes from a tier.
fn make_s(tier: &str, threads: u64, batch: u64) -> f64 {
    let rate = match tier {
        "hdd" => [128.0, 190.0, 240.0, 262.0],
        "ssd" => [700.0, 1_300.0, 1_500.0, 1_520.0],
        "optane" => [900.0, 1_750.0, 1_800.0, 1_810.0],
        _ => [160.0, 320.0, 640.0, 1_200.0],
    };
    batch as f64 / rate[threads.ilog2() as usize]
}

/// One run, step by step.
fn steps(of: Settings<'_>, repeat: u64) -> Vec<Value> {
    let step = |i: u64| {
        let compute = of.compute_s * (1.0 + 0.5 * noise(of.seed, repeat * 977 + i));
        let made = of.make_s.map_or(0.0, |make| make * (1.0 + 4.0 * noise(of.seed + 1, repeat * 977 + i)));
        let wait = match (of.make_s, of.prefetch) {
            (None, _) => 0.0,
            (_, 0) => made,
            _ if i == 0 => made,
            _ => (made - compute).max(0.0) + 0.0004,
        };
        let loss = of.model.map(|_| r(4.6 * (-(i as f64) / 90.0).exp() + 0.3 + 4.0 * noise(5, i)));
        json!({"wait_s": r(wait), "copy_s": 0.0011, "compute_s": r(compute), "checkpoint_s": 0.0, "loss": loss})
    };
    (0..of.n_steps).map(step).collect()
}

fn sum(steps: &[Value], part: &str) -> f64 {
    r(steps.iter().map(|step| step[part].as_f64().unwrap()).sum())
}

fn totals(of: Settings<'_>, steps: &[Value]) -> Value {
    let (wait, copy, compute) = (sum(steps, "wait_s"), sum(steps, "copy_s"), sum(steps, "compute_s"));
    let other = r(0.0006 * of.n_steps as f64);
    let wall = r(wait + copy + compute + other);
    let first = steps[0]["wait_s"].as_f64().unwrap();
    let images = of.batch * of.n_steps;
    let made = of.make_s.unwrap_or(0.0) * of.n_steps as f64;
    let busy = made * of.threads as f64;
    let reads = of.make_s.is_some();
    let workers = json!({
        "opening": r(busy * 0.05), "reading": r(busy * 0.55), "decoding": r(busy * 0.3), "resizing": r(busy * 0.1),
        "waiting_for_slot": r((wall * of.threads as f64 - busy).max(0.0)),
    });
    let bytes = images * of.bytes_per_image;
    let stalls =
        if of.prefetch == 0 { json!({"prefetch": r(wait - 0.1), "storage": 0.1}) } else { json!({"storage": wait}) };
    json!({
        "n_steps": of.n_steps, "images": images, "failed": 0, "bytes": if reads { bytes } else { 0 }, "wall_s": wall,
        "wait_s": wait, "copy_s": copy, "compute_s": compute, "checkpoint_s": 0.0, "validate_s": 0.0, "other_s": other,
        "first_wait_s": first, "cpu_s": r(wall * 1.2), "au_epoch": compute / wall,
        "au_steady": compute / (wall - first), "au_dlio": r(compute / (wall - first) + 0.001),
        "overlap": if reads { json!(if wait < made { r(1.0 - wait / made) } else { 0.0 }) } else { Value::Null },
        "stall_by_cause": if reads { stalls } else { json!({}) }, "worker_time": if reads { workers } else { json!({}) },
        "stall_time": {}, "loss": steps.last().unwrap()["loss"],
        "cache": if reads { json!("cold") } else { Value::Null },
        "evidence": {"resident_before": 0.0, "block_bytes": bytes, "bytes_read": bytes},
    })
}

/// What was read when: a batch while it was made.
fn reads(of: Settings<'_>, steps: &[Value]) -> Value {
    let every = 0.25;
    let end: f64 = ["wait_s", "compute_s"].map(|part| sum(steps, part)).iter().sum();
    let mut mb = vec![0.0; (end / every).ceil() as usize + 1];
    let batch_mb = (of.batch * of.bytes_per_image) as f64 / 1e6;
    let mut at = 0.0;
    for step in steps {
        let made = of.make_s.unwrap().max(0.01);
        let (wait, compute) = (step["wait_s"].as_f64().unwrap(), step["compute_s"].as_f64().unwrap());
        let n = (made / every).ceil().max(1.0) as usize;
        for i in 0..n {
            let bin = ((at / every) as usize + i).min(mb.len() - 1);
            mb[bin] += batch_mb / n as f64;
        }
        at += wait + compute;
    }
    json!({"every_s": every, "mb": mb.into_iter().map(r).collect::<Vec<_>>()})
}

/// A cell as `forebay train` measures it.
pub(crate) fn train_cell(of: Settings<'_>, n_repeats: u64) -> Value {
    let runs: Vec<Vec<Value>> = (0..n_repeats).map(|i| steps(of, i)).collect();
    let samples: Vec<Value> = runs.iter().map(|steps| totals(of, steps)).collect();
    let walls: Vec<f64> = samples.iter().map(|run| run["wall_s"].as_f64().unwrap()).collect();
    let middle = walls.iter().position(|wall| *wall == median(&walls)).unwrap();
    let mut cell = samples[middle].clone();
    let wall = walls[middle];
    let baseline = of.make_s.is_some();
    let (wait, images) = (cell["wait_s"].as_f64().unwrap(), cell["images"].as_f64().unwrap());
    let (low, high) = walls.iter().fold((f64::MAX, 0.0_f64), |(low, high), w| (low.min(*w), high.max(*w)));
    let lever = match (of.make_s, wait / wall) {
        (None, _) | (_, ..0.05) => json!({"name": "none", "advice": "", "saves_s": 0.0, "wall_s": wall}),
        (_, _) if of.prefetch == 0 => json!({
            "name": "prefetch", "advice": "make a batch ahead: --prefetch 1", "saves_s": r(wait * 0.9), "wall_s": wall - r(wait * 0.9),
        }),
        _ => json!({
            "name": "storage", "advice": "put the data on faster storage", "saves_s": r(wait), "wall_s": r(wall - wait),
            "is_bound": true,
        }),
    };
    let emulated = of.model.is_none().then(|| format!("emulated:{}ms", r(of.compute_s * 1e3)));
    let more = json!({
        "model": of.model, "device": emulated.clone().unwrap_or("cuda:0, NVIDIA H200".to_owned()), "accelerator": emulated,
        "precision": of.model.map(|_| "bf16"), "n_parameters": of.model.map(|_| 57_000_000),
        "synthetic": of.make_s.is_none(), "optimizer": of.model.map(|_| "adam"), "batch": of.batch,
        "steps_per_epoch": of.n_steps, "threads": if of.make_s.is_some() { of.threads } else { 0 }, "prefetch": of.prefetch,
        "storage": "local, buffered", "tier": of.tier, "tier_kind": of.tier.map(|_| "shaped"),
        "images_per_s": images / wall, "spread": if n_repeats > 1 { json!((high - low) / 2.0 / wall) } else { Value::Null },
        "baseline": if baseline { json!({"n_steps": 10, "step_s": of.compute_s}) } else { Value::Null },
        "io_cost_s": if baseline { json!(wall - of.compute_s * of.n_steps as f64) } else { Value::Null },
        "lever": lever, "steps": runs[middle], "samples": samples,
        "feed": of.make_s.map(|make| json!({
            "takes_images_per_s": of.batch as f64 / of.compute_s, "gives_images_per_s": r(of.batch as f64 / make),
            "threads_needed": (make * of.threads as f64 / of.compute_s).ceil() as u64,
        })),
        "reads": of.make_s.map(|_| reads(of, &runs[middle])),
    });
    cell.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cell
}

/// The record of one training: 300 steps of AlexNet from a slow disk.
pub(crate) fn record(speed: f64) -> Value {
    let of = Settings {
        tier: None,
        batch: 64,
        threads: 2,
        prefetch: 1,
        n_steps: 300,
        compute_s: 0.041 / speed,
        make_s: Some(0.047 / speed),
        bytes_per_image: 112_000,
        model: Some("alexnet"),
        seed: 11,
    };
    json!({
        "schema": "forebay-record/1", "command": "train", "command_line": ["forebay", "train", "photos", "--device", "cuda"],
        "environment": environment(),
        "dataset": {"path": "photos", "packing": "files", "n_samples": 19_200, "n_files": 19_200},
        "cells": [train_cell(of, 1)],
    })
}

fn inspection() -> Value {
    let counts = [
        (2_048, 19),
        (4_096, 42),
        (8_192, 83),
        (16_384, 160),
        (32_768, 262),
        (65_536, 801),
        (131_072, 655),
        (262_144, 26),
    ];
    let n: u64 = counts.iter().map(|(_, n)| n).sum();
    let bytes: u64 = counts.iter().map(|(from, n)| from * n * 3 / 2).sum();
    let histogram: Vec<Value> =
        counts.iter().map(|(from, n)| json!({"from": from, "n_samples": n, "bytes": from * n * 3 / 2})).collect();
    json!({
        "path": "data/imagenet", "form": "folder", "n_files": n, "n_samples": n, "total_bytes": bytes,
        "file_formats": {"jpeg": n}, "sample_formats": {"jpeg": n}, "classes": [],
        "sizes": {"n": n, "min": 2_100.0, "q1": 61_000.0, "median": 109_000.0, "q3": 163_000.0, "max": 401_000.0,
                  "mean": bytes as f64 / n as f64},
        "histogram": histogram, "widths": null, "heights": null, "colours": {}, "n_progressive": 0, "n_rotated": 0, "n_bad": 0,
        "bad": [], "bssplit": "2k/1:4k/2:8k/4:16k/8:32k/13:64k/39:128k/32:256k/1",
    })
}

/// The line that a source published.
pub(crate) const PUBLISHED_MIX: &str = "2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1";

fn spec() -> Value {
    let need = |value: f64| {
        json!({
            "experiment": "feed", "metric": "need_mb_per_s", "at": {}, "value": value, "source": "Conclusion, 8 V100 in fp16",
        })
    };
    json!({
        "name": "mini-2018", "title": "Training from four devices", "source": "A made-up source, 2018",
        "about": "What does I/O cost a training, and what does a batch made ahead save of it?", "seed": 2018,
        "tier": TIERS.map(|name| json!({"name": name, "profile": name})),
        "experiment": [
            {"name": "sizes", "run": "inspect"},
            {"name": "mini-app", "run": "train", "factors": {"tier": TIERS, "threads": THREADS, "prefetch": [0, 1]}},
            {"name": "batch-size", "run": "train", "factors": {"batch": [16, 32, 64], "prefetch": [0, 1]}},
            {"name": "feed", "run": "train", "factors": {"dataset": ["synthetic", "files", "tfrecord"]}},
        ],
        "reference": [need(1_000.0), need(1_300.0)],
        "figure": [
            {"id": "fig-6", "title": "Figure 6: run time with and without prefetch", "kind": "excess", "experiment": "mini-app",
             "metrics": ["wall_s"], "x": "tier", "series": "threads"},
            {"id": "fig-7", "title": "Figure 7: run time by batch size", "kind": "bars", "experiment": "batch-size",
             "metrics": ["wall_s", "images_per_s"], "x": "batch", "series": "prefetch"},
            {"id": "fig-8", "title": "Figure 8: megabytes read over time", "kind": "reads", "experiment": "mini-app", "x": "tier",
             "series": "prefetch", "at": {"threads": 8}},
            {"id": "time", "title": "Where the accelerator's time went", "kind": "time", "experiment": "mini-app", "x": "tier",
             "series": "prefetch", "at": {"threads": 1}},
            {"id": "workers", "title": "What the threads did", "kind": "workers", "experiment": "mini-app", "x": "tier",
             "series": "prefetch", "at": {"threads": 4}},
            {"id": "sizes", "title": "Sizes of the samples", "kind": "sizes", "experiment": "sizes",
             "caption": format!("Most samples lie between 64 and 256 KiB; the source reads with {PUBLISHED_MIX}.")},
            {"id": "disk", "title": "The disk in its busiest seconds", "kind": "disk", "experiment": "feed"},
            {"id": "need", "title": "What a disk has to give", "kind": "need", "experiment": "feed"},
            {"id": "trace", "title": "What the machine did meanwhile", "kind": "trace"},
        ],
    })
}

fn head(n_cells: usize) -> Value {
    json!({
        "line": "head", "schema": "forebay-record/1", "command": "study",
        "command_line": ["forebay", "study", "run", "mini-2018"], "environment": environment(), "spec": spec(), "scale": "full",
        "n_cells": n_cells,
        "tiers": TIERS.map(|name| json!({"name": name, "kind": "shaped", "description": format!("profile {name}")})),
    })
}

/// The lines of the study's record.
pub(crate) fn lines() -> Vec<Value> {
    let usual = Settings {
        tier: None,
        batch: 64,
        threads: 8,
        prefetch: 1,
        n_steps: 20,
        compute_s: 0.62,
        make_s: None,
        bytes_per_image: 14_000,
        model: None,
        seed: 3,
    };
    let mut cells = Vec::new();
    let mut add = |experiment: &str, step: &str, factors: Value, key: &str, value: Value| {
        let mut line = cell(experiment, step, &factors, 20.0);
        line[key] = value;
        cells.push(line);
    };
    add("sizes", "inspect", json!({}), "inspection", inspection());
    for tier in TIERS {
        for threads in THREADS {
            for prefetch in [0, 1] {
                let make = Some(make_s(tier, threads, 64));
                let seed = 100 * threads + tier.len() as u64 + prefetch;
                let of = Settings { tier: Some(tier), threads, prefetch, make_s: make, seed, ..usual };
                let factors = json!({"prefetch": prefetch, "threads": threads, "tier": tier});
                add("mini-app", "train", factors, "train", train_cell(of, 3));
            }
        }
    }
    for batch in [16, 32, 64] {
        for prefetch in [0, 1] {
            let compute_s = 0.05 + 0.0089 * batch as f64;
            let n_steps = 20 * 64 / batch;
            let of = Settings { batch, prefetch, compute_s, n_steps, make_s: Some(make_s("ssd", 8, batch)), ..usual };
            add("batch-size", "train", json!({"batch": batch, "prefetch": prefetch}), "train", train_cell(of, 3));
        }
    }
    for (dataset, make_s, bytes_per_image) in
        [("synthetic", None, 0), ("files", Some(0.19), 112_000), ("tfrecord", Some(0.17), 113_000)]
    {
        let of = Settings { compute_s: 0.05, bytes_per_image, make_s, model: Some("resnet50"), ..usual };
        add("feed", "train", json!({"dataset": dataset}), "train", train_cell(of, 3));
    }
    let mut lines = vec![head(cells.len())];
    lines.extend(cells);
    lines
}

/// A series of three seconds a cell, with the columns of a disk.
pub(crate) fn series(cells: &[Value]) -> Series {
    let n = cells.len() * 3;
    let rate = |i: usize| {
        let cell = &cells[i / 3]["train"];
        let (bytes, wall) = (cell["bytes"].as_f64().unwrap_or(0.0), cell["wall_s"].as_f64().unwrap_or(1.0));
        (bytes / wall * (1.0 + 10.0 * noise(9, i as u64))).round()
    };
    let column = |name: &str, of: &dyn Fn(usize) -> Option<f64>| json!({"name": name, "values": (0..n).map(of).collect::<Vec<_>>()});
    let known = |i: usize| Some(rate(i)).filter(|rate| *rate > 0.0);
    let marks = cells.iter().enumerate().map(|(i, cell)| json!({"time_s": (i * 3) as f64, "what": cell["id"]}));
    let series = json!({
        "started_at": "2026-11-15T17:03:00Z", "interval_s": 1.0, "time_s": (1..=n).map(|i| i as f64).collect::<Vec<_>>(),
        "late_s": vec![0.0; n],
        "columns": [
            column("disk.vda.read_bytes_per_s", &|i| Some(rate(i))),
            column("disk.vda.write_bytes_per_s", &|_| Some(4096.0)),
            column("disk.vda.reads_per_s", &|i| Some((rate(i) / 115_712.0).round())),
            column("disk.vda.read_size_bytes", &|i| known(i).map(|_| 115_712.0)),
            column("disk.vda.r_await_ms", &|i| known(i).map(|_| 3.5)),
            column("disk.vda.queue_busy", &|i| known(i).map(|_| 7.25)),
            column("disk.vda.svctm_ms", &|i| known(i).map(|_| 0.4)),
            column("cpu.user_percent", &|i| Some(60.0 + (i % 7) as f64)),
        ],
        "marks": marks.collect::<Vec<_>>(),
    });
    serde_json::from_value(series).unwrap()
}

/// The study's run, its series inside.
pub(crate) fn run() -> NamedRun {
    let lines = lines();
    let mut study = chien::study(&lines);
    study.series = Some(series(&lines[1..]));
    NamedRun { name: "mini".to_owned(), record: AnyRecord::Study(Box::new(study)) }
}
