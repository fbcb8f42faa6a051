//! `make` as a caller sees it: bytes, sizes, resuming, refusing.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_dataset::synth::{Camera, Shot};
use forebay_dataset::{Control, Error, LIST, MARKER, MakePlan, MakeSpec, Profile, make};
use forebay_units::{Bytes, Fnv};

use crate::dir::relative;

fn spec(profile: Profile, count: u64) -> MakeSpec {
    MakeSpec { count: Some(count), seed: 42, ..MakeSpec::new(profile) }
}

fn small(count: u64) -> MakePlan {
    MakePlan::new(&MakeSpec { median_size: Some(Bytes(4_000)), ..spec(Profile::Caltech101, count) }).unwrap()
}

fn median(mut sizes: Vec<u64>) -> f64 {
    sizes.sort_unstable();
    sizes[sizes.len() / 2] as f64
}

#[test]
fn pictures_of_fixed_seeds_have_fixed_bytes() {
    let mut camera = Camera::new();
    let mut hash_of = |seed, index, width, height, bytes| {
        let mut file = Vec::new();
        camera.take(&Shot { seed, index, width, height, bytes }, &mut file);
        (file.len(), Fnv::of(&file))
    };
    assert_eq!(hash_of(0, 0, 500, 375, 112_000), (110_203, 0x794D9F33157C8AED));
    assert_eq!(hash_of(0, 1, 333, 500, 60_000), (59_751, 0xE785F3AD9E3637CC));
    assert_eq!(hash_of(7, 3, 300, 201, 12_000), (12_132, 0xE107F4ECCC2E207F));
    assert_eq!(hash_of(7, 4, 97, 61, 4_000), (4_066, 0xD3687B4D5D4DE4B7));
}

#[test]
fn one_thread_and_four_make_the_same_files() {
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (dir, threads) in [(&one, 1), (&four, 4)] {
        make(&small(30), dir.path(), &Control { threads, ..Control::default() }).unwrap();
    }
    assert_eq!(relative(one.path()), relative(four.path()));
}

#[test]
fn caltech_sizes_follow_the_distribution() {
    let dir = tempfile::tempdir().unwrap();
    let plan = MakePlan::new(&spec(Profile::Caltech101, 400)).unwrap();
    let made = make(&plan, dir.path(), &Control::default()).unwrap();
    let sizes: Vec<u64> =
        (0..400).map(|i| fs::metadata(dir.path().join(plan.picture(i).path)).unwrap().len()).collect();
    let mean = sizes.iter().sum::<u64>() as f64 / 400.0;
    assert_eq!(made.bytes.0, sizes.iter().sum::<u64>());
    let middle = median(sizes);
    assert!((middle / 12_000.0 - 1.0).abs() < 0.05, "median {middle}");
    assert!((mean / 14_000.0 - 1.0).abs() < 0.05, "mean {mean}");
}

#[test]
fn the_asked_median_is_met_from_4_kb_to_1_mb() {
    let mut camera = Camera::new();
    for (bytes, count) in [(4_000, 60), (30_000, 40), (1_000_000, 7)] {
        let wanted = MakeSpec { median_size: Some(Bytes(bytes)), sigma: Some(0.1), ..spec(Profile::Imagenet, count) };
        let plan = MakePlan::new(&wanted).unwrap();
        let mut size = |index| {
            let mut file = Vec::new();
            camera.take(&plan.picture(index).shot, &mut file);
            file.len() as u64
        };
        let middle = median((0..count).map(&mut size).collect());
        assert!((middle / bytes as f64 - 1.0).abs() < 0.05, "median {middle} for {bytes}");
    }
}

#[test]
fn a_second_run_keeps_everything_and_mends_what_is_missing_or_torn() {
    let dir = tempfile::tempdir().unwrap();
    let plan = small(20);
    make(&plan, dir.path(), &Control::default()).unwrap();
    let before = relative(dir.path());
    assert_eq!(make(&plan, dir.path(), &Control::default()).unwrap().n_kept, 20);

    let path = |index| dir.path().join(plan.picture(index).path);
    fs::remove_file(path(3)).unwrap();
    fs::remove_file(path(4)).unwrap();
    let torn = fs::read(path(5)).unwrap();
    fs::write(path(5), &torn[..torn.len() / 2]).unwrap();
    fs::write(path(6), b"").unwrap();
    fs::write(path(7).with_file_name(".left.jpg.tmp"), b"half").unwrap();
    assert_eq!(make(&plan, dir.path(), &Control::default()).unwrap().n_kept, 16);
    assert_eq!(relative(dir.path()), before);
}

#[test]
fn a_cancelled_run_leaves_only_whole_files_and_goes_on_later() {
    let (dir, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = small(20);
    let cancel = AtomicBool::new(false);
    let stop_at_five = |at: forebay_dataset::Progress| cancel.store(at.done >= 5, Ordering::Relaxed);
    let control = Control { threads: 1, cancel: &cancel, progress: &stop_at_five };
    assert!(matches!(make(&plan, dir.path(), &control), Err(Error::Cancelled)));
    assert!(!dir.path().join(LIST).exists());

    make(&plan, whole.path(), &Control::default()).unwrap();
    let finished = relative(whole.path());
    let pictures: Vec<_> = relative(dir.path()).into_iter().filter(|(path, _)| path != Path::new(MARKER)).collect();
    assert_eq!(pictures.len(), 5);
    assert!(pictures.iter().all(|file| finished.contains(file)));
    assert_eq!(make(&plan, dir.path(), &Control::default()).unwrap().n_kept, 5);
    assert_eq!(relative(dir.path()), finished);
}

#[test]
fn the_list_names_every_picture_with_its_label() {
    let dir = tempfile::tempdir().unwrap();
    let plan =
        MakePlan::new(&MakeSpec { classes: Some(3), median_size: Some(Bytes(4_000)), ..spec(Profile::Imagenet, 7) })
            .unwrap();
    make(&plan, dir.path(), &Control::default()).unwrap();
    let list = fs::read_to_string(dir.path().join(LIST)).unwrap();
    assert_eq!(list.lines().nth(4), Some("n0001/n0001_000004.jpg 1"));
    assert!(list.lines().all(|line| dir.path().join(line.rsplit_once(' ').unwrap().0).exists()));
    assert_eq!(list.lines().count(), 7);
}

#[test]
fn other_data_and_other_parameters_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.txt"), "mine").unwrap();
    assert!(matches!(make(&small(2), dir.path(), &Control::default()), Err(Error::Foreign { .. })));

    let dir = tempfile::tempdir().unwrap();
    make(&small(2), dir.path(), &Control::default()).unwrap();
    let error = make(&small(3), dir.path(), &Control::default()).unwrap_err();
    assert!(error.to_string().ends_with("the folder was made with count 2; requested count 3"), "{error}");
}
