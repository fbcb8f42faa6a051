//! What inspection finds in folders, lists and shards, good and bad.

use std::fs;

use forebay_dataset::{
    Control, Error, Form, InspectOptions, Inspection, PackOptions, PackPlan, Packing, inspect, pack,
};
use forebay_format::tfrecord::Compression;
use std::path::Path;

use crate::dir::{pictures, small_set};

fn look(path: &Path) -> Inspection {
    inspect(path, &InspectOptions::default(), &Control::default()).unwrap()
}

#[test]
fn a_folder_of_pictures_is_summed_up() {
    let (_dir, set) = small_set(30);
    let found = look(&set);
    assert_eq!((found.form, found.n_files, found.n_samples, found.n_bad), (Form::Folder, 30, 30, 0));
    let bytes: usize = pictures(&set).iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(found.total_bytes.0, bytes as u64);
    assert_eq!(found.sample_formats["jpeg"], 30);
    let classes: Vec<_> = found.classes.iter().map(|of| (of.label, of.name.as_deref(), of.n_samples)).collect();
    assert_eq!(classes, [(Some(0), Some("n0000"), 10), (Some(1), Some("n0001"), 10), (Some(2), Some("n0002"), 10)]);
    let sizes = found.sizes.unwrap();
    assert!((3_600.0..4_400.0).contains(&sizes.median), "median {}", sizes.median);
    assert_eq!(found.histogram.iter().map(|bucket| bucket.n_samples).sum::<u64>(), 30);
    assert!(found.widths.unwrap().median > 80.0 && found.heights.unwrap().max < 200.0);
    assert!(found.bssplit.unwrap().contains("4K/"));
}

#[test]
fn the_list_and_the_shards_of_a_folder_hold_the_same_samples() {
    let (dir, set) = small_set(30);
    let files = look(&set);
    let from_list = look(&set.join("list.txt"));
    assert_eq!((from_list.form, from_list.n_samples), (Form::List, 30));
    assert_eq!(from_list.sizes, files.sizes);

    for packing in [Packing::TfRecord { compression: Compression::None }, Packing::Tar] {
        let out = dir.path().join(packing.name());
        pack(&PackPlan::new(&set, PackOptions::new(packing)).unwrap(), &out, &Control::default()).unwrap();
        let found = look(&out);
        assert_eq!((found.n_files, found.n_samples, found.n_bad), (1, 30, 0));
        assert_eq!((found.sizes, &found.histogram), (files.sizes, &files.histogram));
        assert_eq!((&found.classes, &found.bssplit), (&files.classes, &files.bssplit));
        assert_eq!(found.widths, files.widths);
    }
}

#[test]
fn bad_files_are_counted_and_named_with_the_reason() {
    let (_dir, set) = small_set(6);
    let whole = pictures(&set).remove(0).1;
    fs::write(set.join("n0000/cut.jpg"), &whole[..whole.len() / 2]).unwrap();
    fs::write(set.join("n0000/empty.jpg"), b"").unwrap();
    fs::write(set.join("n0000/note.jpg"), b"this is text").unwrap();
    fs::write(set.join("n0000/noise.jpg"), [0x81; 300]).unwrap();
    let found = look(&set);
    assert_eq!((found.n_files, found.n_samples, found.n_bad), (10, 6, 4));
    let reasons: Vec<_> = found
        .bad
        .iter()
        .map(|fault| (fault.path.file_name().unwrap().to_str().unwrap(), fault.reason.split(':').next().unwrap()))
        .collect();
    let expected = [
        ("cut.jpg", "jpeg image cannot be decoded"),
        ("empty.jpg", "empty file"),
        ("noise.jpg", "not an image"),
        ("note.jpg", "not an image"),
    ];
    assert_eq!(reasons, expected);

    let limited =
        inspect(&set, &InspectOptions { bad_limit: 1, ..InspectOptions::default() }, &Control::default()).unwrap();
    assert_eq!((limited.n_bad, limited.bad.len()), (4, 1));
}

#[test]
fn a_listed_file_that_is_missing_is_a_bad_file() {
    let (_dir, set) = small_set(3);
    fs::write(set.join("mine.lst"), "n0000/n0000_000000.jpg 0\nn0009/gone.jpg 9\n").unwrap();
    let found = look(&set.join("mine.lst"));
    assert_eq!((found.n_samples, found.n_bad), (1, 1));
    assert!(found.bad[0].to_string().ends_with("set/n0009/gone.jpg: no such file"), "{}", found.bad[0]);
}

#[test]
fn nothing_to_inspect_is_an_error_with_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let try_at = |path: &Path| inspect(path, &InspectOptions::default(), &Control::default()).unwrap_err();
    assert!(matches!(try_at(dir.path()), Error::Empty { .. }));
    let missing = try_at(&dir.path().join("gone")).to_string();
    assert!(missing.contains("gone: no such file or folder"), "{missing}");
}

#[test]
fn the_record_has_stable_keys() {
    let (_dir, set) = small_set(3);
    let value = serde_json::to_value(look(&set)).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "bad bssplit classes colours file_formats form heights histogram n_bad n_files n_progressive \
                    n_rotated n_samples path sample_formats sizes total_bytes widths";
    assert_eq!(keys.join(" "), expected);
    assert_eq!(value["form"], "folder");
}
