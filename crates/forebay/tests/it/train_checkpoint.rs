//! `forebay train` saving its state: what each flag does, what it costs, what is refused.

use serde_json::Value;

use crate::dir::Dir;
use crate::disk::with_mount;
use crate::process::Running;
use crate::record::number;
use crate::train::{SMALL, adds_up, cell_of};

/// Steps of a millisecond on a batch in memory, with a state that is made up.
const MADE: &str = "--synthetic --accelerator emulated:1ms --batch 2";

/// The names of the checkpoints in a folder.
pub(crate) fn names(dir: &Dir, folder: &str) -> Vec<String> {
    let Ok(listed) = std::fs::read_dir(dir.path(folder)) else { return Vec::new() };
    let mut names: Vec<String> = listed
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

pub(crate) fn step(n: u64) -> String {
    format!("step-{n:012}")
}

fn saves(cell: &Value) -> &[Value] {
    cell["checkpoints"]["saves"].as_array().unwrap()
}

#[test]
fn so_many_steps_lie_between_two_checkpoints_and_so_many_are_kept() {
    let dir = Dir::with_set();
    let cell = cell_of(&dir, &format!("{SMALL} --steps 7 --checkpoint-every 2 --checkpoint-dir ck"));
    assert_eq!(names(&dir, "ck"), [2, 4, 6].map(step));
    assert!(dir.path("ck").join(step(6)).join("model.safetensors").exists());
    adds_up(&cell);
    let (found, steps) = (&cell["checkpoints"], cell["steps"].as_array().unwrap());
    assert_eq!(
        (&found["mode"], &found["format"], &found["every"]),
        (&"direct".into(), &"safetensors".into(), &2.into())
    );
    assert!(number(found, "bytes") >= 12.0 * number(&cell, "n_parameters"), "weights and two moments: {found}");
    for (save, at) in saves(&cell).iter().zip([1, 3, 5]) {
        assert_eq!((&save["fate"], save["step"].as_u64()), (&"saved".into(), Some(at as u64 + 1)));
        assert!(number(&steps[at], "checkpoint_s") >= number(save, "stall_s"), "{save}");
        assert!(number(save, "durable_slow_s") == number(save, "stall_s") && number(save, "at_s") > 0.0, "{save}");
    }
    assert_eq!(number(&steps[0], "checkpoint_s"), 0.0);
    let written: f64 =
        found["traffic"][0]["written_mb"].as_array().unwrap().iter().map(|mb| mb.as_f64().unwrap()).sum();
    assert!(written * 1e6 >= 3.0 * number(found, "bytes"), "{found}");
    cell_of(
        &dir,
        &format!("{MADE} --steps 6 --checkpoint-every 1 --checkpoint-dir few --keep 2 --checkpoint-size 1MB"),
    );
    assert_eq!(names(&dir, "few"), [5, 6].map(step));
    let buffered = "--steps 6 --checkpoint-every 1 --checkpoint-size 1MB --checkpoint-dir far --burst-dir near";
    cell_of(&dir, &format!("{MADE} {buffered} --keep-fast 1 --keep-slow 3"));
    assert_eq!((names(&dir, "near"), names(&dir, "far")), (vec![step(6)], [4, 5, 6].map(step).to_vec()));
}

#[test]
fn a_format_is_that_of_the_files() {
    let dir = Dir::with_set();
    let line = format!("{SMALL} --steps 2 --checkpoint-every 2 --checkpoint-dir ck --checkpoint-format tensorflow");
    assert_eq!(cell_of(&dir, &line)["checkpoints"]["format"], "tensorflow");
    assert!(dir.path("ck").join(step(2)).join("model.index").exists());
    let said = dir.refused(&format!("train {}", line.replace("tensorflow", "pickle")));
    assert!(said.contains("give safetensors or tensorflow"), "{said}");
}

#[test]
fn a_burst_buffer_shortens_the_stall_and_all_is_drained_at_the_end() {
    let dir = Dir::new();
    let run = |flags: &str| {
        let line = "--steps 4 --checkpoint-every 2 --checkpoint-size 24MB --checkpoint-tier hdd";
        let cell = cell_of(&dir, &format!("{MADE} {line} {flags}"));
        adds_up(&cell);
        cell
    };
    let direct = run("--checkpoint-dir one");
    let burst = run("--checkpoint-dir slow --burst-dir fast --burst-tier optane");
    let copied = run("--checkpoint-dir later --checkpoint-mode async");
    let stall = |cell: &Value| number(&cell["checkpoints"], "median_stall_s");
    // 24 MB at 133 MB/s; what the emulated device takes is the least that it can take.
    assert!(stall(&direct) >= 24e6 / 133e6, "{}", direct["checkpoints"]);
    // What a real device takes on top is not bounded; where the slow one was waited for, all of its time is there.
    assert_eq!((saves(&direct).len(), saves(&burst).len(), saves(&copied).len()), (2, 2, 2));
    assert!(direct["checkpoints"]["drain_after_s"].is_null(), "a save is over when it returns");
    let found = &burst["checkpoints"];
    assert_eq!(
        (&found["mode"], &found["medium"]["tier"], &found["burst"]["tier"]),
        (&"burst".into(), &"hdd".into(), &"optane".into())
    );
    assert_eq!((&found["medium"]["kind"], &copied["checkpoints"]["mode"]), (&"shaped".into(), &"async".into()));
    assert!(number(found, "drain_after_s") > 0.0, "{found}");
    assert_eq!((names(&dir, "slow"), names(&dir, "fast")), ([2, 4].map(step).to_vec(), [2, 4].map(step).to_vec()));
    for save in saves(&burst) {
        assert_eq!(save["fate"], "saved");
        assert!(number(save, "durable_slow_s") > number(save, "durable_fast_s"), "{save}");
    }
    let tiers: Vec<&Value> = found["traffic"].as_array().unwrap().iter().map(|tier| &tier["tier"]).collect();
    assert_eq!(tiers, ["optane", "hdd"]);
    assert_eq!(direct["lever"]["name"], "checkpoint", "{}", direct["lever"]);
    assert!(direct["lever"]["advice"].as_str().unwrap().contains("--burst-dir"), "{}", direct["lever"]);
}

#[test]
fn more_checkpoints_than_can_be_written_wait_are_skipped_or_take_the_place_of_older_ones() {
    let dir = Dir::new();
    let fates = |behind: &str| {
        let flags =
            "--steps 5 --checkpoint-every 1 --checkpoint-size 16MB --checkpoint-tier hdd --checkpoint-mode async";
        let cell = cell_of(&dir, &format!("{MADE} {flags} --checkpoint-dir {behind} --checkpoint-behind {behind}"));
        saves(&cell).iter().map(|save| save["fate"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fates("wait"), ["saved"; 5]);
    let skipped = fates("skip");
    assert!(skipped.iter().any(|fate| fate == "skipped"), "{skipped:?}");
    assert_eq!((skipped[0].as_str(), skipped[4].as_str()), ("saved", "saved"), "the last one waits for its turn");
    assert_eq!(fates("coalesce").last().map(String::as_str), Some("saved"));
}

#[test]
fn the_drain_is_as_slow_as_it_is_told() {
    let dir = Dir::new();
    let line =
        format!("{MADE} --steps 2 --checkpoint-every 2 --checkpoint-size 10MB --checkpoint-dir slow --burst-dir fast");
    let cell = cell_of(&dir, &format!("{line} --drain-rate 20MB/s"));
    // It reads 10 MB and reads them back at 20 MB a second.
    assert!(number(&cell["checkpoints"], "drain_after_s") >= 0.5, "{}", cell["checkpoints"]);
}

#[test]
fn injected_failures_cost_the_steps_since_the_last_checkpoint_and_a_restore() {
    let dir = Dir::new();
    let line = format!("{MADE} --steps 300 --checkpoint-every 20 --checkpoint-size 1MB --checkpoint-dir ck");
    let cell = cell_of(&dir, &format!("{line} --fail-every 60ms --seed 3"));
    adds_up(&cell);
    let injected = &cell["checkpoints"]["injected"];
    let failures = injected["failures"].as_array().unwrap();
    assert!(failures.len() >= 2 && number(injected, "every_s") == 0.06, "{injected}");
    let steps = |failure: &Value, key: &str| failure[key].as_u64().unwrap();
    let lost: u64 = failures.iter().map(|failure| steps(failure, "step") - steps(failure, "resumed_from")).sum();
    assert!(lost > 0, "{injected}");
    assert_eq!(cell["n_steps"].as_u64(), Some(300 + lost), "lost steps are made again: {injected}");
    assert!(failures.iter().all(|failure| steps(failure, "resumed_from").is_multiple_of(20)), "{injected}");
    let restored: f64 = failures.iter().map(|failure| number(failure, "restore_s")).sum();
    assert!(number(&cell, "checkpoint_s") > restored && restored > 0.0, "{cell}");
    assert_eq!(names(&dir, "ck").last(), Some(&step(300)), "and it comes to its end");
    for (flags, wanted) in [
        (
            "--fail-every 1s --checkpoint-mode async",
            "copies in memory would survive injected failures: omit --fail-every",
        ),
        ("--fail-every 0s", "--fail-every"),
    ] {
        let said = dir.refused(&format!("train {} {flags}", line.replace("-dir ck", "-dir other")));
        assert!(said.contains(wanted), "{said}");
    }
    let said = dir.refused("train set --fail-every 1s --checkpoint-every 2 --checkpoint-dir other");
    assert!(
        said.contains("--fail-every repeats lost steps, for which no data is read again: give --synthetic"),
        "{said}"
    );
    let said = dir.refused("train --synthetic --fail-every 1s");
    assert!(said.contains("--fail-every needs checkpoints: give --checkpoint-dir"), "{said}");
}

#[test]
fn what_would_do_nothing_or_overwrite_is_refused() {
    let dir = Dir::new();
    let saves = format!("train {MADE} --steps 4 --checkpoint-every 2 --checkpoint-dir ck");
    let size = "--checkpoint-size 1MB";
    for (line, wanted) in [
        (
            format!("{saves} {size} --burst-dir b --checkpoint-mode direct"),
            "direct saves go straight to the last place: omit --burst-dir",
        ),
        (format!("{saves} {size} --keep-fast 1"), "--keep-fast needs a burst buffer: give --burst-dir"),
        (format!("{saves} {size} --checkpoint-mode burst"), "burst saves need a burst buffer: give --burst-dir"),
        (
            format!("{saves} {size} --burst-dir ck"),
            "--burst-dir ck and --checkpoint-dir ck must not contain one another",
        ),
        (
            format!("{saves} {size} --burst-dir ck/fast"),
            "--burst-dir ck/fast and --checkpoint-dir ck must not contain one another",
        ),
        (
            format!("{} {size} --burst-dir b", saves.replace("-dir ck", "-dir b/ck")),
            "--burst-dir b and --checkpoint-dir b/ck must not contain one another",
        ),
        (
            "train set --steps 4 --checkpoint-every 2 --checkpoint-dir ./set/".to_owned(),
            "cannot write ./set/: it is the input set",
        ),
        (format!("{saves} {size} --burst-tier ssd"), "--burst-dir <DIR>"),
        (format!("{saves} {size} --drain-rate 1MB"), "--drain-rate needs a burst buffer: give --burst-dir"),
        (format!("{saves} {size} --drain-rate 0 --burst-dir b"), "give a rate above 0"),
        (format!("{saves} {size} --checkpoint-behind skip"), "omit --checkpoint-behind"),
        (saves.clone(), "an emulated accelerator has no state to save: give --checkpoint-size"),
        ("train --synthetic --steps 4 --checkpoint-every 2".to_owned(), "needs checkpoints: give --checkpoint-dir"),
        ("train --synthetic --steps 4 --checkpoint-dir ck".to_owned(), "give --checkpoint-every"),
        ("train --synthetic --keep 3".to_owned(), "give --checkpoint-dir"),
        ("train --synthetic --resume".to_owned(), "--checkpoint-dir <DIR>"),
        (
            format!("train --synthetic --checkpoint-every 2 --checkpoint-dir ck {size}"),
            "--checkpoint-size needs an emulated --accelerator",
        ),
        (
            format!("train {MADE} --steps 4 --checkpoint-every 5 --checkpoint-dir ck {size}"),
            "a run of 4 steps saves no checkpoint with --checkpoint-every 5",
        ),
    ] {
        let said = dir.refused(&line);
        assert!(said.contains(wanted), "{line}\n{said}");
    }
    assert!(!dir.path("ck").exists(), "what is refused leaves no trace");
    let said = dir.met(&format!("{saves} {size} --dry-run"));
    assert!(said.ends_with("; a checkpoint every 2 to ck, direct, safetensors, 5 kept\n"), "{said}");
    cell_of(&dir, &format!("{} {size}", saves.strip_prefix("train ").unwrap()));
    let before = dir.tree("ck");
    for dry in ["", "--dry-run"] {
        let said = dir.refused(&format!("{saves} {size} {dry}"));
        let told = "forebay: ck already contains checkpoints, the newest of step 4\nhint: continue it with --resume";
        assert!(said.starts_with(told), "{said}");
    }
    assert_eq!(dir.tree("ck"), before);
}

#[test]
fn a_folder_that_another_run_saves_to_is_refused() {
    let dir = Dir::new();
    let line =
        format!("train {MADE} --steps 1000000 --checkpoint-every 1 --checkpoint-size 1MB --checkpoint-dir ck --resume");
    let mut running = Running::start(&dir, &line);
    running.wait_until("a checkpoint", |_| names(&dir, "ck").len() > 1);
    for line in [line.clone(), line.replace(" --resume", "")] {
        let said = dir.refused(&line);
        assert!(said.contains("ck is in use by process ") && said.contains("\nhint: wait until it ends"), "{said}");
    }
    running.signal(libc::SIGKILL);
    running.finish();
}

#[test]
fn a_full_disk_ends_the_run_and_leaves_the_older_checkpoints() {
    let dir = Dir::new();
    let script = "$forebay train --synthetic --accelerator emulated:1ms --batch 2 --steps 9 --checkpoint-every 1 \
                  --checkpoint-size 10MB --checkpoint-dir small/ck --json record.json >/dev/null; echo status $?
        ls small/ck
        $forebay train --synthetic --accelerator emulated:1ms --batch 2 --steps 2 --checkpoint-every 1 --resume \
                  --checkpoint-size 10MB --checkpoint-dir small/ck > /dev/null; echo status $?";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=36m none small", script) else { return };
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "status 1", "{ran:?}");
    assert_eq!(lines[1..4], [1, 2, 3].map(step), "{ran:?}");
    assert!(ran.stderr.contains("not enough space in ") || ran.stderr.contains("no space left"), "{}", ran.stderr);
    let told = "the state after step 4 is not saved; --resume continues from the newest checkpoint, of step 3\n";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert_eq!(lines[4], "status 0", "what is there is good: {ran:?}");
    let record = dir.json("record.json");
    assert_eq!(record["cells"][0]["n_steps"], 4, "the steps are kept");
    let fates: Vec<&Value> = saves(&record["cells"][0]).iter().map(|save| &save["fate"]).collect();
    assert_eq!(fates, ["saved", "saved", "saved", "failed"]);
}

#[test]
fn a_drain_that_fails_costs_no_save_and_is_told_at_once_and_at_the_end() {
    let dir = Dir::new();
    let script = "$forebay train --synthetic --accelerator emulated:300ms --batch 2 --steps 9 --checkpoint-every 1 \
                  --checkpoint-size 10MB --checkpoint-dir small/ck --burst-dir fast --json record.json >/dev/null; echo status $?
        ls small/ck";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=16m none small", script) else { return };
    assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), ["status 1", &step(1)], "{ran:?}");
    assert!(ran.stderr.contains("the checkpoint of step 2 failed while being drained: "), "{}", ran.stderr);
    let cell = &dir.json("record.json")["cells"][0];
    assert_eq!((&cell["n_steps"], saves(cell).len()), (&9.into(), 9));
    assert_eq!((&saves(cell)[0]["fate"], &saves(cell)[8]["fate"]), (&"saved".into(), &"on-fast".into()));
    assert_eq!(names(&dir, "fast").last(), Some(&step(9)), "what is not drained stays");
    let n_left = saves(cell).iter().filter(|save| save["fate"] == "on-fast").count();
    let left = format!("{n_left} checkpoints still to be drained to small/ck: ");
    assert!(ran.stderr.contains(&left), "{left}: {}", ran.stderr);
    assert!(cell["checkpoints"]["drain_after_s"].is_null(), "it came to no end");
}
