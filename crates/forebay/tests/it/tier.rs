//! `forebay tier`, with shaped tiers, which everybody may have.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran, flat};
use crate::process::is_root;

/// The folder that a tier's data is in.
fn data(dir: &Dir, name: &str) -> String {
    dir.path(format!(".home/tiers/{name}/data")).canonicalize().unwrap().display().to_string()
}

#[test]
fn a_shaped_tier_comes_is_listed_and_goes() {
    let dir = Dir::new();
    assert_eq!(dir.met("tier list"), "no tiers; `forebay tier up hdd` creates one\n");
    let said = dir.met("tier up hdd lustre --shaped");
    let hdd = data(&dir, "hdd");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], format!("hdd: up: {hdd}"));
    assert_eq!(lines[1], "  shaped in process to 163.0 MB/s read, 133.0 MB/s write, 8000 µs per request, 1 at a time");
    assert!(lines[2].starts_with("lustre: up: "), "{said}");
    let listed = dir.met("tier list");
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(
        lines[..2],
        ["name    kind    state  read MB/s  write MB/s", "hdd     shaped  up         163.0       133.0"]
    );
    assert_eq!(lines[3], "Rates are limits; MB is 10^6 bytes.");
    assert!(
        flat(&listed)
            .contains(&format!("hdd: data in {hdd} hdd: not measured; to measure it, run forebay probe {hdd} ")),
        "{listed}"
    );
    dir.write(".home/tiers/hdd/data/a/b", "12345");
    let said = dir.met("tier down hdd");
    assert!(said.starts_with("hdd: removed ") && said.ends_with(" with 1 file, 5 B of data\n"), "{said}");
    assert!(!dir.path(".home/tiers/hdd").exists() && dir.path(".home/tiers/lustre").exists());
    dir.met("tier down");
    assert!(!dir.path(".home/tiers").exists());
    assert_eq!(dir.met("tier down"), "no tiers\n");
}

#[test]
fn what_is_up_is_left_alone_and_other_rates_are_set() {
    let dir = Dir::new();
    let up = "tier up mine --shaped --read 50MB/s --write 20MB/s --iops 250";
    let said = dir.met(up);
    assert!(
        said.contains("50.0 MB/s read, 20.0 MB/s write, 250 requests/s, 4000 µs per request, 1 at a time"),
        "{said}"
    );
    let state = dir.read(".home/tiers/mine/tier.json");
    assert!(dir.met(up).starts_with("mine: already up, unchanged: "));
    assert_eq!(dir.read(".home/tiers/mine/tier.json"), state);
    let said = dir.met("tier up mine --shaped --write 30MB/s");
    assert!(said.starts_with("mine: limits changed: ") && said.contains("50.0 MB/s read, 30.0 MB/s write"), "{said}");
    if is_root() {
        let said = dir.refused("tier up mine");
        assert!(said.contains("mine already exists as a shaped tier; requested a kernel tier\n"), "{said}");
        let hint = "hint: pass --shaped to keep it, or run `forebay tier down mine` first; this deletes its data\n";
        assert!(said.ends_with(hint), "{said}");
    }
}

#[test]
fn flags_that_are_not_given_keep_what_the_tier_has() {
    let dir = Dir::new();
    dir.met("tier up hdd --shaped --iops 50");
    let said = dir.met("tier up hdd --shaped --read 30MB/s");
    assert!(said.contains("30.0 MB/s read, 133.0 MB/s write, 50 requests/s, 20000 µs per request"), "{said}");
    let said = dir.met("tier up hdd --shaped");
    assert!(said.starts_with("hdd: already up, unchanged: ") && said.contains("30.0 MB/s read"), "{said}");
}

#[test]
fn of_many_that_bring_it_up_at_once_one_does() {
    let dir = Dir::new();
    let start = |_| dir.command("tier up hdd --shaped").stdout(Stdio::piped()).spawn().unwrap();
    let running: Vec<Child> = (0..8).map(start).collect();
    let said: Vec<Ran> = running.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    assert!(said.iter().all(|ran| ran.code == Some(0)), "{said:?}");
    let began = |words: &str| said.iter().filter(|ran| ran.stdout.starts_with(words)).count();
    assert_eq!((began("hdd: up: "), began("hdd: already up, unchanged: ")), (1, 7), "{said:?}");
}

