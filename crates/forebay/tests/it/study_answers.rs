//! Studies of one question each: the figure, and the sentence that answers it.

use serde_json::Value;

use crate::dir::{Dir, flat};

/// Runs a study and returns its report as text and as numbers.
fn report(text: &str) -> (Dir, String, Value) {
    let dir = Dir::new();
    dir.write("study.toml", format!("name = \"asks\"\ntitle = \"one question\"\n{text}"));
    let ran = dir.run("study run study.toml --out out");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = flat(&dir.met("report out"));
    let numbers = serde_json::from_str(&dir.met("report out --json -")).unwrap();
    (dir, shown, numbers)
}

fn figure<'a>(numbers: &'a Value, id: &str) -> &'a Value {
    let figures = numbers["runs"][0]["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["id"] == id).unwrap_or_else(|| panic!("{figures:?}"))
}

fn finding(numbers: &Value, begin: &str) -> String {
    let findings = numbers["runs"][0]["verdict"]["findings"].as_array().unwrap();
    let texts: Vec<&str> = findings.iter().filter_map(Value::as_str).collect();
    (*texts.iter().find(|text| text.contains(begin)).unwrap_or_else(|| panic!("{begin}: {texts:?}"))).to_owned()
}

const FRONTIER: &str = r#"
[[dataset]]
name = "images"
make = "caltech101"
count = 64

[[tier]]
name = "slow"
profile = "hdd"

[[experiment]]
name = "frontier"
run = "train"
dataset = "images"
warmups = 0
repeats = 1
[experiment.factors]
accelerator = ["emulated:1ms", "emulated:400ms"]
threads = [1]
tier = ["slow"]
[experiment.settings]
batch = 8
steps = 5
cold = true

[[figure]]
id = "frontier"
title = "Frontier"
kind = "frontier"
experiment = "frontier"
x = "threads"
series = "tier"
[[figure.point]]
name = "slow GPU"
step_s = 1.0
to_s = 2.0
source = "a test"
[[figure.point]]
name = "fast GPU"
step_s = 0.001
source = "a test"
"#;

#[test]
fn the_frontier_lies_where_the_input_delivers_a_batch_and_accelerators_beside_it() {
    let (_dir, shown, numbers) = report(FRONTIER);
    let figure = figure(&numbers, "frontier");
    assert_eq!(figure["kind"], "frontier", "{figure}");
    let rows = figure["data"].as_array().unwrap();
    let hidden: Vec<&str> = rows.iter().map(|row| row["hidden"].as_str().unwrap()).collect();
    assert_eq!(hidden, ["no", "yes"], "{rows:?}");
    // Eight small images at about 8 ms each, and their decoding.
    let batch_s = rows[0]["batch_s"].as_f64().unwrap();
    assert!((0.06..0.3).contains(&batch_s), "{batch_s}");
    let said = finding(&numbers, "prefetching hides the input: slow from steps of ");
    assert!(said.contains(" slow GPU (1.00 s to 2.00 s): hidden on slow."), "{said}");
    assert!(said.contains(" fast GPU (1.00 ms): not hidden on slow."), "{said}");
    assert!(shown.contains("With 1 thread, prefetching hides the input"), "it heads the report: {shown}");
}

#[test]
fn points_belong_to_a_frontier() {
    let dir = Dir::new();
    let text = FRONTIER.replace("kind = \"frontier\"", "kind = \"time\"");
    dir.write("study.toml", format!("name = \"asks\"\ntitle = \"one question\"\n{text}"));
    let said = dir.refused("study run study.toml --dry-run");
    assert!(said.contains("only a frontier marks step times: omit `point`"), "{said}");
}

const INTERVAL: &str = r#"
[[tier]]
name = "disk"
profile = "hdd"

[[tier]]
name = "fast"
profile = "optane"

[[experiment]]
name = "interval"
run = "train"
warmups = 0
repeats = 1
[experiment.factors]
checkpoint = ["disk", "fast → disk"]
checkpoint_every = [20, 80]
[experiment.settings]
synthetic = true
accelerator = "emulated:5ms"
steps = 240
checkpoint_size = "4MB"
fail_every = "500ms"

[[figure]]
id = "interval"
title = "Interval"
kind = "interval"
experiment = "interval"
x = "checkpoint_every"
series = "checkpoint"
"#;

#[test]
fn the_best_interval_follows_from_stalls_and_failures_and_runs_are_set_beside_it() {
    let (_dir, shown, numbers) = report(INTERVAL);
    let rows = figure(&numbers, "interval")["data"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in rows {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        let young = (2.0 * number("save_s") * 0.5).sqrt();
        assert!((number("young_s") / young - 1.0).abs() < 1e-6, "{row}");
        assert!(number("best_s") < number("young_s") && number("overhead") > 1.0, "{row}");
        assert!(number("interval_s") >= 0.1, "20 or 80 steps of 5 ms: {row}");
    }
    let said = finding(&numbers, "disk: with a failure every 0.50 s on average, saving every ");
    assert!(said.contains("Runs with injected failures ("), "{said}");
    assert!(said.contains(" the time that the model expects."), "{said}");
    assert!(shown.contains("of computing is best (Young: "), "{shown}");
}

const CONTENTION: &str = r#"
[[dataset]]
name = "images"
make = "caltech101"
count = 400

[[tier]]
name = "disk"
profile = "hdd"

[[tier]]
name = "fast"
profile = "optane"

[[experiment]]
name = "saves"
run = "train"
dataset = "images"
warmups = 0
repeats = 1
[experiment.factors]
checkpoint = ["none", "fast → disk"]
[experiment.settings]
tier = "disk"
accelerator = "emulated:30ms"
batch = 8
steps = 50
threads = 8
cold = true
checkpoint_every = 10
checkpoint_size = "16MB"

[[figure]]
id = "saves"
title = "Contention"
kind = "contention"
experiment = "saves"
x = "checkpoint"
"#;

#[test]
fn a_drain_takes_the_emulated_disk_from_the_reads_of_the_same_tier() {
    let (dir, shown, numbers) = report(CONTENTION);
    assert!(shown.contains("Without checkpoints, training takes "), "{shown}");
    let said = finding(&numbers, "of stalls and ");
    assert!(said.contains(" more waiting for data"), "{said}");
    let wait = |numbers: &Value, at: &str| {
        let cells = numbers["runs"][0]["cells"].as_array().unwrap();
        let cell = cells.iter().find(|cell| cell["at"] == at).unwrap_or_else(|| panic!("{cells:?}"));
        cell["wait_s"].as_f64().unwrap()
    };
    let more = wait(&numbers, "checkpoints on fast → disk") - wait(&numbers, "no checkpoints");
    // 80 MB go to the disk and are read back, with a seek per megabyte between the reads of images.
    assert!(more > 0.3, "{more}");
    // On a disk of its own, the drain takes nothing from the images.
    let apart = CONTENTION.replace("tier = \"disk\"\naccelerator", "tier = \"images\"\naccelerator")
        + "[[tier]]\nname = \"images\"\nprofile = \"hdd\"\n";
    drop(dir);
    let (_dir, _, numbers) = report(&apart);
    let apart = wait(&numbers, "checkpoints on fast → disk") - wait(&numbers, "no checkpoints");
    assert!(apart < more / 2.0, "{apart} and {more}");
}
