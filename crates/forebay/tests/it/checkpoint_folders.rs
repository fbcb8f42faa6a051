//! `forebay checkpoint ls`, `drain` and `prune`: what is where, and what goes where.

use std::fs;

use forebay_checkpoint::{Options, Store};
use serde_json::Value;

use crate::bad_files::run_without_rights;
use crate::checkpoint::{named_step, save, tier};
use crate::dir::Dir;
use crate::process::Running;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn folder(dir: &Dir, name: &str) {
    fs::create_dir(dir.path(name)).unwrap();
}

/// The names in a folder that are no hidden ones.
fn names(dir: &Dir, folder: &str) -> Vec<String> {
    let found = fs::read_dir(dir.path(folder)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = found.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

#[test]
fn a_list_says_step_size_format_metric_place_and_state() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20, 40]);
    save(&dir, "fast", "tensorflow", &[60]);
    let printed = dir.met("checkpoint ls slow --burst-dir fast");
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["step", "bytes", "format", "metric", "where", "state"]);
    assert_eq!(lines[1][0..1], ["20"]);
    assert_eq!(lines[1][3..], ["safetensors", "2", "slow", "whole"], "{printed}");
    assert_eq!(lines[3][3..], ["tensorflow", "6", "fast", "whole"], "{printed}");
    let found = json(&dir.met("checkpoint ls slow --burst-dir fast --json -"));
    assert_eq!(found["checkpoints"][0]["files"], serde_json::json!(["model.safetensors"]));
    assert_eq!(found["checkpoints"][2]["copies"][0]["folder"], "fast");
    assert_eq!((&found["folders"][0]["n_checkpoints"], &found["folders"][1]["n_checkpoints"]), (&1.into(), &2.into()));
}

#[test]
fn a_copy_in_two_folders_is_one_checkpoint_and_a_second_take_another() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    save(&dir, "slow", "safetensors", &[20]);
    save(&dir, "fast", "safetensors", &[20]);
    let found = json(&dir.met("checkpoint ls slow --burst-dir fast --json -"));
    assert_eq!(found["checkpoints"].as_array().unwrap().len(), 2);
    assert_eq!(found["checkpoints"][0]["copies"].as_array().unwrap().len(), 2);
    let printed = dir.met("checkpoint ls slow --burst-dir fast");
    assert!(printed.contains("fast, slow") && printed.contains("20 (take 001)"), "{printed}");
}

#[test]
fn an_empty_folder_says_so_and_a_missing_one_is_refused_and_none_is_made() {
    let dir = Dir::new();
    folder(&dir, "slow");
    assert_eq!(dir.met("checkpoint ls slow"), "slow: no checkpoints\n");
    for command in ["ls missing", "verify missing", "prune missing", "drain slow --burst-dir missing"] {
        assert_eq!(dir.refused(&format!("checkpoint {command}")), "forebay: missing: no such folder\n");
    }
    assert_eq!(dir.refused("checkpoint restore missing --to x"), "forebay: missing: no such folder\n");
    assert!(!dir.path("missing").exists());
    assert_eq!(fs::read_dir(dir.path("slow")).unwrap().count(), 0, "nothing is made by looking");
}

#[test]
fn what_has_a_checkpoints_name_and_is_none_is_foreign_and_names_cannot_move_the_cursor() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    std::os::unix::fs::symlink("step-000000000020", dir.path("slow/step-000000000040")).unwrap();
    dir.write("slow/step-000000000060", "a file");
    folder(&dir, "slow/step-000000000080");
    let listed = dir.met("checkpoint ls slow");
    for (step, why) in [(40, "a link, not a folder"), (60, "a file, not a folder"), (80, "no manifest")] {
        let row = listed.lines().find(|line| line.starts_with(&step.to_string())).unwrap();
        assert!(row.ends_with(&format!("in slow: foreign: {why}")), "{row}");
    }
    let found = json(&dir.met("checkpoint ls slow --json -"));
    assert_eq!(found["folders"][0]["n_checkpoints"], 1);
    let is_foreign = |n: usize| found["checkpoints"][n]["copies"][0]["is_foreign"].as_bool().unwrap();
    assert_eq!([0, 1, 2, 3].map(is_foreign), [false, true, true, true]);
    fs::create_dir(dir.path("odd\u{1b}[2J")).unwrap();
    save(&dir, "odd\u{1b}[2J", "safetensors", &[20]);
    let listed = dir.met("checkpoint ls odd\u{1b}[2J");
    assert!(!listed.contains('\u{1b}') && listed.contains("odd\\x1b[2J"), "{listed:?}");
}

