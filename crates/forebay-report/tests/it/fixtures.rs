//! The records that the browser's tests open are those that the generators make.

use std::path::{Path, PathBuf};

use crate::{chien, mini, plain, saved};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

#[test]
fn the_committed_records_agree_with_their_raw_values() {
    for name in [
        "chien/record.jsonl",
        "mini/record.jsonl",
        "saved/record.jsonl",
        "train.json",
        "saved.json",
        "checkpoint.json",
        "ingest.json",
        "probe.json",
    ] {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let record = forebay_record::AnyRecord::from_text(&text).unwrap();
        assert!(record.check().is_ok(), "{name}: {}", record.check().unwrap_err());
    }
}

/// Summaries of the committed records, by their place and the name that a refusal has for them.
const SUMMARIES: [(&str, &str, &str); 37] = [
    ("ingest.json", "/cells/1/images_per_s", "images_per_s"),
    ("ingest.json", "/cells/1/mb_per_s", "mb_per_s"),
    ("ingest.json", "/cells/1/spread", "spread"),
    ("ingest.json", "/cells/1/cpu_s_per_1000", "cpu_s_per_1000"),
    ("ingest.json", "/cells/1/failed_samples", "failed_samples"),
    ("ingest.json", "/cells/1/wall_s", "wall_s"),
    ("ingest.json", "/cells/1/wait_s", "wait_s"),
    ("ingest.json", "/cells/1/worker_time/reading", "worker_time.reading"),
    ("probe.json", "/cells/1/mb_per_s", "mb_per_s"),
    ("probe.json", "/cells/1/iops", "iops"),
    ("probe.json", "/cells/1/spread", "spread"),
    ("probe.json", "/cells/1/latency_us/p50", "latency_us.p50"),
    ("probe.json", "/cells/1/latency_us/p90", "latency_us.p90"),
    ("probe.json", "/cells/1/latency_us/p99", "latency_us.p99"),
    ("probe.json", "/cells/1/latency_us/p999", "latency_us.p999"),
    ("probe.json", "/cells/1/latency_us/max", "latency_us.max"),
    ("checkpoint.json", "/cells/1/stall_s", "stall_s"),
    ("checkpoint.json", "/cells/1/durable_fast_s", "durable_fast_s"),
    ("checkpoint.json", "/cells/1/durable_slow_s", "durable_slow_s"),
    ("checkpoint.json", "/cells/1/restore_s", "restore_s"),
    ("checkpoint.json", "/cells/1/spread", "spread"),
    ("train.json", "/cells/0/images_per_s", "images_per_s"),
    ("train.json", "/cells/0/wall_s", "wall_s"),
    ("train.json", "/cells/0/wait_s", "wait_s"),
    ("train.json", "/cells/0/compute_s", "compute_s"),
    ("train.json", "/cells/0/au_epoch", "au_epoch"),
    ("train.json", "/cells/0/au_steady", "au_steady"),
    ("train.json", "/cells/0/au_dlio", "au_dlio"),
    ("train.json", "/cells/0/stall_by_cause/storage", "stall_by_cause.storage"),
    ("train.json", "/cells/0/images", "images"),
    ("train.json", "/cells/0/n_steps", "n_steps"),
    ("train.json", "/cells/0/steps/3/compute_s", "compute_s"),
    ("train.json", "/cells/0/io_cost_s", "io_cost_s"),
    ("train.json", "/cells/0/lever/wall_s", "lever.wall_s"),
    ("train.json", "/cells/0/feed/takes_images_per_s", "feed.takes_images_per_s"),
    ("saved.json", "/cells/0/checkpoints/median_stall_s", "checkpoints.median_stall_s"),
    ("saved.json", "/cells/0/checkpoint_s", "checkpoint_s"),
];

