//! Data that is packed from other data, and levels that come from the machine.

use std::fs;

use super::*;
use crate::{DatasetSource, Error, Estimator, Making, Places, make, spaces};
use forebay_record::Level;

/// A study that reads shards, and one cell that reads the files they are packed from.
const PACKED: &str = r#"
name = "packed"
title = "files and shards"

[[dataset]]
name = "files"
make = "caltech101"
count = 12

[[dataset]]
name = "shards"
pack = "tfrecord"
of = "files"

[[experiment]]
name = "read"
run = "ingest"
[experiment.factors]
dataset = ["shards", "files"]
[experiment.settings]
threads = 1
batch = 4
"#;

fn refuse(from: &str, to: &str) -> (String, Option<String>) {
    assert!(PACKED.contains(from), "{from}");
    let error = Plan::new(parse(&PACKED.replacen(from, to, 1)).unwrap(), Scale::Quick).unwrap_err();
    (error.to_string(), error.hint())
}

fn made(plan: &Plan, data: &Path) -> Vec<String> {
    let places = Places::new(plan, data);
    let never = AtomicBool::new(false);
    let all = places.to_make(&plan.cells);
    all.iter().for_each(|wanted| assert_eq!(make(wanted, &|_| (), &never).unwrap(), []));
    assert!(all.iter().all(|wanted| wanted.is_there()));
    all.iter().map(|wanted| wanted.dir.strip_prefix(data).unwrap().display().to_string()).collect()
}

#[test]
fn shards_are_packed_after_their_files_are_made_and_are_recognised() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(PACKED));
    assert_eq!(made(&plan, dir.path()), ["caltech101-12-seed0", "caltech101-12-seed0-tfrecord"]);
    let shard = dir.path().join("caltech101-12-seed0-tfrecord/caltech101-12-seed0-00000-of-00001.tfrecord");
    let packed = fs::metadata(&shard).unwrap().modified().unwrap();
    made(&plan, dir.path());
    assert_eq!(fs::metadata(&shard).unwrap().modified().unwrap(), packed, "it was there");
    // A study of shards alone does not make files again that it does not read.
    let shards = plan_of(&PACKED.replace("[\"shards\", \"files\"]", "[\"shards\"]"));
    fs::remove_dir_all(dir.path().join("caltech101-12-seed0")).unwrap();
    assert_eq!(made(&shards, dir.path()), ["caltech101-12-seed0-tfrecord"]);
    assert!(!dir.path().join("caltech101-12-seed0").exists());
}

#[test]
fn shards_that_are_not_whole_are_packed_again() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(PACKED));
    made(&plan, dir.path());
    let folder = dir.path().join("caltech101-12-seed0-tfrecord");
    let shard = folder.join("caltech101-12-seed0-00000-of-00001.tfrecord");
    let whole = fs::read(&shard).unwrap();
    // As a kill leaves it: no manifest yet, and part of a shard under a name that is not its own.
    fs::remove_file(folder.join("manifest.json")).unwrap();
    fs::remove_file(&shard).unwrap();
    made(&plan, dir.path());
    assert_eq!(fs::read(&shard).unwrap(), whole);
    fs::write(&shard, &whole[..whole.len() / 2]).unwrap();
    made(&plan, dir.path());
    assert_eq!(fs::read(&shard).unwrap(), whole);
}

#[test]
fn packing_that_was_stopped_is_gone_on_with() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(PACKED));
    let all = Places::new(&plan, dir.path()).to_make(&plan.cells);
    let stopped = AtomicBool::new(false);
    make(&all[0], &|_| (), &stopped).unwrap();
    // The first image that went into the shard stops it.
    let stop = |_| stopped.store(true, Ordering::Relaxed);
    let error = make(&all[1], &stop, &stopped).unwrap_err();
    assert!(matches!(error, Error::Data { source: forebay_dataset::Error::Cancelled, .. }), "{error}");
    assert!(!all[1].is_there());
    made(&plan, dir.path());
}

#[test]
fn what_is_packed_is_counted_before_it_is_made() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(PACKED));
    let places = Places::new(&plan, dir.path());
    let all = places.to_make(&plan.cells);
    let [files, shards] = all.as_slice() else { panic!("{all:?}") };
    assert!(matches!(shards.making, Making::Pack { of: "files", .. }));
    let per_image = (shards.expected_bytes().0 - files.expected_bytes().0) as f64 / 12.0;
    assert!((199.0..=200.0).contains(&per_image), "{per_image} bytes of frame an image");
    assert_eq!((files.n_samples(), shards.n_samples()), (Some(12), Some(12)));
    let spaces = spaces(&places, &plan.cells);
    let [space] = spaces.as_slice() else { panic!("{spaces:?}") };
    assert_eq!(space.to_make, files.expected_bytes() + shards.expected_bytes());
    let estimator = Estimator::new(&plan, &places);
    assert!(estimator.making_s(files).unwrap() > 0.0 && estimator.making_s(shards).is_none());
    let of_shards = estimator.cell(&plan.cells[0]);
    assert_eq!(of_shards.images, 6 * 12);
    assert!(of_shards.read > estimator.cell(&plan.cells[1]).read);
}

