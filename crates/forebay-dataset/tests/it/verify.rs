//! Verification names everything that is wrong, and nothing else.

use std::fs;
use std::path::Path;

use forebay_dataset::{Control, MANIFEST, PackOptions, PackPlan, Packing, Verification, VerifyOptions, pack, verify};
use forebay_format::tfrecord::Compression;

use crate::dir::{pictures, small_set};

fn check(path: &Path) -> Verification {
    verify(path, &VerifyOptions::default(), &Control::default()).unwrap()
}

fn packings() -> [Packing; 4] {
    [
        Packing::TfRecord { compression: Compression::None },
        Packing::TfRecord { compression: Compression::Gzip },
        Packing::Tar,
        Packing::Tensor { width: 16, height: 12 },
    ]
}

fn shard(dir: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.to_string_lossy().contains("-of-")).unwrap()
}

#[test]
fn every_generated_picture_decodes() {
    let (_dir, set) = small_set(40);
    let found = check(&set);
    assert_eq!((found.n_files, found.n_good, found.n_bad), (40, 40, 0));
    assert!(found.is_sound() && !found.manifest);
}

#[test]
fn bad_files_are_all_named() {
    let (_dir, set) = small_set(6);
    let (name, whole) = pictures(&set).remove(0);
    fs::write(set.join(&name), &whole[..whole.len() - 40]).unwrap();
    fs::write(set.join("n0001/empty.jpg"), b"").unwrap();
    let found = check(&set);
    assert_eq!((found.n_good, found.n_bad), (5, 2));
    assert_eq!(found.bad[0].path, set.join(name));
    assert_eq!(found.bad[1].reason, "empty file");
}

#[test]
fn packed_folders_are_sound_and_any_flipped_byte_is_found() {
    let (dir, set) = small_set(9);
    for (number, packing) in packings().into_iter().enumerate() {
        let out = dir.path().join(format!("out{number}"));
        pack(&PackPlan::new(&set, PackOptions::new(packing)).unwrap(), &out, &Control::default()).unwrap();
        let sound = check(&out);
        assert_eq!((sound.n_good, sound.n_bad, sound.manifest), (9, 0, true), "{packing:?}: {:?}", sound.bad);

        let file = shard(&out);
        let whole = fs::read(&file).unwrap();
        for at in [0, whole.len() / 3, whole.len() - 1] {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            fs::write(&file, flipped).unwrap();
            let found = check(&out);
            assert!(!found.is_sound(), "{packing:?}: byte {at} was flipped");
            assert!(found.bad.iter().all(|fault| fault.path == file), "{:?}", found.bad);
        }
        fs::write(&file, &whole[..whole.len() - 5]).unwrap();
        assert!(!check(&out).is_sound(), "{packing:?}: cut");
        fs::remove_file(&file).unwrap();
        let error_or_bad = verify(&out, &VerifyOptions::default(), &Control::default());
        assert!(error_or_bad.is_err() || !error_or_bad.unwrap().is_sound());
    }
}

#[test]
fn a_damaged_record_costs_itself_only() {
    let (dir, set) = small_set(9);
    let out = dir.path().join("out");
    let options = PackOptions::new(Packing::TfRecord { compression: Compression::None });
    pack(&PackPlan::new(&set, options).unwrap(), &out, &Control::default()).unwrap();
    fs::remove_file(out.join(MANIFEST)).unwrap();
    let file = shard(&out);
    let mut bytes = fs::read(&file).unwrap();
    bytes[500] ^= 1;
    fs::write(&file, bytes).unwrap();
    let found = check(&out);
    assert_eq!((found.n_good, found.n_bad), (8, 1));
    assert_eq!(found.bad[0].offset, Some(0));
    assert!(found.bad[0].reason.contains("payload checksum"), "{}", found.bad[0]);
}

#[test]
fn a_manifest_of_another_version_is_not_believed() {
    let (dir, set) = small_set(3);
    let out = dir.path().join("out");
    pack(&PackPlan::new(&set, PackOptions::new(Packing::Tar)).unwrap(), &out, &Control::default()).unwrap();
    let text = fs::read_to_string(out.join(MANIFEST)).unwrap();
    fs::write(out.join(MANIFEST), text.replace("\"schema\": 1", "\"schema\": 2")).unwrap();
    let found = check(&out);
    assert_eq!((found.n_good, found.n_bad), (3, 1));
    assert_eq!(found.bad[0].path, out.join(MANIFEST));
    assert_eq!(found.bad[0].reason, "manifest version 2 is not supported; expected version 1");
}

#[test]
fn a_shard_that_the_manifest_does_not_know_or_misses_is_named() {
    let (dir, set) = small_set(30);
    let out = dir.path().join("out");
    let options = PackOptions { shard_size: forebay_units::Bytes(65_536), ..PackOptions::new(Packing::Tar) };
    let packed = pack(&PackPlan::new(&set, options).unwrap(), &out, &Control::default()).unwrap();
    assert!(packed.n_shards >= 2);
    fs::rename(shard(&out), out.join("other.tar")).unwrap();
    let found = check(&out);
    let reasons: Vec<&str> = found.bad.iter().map(|fault| fault.reason.as_str()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.contains(&"not in manifest.json") && reasons.contains(&"missing: listed in manifest.json"));
}
