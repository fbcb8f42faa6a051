//! The page: what it says, what it draws, and that nothing of a record can do more than be read.

use forebay_report::html;
use serde_json::{Value, json};

use crate::chien::{self, THREADS, TIERS, USUAL};
use crate::{mini, page_of, plain};

/// The `data-…` values of the marks of a picture, one map a mark.
fn marks(page: &str, figure: &str) -> Vec<String> {
    let start = page.find(&format!("<figure id=\"{figure}\"")).unwrap_or_else(|| panic!("no figure {figure}"));
    let figure = &page[start..start + page[start..].find("</figure>").unwrap()];
    let wide = &figure[figure.find("<svg class=\"wide\"").unwrap()..];
    let wide = &wide[..wide.find("</svg>").unwrap()];
    wide.split("<g class=\"mark\"").skip(1).map(|mark| mark.split('>').next().unwrap().to_owned()).collect()
}

fn value_of(mark: &str, name: &str) -> Option<String> {
    let start = mark.find(&format!("data-{name}=\""))? + name.len() + 7;
    Some(mark[start..start + mark[start..].find('"')?].to_owned())
}

#[test]
fn every_bar_holds_the_records_value_to_the_last_digit() {
    let lines = chien::lines(USUAL);
    let page = page_of(&[chien::run("chien", USUAL)]);
    for (figure, read_only) in [("fig-4", false), ("fig-5", true)] {
        let marks = marks(&page, figure);
        assert_eq!(marks.len(), TIERS.len() * THREADS.len());
        for line in lines[1..].iter().filter(|line| line["ingest"]["read_only"] == read_only) {
            let mark = marks.iter().find(|mark| value_of(mark, "cell").as_deref() == line["id"].as_str());
            let drawn: f64 = value_of(mark.unwrap(), "value").unwrap().parse().unwrap();
            assert_eq!(drawn, line["ingest"]["images_per_s"].as_f64().unwrap(), "{}", line["id"]);
        }
    }
}

