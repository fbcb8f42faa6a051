//! `forebay tune`: the path from change to change, its end, and what it says it found.

use std::fs;

use serde_json::Value;

use crate::dir::Dir;
use crate::process::Running;
use crate::record::number;

/// A request takes 4 ms: one thread waits for each, eight for eight at a time.
const FAR: &str = "set --accelerator emulated:1ms --tier lustre --threads 1 --batch 4 --steps 12";

fn record_of(dir: &Dir, flags: &str) -> Value {
    let ran = dir.run(&format!("tune {flags} --json -"));
    assert_eq!(ran.code, Some(0), "{flags}\n{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn the_change_that_the_advice_names_is_made_measured_and_kept() {
    let dir = Dir::with_set();
    let before = dir.tree("set");
    let record = record_of(&dir, FAR);
    let cells = record["cells"].as_array().unwrap();
    let tuning = |i: usize| &cells[i]["tuning"];
    assert_eq!((&tuning(0)["outcome"], &tuning(0)["change"]), (&"start".into(), &Value::Null), "{record}");
    assert_eq!(tuning(1)["change"]["setting"], "threads", "{}", tuning(1));
    assert_eq!((&tuning(1)["outcome"], &cells[1]["threads"]), (&"kept".into(), &tuning(1)["change"]["value"]));
    // Beside other tests, the model may not explain a run; then it makes no prediction, and says so.
    let is_guess = tuning(1)["advice"].as_str().unwrap().contains("without a prediction");
    assert_eq!(tuning(1)["predicted_s"].is_null(), is_guess, "{}", tuning(1));
    assert!(number(tuning(1), "before_s") > 0.0, "{}", tuning(1));
    let fastest = cells.iter().map(|cell| number(cell, "wall_s")).fold(f64::INFINITY, f64::min);
    assert!(fastest < 0.7 * number(&cells[0], "wall_s"), "{record}");
    assert!(cells.iter().all(|cell| cell["samples"].as_array().unwrap().len() == 2), "two runs with the same settings");
    let ends: Vec<&Value> = cells.iter().map(|cell| &cell["tuning"]["end"]).collect();
    assert!(ends[..ends.len() - 1].iter().all(|end| end.is_null()) && ends[ends.len() - 1].is_string(), "{ends:?}");
    assert_eq!(dir.tree("set"), before, "the data is only read");
}

#[test]
fn each_step_and_the_settings_that_were_found_are_printed() {
    let dir = Dir::with_set();
    let ran = dir.run(&format!("tune {FAR} --json tuned.json"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("start: ") && ran.stderr.contains("--threads 1 --prefetch 1"), "{}", ran.stderr);
    let step = ran.stderr.lines().nth(1).unwrap();
    assert!(step.starts_with("--threads ") && step.contains("predict") && step.ends_with(": kept"), "{step}");
    let command = ran.stdout.lines().find(|line| line.starts_with("forebay train set ")).unwrap();
    for flag in ["--accelerator emulated:1ms", "--batch 4", "--steps 12", "--tier lustre"] {
        assert!(command.contains(flag), "{command}");
    }
    assert!(!command.contains("--threads 1 "), "{command}");
    dir.met(&command["forebay ".len()..]);
    let study: Vec<&str> = ran.stdout.lines().skip_while(|line| !line.starts_with("name = \"tuned\"")).collect();
    let study = study.join("\n");
    dir.write("tuned.toml", &study[..study.find("\n\nMB is ").unwrap_or(study.len())]);
    let planned = dir.run("study run tuned.toml --dry-run");
    assert!(
        planned.stdout.starts_with("tuned at the quick scale: 1 cell"),
        "{study}\n{}{}",
        planned.stdout,
        planned.stderr
    );
    let shown = dir.met("report tuned.json --html page.html");
    assert!(shown.contains("the run takes "), "{shown}");
    let page = String::from_utf8(dir.read("page.html")).unwrap();
    assert!(page.contains("Run times from change to change") && page.contains("forebay train set "), "{shown}");
}

#[test]
fn nothing_is_changed_where_the_accelerator_is_the_limit() {
    let dir = Dir::with_set();
    let record = record_of(&dir, "set --accelerator emulated:40ms --threads 2 --batch 4 --steps 12");
    let cells = record["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &cells[0]["tuning"]["end"]), (1, &"accelerator".into()), "{record}");
}

#[test]
fn runs_are_as_long_as_the_budget_allows_and_the_number_of_threads_is_chosen_once() {
    let dir = Dir::with_set();
    let record = record_of(&dir, "set --accelerator emulated:5ms --batch 4 --budget 30s --repeats 3 --extra-repeats 0");
    let cell = &record["cells"][0];
    // Less than a second for each of 24 runs of three repeats, so they have the least length: a second, in steps of 5 ms.
    let n_steps = cell["n_steps"].as_u64().unwrap();
    assert!((12..=400).contains(&n_steps), "{n_steps}");
    assert_eq!((&cell["threads_auto"], cell["samples"].as_array().unwrap().len()), (&false.into(), 3));
    let one = record_of(&dir, &format!("{FAR} --budget 1s"));
    let last = one["cells"].as_array().unwrap().last().unwrap();
    assert!(["budget", "exhausted"].contains(&last["tuning"]["end"].as_str().unwrap()), "{last}");
}

#[test]
fn a_dry_run_says_what_may_be_tried_and_written() {
    let dir = Dir::with_set();
    let planned = dir.met(&format!("tune {FAR} --dry-run"));
    assert!(planned.starts_with("set: 24 samples in files; 12 steps per run, batches of 4; "), "{planned}");
    assert!(
        planned.contains("May be tried: --threads, --prefetch.\n") && planned.ends_with("Nothing is written.\n"),
        "{planned}"
    );
    let planned = dir.met("tune set --accelerator emulated:1ms --batch 4 --cold --scratch . --budget 90s --dry-run");
    assert!(
        planned.contains("as many steps per run as suit the budget") && planned.contains("at most 90.00 s"),
        "{planned}"
    );
    assert!(
        planned.contains("--io direct, the data packed as tensor") && planned.contains("4.00 GB, in ."),
        "{planned}"
    );
}

#[test]
fn checkpoints_are_written_in_the_background_where_that_is_faster_and_none_is_left() {
    let dir = Dir::with_set();
    let flags = "set --accelerator emulated:20ms --threads 2 --batch 4 --checkpoint-every 4 --checkpoint-size 4MB \
                 --checkpoint-dir saves --checkpoint-tier hdd";
    let planned = dir.met(&format!("tune {flags} --dry-run"));
    assert!(planned.contains("--prefetch, --checkpoint-mode async.\n"), "{planned}");
    assert!(planned.ends_with("hidden folders below the given ones, removed after each run.\n"), "{planned}");
    let record = record_of(&dir, &format!("{flags} --budget 20s"));
    let cells = record["cells"].as_array().unwrap();
    assert!(cells[0]["n_steps"].as_u64() >= Some(12), "three checkpoints at least: {record}");
    let tried = cells.iter().find(|cell| cell["tuning"]["change"]["setting"] == "checkpoint_mode").unwrap();
    assert_eq!(
        (&tried["tuning"]["outcome"], &tried["checkpoints"]["mode"]),
        (&"kept".into(), &"async".into()),
        "{tried}"
    );
    assert!(tried["tuning"]["predicted_s"].is_null(), "how long the copy in memory takes was not measured: {tried}");
    assert_eq!(cells[0]["checkpoints"]["mode"], "direct");
    assert_eq!(fs::read_dir(dir.path("saves")).unwrap().count(), 0, "checkpoints of the search are removed");
}

/// Single records of shards on a hard disk take a seek each; read in order, they do not.
#[test]
fn shards_are_read_in_order_only_where_that_is_allowed() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tfrecord");
    let flags = "shards --accelerator emulated:1ms --tier hdd --threads 2 --batch 4 --steps 24";
    let planned = dir.met(&format!("tune {flags} --reorder --dry-run"));
    assert!(planned.contains("May be tried: --threads, --prefetch, --shuffle window:1024.\n"), "{planned}");
    let shuffled = |record: &Value| {
        let cells = record["cells"].as_array().unwrap().clone();
        cells.into_iter().find(|cell| cell["tuning"]["change"]["setting"] == "shuffle")
    };
    let allowed = record_of(&dir, &format!("{flags} --reorder"));
    let tried = shuffled(&allowed).unwrap_or_else(|| panic!("{allowed}"));
    assert_eq!((&tried["tuning"]["outcome"], &tried["shuffle"]), (&"kept".into(), &"window:1024".into()), "{tried}");
    let kept = record_of(&dir, flags);
    assert_eq!(shuffled(&kept), None, "{kept}");
    assert!(kept["notes"].to_string().contains("it changes the order of the samples; --reorder tries it"), "{kept}");
    let refused = dir.refused("tune set --accelerator emulated:1ms --batch 4 --reorder");
    assert!(refused.contains("only TFRecord, tar and tensor shards"), "{refused}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = Dir::with_set();
    let refused = |flags: &str| dir.refused(&format!("tune {flags}"));
    assert!(refused("set --repeats 1").contains("2..=1000"), "one run has no spread");
    assert!(refused("set --synthetic").contains("--synthetic"));
    assert!(refused("set --checkpoint-every 5").contains("needs checkpoints: give --checkpoint-dir"));
    let saves = "--checkpoint-every 5 --checkpoint-size 1MB --checkpoint-dir ck";
    let early = refused(&format!("set --accelerator emulated:1ms --batch 4 --steps 2 {saves}"));
    assert!(early.contains("a run of 2 steps saves no checkpoint"), "{early}");
    assert!(refused("set --scratch none").contains("no such folder"));
    fs::create_dir(dir.path("set/in")).unwrap();
    assert!(refused("set --scratch set/in").contains("inside the data set, which is only read"));
    assert!(refused("missing").contains("missing"));
    assert!(refused("set --budget 5").contains("missing unit"));
}

#[test]
fn a_signal_ends_the_search_and_leaves_nothing() {
    let dir = Dir::with_set();
    let mut running = Running::start(&dir, "tune set --accelerator emulated:5ms --batch 4 --steps 1000000 --threads 2");
    running.wait_until("the threads", |running| running.threads("forebay:map").len() == 2);
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let kept: Vec<_> = fs::read_dir(dir.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(kept.iter().all(|name| name == "set" || name == ".home"), "{kept:?}");
}
