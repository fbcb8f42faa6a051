//! Studies that make checkpoints while they train, and that only save.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::dir::Dir;
use crate::study::{cells, ids, sorted};

/// An accelerator of a millisecond whose state goes nowhere, to the slow device, and over the fast one to it.
const STUDY: &str = r#"
name = "saved"
title = "a study that saves"
seed = 3

[[tier]]
name = "slow"
profile = "hdd"

[[tier]]
name = "fast"
profile = "optane"

[[experiment]]
name = "train"
run = "train"
repeats = 1
warmups = 0
[experiment.factors]
checkpoint = ["none", "slow", "fast → slow"]
[experiment.settings]
synthetic = true
accelerator = "emulated:1ms"
batch = 4
steps = 20
checkpoint_every = 4
checkpoint_size = "8MB"
checkpoint_format = "tensorflow"

[[figure]]
id = "saved"
title = "With checkpoints"
kind = "checkpoints"
experiment = "train"
x = "checkpoint"
"#;

/// Saving alone.
const SAVE: &str = r#"
[[experiment]]
name = "save"
run = "checkpoint"
repeats = 2
[experiment.factors]
tier = ["slow", "fast → slow"]
[experiment.settings]
size = "4MB"
format = "safetensors"
"#;

fn with_study(text: &str) -> Dir {
    let dir = Dir::new();
    dir.write("study.toml", text);
    dir
}

/// The study without what it trains, and with what it saves alone.
fn saving() -> String {
    let head = STUDY.split("[[experiment]]").next().unwrap();
    format!("{head}{SAVE}")
}

