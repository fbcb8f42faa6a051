//! TFRecord files of others: features named as TFDS names them, or as nobody does, and records that are image files.

use forebay_format::example::ExampleWriter;
use forebay_format::tfrecord::{self, Compression};

use crate::dir::{Dir, found};
use crate::{record, train};

/// Every command that reads images of a dataset, in a form that ends soon.
fn readers(data: &str) -> Vec<String> {
    vec![
        format!("ingest {data} --threads 1 --repeats 1 --warmups 0 --size 8"),
        format!("train {data} --model resnet-small --batch 4 --steps 1 --threads 1 --baseline 0 --classes 30"),
        format!("data inspect {data}"),
        format!("data verify {data}"),
        format!("data pack {data} back --to files"),
        format!("data decode {data} --to a.npy --size 8"),
    ]
}

/// Writes the images of `set` as records that `make` builds of an image and its number.
fn write(dir: &Dir, name: &str, make: impl Fn(&[u8], i64) -> Vec<u8>) {
    let mut shard = Vec::new();
    for (number, bytes) in dir.images("set").values().enumerate() {
        tfrecord::append(&mut shard, &make(bytes, number as i64));
    }
    let how = if name.ends_with(".gz") { Compression::Gzip } else { Compression::None };
    dir.write(name, tfrecord::compress(&shard, how).unwrap());
}

/// A record as TFDS writes those of an image dataset.
fn tfds(image: &[u8], number: i64) -> ExampleWriter {
    ExampleWriter::new()
        .bytes("image", &[image])
        .bytes("file_name", &[format!("photo {number}.jpg").as_bytes()])
        .bytes("objects/name", &[b"cat", b"dog"])
        .floats("objects/bbox", &[0.0, 0.25, 1.0, 0.75])
        .ints("label", &[number % 3])
}

#[test]
fn records_of_tfds_are_read_by_every_command_with_their_labels() {
    let dir = Dir::with_set();
    for name in ["plain/set-train.tfrecord-00000-of-00001", "gzip/set.tfrecord.gz"] {
        write(&dir, name, |image, number| tfds(image, number).finish());
        let data = name.split('/').next().unwrap();
        let cell = record::cell_of(&dir, &format!("{data} --threads 2 --repeats 1 --warmups 0 --size 8"));
        assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&24.into(), &0.into()), "{name}");
        let flags = "--model resnet-small --batch 4 --threads 1 --baseline 0 --classes 3";
        let cell = train::cell_of(&dir, &format!("{data} {flags}"));
        assert_eq!((&cell["images"], &cell["failed"]), (&24.into(), &0.into()));
        assert!(cell["loss"].is_number(), "labels 0 to 2 are classes: {cell}");
        assert!(dir.met(&format!("data verify {data}")).starts_with(&format!("{data}: 24 samples good, 0 bad")));
        let inspected = dir.met(&format!("data inspect {data}"));
        assert!(
            inspected.contains("\nclasses   3: 0 (8), 1 (8), 2 (8)\n"),
            "numbers, as nobody named them: {inspected}"
        );
        dir.met(&format!("data pack {data} {data}-back --to files"));
        assert_eq!(dir.images(&format!("{data}-back")).len(), 24);
        dir.met(&format!("data decode {data} --to {data}.npy --size 8"));
    }
    dir.met("data decode set --to set.npy --size 8");
    assert_eq!(dir.read("plain.npy"), dir.read("set.npy"));
    assert_eq!(dir.read("gzip.npy"), dir.read("set.npy"));
}

#[test]
fn records_that_are_image_files_are_read_by_every_command() {
    let dir = Dir::with_set();
    write(&dir, "raw.tfrecord", |image, _| image.to_vec());
    let cell = record::cell_of(&dir, "raw.tfrecord --threads 1 --repeats 1 --warmups 0 --size 8");
    assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&24.into(), &0.into()));
    assert!(dir.met("data verify raw.tfrecord").starts_with("raw.tfrecord: 24 samples good, 0 bad"));
    let inspected = dir.met("data inspect raw.tfrecord");
    assert!(
        inspected.contains("formats   24 jpeg\n") && inspected.contains("classes   1: no label (24)"),
        "{inspected}"
    );
    dir.met("data pack raw.tfrecord back --to files");
    let (mut back, mut set): (Vec<_>, Vec<_>) =
        (dir.images("back").into_values().collect(), dir.images("set").into_values().collect());
    back.sort_unstable();
    set.sort_unstable();
    assert_eq!(back, set);
    dir.met("data decode raw.tfrecord --to raw.npy --size 8");
    dir.met("data decode set --to set.npy --size 8");
    assert_eq!(dir.read("raw.npy"), dir.read("set.npy"));
    let emulated = "train raw.tfrecord --accelerator emulated:1ms --batch 4 --threads 1 --baseline 0";
    assert!(dir.met(emulated).contains("24 samples"));
}

/// Two images a record, and two numbers that could be labels.
fn stereo(dir: &Dir) {
    let other = dir.images("set").into_values().next().unwrap();
    write(dir, "stereo.tfrecord", |image, number| {
        let example = ExampleWriter::new().bytes("left", &[image]).bytes("right", &[&other]);
        example.ints("breed", &[number]).ints("species", &[7]).floats("depth", &[1.0, 2.0]).finish()
    });
}

