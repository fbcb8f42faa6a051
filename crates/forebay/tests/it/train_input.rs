//! What `forebay train` takes, and what it makes of data that is not as it should be.

use crate::dir::Dir;
use crate::train::{SMALL, cell_of, record_of};

#[test]
fn lists_and_shards_are_trained_on_as_folders_are() {
    let dir = Dir::with_set();
    dir.met("data pack set records --to tfrecord");
    dir.met("data pack set tars --to tar");
    dir.met("data pack set tensors --to tensor --size 64");
    dir.write("list", "set/class_001/class_001_000000.jpg 1\nset/class_002/class_002_000001.jpg 0\n".repeat(6));
    for (data, packing, n_samples, classes, flags) in [
        ("list", "files", 12, 2, ""),
        ("records", "tfrecord", 24, 30, "--classes 30"),
        ("tars", "tar", 24, 22, ""),
        ("tensors", "tensor", 24, 22, ""),
    ] {
        let record =
            record_of(&dir, &format!("{data} --model resnet-small --batch 4 --threads 2 --baseline 0 {flags}"));
        let (dataset, cell) = (&record["dataset"], &record["cells"][0]);
        assert_eq!((&dataset["packing"], &dataset["n_samples"]), (&packing.into(), &n_samples.into()), "{data}");
        assert_eq!((&cell["classes"], &cell["images"]), (&classes.into(), &n_samples.into()), "{data}");
        assert!(cell["loss"].is_number(), "{data}: {cell}");
    }
}

#[test]
fn labels_within_records_of_others_need_the_number_of_classes() {
    let dir = Dir::with_set();
    dir.met("data pack set records --to tfrecord");
    std::fs::remove_file(dir.path("records/manifest.json")).unwrap();
    let wanted = "forebay: records: class count unknown without a full scan\n\
                  hint: pass --classes N, one more than the largest label\n";
    assert_eq!(dir.refused("train records --batch 4"), wanted);
}

#[test]
fn data_without_labels_is_no_use_to_a_network_and_good_enough_for_an_emulated_accelerator() {
    let dir = Dir::with_set();
    let list: String = dir.images("set").keys().map(|name| format!("set/{name}\n")).collect();
    dir.write("list", list);
    let wanted = "forebay: list: the samples have no labels; a network needs labels, an emulated accelerator does not\n\
                  hint: emulate the network with --accelerator emulated:224ms\n";
    assert_eq!(dir.refused("train list --model resnet-small --batch 4"), wanted);
    assert_eq!(dir.refused("train list --model resnet-small --batch 4 --dry-run"), wanted);
    let cell = cell_of(&dir, "list --accelerator emulated:1ms --batch 4 --threads 1 --baseline 0");
    assert_eq!(cell["images"], 24);
}

#[test]
fn a_word_in_place_of_a_class_number_is_named() {
    let dir = Dir::with_set();
    let list = |label: &str| dir.images("set").keys().map(|name| format!("set/{name} {label}\n")).collect::<String>();
    let wanted = |word: &str| {
        format!("line 1: expected a class number (a whole number from 0) as the last word, found \"{word}\"\n")
    };
    dir.write("list", list("cat"));
    let said = format!("forebay: list: {}", wanted("cat"));
    assert_eq!(dir.refused("train list --model resnet-small --batch 4"), said);
    assert_eq!(dir.refused("ingest list"), said);
    dir.write("list", list("-1"));
    let said = dir.refused("train list --model resnet-small --batch 4");
    let no_labels =
        "forebay: list: the samples have no labels; a network needs labels, an emulated accelerator does not\n";
    assert_eq!(said, format!("{no_labels}hint: {}", wanted("-1")));
    dir.write("list", list("99999999999"));
    let said = format!("forebay: list: {}", wanted("99999999999"));
    assert_eq!(dir.refused("train list --model resnet-small --batch 4"), said);
}

#[test]
fn a_shard_that_is_cut_off_is_refused_with_what_to_do() {
    let dir = Dir::with_set();
    dir.met("data pack set tensors --to tensor --size 32");
    let shard = dir.names("tensors").into_iter().find(|name| name != "manifest.json").unwrap();
    dir.edit(&format!("tensors/{shard}"), |bytes| bytes.truncate(bytes.len() / 2));
    let said = dir.refused("train tensors --model resnet-small --batch 4");
    assert!(said.contains(": truncated: "), "{said}");
    assert!(said.ends_with("\nhint: `forebay data verify` lists the damaged shards; pack those again\n"), "{said}");
    let found = dir.missed("data verify tensors");
    assert!(found.stdout.contains(&shard), "{}", found.stdout);
}

