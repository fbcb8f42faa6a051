//! Probes that are stopped, killed or run out of space leave nothing behind.

use std::fs;

use crate::dir::{Dir, unfolded};
use crate::disk::with_mount;
use crate::probe::left_overs;
use crate::process::Running;

#[test]
fn an_interrupted_probe_keeps_its_runs_and_leaves_no_file() {
    let dir = Dir::new();
    for (signal, mode) in [(libc::SIGINT, "--sequential"), (libc::SIGTERM, "--random"), (libc::SIGINT, "--files")] {
        let line = format!("probe . {mode} --size 8MiB --depth 2 --runs 1000000 --json record.json --save stopped");
        let mut running = Running::start(&dir, &line);
        let mut seen = std::collections::BTreeSet::new();
        // Every run has threads of its own: many of them mean that runs were finished.
        running.wait_until("the third run", |running| {
            seen.extend(running.threads("forebay:probe"));
            seen.len() > 8
        });
        assert_eq!(left_overs(&dir).len(), 1, "what it works with lies there");
        running.signal(signal);
        let ran = running.finish();
        let said = "forebay: stopped not saved: the probe was stopped\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), said), "it did not do all that was asked");
        assert_eq!(left_overs(&dir), [] as [&str; 0]);
        let note = "interrupted: the completed runs are kept";
        assert!(ran.stdout.contains(&format!("note: {note}\n")), "{}", ran.stdout);
        let record = dir.json("record.json");
        assert_eq!(record["notes"][0], note);
        let cells = record["cells"].as_array().unwrap();
        assert!(!cells.is_empty(), "{}", ran.stdout);
        for sample in cells.iter().flat_map(|cell| cell["samples"].as_array().unwrap()) {
            assert!(sample["bytes"].as_u64().unwrap() > 7 << 20, "only whole runs: {sample}");
        }
    }
}

#[test]
fn a_probe_that_is_interrupted_in_its_first_run_says_that_nothing_is_kept() {
    let dir = Dir::new();
    let mut running = Running::start(&dir, "probe . --sequential --tier hdd --size 1GiB --depth 1 --runs 2");
    running.wait_until("a thread at work", |running| !running.threads("forebay:probe").is_empty());
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code, Some(1));
    let said = "Nothing was measured.\nnote: interrupted before the first run was complete\n";
    assert!(ran.stdout.ends_with(said), "{}", ran.stdout);
}

#[test]
fn what_a_killed_probe_left_goes_with_the_next_and_a_live_one_is_left_alone() {
    let dir = Dir::new();
    let line = "probe . --size 8MiB --depth 1 --runs 1000000";
    let start = || {
        let mut running = Running::start(&dir, line);
        running.wait_until("a thread at work", |running| !running.threads("forebay:probe").is_empty());
        running
    };
    let killed = start();
    killed.signal(libc::SIGKILL);
    assert_eq!(killed.finish().code, None);
    let left = left_overs(&dir);
    assert_eq!(left.len(), 1);
    fs::create_dir(dir.path(".forebay-probe-notes")).unwrap();
    let live = start();
    let ran = dir.run("probe . --size 4MiB --depth 1 --runs 2");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(left_overs(&dir).len(), 2, "the live one's folder, and one that is nobody's probe");
    assert!(!dir.path(&left[0]).exists());
    live.signal(libc::SIGINT);
    let ended = live.finish();
    let said = [&ended.stderr, &ran.stderr].map(String::as_str).concat();
    let removed = format!("forebay: removed leftovers of a killed probe: {}\n", left[0]);
    let other = "forebay: another probe is running in .; they disturb each other, so both rates are too low\n";
    assert_eq!(said, format!("{removed}{other}"), "each said once");
    assert_eq!(ended.code, Some(1));
    assert_eq!(left_overs(&dir), [".forebay-probe-notes"]);
}

#[test]
fn a_disk_that_fills_up_meanwhile_is_said_and_nothing_stays() {
    let dir = Dir::new();
    let script = "$forebay probe small --sequential --engine sync --size 16MiB --depth 1 --runs 1000000 2> said &
        probe=$!
        until ls -A small | grep -q forebay-probe; do kill -0 $probe || break; done
        while kill -0 $probe 2> gone; do cat /dev/zero >> small/fill 2> full; done
        wait $probe; echo status $?; ls -A small";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=20m none small", script) else { return };
    assert_eq!(ran.stdout, "status 2\nfill\n");
    let said = unfolded(&String::from_utf8(dir.read("said")).unwrap());
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("forebay: small/.forebay-probe-"), "{said}");
    let rest = "/data: no space left on the device; free some, or name another folder";
    assert!(last.ends_with(rest), "{said}");
}
