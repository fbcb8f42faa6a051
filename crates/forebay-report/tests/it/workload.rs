//! Workloads on the page: utilisation in both arithmetics, cells that were left out, and why there is no peak.

use forebay_record::AnyRecord;
use forebay_report::{NamedRun, csv, headline, json, text};
use serde_json::{Value, json};

use crate::chien::jsonl;
use crate::page_of;

/// Processes, steps an epoch, utilisation over whole epochs and as DLIO counts: the source's values.
const COUNTS: [(u64, u64, f64, f64); 5] =
    [(1, 24, 28.9, 33.75), (2, 12, 27.0, 36.41), (4, 6, 26.4, 58.10), (6, 4, 22.4, 86.52), (8, 3, 21.9, 77.94)];

fn workload(n: u64, steps: u64, whole: f64, dlio: f64) -> Value {
    let compute = 0.323 * steps as f64;
    let wall = compute * 100.0 / whole;
    let mut cell = json!({
        "workload": "unet3d_h100", "format": "npz", "n_files": 168, "samples_per_file": 1,
        "record_length_bytes": 146_600_628.0, "batch": 7, "read_threads": 4, "prefetch": 4, "computation_s": 0.323,
        "epochs": 1, "steps_per_epoch": steps, "order": "files: seed 123",
    });
    let totals = json!({
        "au_epoch": whole, "au_steady": 60.0, "au_dlio": dlio, "samples_per_s": 168.0 / wall,
        "mb_per_s_moved": 24_629.0 / wall, "mb_per_s_device": null, "first_batch_s": 4.3,
        "stall_by_cause": {"decode": (wall - compute) * n as f64}, "barrier_s": 0.0, "steps": steps * n, "ranks": 1,
        "accelerators": n, "warnings": ["an epoch has fewer than 50 steps"], "samples": 168, "bytes_moved": 24_629_000_000_u64,
        "wall_s": wall, "accelerator_s": wall * n as f64, "wait_s": (wall - compute) * n as f64, "compute_s": compute * n as f64,
        "checkpoint_s": 0.0, "other_s": 0.0, "dlio_mib_per_s": 977.0 * n as f64 * dlio / 33.75,
    });
    let more = json!({
        "load": {"mean": 0.6, "p50": 0.1, "p90": 1.0, "p99": 4.3, "max": 4.3},
        "step": {"mean": 0.9, "p50": 0.4, "p90": 1.3, "p99": 4.6, "max": 4.6},
        "epochs_of": [{"accelerator": 0, "epoch": 1, "start_s": 0.0, "wall_s": wall, "first_batch_s": 4.3, "n_steps": steps,
            "wait_s": wall - compute, "compute_s": compute, "barrier_s": 0.0, "checkpoint_s": 0.0, "other_s": 0.0,
            "au_dlio": dlio, "load": vec![0.5; steps as usize], "compute": vec![0.323; steps as usize],
            "barrier": (0..steps).map(|i| if i == 0 { 0.025 * n as f64 } else { 0.01 }).collect::<Vec<_>>()}],
        "saves": [{"epoch": 1, "step": steps, "bytes": 10_240, "seconds": 0.02, "seconds_rank_0": 0.01, "is_durable": true}],
    });
    for part in [totals, more] {
        for (key, value) in part.as_object().unwrap() {
            cell[key] = value.clone();
        }
    }
    cell
}

