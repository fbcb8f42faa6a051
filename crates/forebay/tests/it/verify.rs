//! `forebay data verify`: sound data is met with 0, bad data with 1 and a name for each.

use crate::dir::{Dir, found};

#[test]
fn sound_files_are_counted() {
    let dir = Dir::with_set();
    assert_eq!(dir.met("data verify set"), "set: 24 samples good, 0 bad; 24 files, 107.9 KB read\n");
    let said = dir.met("data verify set/list.txt");
    assert_eq!(said, "set/list.txt: 24 samples good, 0 bad; 24 files, 107.9 KB read\n");
}

#[test]
fn sound_shards_are_compared_with_their_manifest() {
    let dir = Dir::with_set();
    for to in ["tfrecord", "tar", "tensor"] {
        dir.met(&format!("data pack set {to} --to {to}"));
        let said = dir.met(&format!("data verify {to}"));
        assert!(said.starts_with(&format!("{to}: 24 samples good, 0 bad; 1 file, ")), "{said}");
        assert!(said.ends_with(" read, manifest compared\n"), "{said}");
    }
}

#[test]
fn a_shard_that_the_manifest_names_and_nobody_finds_is_bad() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tar --shard-size 64KiB");
    std::fs::remove_file(dir.path("shards/set-00001-of-00003.tar")).unwrap();
    let said = dir.missed("data verify shards").stdout;
    assert!(said.starts_with("1 bad:\n  shards/set-00001-of-00003.tar: "), "{said}");
}

#[test]
fn json_goes_to_a_file_beside_the_text_and_to_stdout_alone() {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "");
    let text = dir.missed("data verify set").stdout;
    assert_eq!(dir.missed("data verify set --json found.json").stdout, text);
    let stdout = dir.missed("data verify set --json -").stdout;
    let kept = String::from_utf8(dir.read("found.json")).unwrap();
    assert_eq!(found(&stdout), found(&kept), "stdout holds the JSON and nothing else");
    let found = found(&kept);
    assert_eq!((&found["n_good"], &found["n_bad"]), (&23.into(), &1.into()));
    assert_eq!(found["bad"][0]["path"], "set/class_004/class_004_000004.jpg");
    assert_eq!(found["bad"][0]["reason"], "empty file");
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let dir = Dir::with_set();
    dir.edit("set/class_003/class_003_000003.jpg", |bytes| bytes.truncate(1000));
    let one = dir.missed("data verify set --threads 1").stdout;
    assert_eq!(dir.missed("data verify set --threads 7").stdout, one);
}