#[test]
fn a_summary_that_was_edited_is_refused_with_its_cell_and_both_numbers() {
    for (name, place, field) in SUMMARIES {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let value = record.pointer_mut(place).unwrap();
        *value = match value.as_u64() {
            Some(whole) => (whole + 7).into(),
            None => (value.as_f64().unwrap() * 1.5).into(),
        };
        let edited = value.to_string().trim_end_matches(".0").to_owned();
        let error = forebay_record::AnyRecord::from_text(&record.to_string()).unwrap().check().unwrap_err().to_string();
        let cell = if place.starts_with("/cells/1") { "cell 2 of " } else { "cell 1 of 1: " };
        assert!(error.starts_with(cell), "{name} {place}: {error}");
        let wanted = format!("summary disagrees with its raw values: {field} ");
        assert!(error.contains(&wanted), "{name} {place}: {error}");
        let is_raw = place.contains("/steps/");
        assert!(is_raw || error.contains(&format!(" {edited}, ")), "{name} {place}: {edited} is not in {error}");
    }
}

#[test]
fn a_cell_of_a_study_is_named_and_so_is_a_cache_state() {
    let mut lines = chien::lines(chien::USUAL);
    lines[9]["ingest"]["images_per_s"] = 9_999.0.into();
    let check = |lines: &[serde_json::Value]| {
        forebay_record::AnyRecord::from_text(&chien::jsonl(lines)).unwrap().check().unwrap_err().to_string()
    };
    let wanted = format!(
        "cell {}: summary disagrees with its raw values: images_per_s 9999, repeats give ",
        lines[9]["id"].as_str().unwrap()
    );
    assert!(check(&lines).starts_with(&wanted), "{}", check(&lines));
    let mut lines = chien::lines(chien::USUAL);
    lines[1]["probe"][0]["cache"] = "warm".into();
    assert!(check(&lines).ends_with("cache warm, the evidence gives cold"), "{}", check(&lines));
    lines[1]["probe"][0]["samples"].as_array_mut().unwrap().clear();
    assert!(check(&lines).ends_with(", repeats give nothing: there are none"), "{}", check(&lines));
    let mut lines = mini::lines();
    lines[1]["inspection"]["n_samples"] = 7.into();
    assert!(check(&lines).ends_with("sizes.n 2048, n_samples gives 7"), "{}", check(&lines));
}

/// Compares a committed file with what it should be; the new one is left in the build folder.
fn assert_committed(name: &str, wanted: &str) {
    let path = folder().join(name);
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found != wanted {
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(made.parent().unwrap()).unwrap();
        std::fs::write(&made, wanted).unwrap();
        panic!("{} is not what the generator makes; that is now in {}", path.display(), made.display());
    }
}

#[test]
fn the_committed_study_is_what_the_generator_makes() {
    let lines = chien::lines(chien::USUAL);
    assert_committed("chien/record.jsonl", &chien::jsonl(&lines));
    assert_committed("chien/samples.csv", &chien::series(&lines[1..], 150).to_csv());
}

#[test]
fn the_committed_trainings_are_what_the_generators_make() {
    let lines = mini::lines();
    assert_committed("mini/record.jsonl", &chien::jsonl(&lines));
    assert_committed("mini/samples.csv", &mini::series(&lines[1..]).to_csv());
    assert_committed("train.json", &format!("{}\n", mini::record(1.0)));
}

#[test]
fn the_committed_checkpoints_are_what_the_generators_make() {
    assert_committed("saved/record.jsonl", &chien::jsonl(&saved::lines()));
    assert_committed("saved.json", &format!("{}\n", saved::train_record(Some(saved::BURST))));
    assert_committed("checkpoint.json", &format!("{}\n", saved::bench(1.0)));
}

#[test]
fn the_committed_records_are_what_the_generators_make() {
    let pretty = |record: &serde_json::Value| serde_json::to_string_pretty(record).unwrap() + "\n";
    assert_committed("ingest.json", &pretty(&plain::ingest(chien::USUAL)));
    assert_committed("probe.json", &pretty(&plain::probe()));
}
