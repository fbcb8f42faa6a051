//! `forebay train`: the record, sums that must come out, and what is said at the end.

use forebay_testing::{Reason, not_run};
use serde_json::Value;

use crate::dir::{Dir, Ran, UNWATCHED, flat};
use crate::process::{Load, Running};
use crate::record::number;

/// A network small enough for a test, on the usual set.
pub(crate) const SMALL: &str = "set --model resnet-small --batch 4 --threads 2 --baseline 2";

/// Runs train and takes its record from stdout.
pub(crate) fn record_of(dir: &Dir, flags: &str) -> Value {
    let ran = dir.run(&format!("train {flags} --json -"));
    assert_eq!(ran.code, Some(0), "{flags}\n{}", ran.stderr);
    let record = serde_json::from_str(&ran.stdout);
    record.unwrap_or_else(|error| panic!("stdout is not pure JSON: {error}\n{}", ran.stdout))
}

/// The cell of the record of a run.
pub(crate) fn cell_of(dir: &Dir, flags: &str) -> Value {
    record_of(dir, flags)["cells"][0].take()
}

/// The losses of the steps, which are numbers.
pub(crate) fn losses(cell: &Value) -> Vec<f64> {
    cell["steps"].as_array().unwrap().iter().map(|step| number(step, "loss")).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

/// The parts of the wall clock, and the steps' shares of them.
pub(crate) fn adds_up(cell: &Value) {
    parts_add_up(cell);
    for part in ["wait_s", "copy_s", "compute_s", "checkpoint_s"] {
        let steps = cell["steps"].as_array().unwrap();
        let sum: f64 = steps.iter().map(|step| number(step, part)).sum();
        assert!(near(sum, number(cell, part)), "{part}: {sum} of {}", cell[part]);
    }
}

/// The same of a run whose last step may have been broken off.
fn parts_add_up(cell: &Value) {
    let parts = ["wait_s", "copy_s", "compute_s", "checkpoint_s", "validate_s", "other_s"];
    assert!(parts.iter().all(|part| number(cell, part) >= 0.0), "{cell}");
    let sum: f64 = parts.iter().map(|part| number(cell, part)).sum();
    assert!(near(sum, number(cell, "wall_s")), "{sum} of {}", cell["wall_s"]);
    let steps = cell["steps"].as_array().unwrap();
    assert_eq!(steps.len() as u64, cell["n_steps"].as_u64().unwrap());
    let charged: f64 = cell["stall_by_cause"].as_object().unwrap().values().map(|value| value.as_f64().unwrap()).sum();
    assert!(near(charged, number(cell, "wait_s")), "{charged} of {}", cell["wait_s"]);
    let working = number(cell, "wall_s") - number(cell, "validate_s");
    assert!(near(number(cell, "au_epoch"), number(cell, "compute_s") / working), "{cell}");
}

#[test]
fn the_record_has_the_fields_that_scripts_rely_on() {
    let dir = Dir::with_set();
    let record = record_of(&dir, &format!("{SMALL} --steps 3"));
    assert_eq!((&record["schema"], &record["command"]), (&"forebay-record/2".into(), &"train".into()));
    assert_eq!((&record["dataset"]["path"], &record["dataset"]["n_samples"]), (&"set".into(), &24.into()));
    let cell = &record["cells"][0];
    let totals =
        ["wall_s", "wait_s", "compute_s", "other_s", "images_per_s", "au_epoch", "au_steady", "stall_by_cause"];
    assert!(totals.iter().all(|name| !cell[name].is_null()), "{cell}");
    assert!(cell.get("au_dlio").is_some() && cell["lever"]["name"].is_string(), "{cell}");
    let step = ["wait_s", "copy_s", "compute_s", "checkpoint_s", "loss"];
    assert!(step.iter().all(|name| cell["steps"][2][name].is_number()), "{cell}");
    assert_eq!((&cell["model"], &cell["precision"]), (&"resnet-small".into(), &"f32".into()));
    assert_eq!((&cell["optimizer"], number(cell, "learning_rate")), (&"adam".into(), 0.0001));
    assert_eq!((&cell["threads"], &cell["prefetch"], &cell["batch"]), (&2.into(), &1.into(), &4.into()));
    assert_eq!((&cell["n_steps"], &cell["images"], &cell["failed"]), (&3.into(), &12.into(), &0.into()));
    let series: forebay_record::Series = serde_json::from_value(record["series"].clone()).unwrap();
    assert!(series.marks.iter().any(|mark| mark.what == "training"), "{:?}", series.marks);
}

#[test]
fn the_parts_sum_to_the_wall_clock() {
    let dir = Dir::with_set();
    for flags in [
        format!("{SMALL} --epochs 2"),
        format!("{SMALL} --prefetch 0 --validate"),
        "set --accelerator emulated:3ms --batch 4 --steps 9 --threads 1 --tier lustre".to_owned(),
        "set --accelerator emulated:uniform(1ms,5ms),busy --batch 4 --prefetch 0 --threads 2".to_owned(),
        "--synthetic --accelerator emulated:2ms --steps 5".to_owned(),
        "--synthetic --model alexnet-small --batch 2 --steps 2".to_owned(),
    ] {
        adds_up(&cell_of(&dir, &flags));
    }
}

#[test]
fn the_same_seed_gives_the_same_losses_for_any_number_of_threads() {
    let dir = Dir::with_set();
    let run = |flags: &str| {
        losses(&cell_of(&dir, &format!("set --model resnet-small --batch 4 --steps 4 --baseline 0 {flags}")))
    };
    let one = run("--threads 1 --seed 7");
    assert!(one.iter().all(|loss| *loss > 0.0), "{one:?}");
    assert_eq!(run("--threads 3 --prefetch 0 --seed 7"), one);
    assert_ne!(run("--threads 1 --seed 8"), one);
}

#[test]
fn a_batch_in_memory_is_learnt_by_heart() {
    let dir = Dir::new();
    let flags = "--synthetic --model resnet-small --classes 5 --batch 4 --steps 8 --lr 0.003";
    let cell = cell_of(&dir, flags);
    let losses = losses(&cell);
    assert!(losses[7] < losses[0], "{losses:?}");
    assert_eq!((&cell["synthetic"], &cell["threads"], &cell["images"]), (&true.into(), &0.into(), &32.into()));
    assert_eq!((&cell["bytes"], &cell["overlap"], &cell["feed"]), (&0.into(), &Value::Null, &Value::Null));
    let printed = dir.met(&format!("train {flags}"));
    assert!(flat(&printed).contains("; batch 4; ") && flat(&printed).contains("; 8 steps; synthetic "), "{printed}");
}

#[test]
fn the_text_says_where_the_time_went_and_a_report_says_the_same() {
    let dir = Dir::with_set();
    let printed = dir.met(&format!("train {SMALL} --json record.json"));
    assert!(printed.starts_with("Training resnet-small on set\n"), "{printed}");
    for words in [
        "; batch 4; adam; prefetch 1; 6 steps; local, buffered; 2 threads ",
        " wait for data ",
        " AU, whole epoch ",
        "these are warm rates",
        " The cost of I/O is ",
        " overlap ",
        " The accelerator consumes ",
        " Losses epoch 1 steps 6 ",
    ] {
        assert!(flat(&printed).contains(words), "{words}\n{printed}");
    }
    assert_eq!(dir.met("report record.json"), printed);
}

#[test]
fn an_emulated_accelerator_takes_its_time_and_has_no_loss() {
    let dir = Dir::with_set();
    let cell = cell_of(&dir, "set --accelerator emulated:4ms --batch 6 --threads 1");
    assert_eq!((&cell["model"], &cell["accelerator"]), (&Value::Null, &"emulated:4ms".into()));
    let steps = cell["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 4, "24 samples are four batches of six");
    assert!(steps.iter().all(|step| step["loss"].is_null() && number(step, "compute_s") >= 0.004), "{steps:?}");
    assert!(number(&cell["baseline"], "step_s") >= 0.004);
}

#[test]
fn a_run_beside_others_says_so() {
    let (dir, load) = (Dir::with_set(), Load::start());
    let ran =
        load.beside(&dir, "train set --accelerator emulated:20ms --batch 4 --steps 20 --threads 1 --json record.json");
    let said = flat(&ran.stdout);
    assert!(said.contains("* Disturbed by other processes; not judged."), "{said}");
    assert!(said.contains(" Disturbed: other processes used "), "{said}");
    assert!(!ran.stdout.contains("What would help most") && !ran.stdout.contains("  lever "), "{}", ran.stdout);
    assert!(said.contains("If the machine is never quiet, run it with FOREBAY_UNWATCHED=1"), "{said}");
    assert_eq!(dir.json("record.json")["cells"][0]["disturbed"]["repeats"], 1);
}

#[test]
fn a_run_that_nobody_watched_says_so() {
    let dir = Dir::with_set();
    let said = |value: &str| {
        let mut command = dir.command("train set --accelerator emulated:1ms --batch 4 --steps 4 --threads 1");
        flat(&Ran::from(command.env(UNWATCHED, value).output().unwrap()).stdout)
    };
    let note = "note: FOREBAY_UNWATCHED was set: no other process was watched for";
    assert!(said("1").contains(note));
    assert!(!said("silent").contains(note));
}

#[test]
fn an_interrupt_writes_the_steps_that_were_made() {
    let dir = Dir::with_set();
    let line = "train set --accelerator emulated:1ms --batch 24 --steps 1000000 --threads 1 --json record.json";
    let mut running = Running::start(&dir, line);
    let bytes: usize = dir.images("set").values().map(Vec::len).sum();
    running.wait_until("several steps", |running| running.bytes_read() > 50 * bytes as u64);
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "it did not do all that was asked");
    let record = dir.json("record.json");
    parts_add_up(&record["cells"][0]);
    assert!((1..1_000_000).contains(&record["cells"][0]["n_steps"].as_u64().unwrap()));
    assert!(record["notes"][0].as_str().unwrap().starts_with("interrupted"), "{}", record["notes"]);
    assert_eq!(dir.met("report record.json"), ran.stdout);
}

#[test]
fn an_au_below_the_one_asked_for_is_status_one() {
    let dir = Dir::with_set();
    let line = "train set --accelerator emulated:5ms --batch 8 --threads 1 --json record.json";
    dir.met(&format!("{line} --min-au 0.0001"));
    let ran = dir.missed(&format!("{line} --min-au 1"));
    let au = number(&dir.json("record.json")["cells"][0], "au_epoch");
    assert_eq!(ran.stderr, format!("forebay: an AU of {au:.3}, below the required 1\n"));
    assert!(ran.stdout.contains("\nAU, whole epoch "), "the account is given all the same");
}

#[test]
fn a_dry_run_says_what_would_be_trained_and_trains_nothing() {
    let dir = Dir::with_set();
    let said = dir.met("train set --batch 5 --epochs 3 --model resnet50 --dry-run");
    assert!(said.starts_with("set: 24 samples in files; 12 steps of 5, 4 per epoch; resnet50 (2"), "{said}");
    assert!(said.ends_with(" parameters, 22 classes)\n"), "{said}");
    let said = dir.met("train set --accelerator emulated:224ms --steps 142 --batch 8 --dry-run");
    assert_eq!(said, "set: 24 samples in files; 142 steps of 8, 3 per epoch; emulated:224ms\n");
    let said = dir.met("train --synthetic --accelerator emulated:224ms --dry-run");
    assert_eq!(said, "one batch in memory; 100 steps of 64; emulated:224ms\n");
}

#[test]
fn a_gpu_that_cannot_be_had_is_named_with_the_file_and_the_remedy() {
    let dir = Dir::with_set();
    let ran = dir.run("train set --device cuda --model resnet-small --batch 4 --steps 1");
    if ran.code == Some(0) {
        return not_run(Reason::Gpu, ran.stdout);
    }
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    let said = ran.stderr;
    assert!(
        said.starts_with("forebay: ") && said.contains("cannot load ") && said.contains(" (looked for lib"),
        "{said}"
    );
    assert!(said.contains("nvidia-smi") || said.contains("pip install"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
