//! Named ceilings: kept by probe, set beside ingest's rates.

use serde_json::Value;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, flat};
use crate::probe::cells;
use crate::record::{self, number};

/// Saves a ceiling of the test's folder; its best rate of random reads, unless nothing is cold here.
fn save(dir: &Dir, name: &str, flags: &str) -> Option<f64> {
    let ran =
        dir.run(&format!("probe . --random --size 4MiB --depth 1,4 --runs 3 --json {name}.json --save {name} {flags}"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = dir.json(&format!("{name}.json"));
    assert_eq!(dir.json(&format!(".home/ceilings/{name}.json")), record, "what is kept is the record");
    if record["environment"]["data_file_system"].as_str().unwrap().starts_with("tmpfs") {
        not_run(Reason::NoDisk, "memory has no ceiling");
        return None;
    }
    assert_eq!(ran.stderr, format!("forebay: saved as the ceiling {name}\n"));
    Some(cells(&record).iter().map(|cell| number(cell, "mb_per_s")).fold(0.0, f64::max))
}

fn cell(dir: &Dir, flags: &str) -> Value {
    record::cell_of(dir, &format!("set --threads 1 --repeats 1 --read-only {flags}"))
}

#[test]
fn cold_rates_stand_beside_the_ceiling_of_their_disk_and_warm_ones_do_not() {
    let dir = Dir::with_set();
    assert!(cell(&dir, "--cold")["ceiling_mb_per_s"].is_null(), "nothing was saved yet");
    let Some(best) = save(&dir, "disk", "") else { return };
    let cold = cell(&dir, "--cold");
    assert_eq!(number(&cold, "ceiling_mb_per_s"), best);
    let of = cold["ceiling_of"].as_str().unwrap();
    assert!(of.starts_with("the random-read ceiling of disk (direct, depth "), "{of}");
    assert!(cell(&dir, "")["ceiling_mb_per_s"].is_null(), "bytes from memory have no disk's ceiling");
    let printed = dir.met("ingest set --cold --threads 1 --repeats 1 --read-only");
    assert!(printed.contains("\nof ceiling ") && printed.contains("\nceiling, MB/s "), "{printed}");
    assert!(flat(&printed).contains(" ceiling is the random-read ceiling of disk (direct, depth "), "{printed}");
}

#[test]
fn a_ceiling_can_be_named_and_an_unknown_one_lists_those_there_are() {
    let dir = Dir::with_set();
    let said = dir.refused("ingest set --ceiling nvme");
    assert_eq!(said, "forebay: no ceiling nvme\nhint: `forebay probe DIR --save nvme` saves one\n");
    let Some(first) = save(&dir, "a-1.old", "") else { return };
    save(&dir, "b_2", "");
    let named = cell(&dir, "--cold --ceiling a-1.old");
    assert_eq!(number(&named, "ceiling_mb_per_s"), first, "not the newest");
    let said = dir.refused("ingest set --ceiling nvme");
    assert!(said.starts_with("forebay: no ceiling nvme; saved: a-1.old, b_2\nhint: "), "{said}");
    let warm = record::of(&dir, "set --threads 1 --repeats 1 --ceiling b_2");
    let note = warm["notes"][0].as_str().unwrap();
    assert_eq!(note, "no row has a ceiling of b_2: the bytes of the row are not proven to come from the device");
}

#[test]
fn a_tier_keeps_its_profile_until_it_is_probed() {
    let dir = Dir::with_set();
    save(&dir, "disk", "");
    let before = cell(&dir, "--tier ssd");
    assert_eq!(
        (number(&before, "ceiling_mb_per_s"), &before["ceiling_of"]),
        (280.0, &"the profile ssd (sequential)".into())
    );
    let ran = dir.run("probe . --random --tier ssd --size 4MiB --depth 1 --runs 2 --json ssd.json --save ssd");
    assert_eq!(ran.stderr, "forebay: saved as the ceiling ssd\n");
    let shaped = number(&dir.json("ssd.json")["cells"][0], "mb_per_s");
    assert_eq!(number(&cell(&dir, "--tier ssd"), "ceiling_mb_per_s"), shaped);
    assert_eq!(number(&cell(&dir, "--tier ssd --ceiling ssd"), "ceiling_mb_per_s"), shaped);
    assert_eq!(number(&cell(&dir, "--tier hdd --ceiling ssd"), "ceiling_mb_per_s"), 163.0);
    let of = cell(&dir, "--cold")["ceiling_of"].clone();
    assert!(
        of.is_null() || of.as_str().unwrap().contains(" of disk "),
        "an emulated device is no ceiling of a real one: {of}"
    );
}

#[test]
fn saving_again_replaces_the_ceiling_and_a_damaged_one_is_left_out() {
    let dir = Dir::with_set();
    save(&dir, "disk", "");
    let ran = dir.run("probe . --random --size 4MiB --depth 1 --runs 2 --json again.json --save disk");
    assert!(ran.stderr.starts_with("forebay: replaced the ceiling disk\n"), "{}", ran.stderr);
    assert_eq!(dir.json(".home/ceilings/disk.json"), dir.json("again.json"));
    let ran = dir.run("probe . --random --tier ssd --size 4MiB --depth 1 --runs 2 --save disk");
    let said = ["forebay: replaced the ceiling disk; it was a real disk (", " and is now the tier ssd, "];
    assert!(ran.stderr.starts_with(said[0]) && ran.stderr.contains(said[1]), "{}", ran.stderr);
    dir.write(".home/ceilings/disk.json", "{");
    let ran = dir.run("ingest set --cold --threads 1 --repeats 1");
    assert_eq!(ran.code, Some(0));
    let said = ran.stderr;
    assert!(
        said.starts_with("forebay: ignoring the ceiling ") && said.ends_with("/disk.json: not a record\n"),
        "{said}"
    );
}

#[test]
fn a_home_that_cannot_be_written_is_said_before_the_run() {
    let dir = Dir::new();
    dir.write(".home", "a file");
    let said = dir.refused("probe . --save disk");
    assert!(said.starts_with("forebay: cannot keep ceilings in ") && said.contains("/.home/ceilings: "), "{said}");
}
