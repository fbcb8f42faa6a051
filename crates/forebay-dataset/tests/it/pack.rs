//! Packing and unpacking: nothing is lost, nothing half-written looks whole.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_dataset::{
    Control, Error, MANIFEST, Manifest, PackOptions, PackPlan, Packed, Packing, Progress, UnpackOptions, pack, unpack,
};
use forebay_format::example::KeyNames;
use forebay_format::tensor;
use forebay_format::tfrecord::Compression;
use forebay_units::Bytes;

use crate::LIMIT;
use crate::dir::{pictures, relative, small_set};

const TFRECORD: Packing = Packing::TfRecord { compression: Compression::None };
const STRICT: UnpackOptions =
    UnpackOptions { stop_at_bad: true, keys: KeyNames { image: None, label: None }, max_sample: LIMIT };

fn run(input: &Path, out: &Path, options: PackOptions) -> Packed {
    pack(&PackPlan::new(input, options).unwrap(), out, &Control::default()).unwrap()
}

/// Small shards, so that there are several.
fn options(packing: Packing) -> PackOptions {
    PackOptions { shard_size: Bytes(65_536), ..PackOptions::new(packing) }
}

fn visible(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    relative(dir).into_iter().filter(|(path, _)| !path.to_string_lossy().starts_with('.')).collect()
}

#[test]
fn files_come_back_as_they_were() {
    let (dir, set) = small_set(40);
    let gzip = Packing::TfRecord { compression: Compression::Gzip };
    let zlib = Packing::TfRecord { compression: Compression::Zlib };
    for (number, packing) in [TFRECORD, gzip, zlib, Packing::Tar].into_iter().enumerate() {
        let (out, back) = (dir.path().join(format!("out{number}")), dir.path().join(format!("back{number}")));
        let packed = run(&set, &out, options(packing));
        assert!(packed.n_shards > 2 && packed.n_samples == 40 && packed.skipped.is_empty(), "{packed:?}");
        let unpacked = unpack(&out, &back, &STRICT, &Control::default()).unwrap();
        assert_eq!((unpacked.n_files, unpacked.n_kept), (40, 0));
        assert_eq!(pictures(&back), pictures(&set));
        let lines = |dir: &Path| -> HashSet<String> {
            fs::read_to_string(dir.join("list.txt")).unwrap().lines().map(str::to_owned).collect()
        };
        assert_eq!(lines(&back), lines(&set));
    }
}

#[test]
fn names_that_tar_cannot_keep_come_back_too() {
    let (dir, set) = small_set(3);
    let bytes = pictures(&set).remove(0).1;
    let names = ["n0000/a.b.jpg", "n0000/a.c.jpg", "n0001/UP.JPEG", "n0001/twin.jpg", "n0001/twin.jpeg", "n0002/none"];
    names.iter().for_each(|name| fs::write(set.join(name), &bytes).unwrap());
    for packing in [TFRECORD, Packing::Tar] {
        let (out, back) = (dir.path().join(packing.name()), dir.path().join(format!("back-{}", packing.name())));
        run(&set, &out, options(packing));
        unpack(&out, &back, &STRICT, &Control::default()).unwrap();
        for name in names {
            assert_eq!(fs::read(back.join(name)).ok().as_ref(), Some(&bytes), "{name} from {}", packing.name());
        }
    }
}

#[test]
fn shards_do_not_depend_on_the_number_of_threads() {
    let (dir, set) = small_set(40);
    for packing in [TFRECORD, Packing::Tar, Packing::Tensor { width: 32, height: 32 }] {
        let made = [1, 4].map(|threads| {
            let out = dir.path().join(format!("{}-{threads}", packing.name()));
            let plan = PackPlan::new(&set, options(packing)).unwrap();
            pack(&plan, &out, &Control { threads, ..Control::default() }).unwrap();
            relative(&out)
        });
        assert_eq!(made[0], made[1]);
    }
}