#[test]
fn speed_ups_are_drawn_beside_the_published_ones() {
    let page = page_of(&[chien::run("chien", USUAL)]);
    let marks = marks(&page, "speed-up-read");
    let published: Vec<String> = marks.iter().filter_map(|mark| value_of(mark, "published")).collect();
    assert_eq!(published, ["1.65", "1.95", "2.3", "7.8"]);
    let at_8 = marks.iter().find(|mark| mark.contains("threads=8/tier=hdd") && mark.contains("speed_up")).unwrap();
    let ratio: f64 = value_of(at_8, "value").unwrap().parse().unwrap();
    assert!((ratio / (262.0 / 115.0) - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn the_verdict_says_what_limits_and_whether_it_agrees() {
    let page = page_of(&[chien::run("chien", USUAL)]);
    for said in [
        "Storage limits hdd; decoding limits optane; storage and decoding together limit ssd and lustre.",
        "With 8 threads, the emulated hdd fed 263 images/s read only, 2.29× the rate of 1 thread (published: 2.3×).",
        "Decoding, not storage, limits optane on these 2 cores: reading alone gave 12,032 images/s.",
        "11 of 12 published values agree within their tolerance; this one differs: lustre (sequential write, MB/s: 870 against 991.914); \
         3 not judged.",
        "Emulated devices: hdd, ssd, optane and lustre are shaped in this process.",
        "The machine has 2 cores: more threads than cores speed up reading, not decoding.",
        "This is the quick scale",
    ] {
        assert!(page.contains(said), "not said: {said}");
    }
    assert!(!page.contains("not complete") && !page.contains("failed:"), "nothing is wrong with this run");
}

#[test]
fn a_study_that_was_cut_short_says_so_everywhere() {
    let mut lines = chien::lines(USUAL);
    lines.truncate(30);
    lines[20]["error"] = json!("no space left on device");
    lines[21]["ingest"]["cache"] = json!("warm");
    lines[22]["ingest"]["failed_samples"] = json!(3);
    let run = plain::named_text("short", &chien::jsonl(&lines));
    let page = page_of(&[run]);
    for said in [
        "The study is not complete (cells: 29 of 36 done, 1 failed). Continue with --resume.",
        "1 cell failed (ingest/read_only=true/threads=8/tier=ssd): no space left on device.",
        "3 samples failed and were left out.",
        "Of 28 cells that moved data, not all are proven cold: 1 came from memory.",
        "29 of 36 done, 1 failed: incomplete",
        "data-failed=\"yes\"",
        "The run kept no per-second series.",
    ] {
        assert!(page.contains(said), "not said: {said}");
    }
}

#[test]
fn nothing_of_a_record_becomes_markup() {
    let evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";
    let mut record = plain::ingest(USUAL);
    record["dataset"]["path"] = json!(evil);
    record["command_line"] = json!(["forebay", evil]);
    record["notes"] = json!([evil]);
    record["environment"]["cpu"] = json!(evil);
    record["cells"][0]["storage"] = json!(evil);
    record["cells"][1]["worker_time"] = json!({evil: 3.0, "reading": 1.0});
    let mut training = mini::record(1.0);
    for name in ["model", "device", "storage", "tier", "optimizer", "accelerator"] {
        training["cells"][0][name] = json!(evil);
    }
    training["cells"][0]["lever"]["advice"] = json!(evil);
    training["cells"][0]["output"] = json!(evil);
    let mut lines = chien::lines(USUAL);
    lines[0]["spec"]["title"] = json!(evil);
    lines[0]["spec"]["figure"][1]["id"] = json!(evil);
    lines[0]["spec"]["figure"][1]["caption"] = json!(evil);
    lines[0]["spec"]["reference"][0]["source"] = json!(evil);
    lines[0]["tiers"][0]["description"] = json!(evil);
    lines[7]["factors"]["tier"] = json!(evil);
    lines[7]["id"] = json!(evil);
    lines[8]["error"] = json!(evil);
    let mut study = mini::lines();
    study[1]["inspection"]["bssplit"] = json!(evil);
    study[1]["factors"]["dataset"] = json!(evil);
    let page = page_of(&[
        plain::named(evil, &record),
        plain::named(evil, &training),
        plain::named_text(evil, &chien::jsonl(&lines)),
        plain::named_text(evil, &chien::jsonl(&study)),
    ]);
    assert!(!page.contains("<img") && !page.contains("onerror=alert(2)>\""), "an element of the record's");
    assert_eq!(page.matches("<script>").count(), 1, "the page's own script only");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn a_page_needs_nothing_but_itself() {
    let page = page_of(&[chien::run("chien", USUAL), plain::named("probe", &plain::probe())]);
    for outside in ["http://", "https://", "//cdn", "@import", "url(", "<iframe", "<object", "fetch(", "XMLHttp"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("src=").count(), 0);
    assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none&#39;"));
}

#[test]
fn a_page_of_this_study_is_a_few_hundred_kilobytes() {
    let size = html(&[chien::run("chien", USUAL)]).len();
    assert!(size < 600_000, "{size} bytes");
}

#[test]
fn every_figure_has_a_number_a_title_axes_a_caption_and_its_data() {
    let page = page_of(&[chien::run("chien", USUAL)]);
    let figures: Vec<&str> =
        page.split("<figure ").skip(1).map(|part| part.split("</figure>").next().unwrap()).collect();
    assert_eq!(figures.len(), 8);
    let numbers: Vec<&str> =
        figures.iter().map(|f| f.split("class=\"number\">").nth(1).unwrap().split('<').next().unwrap()).collect();
    assert_eq!(
        numbers,
        ["Table I", "Figure 4", "Figure 5", "Figure A", "Figure B", "Figure C", "Figure D", "Figure E"]
    );
    for figure in &figures[1..] {
        assert_eq!(figure.matches("<svg class=\"wide\"").count(), 1);
        assert_eq!(figure.matches("<svg class=\"narrow\"").count(), 1);
        assert!(figure.matches("class=\"tt").count() >= 2, "axes are named");
        assert!(figure.contains("<figcaption>") && figure.contains("<details>"), "{figure}");
    }
    assert!(figures[1].contains(">Images per second<") && figures[1].contains(">MB per second<"));
}

#[test]
fn each_run_of_a_comparison_has_figures_with_names_of_their_own() {
    let faster = chien::Plan { speed: 1.2, seed: 9, ..USUAL };
    let page = page_of(&[chien::run("a/before", USUAL), chien::run("a/after", faster)]);
    for id in ["compare-1", "run-1-fig-4", "run-2-fig-4"] {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    assert!(page.contains("after compared with before"));
    assert_eq!(marks(&page, "compare-1").len(), 40);
}

#[test]
fn records_of_every_shape_have_a_page_without_a_number_that_is_none() {
    let mut study = chien::lines(USUAL);
    let all_failed: Vec<Value> = study
        .iter()
        .cloned()
        .map(|mut line| {
            if line["line"] == "cell" {
                line["error"] = json!("broken");
            }
            line
        })
        .collect();
    let single = vec![study[0].clone(), study[9].clone()];
    for line in &mut study[1..] {
        line["factors"]["unheard_of"] = json!(0.5);
        if line["step"] == "ingest" {
            line["ingest"]["ceiling_mb_per_s"] = Value::Null;
        }
    }
    let zero = {
        let mut record = plain::ingest(USUAL);
        for cell in record["cells"].as_array_mut().unwrap() {
            cell["images_per_s"] = json!(0.0);
            cell["worker_time"] = json!({});
            cell["samples"] = json!([]);
        }
        record
    };
    let least = r#"{"schema": "forebay-record/1", "command": "ingest", "cells": []}"#;
    let runs = [
        plain::named_text("empty", least),
        plain::named_text("no probes", &least.replace("ingest", "probe")),
        plain::named_text("only planned", &chien::jsonl(&study[..1])),
        plain::named_text("failed", &chien::jsonl(&all_failed)),
        plain::named_text("single", &chien::jsonl(&single)),
        plain::named_text("odd factors", &chien::jsonl(&study)),
        plain::named("zero", &zero),
    ];
    let says = [
        "Nothing was measured.",
        "Nothing was measured.",
        "Nothing was measured.",
        "Every cell failed",
        "All cells",
        "unheard of 0.5",
        "",
    ];
    for (run, said) in runs.iter().zip(says) {
        let page = page_of(std::slice::from_ref(run));
        assert!(page.contains(said), "{}: not said: {said}", run.name);
    }
    // All of them beside each other.
    page_of(&runs);
}

#[test]
fn a_record_of_an_older_version_has_a_page() {
    let old = r#"{"schema": "forebay-record/1", "command": "ingest", "cells": [{"threads": 2, "batch": 64, "read_only": false,
        "cache": "warm", "images_per_s": 850.0, "mb_per_s": 95.0, "cpu_s_per_1000": 1.1, "failed_samples": 0,
        "worker_time": {"decoding": 0.7, "reading": 0.3}, "wait_s": 1.0, "wall_s": 1.2, "samples": []}]}"#;
    let page = page_of(&[plain::named_text("old", old)]);
    assert!(page.contains("Decoding is the limit, not storage."), "{page}");
    assert!(page.contains("The bytes came from memory: these are warm rates"));
    assert!(page.contains("Every cell was measured once"));
}

#[test]
fn a_probe_has_rates_percentiles_and_distributions_by_mode() {
    let page = page_of(&[plain::named("probe", &plain::probe())]);
    let headline = "Best rates: sequential read 941 MB/s, random read 432 MB/s and 2,802 small files per second.";
    assert!(page.contains(headline));
    assert_eq!(marks(&page, "rates-sequential-read").len(), 9);
    let marks = marks(&page, "percentiles-random-read");
    assert_eq!(marks.len(), 6 * 5, "six lines of five percentiles");
    assert!(page.contains("<figure id=\"distribution-random-read\"") && !page.contains("distribution-sequential-read"));
}