pub(crate) fn lines() -> Vec<Value> {
    let levels: Vec<u64> = COUNTS.iter().map(|of| of.0).chain([16]).collect();
    let reference = |n: u64, metric: &str, value: f64| {
        let at = json!({"processes": n});
        json!({"experiment": "unet3d", "metric": metric, "at": at, "value": value, "source": "campaign C"})
    };
    let references = COUNTS.iter().flat_map(|(n, _, whole, dlio)| {
        [reference(*n, "au_epoch", whole / 100.0), reference(*n, "au_dlio", dlio / 100.0)]
    });
    let figure = |id: &str, kind: &str, metrics: &[&str]| {
        let x = "processes";
        json!({"id": id, "title": id, "kind": kind, "experiment": "unet3d", "x": x, "metrics": metrics})
    };
    let head = json!({
        "line": "head", "schema": "forebay-record/1", "command": "study", "scale": "quick", "n_cells": 6,
        "spec": {"name": "hugen", "title": "DLIO on 1 to 8 processes", "source": "a paper",
            "experiment": [{"name": "unet3d", "run": "workload", "factors": {"processes": levels}}],
            "reference": references.collect::<Vec<_>>(),
            "figure": [figure("utilisation", "utilisation", &["au_epoch", "au_dlio"]),
                figure("throughput", "utilisation", &["mb_per_s_moved", "dlio_mib_per_s"]), figure("time", "time", &[]),
                figure("steps", "steps", &[])]},
    });
    let cell = |n: u64| {
        json!({"line": "cell", "id": format!("unet3d/processes={n}"), "experiment": "unet3d", "step": "workload",
            "factors": {"processes": n}, "started_at": "", "elapsed_s": 2.0})
    };
    let mut lines = vec![head];
    for (n, steps, whole, dlio) in COUNTS {
        let mut measured = cell(n);
        measured["workload"] = workload(n, steps, whole, dlio);
        lines.push(measured);
    }
    let mut left_out = cell(16);
    left_out["left_out"] = json!("its batches take 9.0 TB of memory");
    lines.push(left_out);
    lines
}

fn study() -> NamedRun {
    let record = AnyRecord::from_text(&jsonl(&lines())).unwrap();
    NamedRun { name: "hugen".to_owned(), record }
}

fn record() -> NamedRun {
    let text = json!({"schema": "forebay-record/1", "command": "workload", "cells": [workload(6, 4, 22.4, 86.52)]});
    NamedRun { name: "one".to_owned(), record: AnyRecord::from_text(&text.to_string()).unwrap() }
}