fn cell<'a>(cells: &'a [Value], id: &str) -> &'a Value {
    cells.iter().find(|cell| cell["id"] == id).unwrap_or_else(|| panic!("{id}"))
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_train_cell_saves_where_its_level_says_and_takes_it_away_again() {
    let dir = with_study(STUDY);
    let done = dir.run("study run study.toml --out out");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let cells = cells(&dir, "out");
    assert_eq!(sorted(ids(&cells)), ["train/checkpoint=fast → slow", "train/checkpoint=none", "train/checkpoint=slow"]);
    let of = |to: &str| &cell(&cells, &format!("train/checkpoint={to}"))["measured"]["train"];
    assert!(of("none")["checkpoints"].is_null(), "{}", of("none"));
    let (direct, burst) = (&of("slow")["checkpoints"], &of("fast → slow")["checkpoints"]);
    for (saved, mode, fast) in [(direct, "direct", Value::Null), (burst, "burst", "optane".into())] {
        assert_eq!((&saved["mode"], &saved["format"]), (&mode.into(), &"tensorflow".into()), "{saved}");
        assert_eq!((&saved["medium"]["tier"], &saved["burst"]["tier"]), (&"hdd".into(), &fast), "{saved}");
        assert_eq!((&saved["every"], saved["saves"].as_array().unwrap().len()), (&4.into(), 5), "{saved}");
        assert!(saved["saves"].as_array().unwrap().iter().all(|save| save["fate"] == "saved"), "{saved}");
        assert!((8_000_000..8_100_000).contains(&saved["bytes"].as_u64().unwrap()), "{saved}");
    }
    let (slow_s, fast_s) = (seconds(&direct["median_stall_s"]), seconds(&burst["median_stall_s"]));
    assert!(slow_s >= 8.0 / 133.0 && fast_s >= 8.0 / 512.0, "as long as the devices take: {slow_s} s, {fast_s} s");
    assert_eq!((&direct["rated_mb_per_s"], &burst["rated_mb_per_s"]), (&133.0.into(), &512.0.into()));
    for save in burst["saves"].as_array().unwrap() {
        let drained_s = seconds(&save["durable_slow_s"]) - seconds(&save["durable_fast_s"]);
        assert!(drained_s >= 8.0 / 133.0, "behind the training's back: {save}");
    }
    assert!(seconds(&burst["drain_after_s"]) > 0.0, "the last one is drained when training is over");
    let said = done.stderr.lines().find(|line| line.contains("checkpoint=fast → slow: ")).unwrap();
    assert!(said.contains(", stall per checkpoint ") && said.contains(", drain after the end "), "{said}");
    let said = done.stderr.lines().find(|line| line.contains("checkpoint=slow: ")).unwrap();
    assert!(said.contains(", stall per checkpoint ") && !said.contains("drain"), "{said}");
    let said = done.stderr.lines().find(|line| line.contains("checkpoint=none: ")).unwrap();
    assert!(!said.contains("per checkpoint"), "{said}");
    let left: Vec<_> = fs::read_dir(dir.path("out/data")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_checkpoint_cell_has_what_its_benchmark_measured() {
    let dir = with_study(&saving());
    let done = dir.run("study run study.toml --out out");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let cells = cells(&dir, "out");
    assert_eq!(sorted(ids(&cells)), ["save/tier=fast → slow", "save/tier=slow"]);
    for (id, mode) in [("save/tier=slow", "direct"), ("save/tier=fast → slow", "burst")] {
        let saved = &cell(&cells, id)["measured"]["checkpoint"];
        assert_eq!((&saved["mode"], &saved["format"]), (&mode.into(), &"safetensors".into()), "{saved}");
        assert_eq!(saved["samples"].as_array().unwrap().len(), 2, "{saved}");
        assert_eq!(saved["burst"]["tier"].is_null(), mode == "direct", "{saved}");
        assert!(seconds(&saved["stall_s"]) > 0.0 && seconds(&saved["restore_s"]) > 0.0, "{saved}");
    }
    let said = done.stderr.lines().find(|line| line.contains("save/tier=slow: ")).unwrap();
    assert!(
        said.contains(": stall per checkpoint ") && said.contains(", durable save ") && said.contains(", restore "),
        "{said}"
    );
}

#[test]
fn a_cell_whose_checkpoints_have_no_place_fails_and_can_be_tried_again() {
    let dir = with_study(STUDY);
    dir.write("disk/forebay-data/checkpoints-slow", "in the way");
    let line = "study run study.toml --out out --tier slow=disk";
    let missed = dir.missed(line);
    assert!(missed.stdout.contains("3 of 3 cells done, 2 failed; "), "{}", missed.stdout);
    let first = cells(&dir, "out");
    let error = cell(&first, "train/checkpoint=slow")["error"].as_str().unwrap();
    assert!(error.starts_with("cannot create ") && error.contains("checkpoints-slow: "), "{error}");
    assert!(cell(&first, "train/checkpoint=none")["error"].is_null());
    fs::remove_file(dir.path("disk/forebay-data/checkpoints-slow")).unwrap();
    let done = dir.run(&format!("{line} --resume --retry-failed"));
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let again = cells(&dir, "out");
    let saved = &again.iter().rfind(|cell| cell["id"] == "train/checkpoint=fast → slow").unwrap()["measured"]["train"]
        ["checkpoints"];
    assert_eq!(
        (&saved["medium"]["tier"], &saved["burst"]["tier"]),
        (&Value::Null, &"optane".into()),
        "the disk is a real one"
    );
    assert!(!dir.path("disk/forebay-data/checkpoints-slow").exists());
}

#[test]
fn a_preview_counts_what_checkpoints_write_and_the_room_they_take() {
    let dir = with_study(&format!("{STUDY}{SAVE}"));
    let preview = dir.met("study run study.toml --dry-run --out out");
    // Five of 8 MB to one tier, and five to two tiers, of which the last is read back.
    assert!(
        preview.contains("train (train): 3 cells × 0+1      240 images, 80.0 MB to read, 120.0 MB to write, about "),
        "{preview}"
    );
    assert!(preview.contains("save (checkpoint): 2 cells × 1+2  "), "{preview}");
    assert!(
        preview.contains("space: 80.0 MB needed at "),
        "five of 8 MB on each of two tiers, more than two of 4: {preview}"
    );
    let shown = dir.met("study show study.toml");
    assert!(
        shown.contains(
            "\nexperiment save (checkpoint): 2 cells quick, 2 full, all combinations; 2 repeats after 1 warm-up\n"
        ),
        "{shown}"
    );
    assert!(shown.contains("\n  checkpoint: none, slow, fast → slow\n"), "{shown}");
    let refused = dir.run("study run study.toml --dry-run --out out --tier slow=gone");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("gone is not an existing folder"), "{}", refused.stderr);
}

#[test]
fn the_example_that_saves_can_be_planned_on_emulated_and_on_real_devices() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/studies/checkpoints.toml");
    let dir = Dir::new();
    fs::create_dir(dir.path("disk")).unwrap();
    let line = format!("study run {} --dry-run", file.display());
    let preview = dir.met(&line);
    assert!(preview.contains("\nwaiting (checkpoint): 4 cells × 1+3  "), "{preview}");
    assert!(preview.contains("\nbehind (checkpoint): 2 cells × 1+3  "), "{preview}");
    assert!(preview.contains("\ntier disk: shaped in this process, hdd: "), "{preview}");
    let preview = dir.met(&format!("{line} --tier disk=disk"));
    assert!(preview.contains("\ntier disk: a real device, ") && preview.contains("/disk\n"), "{preview}");
}