#[test]
fn shard_names_and_the_manifest_tell_what_is_there() {
    let (dir, set) = small_set(40);
    let out = dir.path().join("out");
    let packed = run(&set, &out, options(TFRECORD));
    let manifest: Manifest = serde_json::from_slice(&fs::read(out.join(MANIFEST)).unwrap()).unwrap();
    assert_eq!(manifest.shards[1].file, format!("set-00001-of-{:05}.tfrecord", packed.n_shards));
    assert_eq!((manifest.format.as_str(), manifest.n_samples), ("tfrecord", 40));
    assert_eq!(manifest.classes, ["n0000", "n0001", "n0002"]);
    for shard in &manifest.shards {
        let bytes = fs::read(out.join(&shard.file)).unwrap();
        assert_eq!((bytes.len() as u64, crc32c::crc32c(&bytes)), (shard.bytes, shard.crc32c));
        assert!(shard.bytes <= 65_536);
    }
    let hidden = relative(&out).into_iter().filter(|(path, _)| path.to_string_lossy().starts_with('.')).count();
    assert_eq!(hidden, 1, "only the marker stays");
}

#[test]
fn tensor_shards_hold_resized_pixels_with_labels() {
    let (dir, set) = small_set(9);
    let out = dir.path().join("out");
    let packing = Packing::Tensor { width: 20, height: 10 };
    run(&set, &out, PackOptions { shuffle: None, ..PackOptions::new(packing) });
    let bytes = fs::read(out.join("set-00000-of-00001.fbt")).unwrap();
    let shard = tensor::Shard::parse(&bytes).unwrap();
    assert_eq!(shard.header().shape(), tensor::Shape { height: 10, width: 20, channels: 3 });
    assert_eq!(shard.tables().labels(), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    assert_eq!(shard.tables().ids(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(shard.sample(0).iter().any(|&value| value != shard.sample(0)[0]));
    let error = unpack(&out, &dir.path().join("back"), &STRICT, &Control::default()).unwrap_err();
    assert!(matches!(error, Error::Lossy { .. }), "{error}");
}

#[test]
fn a_sample_is_spread_evenly_over_the_files_and_an_input_with_fewer_is_packed_whole() {
    let (dir, set) = small_set(9);
    let packing = Packing::Tensor { width: 4, height: 4 };
    let labels = |most| {
        let out = dir.path().join(format!("most-{most}"));
        run(&set, &out, PackOptions { shuffle: None, most: Some(most), ..PackOptions::new(packing) });
        let bytes = fs::read(out.join("set-00000-of-00001.fbt")).unwrap();
        tensor::Shard::parse(&bytes).unwrap().tables().labels().to_vec()
    };
    assert_eq!(labels(3), [0, 1, 2]);
    assert_eq!(labels(20).len(), 9);
}

#[test]
fn mixing_puts_all_classes_into_every_shard() {
    let (dir, set) = small_set(60);
    let plain = run(&set, &dir.path().join("plain"), PackOptions { shuffle: None, ..options(TFRECORD) });
    let mixed = run(&set, &dir.path().join("mixed"), options(TFRECORD));
    assert_eq!(plain.n_samples, mixed.n_samples);
    assert_ne!(visible(&dir.path().join("plain")), visible(&dir.path().join("mixed")));
}

#[test]
fn a_stopped_run_leaves_whole_shards_and_is_finished_later() {
    let (dir, set) = small_set(60);
    let (out, whole) = (dir.path().join("out"), dir.path().join("whole"));
    let plan = PackPlan::new(&set, PackOptions { name: Some("x".into()), ..options(TFRECORD) }).unwrap();
    pack(&plan, &whole, &Control::default()).unwrap();
    let finished = visible(&whole);

    let cancel = AtomicBool::new(false);
    let stop = |at: Progress| cancel.store(at.done >= 35, Ordering::Relaxed);
    let control = Control { threads: 1, cancel: &cancel, progress: &stop };
    assert!(matches!(pack(&plan, &out, &control), Err(Error::Cancelled)));
    let partial = visible(&out);
    assert!(!partial.is_empty() && partial.len() < finished.len());
    assert!(partial.iter().all(|file| finished.contains(file)), "a shard that is there is whole");

    fs::write(out.join(".x-00003-of-00009.tfrecord.1-1.tmp"), b"half").unwrap();
    let packed = pack(&plan, &out, &Control::default()).unwrap();
    assert_eq!(packed.n_kept as usize, partial.len());
    assert_eq!(visible(&out), finished);
    assert_eq!(relative(&out).len(), finished.len() + 1, "nothing but the marker is hidden there");
    assert_eq!(pack(&plan, &out, &Control::default()).unwrap().n_kept, plan.n_shards());
}

#[test]
fn a_stop_does_not_wait_for_a_shard_to_be_compressed() {
    let (dir, set) = small_set(60);
    let out = dir.path().join("out");
    let packing = Packing::TfRecord { compression: Compression::Gzip };
    let plan = PackPlan::new(&set, PackOptions::new(packing)).unwrap();
    assert_eq!(plan.n_shards(), 1);
    let cancel = AtomicBool::new(false);
    // All files are read by then, and the shard is compressed next.
    let stop = |at: Progress| cancel.store(at.done == 60, Ordering::Relaxed);
    let control = Control { threads: 1, cancel: &cancel, progress: &stop };
    let outcome = pack(&plan, &out, &control);
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert_eq!(visible(&out).len(), 0, "nothing of the shard stays");
}

#[test]
fn a_shard_that_changed_its_length_is_made_anew() {
    let (dir, set) = small_set(40);
    let out = dir.path().join("out");
    run(&set, &out, options(Packing::Tar));
    let before = visible(&out);
    let shard = out.join(&before[1].0);
    fs::write(&shard, b"short").unwrap();
    let packed = run(&set, &out, options(Packing::Tar));
    assert!(packed.n_kept < packed.n_shards);
    assert_eq!(visible(&out), before);
}

#[test]
fn other_inputs_or_options_do_not_touch_a_packed_folder() {
    let (dir, set) = small_set(9);
    let out = dir.path().join("out");
    run(&set, &out, options(TFRECORD));
    let before = relative(&out);
    let again = |options| pack(&PackPlan::new(&set, options).unwrap(), &out, &Control::default());
    assert!(matches!(again(options(Packing::Tar)), Err(Error::Different { .. })));
    let picture = set.join(&pictures(&set)[0].0);
    fs::write(&picture, b"other").unwrap();
    assert!(matches!(again(options(TFRECORD)), Err(Error::OtherInputs { .. })));
    assert_eq!(relative(&out), before);
}

#[test]
fn bad_inputs_are_left_out_and_named_or_stop_the_run() {
    let (dir, set) = small_set(9);
    let name = pictures(&set)[4].0.clone();
    let whole = fs::read(set.join(&name)).unwrap();
    fs::write(set.join(&name), &whole[..whole.len() / 2]).unwrap();
    fs::write(set.join("n0000/empty.jpg"), b"").unwrap();
    let packing = Packing::Tensor { width: 8, height: 8 };
    let packed = run(&set, &dir.path().join("out"), PackOptions::new(packing));
    assert_eq!(packed.n_samples, 8);
    let mut paths: Vec<_> = packed.skipped.iter().map(|fault| fault.path.clone()).collect();
    paths.sort();
    assert_eq!(paths, [set.join("n0000/empty.jpg"), set.join(name)]);
    // The second run knows them too.
    assert_eq!(run(&set, &dir.path().join("out"), PackOptions::new(packing)).skipped, packed.skipped);

    let plan = PackPlan::new(&set, PackOptions { stop_at_bad: true, ..PackOptions::new(packing) }).unwrap();
    let stopped = pack(&plan, &dir.path().join("strict"), &Control::default()).unwrap_err();
    assert!(matches!(&stopped, Error::Bad(fault) if paths.contains(&fault.path)), "{stopped}");
}

#[test]
fn a_listed_file_that_vanished_is_named() {
    let (dir, set) = small_set(3);
    fs::write(set.join("mine.lst"), "n0000/n0000_000000.jpg 0\nn0009/gone.jpg 9\n").unwrap();
    let packed = run(&set.join("mine.lst"), &dir.path().join("out"), options(TFRECORD));
    assert_eq!((packed.n_samples, packed.skipped.len()), (1, 1));
    assert!(packed.skipped[0].to_string().ends_with("n0009/gone.jpg: no such file"));
}

#[test]
fn shards_are_not_packed_and_files_not_unpacked() {
    let (dir, set) = small_set(3);
    let out = dir.path().join("out");
    run(&set, &out, options(TFRECORD));
    assert!(matches!(PackPlan::new(&out, options(Packing::Tar)), Err(Error::NotFiles { .. })));
    let error = unpack(&set, &dir.path().join("back"), &STRICT, &Control::default()).unwrap_err();
    assert!(error.to_string().contains("never packed"), "{error}");
}

#[test]
fn unpacking_goes_on_where_it_stopped() {
    let (dir, set) = small_set(9);
    let (out, back) = (dir.path().join("out"), dir.path().join("back"));
    run(&set, &out, options(Packing::Tar));
    unpack(&out, &back, &STRICT, &Control::default()).unwrap();
    let first = pictures(&back).remove(0).0;
    fs::write(back.join(&first), b"torn").unwrap();
    let again = unpack(&out, &back, &STRICT, &Control::default()).unwrap();
    assert_eq!((again.n_files, again.n_kept), (9, 8));
    assert_eq!(pictures(&back), pictures(&set));
}

#[test]
fn the_same_files_in_two_shards_are_written_once() {
    let (dir, set) = small_set(9);
    let (out, back) = (dir.path().join("out"), dir.path().join("back"));
    run(&set, &out, PackOptions::new(TFRECORD));
    fs::copy(out.join("set-00000-of-00001.tfrecord"), out.join("copy.tfrecord")).unwrap();
    let done = unpack(&out, &back, &STRICT, &Control { threads: 2, ..Control::default() }).unwrap();
    assert_eq!((done.n_files, done.skipped.len()), (9, 0));
    assert_eq!(pictures(&back), pictures(&set));
}

#[test]
fn a_record_whose_name_leads_out_of_the_folder_is_refused() {
    use forebay_format::{example::ImageExample, tfrecord};
    let (dir, set) = small_set(3);
    let bytes = pictures(&set).remove(0).1;
    let mut shard = Vec::new();
    for name in ["../escaped.jpg", "/tmp/escaped.jpg", "a\nb.jpg", "list.txt", "fine/1.jpg"] {
        let example = ImageExample {
            encoded: &bytes,
            filename: Some(name.as_bytes()),
            label: Some(1),
            ..ImageExample::default()
        };
        tfrecord::append(&mut shard, &example.to_bytes());
    }
    let nameless = ImageExample { encoded: &bytes, label: Some(5), ..ImageExample::default() };
    tfrecord::append(&mut shard, &nameless.to_bytes());
    fs::write(dir.path().join("evil.tfrecord"), shard).unwrap();
    let back = dir.path().join("back");
    let done =
        unpack(&dir.path().join("evil.tfrecord"), &back, &UnpackOptions::default(), &Control::default()).unwrap();
    assert_eq!((done.n_files, done.skipped.len()), (2, 4));
    assert!(back.join("fine/1.jpg").exists() && back.join("5/evil-tfrecord-000005.jpg").exists());
    assert!(!dir.path().join("escaped.jpg").exists());
}

#[test]
fn impossible_options_are_refused_by_name() {
    let (_dir, set) = small_set(3);
    let refuse = |options| PackPlan::new(&set, options).unwrap_err().to_string();
    let tiny = PackOptions { shard_size: Bytes(10), ..PackOptions::new(TFRECORD) };
    assert_eq!(refuse(tiny), "shard size 10 B: must be at least 64 KiB");
    let flat = PackOptions::new(Packing::Tensor { width: 0, height: 5 });
    assert_eq!(refuse(flat), "size 0x5: must be 1 to 16,384 each");
    let hidden = PackOptions { name: Some(".x".into()), ..PackOptions::new(TFRECORD) };
    assert_eq!(refuse(hidden), "name \".x\": must be a file name that is not hidden");
}
