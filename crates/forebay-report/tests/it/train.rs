//! Training: what is said of it, what is drawn of it, and how two trainings are compared.

use forebay_report::{NamedRun, csv, headline, json, text};
use serde_json::{Value, json};

use crate::chien;
use crate::flat;
use crate::mini::{self, PUBLISHED_MIX, Settings};
use crate::{page_of, plain};

pub(crate) fn report(runs: &[NamedRun]) -> Value {
    serde_json::from_str(&json(runs)).unwrap()
}

pub(crate) fn study(lines: &[Value]) -> NamedRun {
    plain::named_text("mini", &chien::jsonl(lines))
}

/// A figure of the first run.
pub(crate) fn figure(report: &Value, id: &str) -> Value {
    let figures = report["runs"][0]["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["id"] == id).unwrap_or_else(|| panic!("no figure {id}")).clone()
}

pub(crate) fn rows(figure: &Value) -> &Vec<Value> {
    figure["data"].as_array().unwrap()
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_note_of_many_cells_is_written_once() {
    let mut lines = mini::lines();
    lines[2..6].iter_mut().for_each(|cell| cell["notes"] = json!(["no accelerator here"]));
    lines[6]["notes"] = json!(["alone"]);
    let notes = report(&[study(&lines)])["runs"][0]["notes"].clone();
    let first = lines[2]["id"].as_str().unwrap();
    assert_eq!(notes[0], format!("4 cells, first in {first}: no accelerator here"));
    assert_eq!(notes[1], format!("{}: alone", lines[6]["id"].as_str().unwrap()));
}

#[test]
fn the_parts_of_the_time_are_the_records_and_sum_to_the_wall_clock() {
    let lines = mini::lines();
    let found = figure(&report(&[study(&lines)]), "time");
    assert_eq!(rows(&found).len(), 8);
    let row = &rows(&found)[0];
    assert_eq!(row["at"], "hdd, prefetch 0, 1 thread");
    let cell = &lines.iter().find(|line| line["id"] == "mini-app/prefetch=0/threads=1/tier=hdd").unwrap()["train"];
    for part in ["compute_s", "wait_s", "copy_s", "other_s"] {
        assert_eq!(row[part], cell[part], "{part}");
    }
    assert!((number(&row["total"]) - number(&cell["wall_s"])).abs() < 1e-9);
    let workers = figure(&report(&[study(&lines)]), "workers");
    assert!(number(&rows(&workers)[0]["decoding"]) > 0.0, "workers of trainings, too");
}

#[test]
fn bars_of_times_are_lowest_first_and_keep_a_second_quantity_in_the_data() {
    let found = figure(&report(&[mini::run()]), "fig-7");
    let caption = found["caption"].as_str().unwrap();
    assert!(caption.starts_with("Lowest: 12.5 s, batch 64, prefetch 1."), "{caption}");
    assert_eq!(rows(&found).len(), 6);
    assert!(rows(&found).iter().all(|row| number(&row["wall_s"]) > 0.0 && number(&row["images_per_s"]) > 0.0));
}

#[test]
fn megabytes_over_time_are_rates() {
    let lines = mini::lines();
    let found = figure(&report(&[study(&lines)]), "fig-8");
    let cell = &lines.iter().find(|line| line["id"] == "mini-app/prefetch=1/threads=8/tier=hdd").unwrap()["train"];
    let ours: Vec<&Value> = rows(&found).iter().filter(|row| row["at"] == "hdd, prefetch 1, 8 threads").collect();
    let mb = cell["reads"]["mb"].as_array().unwrap();
    assert_eq!(ours.len(), mb.len());
    for (i, (row, mb)) in ours.iter().zip(mb).enumerate() {
        assert_eq!((number(&row["time_s"]), number(&row["mb_per_s"])), (i as f64 * 0.25, number(mb) / 0.25));
    }
    let page = page_of(&[mini::run()]);
    let fig = &page[page.find("id=\"fig-8\"").unwrap()..];
    let wide = fig.split("</svg>").find(|part| part.contains("class=\"wide\"")).unwrap();
    let areas = |class: &str| wide.matches(&format!("class=\"{class}\"")).count();
    assert_eq!((areas("ahead"), areas("outline c0l")), (4, 4), "a panel a tier");
}

#[test]
fn sizes_have_their_mix_beside_the_published_one() {
    let found = figure(&report(&[mini::run()]), "sizes");
    assert_eq!(found["code"][0][1], "--bssplit=2k/1:4k/2:8k/4:16k/8:32k/13:64k/39:128k/32:256k/1");
    assert_eq!(found["code"][1], json!(["Published:", format!("--bssplit={PUBLISHED_MIX}")]));
    let shares: f64 = rows(&found).iter().map(|row| number(&row["share"])).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let page = page_of(&[mini::run()]);
    for mark in [
        "data-average=\"median\" data-value=\"109000\"",
        "data-average=\"mean\"",
        "data-from=\"65536\" data-value=\"801\"",
    ] {
        assert!(page.contains(mark), "{mark}");
    }
}

#[test]
fn the_disk_is_shown_as_collectl_does_and_what_is_unknown_is_a_dash() {
    let run = mini::run();
    let found = figure(&report(std::slice::from_ref(&run)), "disk");
    let cells: Vec<&str> = rows(&found).iter().map(|row| row["cell"].as_str().unwrap()).collect();
    let [files, shards] = ["feed/dataset=files", "feed/dataset=tfrecord"];
    assert_eq!(
        cells,
        [files, files, shards, shards, shards],
        "every cell that reads, in the ticks that it has for itself"
    );
    assert_eq!(found["remarks"], json!(["Not shown, because they read nothing: synthetic."]));
    for row in rows(&found) {
        assert_eq!(
            (&row["disk"], number(&row["read_size_kib"]), &row["read_merges_per_s"]),
            (&json!("vda"), 113.0, &Value::Null)
        );
    }
    let page = page_of(&[run]);
    assert!(
        page.contains(">Merged</th>") && page.contains("<td class=\"r\">–</td>"),
        "a column without values is there"
    );
}

#[test]
fn a_disk_that_read_nothing_is_explained() {
    let lines = mini::lines();
    let mut run = chien::study(&lines);
    let mut series = mini::series(&lines[1..]);
    let reads = series.columns.iter_mut().find(|column| column.name == "disk.vda.read_bytes_per_s").unwrap();
    reads.values.fill(Some(0.0));
    run.series = Some(series);
    let record = forebay_record::AnyRecord::Study(Box::new(run));
    let found = figure(&report(&[NamedRun { name: "mini".to_owned(), record }]), "disk");
    let remark = found["remarks"][0].as_str().unwrap();
    assert!(remark.starts_with("No disk read anything while these cells ran. A shaped tier"), "{remark}");
}

#[test]
fn the_need_is_the_rate_times_the_size_times_the_number() {
    let run = mini::run();
    let found = figure(&report(std::slice::from_ref(&run)), "need");
    let files = rows(&found).iter().find(|row| row["at"] == "files").unwrap();
    assert_eq!(number(&files["images_per_s"]), 64.0 / 0.05);
    assert!((number(&files["mb_per_s_8"]) - 8.0 * 1_280.0 * 0.112).abs() < 1e-9, "{files}");
    let synthetic = rows(&found).iter().find(|row| row["at"] == "synthetic").unwrap();
    assert_eq!(number(&synthetic["bytes_per_image"]), 112_000.0, "of the cells that read");
    let caption = found["caption"].as_str().unwrap();
    assert!(caption.starts_with("8 accelerators need up to 1,157 MB/s (tfrecord: "), "{caption}");
    assert!(caption.contains("Published for 8: 1,000 to 1,300 MB/s."), "{caption}");
    let references = &report(&[run])["runs"][0]["references"];
    assert_eq!(references.as_array().unwrap().len(), 4, "two values beside two cells that read: {references}");
    assert!((number(&references[0]["ours"]) - 1_146.88).abs() < 1e-6);
}

#[test]
fn a_training_says_where_its_time_went_and_what_would_help() {
    let record = mini::record(1.0);
    let runs = [plain::named("train", &record)];
    let found = report(&runs);
    let run = &found["runs"][0];
    assert_eq!(run["title"], "Training alexnet on photos");
    let ids: Vec<&str> =
        run["figures"].as_array().unwrap().iter().map(|figure| figure["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["time", "steps", "reads", "workers"]);
    let findings = run["verdict"]["findings"].to_string();
    for said in [
        "300 steps of 64 images took",
        "AU is 83 %, 83 % without the wait for the first batch, 83 % as DLIO counts",
        "Causes of the wait of 1.99 s: storage 1.99 s (100 %).",
        "The cost of I/O is 2.50 s ± 24.2 ms (20 %)",
        "put the data on faster storage. It would save at most",
        "3 threads would suffice",
    ] {
        assert!(findings.contains(said), "not said: {said} in {findings}");
    }
    let steps = figure(&found, "steps");
    assert_eq!(rows(&steps).len(), 300);
    for (row, step) in rows(&steps).iter().zip(record["cells"][0]["steps"].as_array().unwrap()) {
        assert_eq!((&row["wait_s"], &row["compute_s"]), (&step["wait_s"], &step["compute_s"]));
        assert!((number(&row["loss"]) - number(&step["loss"])).abs() < 1e-6);
    }
    let cell = &run["cells"][0];
    assert_eq!(
        (&cell["wall_s"], &cell["io_cost_s"]),
        (&record["cells"][0]["wall_s"], &record["cells"][0]["io_cost_s"])
    );
    page_of(&runs);
}

#[test]
fn a_long_training_is_thinned_out_and_says_so() {
    let of = Settings {
        tier: None,
        batch: 8,
        threads: 1,
        prefetch: 1,
        n_steps: 5_000,
        compute_s: 0.01,
        make_s: Some(0.002),
        bytes_per_image: 1_000,
        model: None,
        seed: 1,
    };
    let mut record = mini::record(1.0);
    record["cells"] = json!([mini::train_cell(of, 1)]);
    let runs = [plain::named("long", &record)];
    let steps = figure(&report(&runs), "steps");
    assert!(rows(&steps).len() <= 600, "{}", rows(&steps).len());
    assert!(steps["remarks"].to_string().contains("5,000 steps do not fit in the picture"), "{steps}");
    let sum: f64 = rows(&steps).iter().map(|row| number(&row["compute_s"]) * number(&row["n_steps"])).sum();
    assert!((sum - number(&record["cells"][0]["compute_s"])).abs() < 0.01, "means keep the sum: {sum}");
    assert!(page_of(&runs).len() < 500_000);
}

#[test]
fn of_run_times_the_shorter_is_faster() {
    let run = |name: &str, speed: f64| {
        let mut record = mini::record(speed);
        let of = Settings { compute_s: 0.04 / speed, make_s: Some(0.01), n_steps: 50, ..SHORT };
        record["cells"] = json!([mini::train_cell(of, 5)]);
        plain::named(name, &record)
    };
    let runs = [run("before.json", 1.0), run("after.json", 1.5)];
    let found = report(&runs)["comparisons"][0].clone();
    assert_eq!(
        (&found["summary"], &found["cells"][0]["metric"]),
        (&json!("1 cell in common: 1 faster."), &json!("wall clock, s"))
    );
    assert!(number(&found["cells"][0]["ratio"]) < 1.0);
    assert!(
        found["method"].as_str().unwrap().contains("These are ratios of run times: below 1× is faster."),
        "{found}"
    );
    let page = page_of(&runs);
    assert!(page.contains("Ratio of run times: after over before") && page.contains("below is faster"));
    assert!(flat(&text(&runs)).contains("below 1× is faster"), "{}", text(&runs));
}

const SHORT: Settings<'static> = Settings {
    tier: None,
    batch: 8,
    threads: 1,
    prefetch: 1,
    n_steps: 50,
    compute_s: 0.04,
    make_s: Some(0.01),
    bytes_per_image: 1_000,
    model: Some("alexnet"),
    seed: 4,
};

#[test]
fn trainings_of_unlike_length_are_compared_by_their_rates() {
    let run = |name: &str, n_steps: u64| {
        let mut record = mini::record(1.0);
        record["cells"] = json!([mini::train_cell(Settings { n_steps, ..SHORT }, 5)]);
        plain::named(name, &record)
    };
    let found = report(&[run("a", 50), run("b", 200)])["comparisons"][0].clone();
    assert_eq!(found["cells"][0]["metric"], "images/s");
    assert_eq!(found["differences"][0], json!({"what": "steps", "before": "50", "after": "200"}));
    assert!((number(&found["cells"][0]["ratio"]) - 1.0).abs() < 0.05, "four times as long is not slower: {found}");
}

#[test]
fn the_csv_has_the_quantities_of_a_training_and_of_a_dataset() {
    let lines = csv(&[mini::run()]);
    let of = |wanted: &str| lines.lines().filter(|line| line.contains(wanted)).count();
    let n_trained = 32 + 6 + 3;
    for metric in [",wall_s,", ",au_epoch,", ",wait_share,"] {
        assert_eq!(of(metric), n_trained, "{metric}");
    }
    assert_eq!(of(",io_cost_s,"), n_trained - 1, "synthetic batches have none");
    assert!(lines.contains(",n_samples,samples,2048,"), "{}", lines.lines().nth(1).unwrap());
}

#[test]
fn trainings_of_every_shape_have_a_page() {
    let least = r#"{"schema": "forebay-record/1", "command": "train", "cells": []}"#;
    let mut synthetic = mini::record(1.0);
    synthetic["cells"] = json!([mini::train_cell(Settings { make_s: None, ..SHORT }, 1)]);
    synthetic["dataset"]["path"] = json!("");
    let mut bare = mini::record(1.0);
    for name in ["reads", "baseline", "io_cost_s", "feed", "au_steady", "overlap", "loss"] {
        bare["cells"][0][name] = Value::Null;
    }
    bare["cells"][0]["steps"] = json!([]);
    bare["cells"][0]["worker_time"] = json!({});
    let mut one_step = mini::record(1.0);
    one_step["cells"] = json!([mini::train_cell(Settings { n_steps: 1, ..SHORT }, 1)]);
    let mut below = mini::record(1.0);
    below["cells"][0]["io_cost_s"] = json!(-0.5);
    let mut zero = mini::record(1.0);
    let numbers = zero["cells"][0].as_object_mut().unwrap();
    numbers.values_mut().filter(|value| value.is_number()).for_each(|value| *value = json!(0));
    for part in ["baseline", "feed", "reads", "lever"] {
        let parts = zero["cells"][0][part].as_object_mut().unwrap();
        parts.values_mut().filter(|value| value.is_number()).for_each(|value| *value = json!(0));
    }
    zero["cells"][0]["samples"] = json!([zero["cells"][0].clone()]);
    let steps = zero["cells"][0]["steps"].as_array_mut().unwrap();
    steps.iter_mut().for_each(|step| step["compute_s"] = json!(0.0));
    let runs = [
        plain::named_text("empty", least),
        plain::named("zero", &zero),
        plain::named("synthetic", &synthetic),
        plain::named("bare", &bare),
        plain::named("one step", &one_step),
        plain::named("below", &below),
    ];
    let says = [
        "Nothing was measured.",
        "Training alexnet on photos",
        "on synthetic batches",
        "No cell of this figure recorded its steps.",
        "1 step of 8 images took",
        "−0.500 s",
    ];
    for (run, said) in runs.iter().zip(says) {
        let page = page_of(std::slice::from_ref(run));
        assert!(page.contains(said), "{}: not said: {said}", run.name);
        assert!(!headline(std::slice::from_ref(run)).is_empty());
    }
    page_of(&runs);
}

#[test]
fn every_figure_of_training_has_axes_a_caption_and_its_data() {
    let page = page_of(&[mini::run(), plain::named("train", &mini::record(1.0))]);
    let figures: Vec<&str> =
        page.split("<figure ").skip(1).map(|part| part.split("</figure>").next().unwrap()).collect();
    assert_eq!(figures.len(), 9 + 4);
    for figure in figures {
        assert!(figure.contains("<figcaption>") && figure.contains("<table"), "{figure}");
        if figure.contains("data-kind=\"disk\"") {
            continue;
        }
        for picture in ["wide", "narrow"] {
            assert_eq!(figure.matches(&format!("<svg class=\"{picture}\"")).count(), 1);
        }
        assert!(figure.matches("class=\"tt").count() >= 4, "both pictures name their axes: {figure}");
    }
}
