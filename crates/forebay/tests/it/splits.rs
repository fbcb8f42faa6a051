//! `--split`, and what is said where folders look like splits.

use crate::dir::{Dir, found};
use crate::record;

/// `root` with the images of `set`, those of its first four classes in `train`, the others in `Val`; the number in each.
fn split_set(dir: &Dir) -> (usize, usize) {
    let (mut n_train, mut n_val) = (0, 0);
    for (name, bytes) in dir.images("set") {
        let is_train = name.as_str() < "class_003";
        *(if is_train { &mut n_train } else { &mut n_val }) += 1;
        dir.write(format!("root/{}/{name}", if is_train { "train" } else { "Val" }), bytes);
    }
    dir.write("root/readme.md", "a dataset");
    dir.write("root/.cache/1.jpg", "hidden");
    (n_train, n_val)
}

const NOTE: &str = "Val/ and train/ look like splits, not classes; pass --split train to read one";

#[test]
fn folders_that_look_like_splits_are_read_together_with_a_note() {
    let dir = Dir::with_set();
    split_set(&dir);
    let record = record::of(&dir, "root --threads 1 --repeats 1 --warmups 0 --size 8");
    assert_eq!((&record["notes"][0], &record["dataset"]["n_samples"]), (&NOTE.into(), &24.into()));
    let text = dir.met("ingest root --threads 1 --repeats 1 --warmups 0 --size 8");
    assert!(text.contains(&format!("note: {NOTE}\n")), "{text}");
    let flags = "--accelerator emulated:1ms --batch 4 --threads 1 --baseline 0";
    assert!(dir.met(&format!("train root {flags}")).contains(&format!("note: {NOTE}\n")));
    assert!(dir.met("data inspect root").ends_with(&format!("note: {NOTE}\n")));
    assert!(dir.met("data verify root").ends_with(&format!("note: {NOTE}\n")));
    assert_eq!(found(&dir.met("data inspect root --json -"))["notes"][0], NOTE);
    for line in ["data pack root shards --to tar", "data decode root --to a.npy --size 8"] {
        let ran = dir.run(line);
        assert_eq!((ran.code, ran.stderr), (Some(0), format!("note: {NOTE}\n")), "{line}");
    }
    let classes = |name: &str| dir.json(name)["classes"].clone();
    assert_eq!(
        classes("shards/manifest.json")[0],
        "Val/class_003",
        "folders stay classes, in the order of their paths"
    );
    assert_eq!(found(&dir.met("data inspect set --json -")).get("notes"), None);
}

#[test]
fn a_split_is_read_as_the_folder_of_its_name() {
    let dir = Dir::with_set();
    let (n_train, n_val) = split_set(&dir);
    for (split, folder, n) in [("train", "root/train", n_train), ("val", "root/Val", n_val)] {
        let record = record::of(&dir, &format!("root --split {split} --threads 1 --repeats 1 --warmups 0 --size 8"));
        let dataset = &record["dataset"];
        assert_eq!((&dataset["path"], &dataset["n_samples"]), (&folder.into(), &n.into()));
        assert_eq!(record::notes(&record), [] as [&str; 0]);
        for look in ["inspect", "verify"] {
            let (by_split, by_path) =
                (format!("data {look} root --split {split} --json -"), format!("data {look} {folder} --json -"));
            assert_eq!(found(&dir.met(&by_split)), found(&dir.met(&by_path)), "{look}");
        }
        dir.met(&format!("data decode root --split {split} --to {split}-a.npy --size 8"));
        dir.met(&format!("data decode {folder} --to {split}-b.npy --size 8"));
        assert_eq!(dir.read(&format!("{split}-a.npy")), dir.read(&format!("{split}-b.npy")));
        dir.met(&format!("data pack root {split}-a --split {split} --to tar"));
        dir.met(&format!("data pack {folder} {split}-b --to tar"));
        assert_eq!(dir.tree(&format!("{split}-a")), dir.tree(&format!("{split}-b")));
        let flags = "--accelerator emulated:1ms --batch 2 --threads 1 --baseline 0 --dry-run";
        let said = dir.met(&format!("train root --split {split} {flags}"));
        assert!(said.starts_with(&format!("{folder}: {n} samples in files")), "{said}");
    }
}

#[test]
fn a_split_that_is_not_there_is_refused_with_those_that_are() {
    let dir = Dir::with_set();
    split_set(&dir);
    let wanted = "forebay: --split dev: no such folder in root; found Val, train\n";
    for line in [
        "ingest root",
        "train root",
        "data inspect root",
        "data verify root",
        "data pack root out --to tar",
        "data decode root --to a.npy",
    ] {
        assert_eq!(dir.refused(&format!("{line} --split dev")), wanted, "{line}");
    }
    let said = dir.refused("ingest set/list.txt --split train");
    assert_eq!(said, "forebay: --split train: set/list.txt is a file, not a folder with splits\n");
    let said = dir.refused("ingest gone --split train");
    assert!(said.starts_with("forebay: cannot list gone: "), "{said}");
    let said = dir.refused("train --synthetic --split train");
    assert!(said.contains("'--synthetic' cannot be used with '--split"), "{said}");
}

#[test]
fn shards_in_splits_are_read_together_with_a_note() {
    let dir = Dir::with_set();
    dir.met("data pack set root/train --to tfrecord");
    dir.met("data pack set root/test --to tfrecord");
    let note = "test/ and train/ look like splits and are read together; pass --split train to read one";
    let record = record::of(&dir, "root --threads 1 --repeats 1 --warmups 0 --size 8");
    assert_eq!((&record["notes"][0], &record["dataset"]["n_samples"]), (&note.into(), &48.into()));
    let record = record::of(&dir, "root --split test --threads 1 --repeats 1 --warmups 0 --size 8");
    assert_eq!(record["dataset"]["n_samples"], 24);
}
