//! The records that the browser's tests open are those that the generators make.

use std::path::{Path, PathBuf};

use crate::{chien, mini, plain, saved};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
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