#[test]
fn the_list_is_json_too() {
    let dir = Dir::new();
    dir.met("tier up ssd --shaped --iops 9");
    let listed: Value = serde_json::from_str(&dir.met("tier list --json -")).unwrap();
    let tier = &listed["tiers"][0];
    assert_eq!((&tier["name"], &tier["kind"], &tier["state"]), (&json!("ssd"), &json!("shaped"), &json!("up")));
    assert_eq!((&tier["read_bytes_per_s"], &tier["iops"]), (&json!(280_000_000), &json!(9)));
    assert_eq!((&tier["data"], &tier["measured"]), (&json!(data(&dir, "ssd")), &Value::Null));
    dir.met("tier list --json list.json");
    assert_eq!(dir.json("list.json"), listed);
}

#[test]
fn what_makes_no_tier_is_refused_before_anything_is_made() {
    let dir = Dir::new();
    for (line, wanted) in [
        ("tape", "hint: pass --read and --write, or use a profile: hdd, ssd, optane, lustre, s3"),
        ("tape --read 5MB/s", "hint: pass --read and --write"),
        ("hdd ../x", "hint: use at most 64 letters, digits, - and _"),
        ("hdd --read 1B/s", "hint: use at least 64 KB/s"),
        ("hdd --read 99999999GB/s", "hint: use at most 1 TB/s"),
        ("hdd --read 5furlongs/s", "give a rate above 0, such as 100MB/s"),
        ("hdd --iops 0", "--iops"),
        ("hdd --fs btrfs", "\"btrfs\" is not one of ext4, xfs"),
        ("hdd --dir nowhere", "nowhere"),
        ("hdd --size 1GiB", "cannot be used with"),
        ("", "NAME"),
    ] {
        let said = dir.refused(&format!("tier up --shaped {line}"));
        assert!(said.contains(wanted), "{line}\n{said}");
    }
    assert!(!dir.path(".home/tiers").exists());
}

#[test]
fn one_of_several_that_fails_does_not_stop_the_others() {
    let dir = Dir::new();
    dir.write("disk/ssd/thesis.txt", "years");
    let ran = dir.missed("tier up hdd ssd optane --shaped --dir disk");
    assert!(ran.stderr.contains("cannot bring up ssd: ") && ran.stderr.contains("disk/ssd is not empty\n"), "{ran:?}");
    assert!(ran.stderr.ends_with("hint: choose another --dir, or move the files\n"), "{ran:?}");
    assert!(ran.stdout.contains("hdd: up: ") && ran.stdout.contains("optane: up: "), "{ran:?}");
    assert!(dir.path("disk/hdd/data").is_dir() && dir.path(".home/tiers/hdd/tier.json").is_file());
    dir.write("disk/hdd/notes.txt", "mine");
    let ran = dir.missed("tier down");
    assert!(ran.stderr.contains("cannot take down hdd: ") && ran.stderr.contains("notes.txt"), "{ran:?}");
    assert!(ran.stdout.starts_with("optane: removed "), "{ran:?}");
    std::fs::remove_file(dir.path("disk/hdd/notes.txt")).unwrap();
    dir.met("tier down hdd");
    assert_eq!(dir.names("disk"), ["ssd/thesis.txt"]);
}

#[test]
fn a_name_that_is_not_there_is_said_and_no_failure() {
    let dir = Dir::new();
    dir.met("tier up hdd --shaped");
    let ran = dir.run("tier down ssd");
    let said = "forebay: no tier ssd; found hdd\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", said));
}

#[test]
fn a_damaged_state_is_listed_as_such() {
    let dir = Dir::new();
    dir.met("tier up hdd --shaped");
    dir.write(".home/tiers/bad/tier.json", "{}");
    let listed = dir.met("tier list");
    assert!(listed.contains("bad/tier.json is not a tier's state file"), "{listed}");
    assert!(listed.contains("\nhdd   shaped  up "), "{listed}");
}