#[test]
fn images_without_folders_of_their_own_are_a_single_class_and_the_record_says_so() {
    let dir = Dir::with_set();
    for (i, bytes) in dir.images("set").into_values().take(8).enumerate() {
        dir.write(format!("flat/{i}.jpg"), bytes);
    }
    let record = record_of(&dir, "flat --model resnet-small --batch 4 --threads 1 --baseline 0");
    assert_eq!(record["cells"][0]["classes"], 1);
    assert_eq!(record["notes"][0], "the data has only one class, so the loss is 0 and nothing is learnt");
}

#[test]
fn data_on_a_shaped_tier_is_read_at_its_pace_and_the_record_says_so() {
    let dir = Dir::new();
    dir.met("tier up lustre --shaped");
    dir.met("data make caltech101 .home/tiers/lustre/data/set --count 24 --median-size 4KB");
    let flags = "--accelerator emulated:1ms --batch 8 --threads 1 --prefetch 0 --baseline 0";
    let record = record_of(&dir, &format!(".home/tiers/lustre/data/set {flags}"));
    let cell = &record["cells"][0];
    assert_eq!((&cell["medium"]["tier"], &cell["medium"]["kind"]), (&"lustre".into(), &"shaped".into()));
    assert!(cell["wait_s"].as_f64().unwrap() >= 24.0 * 0.004, "a request takes 4 ms: {cell}");
    let note = record["notes"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(note.starts_with("the data is on tier lustre: shaped in process to "), "{note}");
}

#[test]
fn less_than_a_batch_is_refused() {
    let dir = Dir::with_set();
    let wanted = "forebay: set: 24 samples are less than one batch of 64\nhint: pass --batch 24 or less\n";
    assert_eq!(dir.refused("train set"), wanted);
    assert_eq!(dir.refused("train set --accelerator emulated:1ms"), wanted);
    assert_eq!(dir.refused("train set --dry-run"), wanted);
    let (name, bytes) = dir.images("set").pop_first().unwrap();
    dir.write("one/0.jpg", bytes);
    let said = "forebay: one: 1 sample is less than one batch of 64\nhint: pass --batch 1 or less\n";
    assert_eq!(dir.refused("train one"), said, "{name}");
    dir.write("one/0.jpg", "no image at all");
    let said = dir.refused("train one --accelerator emulated:1ms --batch 1 --baseline 0");
    assert!(said.starts_with("forebay: the only sample could not be used: one/0.jpg: "), "{said}");
    let said = dir.refused("ingest one");
    assert!(said.starts_with("forebay: the only sample could not be used: one/0.jpg: "), "{said}");
}

#[test]
fn a_broken_file_is_named_and_the_others_are_trained_on() {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "no image at all");
    let printed = dir.met(&format!("train {SMALL} --json record.json"));
    assert!(printed.contains("\nnote: failed: set/class_004/class_004_000004.jpg: "), "{printed}");
    let cell = dir.json("record.json")["cells"][0].take();
    assert_eq!((&cell["failed"], &cell["images"]), (&1.into(), &24.into()), "another comes in its place");
}

#[test]
fn a_set_of_broken_files_is_refused_with_the_first() {
    let dir = Dir::with_set();
    for name in dir.images("set").keys() {
        dir.write(format!("set/{name}"), "no image at all");
    }
    let said = dir.refused(&format!("train {SMALL} --seed 1"));
    assert!(said.starts_with("forebay: none of 24 samples could be used; the first: set/class_"), "{said}");
}

#[test]
fn what_is_not_there_is_named() {
    let dir = Dir::new();
    assert_eq!(dir.refused("train gone --json record.json"), "forebay: listing gone: no such file or folder\n");
    assert_eq!(dir.refused("train gone --dry-run"), "forebay: listing gone: no such file or folder\n");
    assert_eq!(dir.names(""), [] as [&str; 0], "nothing was written");
    let said = dir.refused("train --synthetic --accelerator emulated:1h --json no/record.json");
    assert_eq!(said, "forebay: cannot write no/record.json: No such file or directory (os error 2)\n");
}
