//! The store on real files.

use std::os::unix::fs::symlink;

use super::*;
use crate::{Damage, Durability, LocalFs, verify};

fn tiers(dir: &Path) -> Vec<Tier> {
    let keeping = |name: &str, last| Tier { keep: Keep::last(last), ..Tier::new(Arc::new(LocalFs), dir.join(name)) };
    vec![keeping("deep/fast", 1), keeping("deep/slow", 2)]
}

#[test]
fn every_mode_saves_drains_and_restores_real_files() {
    for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
        for durability in [Durability::EachFile, Durability::FileSystem] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(tiers(dir.path()), Options { durability, ..options(mode) }).unwrap();
            for step in 1..=3 {
                assert_eq!(save(&store, step).unwrap().wait(Level::DurableSlow).unwrap(), Fate::Reached);
            }
            store.drain().unwrap();
            assert!(store.close().errors.is_empty());
            assert_eq!(steps(&LocalFs, dir.path().join("deep/slow").to_str().unwrap()), [2, 3]);
            let restored = crate::restore(&tiers(dir.path())).unwrap();
            assert!(Sample::of(3).is_in(&restored));
            assert_eq!(restored.tier, usize::from(mode == Mode::Direct));
        }
    }
}

#[test]
fn many_chunks_in_flight_are_the_file_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(vec![tiers(dir.path()).remove(1)], options(Mode::Direct)).unwrap();
    let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![1_000_003] };
    let values: Vec<u8> = (0..1_000_003_u64).map(|i| (i * i % 255) as u8).collect();
    let snapshot = Snapshot { tensors: vec![Tensor::new(&header, &values)], ..Snapshot::default() };
    let plans = vec![FilePlan::new("w", vec![Piece::Tensor { index: 0, range: 0..1_000_003 }])];
    let handle = store.save(1, Some(0.5), &snapshot, &Layout::from_plans(plans)).unwrap();
    assert_eq!(std::fs::read(store.tiers()[0].path_of(handle.name()).join("w")).unwrap(), values);
    let restored = store.restore().unwrap();
    assert_eq!((restored.file("w"), restored.manifest.metric), (Some(&values[..]), Some(0.5)));
    assert_eq!(restored.manifest.files[0].crcs.len(), 245);
    assert_eq!(restored.by_name().into_iter().collect::<Vec<_>>(), [("w".to_owned(), &values[..])]);
}

#[test]
fn a_truncated_real_file_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap();
    let name = save(&store, 1).unwrap().name();
    let path = store.tiers()[1].path_of(name).join("model");
    std::fs::File::options().write(true).open(path).unwrap().set_len(8000).unwrap();
    let expected = Damage::Length { file: "model".to_owned(), expected: 8288, found: 8000 };
    assert_eq!(verify(&store.tiers()[1], name), Err(expected));
}

#[test]
fn a_folder_in_use_is_refused_and_free_again_after_closing() {
    let dir = tempfile::tempdir().unwrap();
    let first = Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap();
    let message = Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap_err().to_string();
    let expected =
        format!("{} is in use by process {} on ", dir.path().join("deep/fast").display(), std::process::id());
    assert!(message.starts_with(&expected), "{message}");
    drop(first);
    drop(Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap());
}

/// A folder with one file, outside of all tiers.
fn treasure(dir: &Path) -> std::path::PathBuf {
    let outside = dir.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("thesis.txt"), "all of it").unwrap();
    outside
}

#[test]
fn links_are_no_checkpoints_and_nothing_is_removed_through_them() {
    let dir = tempfile::tempdir().unwrap();
    let tier = || vec![Tier { keep: Keep::last(1), ..tiers(dir.path()).remove(1) }];
    let outside = treasure(dir.path());
    let slow = dir.path().join("deep/slow");
    std::fs::create_dir_all(&slow).unwrap();
    let links = [".staging-step-000000000009-0", ".trash-step-000000000009-0", "step-000000000002"];
    links.iter().for_each(|name| symlink(&outside, slow.join(name)).unwrap());
    std::fs::write(slow.join("step-000000000004"), "mine").unwrap();
    std::fs::write(slow.join(".staging-x"), "mine").unwrap();
    let store = Store::open(tier(), options(Mode::Direct)).unwrap();
    for step in [3, 4, 5] {
        save(&store, step).unwrap();
    }
    assert!(store.close().errors.is_empty());
    assert_eq!(std::fs::read_to_string(outside.join("thesis.txt")).unwrap(), "all of it");
    assert!(links.iter().all(|name| slow.join(name).is_symlink()) && slow.join(".staging-x").is_file());
    assert_eq!(steps(&LocalFs, slow.to_str().unwrap()), [2, 4, 5], "what is not ours stays");
    assert_eq!(verify(&tier()[0], Name { step: 2, take: 0 }), Err(Damage::NotAFolder));
    assert_eq!(crate::restore(&tier()).unwrap().name.step, 5);
}

#[test]
fn a_link_in_the_place_of_a_file_is_damage_and_goes_without_what_it_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let tier = || vec![Tier { keep: Keep::last(1), ..tiers(dir.path()).remove(1) }];
    let store = Store::open(tier(), options(Mode::Direct)).unwrap();
    let name = save(&store, 1).unwrap().name();
    drop(store);
    let (path, elsewhere) = (tier()[0].path_of(name).join("model"), dir.path().join("model"));
    std::fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(verify(&tier()[0], name), Err(Damage::NotAFile { file: "model".to_owned() }));
    assert!(crate::look(&tier()[0], name).is_err());
    let store = Store::open(tier(), options(Mode::Direct)).unwrap();
    save(&store, 2).unwrap();
    store.prune().unwrap();
    drop(store);
    assert_eq!(steps(&LocalFs, tier()[0].dir.to_str().unwrap()), [2]);
    assert_eq!(std::fs::metadata(elsewhere).unwrap().len(), 8288);
}

#[test]
fn a_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays() {
    let dir = tempfile::tempdir().unwrap();
    let outside = treasure(dir.path()).join("thesis.txt");
    let slow = tiers(dir.path()).remove(1);
    std::fs::create_dir_all(&slow.dir).unwrap();
    symlink(&outside, slow.lock_path()).unwrap();
    assert!(matches!(Store::open(vec![slow], options(Mode::Direct)), Err(Error::Io { .. })));
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "all of it");
}

#[test]
fn the_drain_says_how_long_a_truncated_file_is() {
    let dir = tempfile::tempdir().unwrap();
    let quiet = Options { drains_behind: false, ..options(Mode::Burst) };
    let store = Store::open(tiers(dir.path()), quiet).unwrap();
    let name = save(&store, 1).unwrap().name();
    let path = store.tiers()[0].path_of(name).join("model");
    std::fs::File::options().write(true).open(path).unwrap().set_len(5).unwrap();
    let Err(Error::Background { source, .. }) = store.drain() else { panic!("it drains") };
    assert!(source.to_string().ends_with("model is truncated: 5 of 8288 bytes"), "{source}");
}
