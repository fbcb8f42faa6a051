//! `forebay checkpoint prune`: what it says it would do is what it does, and what stays is said.

use std::fs;

use serde_json::Value;

use crate::checkpoint::{named_step, save};
use crate::dir::Dir;

const FILE: &str = "model.safetensors";

/// What a dry run and then a real one say, less the word for it.
fn both(dir: &Dir, flags: &str) -> [Value; 2] {
    ["--dry-run", ""].map(|dry| {
        let said = dir.met(&format!("checkpoint prune slow {flags} {dry} --json -"));
        let mut said: Value = serde_json::from_str(&said).unwrap();
        let is_dry_run = said.as_object_mut().unwrap().remove("is_dry_run").unwrap();
        assert_eq!(is_dry_run, Value::Bool(!dry.is_empty()));
        said
    })
}

#[test]
fn a_dry_run_says_what_a_real_one_does_whatever_is_damaged() {
    let flip: fn(&mut Vec<u8>) = |bytes| bytes[9000] ^= 1;
    let cut: fn(&mut Vec<u8>) = |bytes| bytes.truncate(100);
    for damage in [flip, cut] {
        for step in [10, 30, 50] {
            let dir = Dir::new();
            save(&dir, "slow", "safetensors", &[10, 20, 30, 40, 50]);
            dir.edit(&format!("{}/{FILE}", named_step("slow", step)), damage);
            let [dry, real] = both(&dir, "--keep 2");
            assert_eq!(dry, real, "step {step}");
            let n_left = fs::read_dir(dir.path("slow")).unwrap().flatten();
            let n_left = n_left.filter(|entry| entry.file_name().to_string_lossy().starts_with("step-")).count();
            assert_eq!(real["n_kept"], n_left);
            assert_eq!(dir.run("checkpoint restore slow --to out.safetensors").code, Some(0), "step {step}");
        }
    }
}

#[test]
fn a_dry_run_agrees_also_over_a_burst_buffer() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[10, 20]);
    save(&dir, "fast", "safetensors", &[10, 20, 30]);
    let [dry, real] = both(&dir, "--burst-dir fast --keep 1");
    assert_eq!(dry, real);
    assert!(dir.path(named_step("fast", 30)).exists(), "what is not drained stays");
}

#[test]
fn what_stays_beyond_the_rules_is_named_with_the_reason() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[10, 20, 30]);
    dir.edit(&format!("{}/{FILE}", named_step("slow", 30)), |bytes| bytes.truncate(5000));
    let said = dir.met("checkpoint prune slow --keep 2");
    let stays = said.lines().find(|line| line.starts_with("stays: slow/step-000000000030: damaged: ")).unwrap();
    assert!(stays.contains("damaged: model.safetensors is truncated: 5000 of"), "{said}");
    assert!(
        said.split_whitespace().collect::<Vec<_>>().join(" ").contains("if unwanted, remove its folder by hand"),
        "{said}"
    );
    let found: Value = serde_json::from_str(&dir.met("checkpoint prune slow --keep 2 --json -")).unwrap();
    assert_eq!(found["stays"][0]["name"], "step-000000000030");
    fs::remove_dir_all(dir.path(named_step("slow", 30))).unwrap();
    assert!(!dir.met("checkpoint prune slow --keep 2").contains("stays"));
}

#[test]
fn where_there_is_no_checkpoint_nothing_is_made() {
    let dir = Dir::new();
    fs::create_dir(dir.path("slow")).unwrap();
    for dry in ["", " --dry-run"] {
        let said = dir.met(&format!("checkpoint prune slow{dry}"));
        assert!(said.ends_with("0 B; 0 kept\n"), "{said}");
        assert_eq!(fs::read_dir(dir.path("slow")).unwrap().count(), 0);
    }
    dir.write("slow/notes.txt", "mine");
    dir.met("checkpoint prune slow");
    assert_eq!(fs::read_dir(dir.path("slow")).unwrap().count(), 1);
    save(&dir, "other", "safetensors", &[20, 40]);
    fs::remove_file(dir.path("other/.forebay.lock")).unwrap();
    dir.met("checkpoint prune other --keep 1 --dry-run");
    assert!(!dir.path("other/.forebay.lock").exists(), "a dry run makes no lock");
}
