//! Runs that are stopped: what is finished stays, and the same command goes on from there.

use std::collections::BTreeSet;

use crate::dir::Dir;
use crate::process::Running;
use crate::record;

#[test]
fn an_interrupted_ingest_writes_the_repeats_it_has_and_says_so() {
    let dir = Dir::with_set();
    let line = "ingest set --threads 2 --warmups 0 --repeats 1000000 --json record.json";
    let mut running = Running::start(&dir, line);
    // Every repeat has threads of its own: the third pair of them means that the first repeat is over.
    let mut seen = BTreeSet::new();
    running.wait_until("the second repeat", |running| {
        seen.extend(running.threads("forebay:map"));
        seen.len() > 4
    });
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "it did not do all that was asked");
    let note = "interrupted: the completed repeats are kept";
    assert!(ran.stdout.contains(&format!("note: {note}\n")), "{}", ran.stdout);
    let record = dir.json("record.json");
    assert_eq!(record::notes(&record), [note]);
    let samples = record["cells"][0]["samples"].as_array().unwrap();
    assert!(!samples.is_empty() && samples.iter().all(|sample| sample["images"] == 24), "only whole repeats");
    assert_eq!(dir.met("report record.json"), ran.stdout);
}

#[test]
fn an_ingest_that_is_interrupted_in_its_warm_up_has_a_record_without_cells() {
    let dir = Dir::with_set();
    let mut running =
        Running::start(&dir, "ingest set --threads 1 --tier hdd --batch 1 --batches 100000 --json record.json");
    running.wait_until("a thread at work", |running| !running.threads("forebay:map").is_empty());
    running.signal(libc::SIGTERM);
    let ran = running.finish();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout.contains("Nothing was measured.\nnote: interrupted before the first repeat was complete\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(dir.json("record.json")["cells"], serde_json::json!([]));
    assert_eq!(dir.met("report record.json"), ran.stdout);
}

#[test]
fn an_interrupted_make_goes_on_to_the_same_result() {
    let dir = Dir::new();
    dir.met("data make caltech101 whole --count 300");
    let line = "data make caltech101 set --count 300";
    let mut running = Running::start(&dir, &format!("{line} --threads 1"));
    running.wait_until("the first image", |_| dir.path("set/class_001/class_001_000000.jpg").exists());
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "forebay: stopped before the end\n"));
    assert!(!dir.path("set/list.txt").exists(), "the list comes last");
    let said = dir.met(line);
    assert!(said.starts_with("set: 300 images, ") && said.ends_with(" of them already there\n"), "{said}");
    assert_eq!(dir.tree("set"), dir.tree("whole"));
}

#[test]
fn an_interrupt_does_not_wait_for_the_end_of_a_batch() {
    let dir = Dir::with_set();
    // A batch of a quarter of an hour.
    let line = "ingest set --batch 100000 --batches 1 --read-only --prefetch 0 --tier hdd --threads 1";
    let mut running = Running::start(&dir, line);
    running.wait_until("a thread at work", |running| !running.threads("forebay:map").is_empty());
    let start = std::time::Instant::now();
    running.signal(libc::SIGINT);
    assert_eq!(running.finish().code, Some(1));
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn an_interrupted_decode_leaves_nothing_behind() {
    let dir = Dir::with_set();
    let mut running = Running::start(&dir, "data decode set --to out/a.npy --size 1500");
    running.wait_until("a thread at work", |running| !running.threads("forebay:map").is_empty());
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "forebay: stopped before the end\n"));
    assert_eq!(std::fs::read_dir(dir.path("out")).unwrap().count(), 0);
}

#[test]
fn an_interrupted_pack_goes_on_to_the_same_result() {
    let dir = Dir::with_set();
    let line = |out: &str| format!("data pack set {out} --to tensor --size 640 --shard-size 2MB --threads 1");
    dir.met(&line("whole"));
    let mut running = Running::start(&dir, &line("out"));
    running.wait_until("the first shard", |_| dir.path("out/set-00000-of-00024.fbt").exists());
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "forebay: stopped before the end\n"));
    assert!(!dir.path("out/manifest.json").exists(), "the manifest comes last");
    assert!(dir.met("data verify out").contains(" good, 0 bad; "), "what is there is whole");
    let said = dir.met(&line("out"));
    assert!(said.starts_with("out: 24 samples in 24 ") && said.ends_with(" already there\n"), "{said}");
    assert_eq!(dir.tree("out"), dir.tree("whole"));
}

#[test]
fn a_killed_pack_leaves_no_shard_that_looks_whole_and_is_not() {
    let dir = Dir::with_set();
    for (to, flags, first) in [
        ("tensor", "--size 640 --shard-size 2MB", "set-00000-of-00024.fbt"),
        ("tar", "--shard-size 64KiB", "set-00000-of-00003.tar"),
    ] {
        let line = |out: &str| format!("data pack set {out} --to {to} {flags}");
        dir.met(&line(to));
        let out = format!("killed-{to}");
        let mut running = Running::start(&dir, &line(&out));
        running.wait_until("the first shard", |_| dir.path(format!("{out}/{first}")).exists());
        running.signal(libc::SIGKILL);
        assert_eq!(running.finish().code, None);
        let said = dir.met(&format!("data verify {out}"));
        assert!(said.contains(" good, 0 bad; "), "{said}");
        dir.met(&line(&out));
        assert_eq!(dir.tree(&out), dir.tree(to));
        assert!(dir.met(&format!("data verify {out}")).starts_with(&format!("{out}: 24 samples good, 0 bad; ")));
        let left: Vec<String> = std::fs::read_dir(dir.path(&out))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".tmp"))
            .collect();
        assert_eq!(left, [] as [&str; 0], "nothing half written stays");
    }
}

#[test]
fn a_killed_make_leaves_no_image_that_looks_whole_and_is_not() {
    let dir = Dir::new();
    let line = "data make caltech101 set --count 300";
    let mut running = Running::start(&dir, line);
    running.wait_until("the first image", |_| dir.path("set/class_001/class_001_000000.jpg").exists());
    running.signal(libc::SIGKILL);
    assert_eq!(running.finish().code, None);
    assert!(dir.met("data verify set").contains(" good, 0 bad; "));
    dir.met(line);
    assert!(dir.met("data verify set").starts_with("set: 300 samples good, 0 bad; 300 files, "));
}

#[test]
fn two_runs_do_not_fill_one_folder() {
    let dir = Dir::new();
    let line = "data make caltech101 set --count 3000 --threads 1";
    let mut running = Running::start(&dir, line);
    running.wait_until("the first image", |_| dir.path("set/class_001/class_001_000000.jpg").exists());
    assert_eq!(dir.refused(line), "forebay: set: another process is writing to this folder\n");
    running.signal(libc::SIGKILL);
    running.finish();
}
