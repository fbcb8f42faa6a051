//! `forebay checkpoint verify` and `restore` on what is damaged, and what `ls` sees of it.

use std::fs;

use serde_json::Value;

use crate::checkpoint::{named_step, save, tensor, values};
use crate::dir::Dir;

const FILE: &str = "model.safetensors";

/// Each kind of damage, done to the folder of a checkpoint, with what verify says of it and whether a look sees it.
type Kind = (&'static str, fn(&Dir, &str), &'static str, bool);

const KINDS: [Kind; 8] = [
    ("flipped", |dir, at| dir.edit(&format!("{at}/{FILE}"), |bytes| bytes[9000] ^= 1), "checksum", false),
    ("zeroed", |dir, at| dir.edit(&format!("{at}/{FILE}"), |bytes| bytes.fill(0)), "is all zeros from offset 0", false),
    (
        "torn",
        |dir, at| dir.edit(&format!("{at}/{FILE}"), |bytes| bytes[20_480..].fill(0)),
        "is torn at offset 20480",
        false,
    ),
    ("truncated", |dir, at| dir.edit(&format!("{at}/{FILE}"), |bytes| bytes.truncate(7)), "is truncated: 7 of", true),
    ("missing", |dir, at| fs::remove_file(dir.path(format!("{at}/{FILE}"))).unwrap(), "is missing", true),
    (
        "half deleted",
        |dir, at| fs::remove_file(dir.path(format!("{at}/manifest.forebay"))).unwrap(),
        "no manifest",
        true,
    ),
    ("foreign", |dir, at| dir.write(format!("{at}/manifest.forebay"), "hello"), "not written by forebay", true),
    (
        "cut manifest",
        |dir, at| dir.edit(&format!("{at}/manifest.forebay"), |b| b.truncate(60)),
        "manifest is damaged",
        true,
    ),
];

#[test]
fn every_kind_of_damage_is_named_and_passed_over() {
    for (kind, damage, said, is_seen) in KINDS {
        let dir = Dir::new();
        save(&dir, "slow", "safetensors", &[20, 40]);
        damage(&dir, &named_step("slow", 40));
        let ran = dir.missed("checkpoint verify slow");
        assert!(
            ran.stdout.contains("DAMAGED  slow/step-000000000040: ") && ran.stdout.contains(said),
            "{kind}: {ran:?}"
        );
        assert!(ran.stdout.contains("\n1 good, 1 damaged; "), "{kind}: {}", ran.stdout);
        let listed = dir.met("checkpoint ls slow");
        assert_eq!(listed.contains(said), is_seen, "{kind}: {listed}");
        let ran = dir.run("checkpoint restore slow --to out.safetensors");
        assert_eq!(ran.code, Some(0), "{kind}: {ran:?}");
        assert!(ran.stdout.starts_with("step 20 of slow, verified\n"), "{kind}: {}", ran.stdout);
        assert!(ran.stderr.contains("forebay: skipped ") && ran.stderr.contains(said), "{kind}: {}", ran.stderr);
        assert_eq!(tensor(&dir.read("out.safetensors"), "layer/w"), values(20)[0]);
    }
}

#[test]
fn good_ones_verify_in_every_folder_and_a_step_can_be_picked() {
    let dir = Dir::new();
    save(&dir, "slow", "tensorflow", &[20, 40]);
    save(&dir, "fast", "tensorflow", &[40]);
    let said = dir.met("checkpoint verify slow --burst-dir fast --tier ssd --burst-tier optane");
    assert!(said.contains("good     fast/step-000000000040\n") && said.contains("3 good, 0 damaged; "), "{said}");
    let found: Value = serde_json::from_str(&dir.met("checkpoint verify slow --step 20 --json -")).unwrap();
    assert_eq!((&found["n_good"], &found["copies"][0]["step"]), (&1.into(), &20.into()));
    let ran = dir.missed("checkpoint verify slow --step 30");
    assert_eq!(ran.stdout, "no checkpoints of step 30 to verify\n");
}

#[test]
fn nothing_good_is_nothing_restored() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    dir.edit(&format!("{}/{FILE}", named_step("slow", 20)), |bytes| bytes[9000] ^= 1);
    let ran = dir.missed("checkpoint restore slow --to out.safetensors");
    assert!(ran.stderr.starts_with("forebay: no valid checkpoint in slow\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("checksum") && ran.stdout.is_empty(), "{ran:?}");
    fs::create_dir(dir.path("empty")).unwrap();
    let ran = dir.missed("checkpoint restore empty --to out.safetensors");
    assert!(ran.stderr.starts_with("forebay: no valid checkpoint in empty"), "{}", ran.stderr);
    assert!(!dir.path("out.safetensors").exists());
    assert_eq!(dir.missed("checkpoint verify empty").stdout, "no checkpoints to verify\n");
}

#[test]
fn the_newest_is_restored_from_the_nearest_folder_and_a_step_by_its_number() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20, 40]);
    save(&dir, "fast", "safetensors", &[40]);
    let flags = "--burst-dir fast --tier ssd --burst-tier optane";
    let found: Value =
        serde_json::from_str(&dir.met(&format!("checkpoint restore slow {flags} --to new.safetensors --json -")))
            .unwrap();
    assert_eq!((&found["step"], &found["folder"], &found["metric"]), (&40.into(), &"fast".into(), &4.0.into()));
    assert_eq!(tensor(&dir.read("new.safetensors"), "layer/b"), values(40)[1]);
    dir.met("checkpoint restore slow --step 20 --to old.safetensors");
    assert_eq!(tensor(&dir.read("old.safetensors"), "layer/b"), values(20)[1]);
    assert_eq!(dir.read("old.safetensors"), dir.read(&format!("{}/{FILE}", named_step("slow", 20))), "the same file");
    assert!(dir.missed("checkpoint restore slow --step 30 --to x").stderr.contains("of step 30"));
}

#[test]
fn a_restore_replaces_nothing_unless_it_is_told_to() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    dir.write("out.safetensors", "mine");
    let said = dir.refused("checkpoint restore slow --to out.safetensors");
    assert_eq!(
        said,
        "forebay: ./out.safetensors already exists\nhint: choose another name, or replace it with --force\n"
    );
    assert_eq!(dir.read("out.safetensors"), b"mine");
    dir.met("checkpoint restore slow --to out.safetensors --force");
    assert_eq!(tensor(&dir.read("out.safetensors"), "layer/w"), values(20)[0]);
    let hidden: Vec<_> = fs::read_dir(dir.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(hidden.iter().all(|name| !name.to_string_lossy().starts_with(".out")), "nothing half written: {hidden:?}");
}