#[test]
fn files_that_lie_elsewhere_can_be_packed_too() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("mine");
    let study = PACKED.replace("make = \"caltech101\"\ncount = 12", &format!("path = \"{}\"", set.display()));
    let plan = plan_of(&study);
    assert_eq!(
        plan.check_folders().unwrap_err().to_string(),
        format!("dataset \"files\": {} does not exist", set.display())
    );
    fs::create_dir(&set).unwrap();
    let said = plan.check_folders().unwrap_err().to_string();
    assert!(said.starts_with("dataset \"shards\": "), "nothing to pack: {said}");
    let never = AtomicBool::new(false);
    let other = plan_of(PACKED);
    let data = dir.path().join("data");
    let makers = Places::new(&other, &data).to_make(&other.cells);
    make(&makers[0], &|_| (), &never).unwrap();
    fs::remove_dir(&set).unwrap();
    fs::rename(&makers[0].dir, &set).unwrap();
    plan.check_folders().unwrap();
    let names = made(&plan, &data);
    let [name] = names.as_slice() else { panic!("{names:?}") };
    assert!(name.starts_with("mine-") && name.ends_with("-tfrecord"), "{name}");
}

#[test]
fn a_dataset_that_cannot_be_packed_is_refused() {
    let refused = |from: &str, to: &str| refuse(from, to).0;
    let (said, hint) = refuse("\"tfrecord\"", "\"tfrecords\"");
    assert_eq!(said, "dataset \"shards\", pack: \"tfrecords\" is not one of tfrecord, tar, tensor");
    assert_eq!(hint.unwrap(), "did you mean `tfrecord`?");
    let (said, hint) = refuse("of = \"files\"", "of = \"file\"");
    assert_eq!(
        (said.as_str(), hint.as_deref()),
        ("dataset \"shards\", of: unknown dataset \"file\"", Some("did you mean `files`?"),)
    );
    let said = refused("of = \"files\"", "of = \"shards\"");
    assert_eq!(said, "dataset \"shards\", of: a dataset cannot be packed from itself");
    let circle = "[[dataset]]\nname = \"files\"\npack = \"tar\"\nof = \"shards\"\n";
    let said = refused("[[dataset]]\nname = \"files\"\nmake = \"caltech101\"\ncount = 12\n", circle);
    assert_eq!(said, "dataset \"files\", of: \"shards\" is itself packed; name a dataset of image files");
    assert_eq!(refused("of = \"files\"", ""), "dataset \"shards\": `pack` needs `of`, the dataset to pack");
    let said = refused("pack = \"tfrecord\"", "");
    assert_eq!(said, "dataset \"shards\": `of` needs `pack` (tfrecord, tar, tensor)");
    let said = refused("pack = \"tfrecord\"", "pack = \"tar\"\nmake = \"imagenet\"");
    assert_eq!(said, "dataset \"shards\": give `make` or `pack`, not both");
    let said = refused("pack = \"tfrecord\"", "pack = \"tar\"\npath = \"x\"");
    assert_eq!(said, "dataset \"shards\": give `pack` or `path`, not both");
}

#[test]
fn every_form_can_be_packed() {
    for (form, extension) in [("tar", "tar"), ("tensor", "fbt")] {
        let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(&PACKED.replace("tfrecord", form)));
        let names = made(&plan, dir.path());
        assert_eq!(names[1], format!("caltech101-12-seed0-{form}"));
        assert!(dir.path().join(&names[1]).join(format!("caltech101-12-seed0-00000-of-00001.{extension}")).exists());
        assert!(matches!(plan.datasets[1].source, DatasetSource::Pack { .. }));
    }
}

#[test]
fn the_machines_cores_become_numbers_that_the_plan_keeps() {
    let study = PACKED
        .replace("dataset = [\"shards\", \"files\"]", "threads = [\"1..cores*2\"]\ndataset = [\"files\"]")
        .replace("threads = 1\nbatch = 4", "batch = \"cores*4\"");
    let plan = |n_cores| Plan::for_cores(parse(&study).unwrap(), Scale::Quick, n_cores).unwrap();
    let ids = |plan: &Plan| plan.cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>();
    let of = |threads: &[u64]| threads.iter().map(|n| format!("read/dataset=files/threads={n}")).collect::<Vec<_>>();
    assert_eq!(ids(&plan(2)), of(&[1, 2, 4]));
    assert_eq!(ids(&plan(6)), of(&[1, 2, 4, 8, 12]));
    let kept = plan(6).spec;
    assert_eq!(kept.experiments[0].settings["batch"].at(Scale::Quick), &Level::Integer(24));
    let elsewhere = Plan::for_cores(kept, Scale::Quick, 2).unwrap();
    assert_eq!(ids(&elsewhere), of(&[1, 2, 4, 8, 12]), "begun on six cores, gone on with on two");
    let error = Plan::new(parse(&study.replace("1..cores*2", "1..cpus")).unwrap(), Scale::Quick).unwrap_err();
    let said = "experiment \"read\", factors.threads: \"1..cpus\": expected a number, \"cores\", \"cores*N\" or a range of \
                powers of two, as in \"1..cores*2\"";
    assert_eq!(error.to_string(), said);
}