#[test]
fn the_headline_says_why_there_is_no_peak_at_six_processes() {
    let said = headline(&[study()]);
    assert!(
        said.starts_with("There is no peak at 6 processes. DLIO's arithmetic gives 34 % with 1 process and 87 %"),
        "{said}"
    );
    for part in [
        "24, 12, 6, 4 and 3 steps",
        "the first of its 4 steps waited 4.3",
        "DLIO does count the barrier after that step, where accelerators waited 0.15 s on average for the slowest, and 0.20 s \
         with 8 processes.",
        "22 % with 6 processes",
        "falls from 29 % to 22 %",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn utilisation_is_drawn_in_both_arithmetics_beside_the_published_values() {
    let page = page_of(&[study()]);
    assert!(page.contains("data-metric=\"au_dlio\"") && page.contains("data-metric=\"au_epoch\""));
    assert!(page.contains("data-published=\"0.8652\""));
    assert!(page.contains("Left out: 16 processes: its batches take 9.0 TB of memory."));
    assert!(page.contains("whole epoch") && page.contains("as DLIO counts"));
}

#[test]
fn cells_that_were_left_out_are_in_the_table_the_caveats_and_the_csv() {
    let whole: Value = serde_json::from_str(&json(&[study()])).unwrap();
    let caveats = whole["runs"][0]["verdict"]["caveats"].to_string();
    assert!(caveats.contains("1 cell was left out: 16 processes (its batches take 9.0 TB of memory)."), "{caveats}");
    assert!(!caveats.contains("failed"), "{caveats}");
    assert!(caveats.contains("an epoch has fewer than 50 steps (5 cells)"), "{caveats}");
    let csv = csv(&[study()]);
    assert!(csv.lines().next().unwrap().contains(",error,left_out"), "{csv}");
    assert!(csv.contains("its batches take 9.0 TB of memory"));
    assert!(text(&[study()]).contains("its batches take 9.0 TB of memory"));
}

#[test]
fn a_record_of_one_run_has_its_epochs_steps_time_and_saves() {
    let page = page_of(&[record()]);
    for title in ["epoch by epoch", "accelerators&#39; time went", "Step by step", "Each checkpoint"] {
        assert!(page.contains(title) || page.contains(&title.replace("&#39;", "'")), "{title}");
    }
    assert!(page.contains("slowest rank") && page.contains("barrier"));
    let said = headline(&[record()]);
    assert!(said.starts_with("AU over whole epochs is 22 %"), "{said}");
}

#[test]
fn of_utilisation_and_samples_more_is_better() {
    let text = json!({"schema": "forebay-record/1", "command": "workload", "cells": [workload(6, 4, 44.8, 90.0)]});
    let better = NamedRun { name: "two".to_owned(), record: AnyRecord::from_text(&text.to_string()).unwrap() };
    let whole: Value = serde_json::from_str(&json(&[record(), better])).unwrap();
    let cells = whole["comparisons"][0]["cells"].to_string();
    assert!(cells.contains("AU, whole epoch") && cells.contains("samples/s"), "{cells}");
}

/// Runs that lie a little apart, of a cell whose own is the middle one.
fn repeated(cell: &mut Value) {
    let run = |times: f64| {
        let mut run = cell.clone();
        for key in ["au_epoch", "au_dlio", "wall_s", "samples_per_s"] {
            run[key] = json!(run[key].as_f64().unwrap() * times);
        }
        run
    };
    cell["runs"] = json!([run(0.99), run(1.0), run(1.01)]);
}

#[test]
fn what_was_run_again_has_a_range_on_the_page_and_can_be_told_apart() {
    let again = changed(|lines| lines[1..6].iter_mut().for_each(|line| repeated(&mut line["workload"])));
    let page = page_of(std::slice::from_ref(&again));
    assert!(page.contains("; repeats from 86 % to 87 %"), "the point of six processes");
    assert!(page.contains("the line through it reaches from the lowest to the highest"));
    assert!(!page_of(&[study()]).contains("repeats from"), "what was run once has none");
    let whole: Value = serde_json::from_str(&json(std::slice::from_ref(&again))).unwrap();
    assert!(!whole["runs"][0]["verdict"]["caveats"].to_string().contains("measured once"));
    let better = changed(|lines| {
        for line in &mut lines[1..6] {
            let au = line["workload"]["au_epoch"].as_f64().unwrap();
            line["workload"]["au_epoch"] = json!(au * 1.5);
            repeated(&mut line["workload"]);
        }
    });
    let whole: Value = serde_json::from_str(&json(&[again, better])).unwrap();
    let told = whole["comparisons"][0].to_string();
    assert!(told.contains("faster") || told.contains("better"), "{told}");
    assert!(!told.contains("inconclusive"), "{told}");
}

/// The study with a change to its lines.
fn changed(change: impl Fn(&mut Vec<Value>)) -> NamedRun {
    let mut lines = lines();
    change(&mut lines);
    NamedRun { name: "hugen".to_owned(), record: AnyRecord::from_text(&jsonl(&lines)).unwrap() }
}

#[test]
fn a_reader_that_is_emulated_is_called_so_beside_the_real_one() {
    let said = headline(&[changed(|lines| {
        lines[0]["spec"]["experiment"][0]["settings"] = json!({"dlio_decode_mb_per_s": 950});
        let real = json!({"name": "real", "run": "workload", "factors": {"processes": [1, 2, 4]}});
        lines[0]["spec"]["experiment"].as_array_mut().unwrap().push(real);
        for (n, steps, whole, _) in &COUNTS[..3] {
            lines.push(
                json!({"line": "cell", "id": format!("real/processes={n}"), "experiment": "real", "step": "workload",
                "factors": {"processes": n}, "started_at": "", "elapsed_s": 2.0,
                "workload": workload(*n, *steps, whole + 60.0, whole + 61.0)}),
            );
        }
    })]);
    assert!(said.contains("is emulated") && said.contains("decodes 0.95 GB/s") && said.contains("fitted"), "{said}");
    assert!(
        said.contains("own reader (real, at the quick scale's smaller demand), AU over whole epochs is 89 % with 1"),
        "{said}"
    );
    assert!(!headline(&[study()]).contains("emulated"));
}

#[test]
fn a_fall_that_is_not_one_all_the_way_is_told_value_by_value() {
    let said = headline(&[changed(|lines| lines[3]["workload"]["au_epoch"] = json!(20.2))]);
    assert!(said.contains("goes 29 %, 27 %, 20 %, 22 % and 22 % in turn"), "{said}");
}

#[test]
fn a_published_value_of_the_other_scale_is_counted_and_not_shown() {
    let with = changed(|lines| lines[0]["spec"]["reference"][7]["scale"] = json!("full"));
    assert!(page_of(&[study()]).contains("data-published=\"0.8652\""));
    let page = page_of(std::slice::from_ref(&with));
    assert!(!page.contains("data-published=\"0.8652\""));
    assert!(page.contains("1 published value is only valid at the full scale and not shown here."));
}

#[test]
fn the_table_for_programs_has_utilisation_in_percent_as_the_record_does() {
    let csv = csv(&[study()]);
    let line = csv.lines().find(|line| line.contains(",au_dlio,")).unwrap();
    assert!(line.contains(",au_dlio,%,33.75,"), "{line}");
    assert!(csv.lines().next().unwrap().contains(",metric,unit,value,"), "{csv}");
    assert!(csv.contains(",samples_per_s,samples/s,"), "{csv}");
}

#[test]
fn a_value_that_was_measured_once_counts_as_one_and_warnings_that_differ_in_a_number_are_one() {
    let two = changed(|lines| {
        lines[1]["workload"]["warnings"] = json!(["24 steps are few"]);
        lines[2]["workload"]["warnings"] = json!(["12 steps are few"]);
    });
    let whole: Value = serde_json::from_str(&json(std::slice::from_ref(&two))).unwrap();
    let caveats = whole["runs"][0]["verdict"]["caveats"].to_string();
    assert!(caveats.contains("12 to 24 steps are few (2 cells)"), "{caveats}");
    let csv = csv(&[two]);
    let line = csv.lines().find(|line| line.contains(",au_epoch,")).unwrap();
    assert!(line.contains(",au_epoch,%,28.9,,1,"), "{line}");
}

#[test]
fn where_checkpoints_make_the_gap_they_are_named() {
    let mut cell = workload(6, 4, 22.4, 86.52);
    cell["checkpoint_s"] = json!(1_000.0);
    let text = json!({"schema": "forebay-record/1", "command": "workload", "cells": [cell]});
    let one = NamedRun { name: "one".to_owned(), record: AnyRecord::from_text(&text.to_string()).unwrap() };
    let whole: Value = serde_json::from_str(&json(&[one])).unwrap();
    let said = whole["runs"][0]["verdict"].to_string();
    assert!(said.contains("it leaves out checkpoints"), "{said}");
    assert!(said.contains("the main cause of stalls is checkpoints"), "{said}");
}

#[test]
fn a_study_says_what_its_workload_requires_and_how_many_cells_reach_it() {
    let mut lines = lines();
    for line in &mut lines[1..6] {
        let value = line["workload"]["au_epoch"].as_f64().unwrap();
        line["workload"]["judged"] =
            json!([{"what": "au_epoch", "value": value, "limit": 90.0, "is_met": false, "is_decisive": true}]);
        line["workload"]["demand_bytes_per_s"] = json!(3.177e9);
    }
    let run = [NamedRun { name: "hugen".to_owned(), record: AnyRecord::from_text(&jsonl(&lines)).unwrap() }];
    let wanted =
        "unet3d_h100 requires an AU of 90 %: 0 of 5 cells reach it; one accelerator that never waits takes 3,177 MB/s.";
    assert!(json(&run).contains(wanted), "{}", text(&run));
    assert!(page_of(&run).contains(">required: 90 %</text>"));
    assert!(!page_of(&[study()]).contains("required: "), "nothing was required");
}

#[test]
fn a_study_without_figures_has_the_usual_ones() {
    let mut lines = lines();
    lines[0]["spec"]["figure"] = json!([]);
    let run = [NamedRun { name: "hugen".to_owned(), record: AnyRecord::from_text(&jsonl(&lines)).unwrap() }];
    let report: Value = serde_json::from_str(&json(&run)).unwrap();
    let figures = report["runs"][0]["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 1);
    assert_eq!(
        (&figures[0]["kind"], &figures[0]["title"]),
        (&json!("utilisation"), &json!("unet3d: accelerator utilisation"))
    );
    assert_eq!(figures[0]["data"].as_array().unwrap().len(), 10, "both arithmetics at five levels");
}
