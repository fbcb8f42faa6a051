//! A study of checkpoints with made-up but plausible values: trainings that save to three devices and through a burst
//! buffer, the same without saves, and a benchmark of saving alone.

use forebay_report::NamedRun;
use serde_json::{Value, json};

use crate::chien::{self, cell, environment, noise};
use crate::mini::{Settings, train_cell};

/// Megabytes a second that the tiers take.
fn takes(tier: &str) -> f64 {
    match tier {
        "hdd" => 131.0,
        "ssd" => 190.0,
        _ => 500.0,
    }
}

/// Where checkpoints of 600 MB go.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) slow: &'a str,
    pub(crate) fast: Option<&'a str>,
}

const TIERS: [&str; 3] = ["hdd", "ssd", "optane"];
const MODES: [&str; 3] = ["direct", "burst", "async"];
const FORMATS: [&str; 2] = ["safetensors", "tensorflow"];
const MB: f64 = 600.0;
const EVERY: u64 = 20;
const N_STEPS: u64 = 100;
const TICK_S: f64 = 0.5;

fn r(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn half_range(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    (high - low) / 2.0
}

/// Adds an amount to the ticks between two times.
fn spread(ticks: &mut Vec<f64>, mb: f64, from: f64, to: f64) {
    let n = (to / TICK_S).ceil() as usize;
    if ticks.len() < n {
        ticks.resize(n, 0.0);
    }
    for (i, tick) in ticks.iter_mut().enumerate() {
        let (start, end) = (i as f64 * TICK_S, (i + 1) as f64 * TICK_S);
        let within = (end.min(to) - start.max(from)).max(0.0);
        *tick += mb * within / (to - from);
    }
}

/// A training of 100 steps that saves every 20.
pub(crate) fn trained(route: Option<Route<'_>>, n_repeats: u64) -> Value {
    let of = Settings {
        tier: Some("ssd"),
        batch: 64,
        threads: 8,
        prefetch: 1,
        n_steps: N_STEPS,
        compute_s: 0.5,
        make_s: Some(0.05),
        bytes_per_image: 14_000,
        model: None,
        seed: 21,
    };
    let mut cell = train_cell(of, n_repeats);
    if let Some(route) = route {
        save(&mut cell, route);
    }
    cell
}

/// Puts checkpoints into a training.
fn save(cell: &mut Value, route: Route<'_>) {
    let first = route.fast.unwrap_or(route.slow);
    let mut at = 0.0;
    let (mut saves, mut drained_at, mut stalls) = (Vec::new(), 0.0_f64, 0.0);
    let (mut written, mut drained, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for (i, step) in cell["steps"].as_array_mut().unwrap().iter_mut().enumerate() {
        at += ["wait_s", "copy_s", "compute_s"].map(|part| number(&step[part])).iter().sum::<f64>();
        let n = i as u64 + 1;
        if !n.is_multiple_of(EVERY) {
            continue;
        }
        let stall = r(MB / takes(first) * (1.02 + 3.0 * noise(31, n)));
        spread(&mut written, MB, at, at + stall);
        let mut slow_s = stall;
        if route.fast.is_some() {
            let from = drained_at.max(at + stall);
            drained_at = from + MB / takes(route.slow);
            spread(&mut drained, MB, from, drained_at);
            spread(&mut read, MB, from, drained_at);
            slow_s = r(drained_at - at);
        }
        saves.push(json!({"step": n, "at_s": r(at), "stall_s": stall, "durable_fast_s": stall, "durable_slow_s": slow_s, "fate": "saved"}));
        step["checkpoint_s"] = json!(stall);
        (at, stalls) = (at + stall, stalls + stall);
    }
    let (mut sorted, n): (Vec<f64>, _) = (saves.iter().map(|save| number(&save["stall_s"])).collect(), saves.len());
    sorted.sort_by(f64::total_cmp);
    let longer = |run: &mut Value| {
        run["wall_s"] = json!(r(number(&run["wall_s"]) + stalls));
        run["checkpoint_s"] = json!(r(stalls));
        let (wall, first) = (number(&run["wall_s"]), number(&run["first_wait_s"]));
        run["au_epoch"] = json!(number(&run["compute_s"]) / wall);
        run["au_steady"] = json!(number(&run["compute_s"]) / (wall - first));
        run["au_dlio"] = run["au_steady"].clone();
    };
    longer(cell);
    cell["samples"].as_array_mut().unwrap().iter_mut().for_each(longer);
    let wall = number(&cell["wall_s"]);
    let walls: Vec<f64> = cell["samples"].as_array().unwrap().iter().map(|run| number(&run["wall_s"])).collect();
    if walls.len() > 1 {
        cell["spread"] = json!(half_range(&walls) / wall);
    }
    cell["images_per_s"] = json!(number(&cell["images"]) / wall);
    cell["io_cost_s"] = json!(wall - number(&cell["baseline"]["step_s"]) * N_STEPS as f64);
    cell["lever"]["wall_s"] = json!(wall - number(&cell["lever"]["saves_s"]));
    let mut traffic = vec![tier_of(first, &written, &read)];
    if route.fast.is_some() {
        traffic.push(tier_of(route.slow, &drained, &[]));
    }
    cell["checkpoints"] = json!({
        "every": EVERY, "mode": if route.fast.is_some() { "burst" } else { "direct" }, "format": "tensorflow", "bytes": MB * 1e6,
        "tier": route.slow, "tier_kind": "shaped", "burst_tier": route.fast, "burst_tier_kind": route.fast.map(|_| "shaped"),
        "median_stall_s": sorted[n / 2], "drain_after_s": r((drained_at - wall).max(0.0)), "saves": saves, "traffic": traffic,
    });
    cell["checkpoints"]["bytes"] = json!(600_000_000);
}

fn tier_of(tier: &str, written: &[f64], read: &[f64]) -> Value {
    let ticks = |mb: &[f64]| -> Vec<f64> {
        (0..written.len().max(read.len())).map(|i| r(mb.get(i).copied().unwrap_or(0.0))).collect()
    };
    json!({"tier": tier, "every_s": TICK_S, "written_mb": ticks(written), "read_mb": ticks(read)})
}

/// A cell of the benchmark.
pub(crate) fn bench_cell(mode: &str, format: &str, speed: f64) -> Value {
    let is_two = mode != "direct";
    let (first, waste) = (if is_two { "optane" } else { "hdd" }, if format == "safetensors" { 1.03 } else { 1.08 });
    let fast = MB / takes(first) * waste / speed;
    let slow = if is_two { fast + MB / takes("hdd") } else { fast };
    let stall = if mode == "async" { 0.061 / speed } else { fast };
    let restore = MB / if is_two { 1_480.0 } else { 161.0 } / speed;
    let sample = |i: u64| {
        let vary = 1.0 + 2.0 * noise(41, i + mode.len() as u64 * 10);
        json!({
            "stall_s": r(stall * vary), "durable_fast_s": r(fast * vary), "durable_slow_s": r(slow * vary),
            "restore_s": r(restore * vary),
        })
    };
    let samples: Vec<Value> = (0..5).map(sample).collect();
    let of = |part: &str| samples.iter().map(|sample| number(&sample[part])).collect::<Vec<_>>();
    let median = |part: &str| chien::median(&of(part));
    let spread = half_range(&of("durable_fast_s")) / median("durable_fast_s");
    json!({
        "mode": mode, "format": format, "state": "600 MB in 64 tensors", "n_tensors": 64, "bytes": 600_000_000,
        "storage": "hdd, shaped", "tier": "hdd", "tier_kind": "shaped",
        "burst_storage": is_two.then_some("optane, shaped"), "burst_tier": is_two.then_some("optane"),
        "burst_tier_kind": is_two.then_some("shaped"),
        "stall_s": median("stall_s"), "durable_fast_s": median("durable_fast_s"), "durable_slow_s": median("durable_slow_s"),
        "restore_s": median("restore_s"), "ceiling_mb_per_s": takes(first),
        "read_ceiling_mb_per_s": if is_two { 1_571.0 } else { 163.0 }, "copy_s": 0.05,
        "memory_bytes": if mode == "async" { 600_000_000 } else { 33_554_432 }, "spread": spread, "samples": samples,
    })
}

/// A record of `forebay checkpoint bench`.
pub(crate) fn bench(speed: f64) -> Value {
    let cells: Vec<Value> =
        MODES.into_iter().flat_map(|mode| FORMATS.map(|format| bench_cell(mode, format, speed))).collect();
    json!({
        "schema": "forebay-record/1", "command": "checkpoint",
        "command_line": ["forebay", "checkpoint", "bench", "slow", "--burst-dir", "fast"], "environment": environment(),
        "cells": cells,
    })
}

/// A record of `forebay train` with checkpoints.
pub(crate) fn train_record(route: Option<Route<'_>>) -> Value {
    json!({
        "schema": "forebay-record/1", "command": "train", "command_line": ["forebay", "train", "photos", "--checkpoint-every", "20"],
        "environment": environment(),
        "dataset": {"path": "photos", "packing": "files", "n_samples": 6_400, "n_files": 6_400},
        "cells": [trained(route, 1)],
    })
}

/// The burst buffer before the hard disk.
pub(crate) const BURST: Route<'static> = Route { slow: "hdd", fast: Some("optane") };

/// Where checkpoints of the study go, and what it calls that.
const ROUTES: [(&str, Option<Route<'_>>); 5] = [
    ("none", None),
    ("hdd", Some(Route { slow: "hdd", fast: None })),
    ("ssd", Some(Route { slow: "ssd", fast: None })),
    ("optane", Some(Route { slow: "optane", fast: None })),
    ("optane → hdd", Some(BURST)),
];

fn spec() -> Value {
    let names = ROUTES.map(|(name, _)| name);
    json!({
        "name": "saved-2018", "title": "Training with checkpoints", "source": "A made-up source, 2018",
        "about": "What does it cost to save on the way?", "seed": 2018,
        "tier": TIERS.map(|name| json!({"name": name, "profile": name})),
        "experiment": [
            {"name": "checkpoints", "run": "train", "factors": {"checkpoint": names}},
            {"name": "bench", "run": "checkpoint", "factors": {"mode": MODES, "format": FORMATS}},
        ],
        "reference": [{
            "experiment": "checkpoints", "metric": "stall_speed_up", "at": {"checkpoint": "optane → hdd"}, "value": 2.6,
            "within": 0.2, "above": 0.6, "source": "Section VII",
        }],
        "figure": [
            {"id": "fig-9", "title": "Figure 9: run time with checkpoints", "kind": "checkpoints", "experiment": "checkpoints",
             "metrics": ["wall_s", "stall_s"], "x": "checkpoint"},
            {"id": "fig-10", "title": "Figure 10: what is written when", "kind": "traffic", "experiment": "checkpoints", "x": "checkpoint",
             "at": {"checkpoint": "optane → hdd"}},
            {"id": "all", "title": "What is written when, to all", "kind": "traffic", "experiment": "checkpoints", "x": "checkpoint"},
            {"id": "saves", "title": "Saving alone", "kind": "bars", "experiment": "bench", "metrics": ["stall_s"], "x": "mode",
             "series": "format"},
            {"id": "share", "title": "Share of the ceiling", "kind": "efficiency", "experiment": "bench", "x": "mode", "series": "format"},
            {"id": "time", "title": "Where the time went", "kind": "time", "experiment": "checkpoints", "x": "checkpoint"},
            {"id": "steps", "title": "Step by step", "kind": "steps", "experiment": "checkpoints", "at": {"checkpoint": "hdd"}},
        ],
    })
}

/// The lines of the study's record.
pub(crate) fn lines() -> Vec<Value> {
    let mut cells = Vec::new();
    for (name, route) in ROUTES {
        let mut line = cell("checkpoints", "train", &json!({"checkpoint": name}), 90.0);
        line["train"] = trained(route, 3);
        cells.push(line);
    }
    for mode in MODES {
        for format in FORMATS {
            let mut line = cell("bench", "checkpoint", &json!({"mode": mode, "format": format}), 30.0);
            line["checkpoint"] = bench_cell(mode, format, 1.0);
            cells.push(line);
        }
    }
    let head = json!({
        "line": "head", "schema": "forebay-record/1", "command": "study",
        "command_line": ["forebay", "study", "run", "saved-2018"], "environment": environment(), "spec": spec(), "scale": "full",
        "n_cells": cells.len(),
        "tiers": TIERS.map(|name| json!({"name": name, "kind": "shaped", "description": format!("profile {name}")})),
    });
    std::iter::once(head).chain(cells).collect()
}

/// The study's run.
pub(crate) fn run(lines: &[Value]) -> NamedRun {
    crate::plain::named_text("saved", &chien::jsonl(lines))
}