#[test]
fn several_images_are_refused_with_their_names_until_one_is_named() {
    let dir = Dir::with_set();
    stereo(&dir);
    let wanted = "forebay: stereo.tfrecord: several features hold images: left, right\n\
                  hint: pass --image-key NAME, one of left, right\n";
    for line in readers("stereo.tfrecord") {
        assert_eq!(dir.refused(&line), wanted, "{line}");
    }
    let cell = record::cell_of(&dir, "stereo.tfrecord --read-only --threads 1 --repeats 1 --warmups 0");
    assert_eq!(cell["failed_samples"], 0, "whoever decodes nothing needs no image");
    let ran = dir.run("data decode stereo.tfrecord --to left.npy --size 8 --image-key left");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let unknown = "labels are unknown: several features could hold them (breed, species); pass --label-key NAME";
    assert_eq!(ran.stderr, format!("note: {unknown}\n"));
    dir.met("data decode stereo.tfrecord --to right.npy --size 8 --image-key right --label-key breed");
    dir.met("data decode set --to set.npy --size 8");
    assert_eq!(dir.read("left.npy"), dir.read("set.npy"));
    assert_ne!(dir.read("right.npy"), dir.read("set.npy"));
    let record = record::of(&dir, "stereo.tfrecord --image-key left --threads 1 --repeats 1 --warmups 0 --size 8");
    assert_eq!(record["notes"][0], unknown);
}

#[test]
fn each_command_reads_the_label_that_is_named() {
    let dir = Dir::with_set();
    stereo(&dir);
    let keys = "stereo.tfrecord --image-key left --label-key species";
    let inspected = found(&dir.met(&format!("data inspect {keys} --json -")));
    assert_eq!(inspected["classes"], serde_json::json!([{ "label": 7, "name": null, "n_samples": 24 }]));
    assert!(dir.met(&format!("data verify {keys}")).starts_with("stereo.tfrecord: 24 samples good"));
    dir.met(&format!("data pack {keys} back --to files"));
    assert!(dir.names("back").iter().all(|name| name.starts_with("7/") || name == "list.txt"), "by label");
    let said =
        dir.refused(&format!("train {keys} --model resnet-small --batch 4 --threads 1 --baseline 0 --classes 7"));
    assert!(said.contains("label 7 is out of range"), "{said}");
}

#[test]
fn class_names_beside_packed_shards_are_not_those_of_another_label() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tfrecord");
    let classes = |flags: &str| found(&dir.met(&format!("data inspect shards --json - {flags}")))["classes"][0].clone();
    assert_eq!(classes("")["name"], "background");
    assert_eq!(classes("--label-key image/class/label")["name"], "background");
    assert_eq!(classes("--label-key image/height"), serde_json::json!({ "label": 103, "name": null, "n_samples": 1 }));
    let said = dir.refused("train shards --model resnet-small --batch 4 --label-key image/height");
    assert!(said.contains("--classes N"), "{said}");
}

#[test]
fn a_key_that_no_record_has_and_one_of_the_wrong_type_are_refused_with_what_is_there() {
    let dir = Dir::with_set();
    write(&dir, "x.tfrecord", |image, number| tfds(image, number).finish());
    let there = "features found: file_name (bytes: 11 bytes beginning with \"photo 0.\"), image (bytes: an image), label \
                 (int64), objects/bbox (4 float), objects/name (2 bytes)\n";
    for (flag, what) in [
        ("--image-key img", "no feature `img`"),
        ("--image-key label", "feature `label`: expected bytes, found int64"),
        ("--label-key y", "no feature `y`"),
        ("--label-key image", "feature `image`: expected one int64, found bytes: an image"),
    ] {
        for line in readers("x.tfrecord") {
            assert_eq!(
                dir.refused(&format!("{line} {flag}")),
                format!("forebay: x.tfrecord: {what}; {there}"),
                "{line}"
            );
        }
    }
    assert!(!dir.path("back").exists() && !dir.path("a.npy").exists());
}

#[test]
fn keys_are_refused_for_data_that_have_no_features() {
    let dir = Dir::with_set();
    dir.met("data pack set tars --to tar");
    for data in ["set", "tars", "set/list.txt"] {
        for line in readers(data).iter().filter(|line| !line.contains("files") || data == "tars") {
            let said = dir.refused(&format!("{line} --image-key image"));
            assert!(said.contains("only TFRecord") && said.contains("named features"), "{line}: {said}");
        }
    }
    let said = dir.refused("data pack set out --to tar --label-key label");
    assert_eq!(said, "forebay: --label-key needs --to files\n");
    let said = dir.refused("train --synthetic --image-key image");
    assert!(said.contains("'--synthetic' cannot be used with '--image-key"), "{said}");
}

#[test]
fn records_without_an_image_say_what_they_have_instead() {
    let dir = Dir::with_set();
    write(&dir, "text.tfrecord", |_, number| {
        ExampleWriter::new().bytes("text", &[b"a cat"]).ints("n", &[number]).finish()
    });
    let wanted = "no feature holds an image that can be decoded; features found: n (int64), text (bytes: 5 bytes beginning \
                  with \"a cat\")";
    let said = dir.refused("ingest text.tfrecord --threads 1 --repeats 1 --warmups 0");
    assert!(said.starts_with("forebay: none of 24 samples could be used; the first: text.tfrecord at "), "{said}");
    assert!(said.contains(wanted), "{said}");
    let ran = dir.missed("data verify text.tfrecord");
    assert!(ran.stdout.contains(wanted) && ran.stdout.contains("0 samples good, 24 bad"), "{}", ran.stdout);
    assert!(dir.refused("data decode text.tfrecord --to a.npy").contains(wanted));
}