/// A cell as `forebay probe` saves it.
pub(crate) fn probed(mode: &str, mb_per_s: f64) -> Value {
    json!({
        "mode": mode, "engine": "sync", "block": 1_048_576, "depth": 1, "mb_per_s": mb_per_s, "iops": 1.0,
        "latency_us": {"p50": 1.0, "p90": 1.0, "p99": 1.0, "p999": 1.0, "max": 1.0},
        "cache": "mixed", "tier": "hdd", "tier_kind": "shaped", "samples": []
    })
}

#[test]
fn what_a_probe_measured_since_the_limits_were_set_is_shown() {
    let dir = Dir::new();
    let cells = [
        probed("sequential-read", 150.0),
        probed("sequential-read", 161.5),
        probed("sequential-write", 131.2),
        probed("random-read", 9.0),
    ];
    let record = json!({"schema": "forebay-record/1", "command": "probe", "cells": cells}).to_string();
    dir.met("tier up hdd ssd --shaped");
    dir.write(".home/ceilings/disk.json", record);
    dir.write(".home/ceilings/broken.json", "{");
    let listed = dir.met("tier list");
    assert!(listed.contains("hdd: measured read 161.5, write 131.2, random read 9.0 MB/s by probe disk\n"), "{listed}");
    assert!(!listed.contains("hdd: not measured") && listed.contains("ssd: not measured"), "{listed}");
    let listed: Value = serde_json::from_str(&dir.met("tier list --json -")).unwrap();
    let measured = &listed["tiers"][0]["measured"];
    assert_eq!((&measured["sequential_write_mb_per_s"], &measured["probes"]), (&json!(131.2), &json!(["disk"])));
    // The limits were set later, if by a hair: what was measured before says nothing of them.
    let limited_at_ns = dir.json(".home/tiers/hdd/tier.json")["limited_at_ns"].as_u64().unwrap();
    let file = std::fs::File::options().write(true).open(dir.path(".home/ceilings/disk.json")).unwrap();
    for (saved_at_ns, is_measured) in [(limited_at_ns, true), (limited_at_ns - 1_000_000, false)] {
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(saved_at_ns)).unwrap();
        assert_eq!(!dir.met("tier list").contains("hdd: not measured"), is_measured);
    }
}

/// Runs the binary as nobody where this is root, and as it is otherwise.
fn without_root(dir: &Dir, line: &str) -> Option<Ran> {
    if !is_root() {
        return Some(dir.run(line));
    }
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(dir.path(".home")).unwrap();
    for folder in ["", ".home"] {
        std::fs::set_permissions(dir.path(folder), std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(nobody).arg(env!("CARGO_BIN_EXE_forebay")).args(line.split_whitespace());
    command.current_dir(dir.path("")).env("FOREBAY_HOME", dir.path(".home"));
    match command.output() {
        // 126 and 127: nobody cannot reach the program.
        Ok(output) if !matches!(output.status.code(), Some(126 | 127)) => Some(output.into()),
        other => {
            not_run(Reason::NoOtherUser, format!("{other:?}"));
            None
        }
    }
}

#[test]
fn without_root_a_tier_is_shaped_and_says_why() {
    let dir = Dir::new();
    let Some(ran) = without_root(&dir, "tier up hdd --size 1GiB") else { return };
    let said = "forebay: only root can mount a loop device: using a shaped tier instead, which slows down only forebay; it \
                ignores size and file system\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), said), "{}", ran.stdout);
    assert!(ran.stdout.contains("shaped in process to 163.0 MB/s read"), "{}", ran.stdout);
    let ran = without_root(&dir, "tier list").unwrap();
    assert!(ran.stdout.contains("hdd   shaped  up "), "{}", ran.stdout);
    let ran = without_root(&dir, "tier down").unwrap();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!dir.path(".home/tiers").exists());
}