#[test]
fn what_was_left_behind_and_who_holds_a_folder_is_said_and_left() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    for name in [".staging-step-000000000040-0", ".trash-step-000000000010-0"] {
        folder(&dir, &format!("slow/{name}"));
    }
    let quiet = dir.met("checkpoint ls slow");
    assert!(
        quiet.contains("slow: 2 unfinished folders, cleared by the next save or drain: .staging-step-0"),
        "{quiet}"
    );
    assert!(!quiet.contains("in use by"), "{quiet}");
    assert!(dir.path("slow/.trash-step-000000000010-0").exists());
    let store = Store::open(vec![tier(&dir.path("slow"))], Options::default()).unwrap();
    let held = dir.met("checkpoint ls slow");
    assert!(held.contains(&format!("slow: in use by process {} on ", std::process::id())), "{held}");
    assert!(!held.contains("unfinished"), "the store cleared them: {held}");
    let said = dir.refused("checkpoint prune slow");
    assert!(said.contains("is in use by process ") && said.contains("\nhint: wait until it ends"), "{said}");
    assert!(dir.refused("checkpoint drain other --burst-dir slow").contains("is in use by process "));
    dir.met("checkpoint verify slow");
    drop(store);
    assert!(!dir.met("checkpoint ls slow").contains("in use by"));
}

#[test]
fn a_drain_brings_all_that_is_lacking_and_removes_nothing() {
    let dir = Dir::new();
    save(&dir, "fast", "safetensors", &[20, 40, 60, 80, 100, 120, 140]);
    folder(&dir, "slow");
    let said = dir.met("checkpoint drain slow --burst-dir fast");
    assert_eq!(said, "slow: 7 checkpoints drained and read back\n");
    assert_eq!(names(&dir, "slow"), names(&dir, "fast"));
    assert_eq!(dir.tree("slow"), dir.tree("fast"));
    let again = json(&dir.met("checkpoint drain slow --burst-dir fast --json -"));
    let schema = "forebay-checkpoint-drain/1";
    assert_eq!(again, serde_json::json!({"schema": schema, "n_drained": 0, "n_undrained": 0, "errors": []}));
}

#[test]
fn a_drain_keeps_to_its_rate_and_devices_and_an_interrupt_leaves_the_rest_for_later() {
    let dir = Dir::new();
    save(&dir, "fast", "safetensors", &[20, 40]);
    folder(&dir, "slow");
    // A checkpoint would take a quarter of an hour.
    let mut running = Running::start(&dir, "checkpoint drain slow --burst-dir fast --drain-rate 100B/s");
    running.wait_until("a copy begun", |_| {
        fs::read_dir(dir.path("slow"))
            .unwrap()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().contains("staging"))
    });
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "forebay: stopped before the end\n"));
    assert_eq!(ran.stdout, "slow: 0 checkpoints drained and read back; 2 still to be drained\n");
    assert_eq!(names(&dir, "slow"), [] as [&str; 0]);
    dir.met("checkpoint drain slow --burst-dir fast --tier ssd --burst-tier optane");
    assert_eq!(dir.tree("slow"), dir.tree("fast"));
}

