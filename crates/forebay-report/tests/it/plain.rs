//! Records of single commands with made-up values: an ingest run over threads, a probe over engines and depths.

use forebay_record::AnyRecord;
use forebay_report::NamedRun;
use serde_json::{Value, json};

use crate::chien::{Plan, THREADS, environment, ingest_cell};

/// An ingest run on a real disk.
pub(crate) fn ingest(plan: Plan) -> Value {
    let cell = |threads| {
        let mut cell = ingest_cell("ssd", threads, false, plan);
        cell["tier"] = Value::Null;
        cell["tier_kind"] = Value::Null;
        cell["storage"] = json!("local, buffered");
        cell["ceiling_of"] = json!("the random-read ceiling of nvme0 (uring, depth 32)");
        cell
    };
    json!({
        "schema": "forebay-record/1", "command": "ingest", "command_line": ["forebay", "ingest", "photos", "--cold"],
        "environment": environment(),
        "dataset": {"path": "photos", "packing": "files", "n_samples": 1_024, "n_files": 1_024},
        "cells": THREADS.map(cell), "notes": ["3 files were newer than the run"],
    })
}

/// A probe in three ways, at several depths.
pub(crate) fn probe() -> Value {
    let mut cells = Vec::new();
    for (mode, block, rate) in [
        ("sequential-read", json!(1_048_576), 540.0),
        ("random-read", json!(4_096), 31.0),
        ("files", Value::Null, 180.0),
    ] {
        for engine in ["sync", "direct", "uring"] {
            for depth in [1u64, 8, 32] {
                cells.push(probe_cell(mode, &block, engine, depth, rate));
            }
        }
    }
    json!({
        "schema": "forebay-record/1", "command": "probe", "command_line": ["forebay", "probe", "/mnt/data", "--save", "nvme0"],
        "environment": environment(), "dataset": {"path": "/mnt/data", "packing": "", "n_samples": 0, "n_files": 0}, "cells": cells,
    })
}

fn probe_cell(mode: &str, block: &Value, engine: &str, depth: u64, base: f64) -> Value {
    let faster = match engine {
        "sync" => 0.9,
        "direct" => 1.0,
        _ => 1.15,
    };
    let rate = base * faster * (depth as f64).powf(if mode == "random-read" { 0.72 } else { 0.12 });
    let size = block.as_u64().unwrap_or(112_000) as f64;
    // Whole requests in two seconds, which is how long the run in the middle took.
    let iops = (rate * 1e6 / size * 2.0).round() / 2.0;
    let p50 = depth as f64 / iops * 1e6;
    let bucket = |share: f64, n: u64| json!({"upto_us": p50 * share, "n": n});
    let sample = |i: u64| {
        let wall = 2.0 * (0.98 + 0.01 * i as f64);
        let bytes = (rate * 1e6 * 2.0) as u64;
        json!({
            "bytes": bytes, "n_requests": (iops * 2.0) as u64, "wall_s": wall, "cpu_s": 0.4, "cache": "cold",
            "evidence": {"resident_before": 0.0, "block_bytes": bytes, "bytes_read": bytes},
        })
    };
    json!({
        "mode": mode, "engine": engine, "block": block, "depth": depth, "mb_per_s": rate, "iops": iops,
        "spread": (1.0 / 0.98 - 1.0 / 1.02) / 2.0,
        "mix": if mode == "files" { json!("the files of photos") } else { Value::Null },
        "latency_us": {"p50": p50, "p90": p50 * 1.6, "p99": p50 * 4.2, "p999": p50 * 11.0, "max": p50 * 31.0},
        "histogram": [bucket(0.5, 30), bucket(0.8, 200), bucket(1.0, 270), bucket(1.3, 250), bucket(1.6, 150), bucket(2.5, 70),
                      bucket(4.2, 20), bucket(11.0, 9), bucket(31.0, 1)],
        "cache": "cold", "samples": (0..5).map(sample).collect::<Vec<_>>(),
    })
}

pub(crate) fn named(name: &str, record: &Value) -> NamedRun {
    NamedRun { name: name.to_owned(), record: AnyRecord::from_text(&record.to_string()).unwrap() }
}

pub(crate) fn named_text(name: &str, text: &str) -> NamedRun {
    NamedRun { name: name.to_owned(), record: AnyRecord::from_text(text).unwrap() }
}
