//! `forebay data inspect`: the same findings as text, in a file and on stdout.

use crate::dir::{Dir, found};

#[test]
fn the_text_says_what_a_folder_holds() {
    let dir = Dir::with_set();
    let expected = "\
set: 24 samples in 24 files, 107.9 KB
formats   24 jpeg
colours   24 YCbCr
classes   22: background (1), class_001 (2), class_002 (2), class_003 (1), class_004 (1), class_005 (1), \
          class_006 (1), class_007 (1), … 14 more

           min     p25  median     p75      max    mean
size    1.0 KB  2.7 KB  3.9 KB  5.5 KB  12.3 KB  4.5 KB
width      125     188     188     188      188     182
height     103     125     141     150      188     140

size from  samples
    512 B        1  ████
    1 KiB        2  ████████
    2 KiB       10  ████████████████████████████████████████
    4 KiB        9  ████████████████████████████████████
    8 KiB        2  ████████

To read blocks of these sizes with fio:
  --bssplit=1K/4:2K/29:4K/46:8K/17:16K/4
";
    assert_eq!(dir.met("data inspect set"), expected);
}

#[test]
fn json_goes_to_a_file_beside_the_text_and_to_stdout_alone() {
    let dir = Dir::with_set();
    let text = dir.met("data inspect set");
    assert_eq!(dir.met("data inspect set --json found.json"), text);
    let stdout = dir.met("data inspect set --json -");
    let kept = String::from_utf8(dir.read("found.json")).unwrap();
    assert_eq!(found(&stdout), found(&kept), "stdout holds the JSON and nothing else");
    assert!(dir.json("found.json")["series"]["time_s"][0].as_f64().unwrap() > 0.0, "what the machine did meanwhile");
    let found = found(&kept);
    assert_eq!(found["form"], "folder");
    assert_eq!((&found["n_files"], &found["n_samples"], &found["n_bad"]), (&24.into(), &24.into(), &0.into()));
    let bytes: usize = dir.images("set").values().map(Vec::len).sum();
    assert_eq!(found["total_bytes"], bytes);
    assert_eq!(found["classes"].as_array().unwrap().len(), 22);
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let dir = Dir::with_set();
    dir.edit("set/class_003/class_003_000003.jpg", |bytes| bytes.truncate(1000));
    let one = found(&dir.met("data inspect set --threads 1 --json -"));
    assert_eq!(found(&dir.met("data inspect set --threads 7 --json -")), one);
}

#[test]
fn shards_lists_and_single_images_are_inspected_too() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tar");
    let first_line = |path: &str| dir.met(&format!("data inspect {path}")).lines().next().unwrap().to_owned();
    let archive = dir.read("shards/set-00000-of-00001.tar").len();
    assert_eq!(first_line("shards"), format!("shards: 24 samples in 1 file, {:.1} KB", archive as f64 / 1e3));
    assert_eq!(first_line("set/list.txt"), "set/list.txt: 24 samples in 24 files, 107.9 KB");
    let image = "set/class_001/class_001_000000.jpg";
    assert_eq!(first_line(image), format!("{image}: 1 sample in 1 file, 1.0 KB"));
}

#[test]
fn bad_files_are_named_and_are_no_failure_of_an_inspection() {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "");
    let said = dir.met("data inspect set");
    assert!(said.starts_with("set: 23 samples in 24 files"), "{said}");
    assert!(said.ends_with("\n1 bad:\n  set/class_004/class_004_000004.jpg: empty file\n"), "{said}");
}