#[test]
fn a_damaged_one_is_not_drained_and_the_others_are() {
    let dir = Dir::new();
    save(&dir, "fast", "safetensors", &[20, 40]);
    folder(&dir, "slow");
    dir.edit(&format!("{}/model.safetensors", named_step("fast", 20)), |bytes| bytes[5000] ^= 4);
    let before = dir.tree("fast");
    let ran = dir.missed("checkpoint drain slow --burst-dir fast --json report.json");
    assert!(dir.tree("fast") == before, "the damaged one stays for whoever wants to look at it");
    assert!(ran.stdout.starts_with("slow: 1 checkpoint drained and read back"), "{}", ran.stdout);
    assert!(ran.stderr.contains("step 20") && ran.stderr.contains("checksum"), "{}", ran.stderr);
    assert_eq!(names(&dir, "slow"), ["step-000000000040"]);
    let errors = dir.json("report.json")["errors"].clone();
    let [error] = errors.as_array().unwrap().as_slice() else { panic!("{errors}") };
    let error = error.as_str().unwrap();
    assert!(error.contains("fast/step-000000000020 is damaged: ") && error.contains("checksum"), "{error}");
}

#[test]
fn a_drain_names_every_damaged_one_with_its_damage() {
    let dir = Dir::new();
    save(&dir, "fast", "safetensors", &[20, 40, 60]);
    folder(&dir, "slow");
    for step in [20, 60] {
        dir.edit(&format!("{}/model.safetensors", named_step("fast", step)), |bytes| bytes[5000] ^= 4);
    }
    let ran = dir.missed("checkpoint drain slow --burst-dir fast --json -");
    let errors = json(&ran.stdout)["errors"].clone();
    for (step, error) in [20, 60].iter().zip(errors.as_array().unwrap()) {
        let error = error.as_str().unwrap();
        assert!(error.contains(&named_step("fast", *step)) && error.contains("checksum"), "{error}");
        assert!(ran.stderr.contains(error), "{}", ran.stderr);
    }
    assert_eq!(errors.as_array().unwrap().len(), 2, "{errors}");
}

#[test]
fn a_prune_keeps_the_newest_and_a_dry_run_removes_nothing() {
    let dir = Dir::new();
    save(&dir, "slow", "tensorflow", &[10, 20, 30, 40, 50, 60, 70]);
    let said = dir.met("checkpoint prune slow --keep 2 --dry-run");
    assert!(said.starts_with("would be removed: slow/step-000000000010\n"), "{said}");
    assert!(said.contains("\n5 checkpoints would be removed, ") && said.ends_with("; 2 kept\n"), "{said}");
    assert_eq!(names(&dir, "slow").len(), 7);
    let said = dir.met("checkpoint prune slow");
    assert!(said.contains("\n2 checkpoints removed, ") && said.ends_with("; 5 kept\n"), "{said}");
    let pruned = json(&dir.met("checkpoint prune slow --keep 2 --json -"));
    assert_eq!((&pruned["n_kept"], pruned["removed"].as_array().unwrap().len()), (&2.into(), 3));
    assert_eq!(names(&dir, "slow"), ["step-000000000060", "step-000000000070"]);
}

#[test]
fn a_prune_never_takes_the_only_good_copy() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[10, 20]);
    dir.edit(&format!("{}/model.safetensors", named_step("slow", 20)), |bytes| bytes.truncate(5000));
    let flags = "--burst-dir fast --tier ssd --burst-tier optane --keep 1";
    save(&dir, "fast", "safetensors", &[30]);
    let before = names(&dir, "fast");
    dir.met(&format!("checkpoint prune slow {flags}"));
    assert!(names(&dir, "slow").contains(&"step-000000000010".to_owned()), "the newest here is damaged");
    assert_eq!(names(&dir, "fast"), before, "what is not drained yet stays");
}

#[test]
fn a_folder_that_may_not_be_read_is_refused() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.path("slow"), fs::Permissions::from_mode(0o000)).unwrap();
    for command in ["ls", "verify", "prune"] {
        let Some(ran) = run_without_rights(&dir, &format!("checkpoint {command} slow")) else { break };
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains("ermission denied"), "{command}: {}", ran.stderr);
    }
    fs::set_permissions(dir.path("slow"), fs::Permissions::from_mode(0o755)).unwrap();
}
