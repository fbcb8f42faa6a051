//! What lies on a tier and is not what was written there.

use super::*;
use crate::{Damage, restore, verify};

/// Two checkpoints, both on both tiers.
fn prepared() -> (ModelFs, Vec<Tier>) {
    let model = model();
    let mut tiers = two_tiers(Arc::new(model.clone()));
    tiers[0].keep = Keep::last(2);
    let store = Store::open(tiers.clone(), Options { drains_behind: false, ..options(Mode::Burst) }).unwrap();
    save(&store, 10).unwrap();
    save(&store, 20).unwrap();
    store.drain().unwrap();
    (model, tiers)
}

fn name(step: u64) -> Name {
    Name { step, take: 0 }
}

fn manifest_is(what: &str) -> Damage {
    Damage::Manifest { what: what.to_owned() }
}

/// A file of the newest checkpoint, what happens to it, and what is to be said of it.
type Case = (&'static str, fn(&mut Vec<u8>), Damage);

fn cases() -> Vec<Case> {
    let file = || "model".to_owned();
    vec![
        ("model", |b| b.truncate(5000), Damage::Length { file: file(), expected: 8288, found: 5000 }),
        ("model", |b| b.push(0), Damage::Length { file: file(), expected: 8288, found: 8289 }),
        ("model", |b| b[4096..8192].fill(0), Damage::Zeroed { file: file(), offset: 4096 }),
        ("model", |b| b[5000..8192].fill(0), Damage::Torn { file: file(), offset: 5120 }),
        ("manifest.forebay", Vec::clear, manifest_is("empty file")),
        ("manifest.forebay", |b| b.fill(0), manifest_is("only zeros")),
        ("manifest.forebay", |b| b.truncate(50), manifest_is("checksum mismatch")),
        ("manifest.forebay", |b| *b = b"{}".to_vec(), Damage::Foreign),
    ]
}

#[test]
fn each_damage_is_named_and_the_other_tier_has_the_checkpoint() {
    for (file, change, expected) in cases() {
        let (model, tiers) = prepared();
        model.damage(&tiers[0].path_of(name(20)).join(file), change).unwrap();
        assert_eq!(verify(&tiers[0], name(20)), Err(expected.clone()));
        let restored = restore(&tiers).unwrap();
        assert_eq!((restored.name, restored.tier), (name(20), 1));
        assert!(Sample::of(20).is_in(&restored));
        let damages: Vec<Damage> = restored.passed_over.into_iter().map(|one| one.damage).collect();
        assert_eq!(damages, [expected]);
    }
}

#[test]
fn any_flipped_bit_of_any_file_is_found() {
    let (model, tiers) = prepared();
    for file in ["model", "rest", "manifest.forebay"] {
        let path = tiers[0].path_of(name(20)).join(file);
        let len = model.open(&path, crate::Reading::Cached).unwrap().n_bytes().unwrap() as usize;
        for bit in (0..len * 8).step_by(101) {
            let flip = |bytes: &mut Vec<u8>| bytes[bit / 8] ^= 1 << (bit % 8);
            model.damage(&path, flip).unwrap();
            assert!(verify(&tiers[0], name(20)).is_err(), "bit {bit} of {file}");
            model.damage(&path, flip).unwrap();
        }
    }
    assert!(verify(&tiers[0], name(20)).is_ok());
}

#[test]
fn missing_files_and_a_folder_under_another_name_are_recognised() {
    let (model, tiers) = prepared();
    model.remove(&tiers[0].path_of(name(20)).join("rest")).unwrap();
    assert_eq!(verify(&tiers[0], name(20)), Err(Damage::Missing { file: "rest".to_owned() }));
    model.remove(&tiers[0].path_of(name(20)).join("manifest.forebay")).unwrap();
    assert_eq!(verify(&tiers[0], name(20)), Err(Damage::NoManifest));
    model.rename(&tiers[0].path_of(name(10)), &tiers[0].path_of(name(99))).unwrap();
    assert_eq!(verify(&tiers[0], name(99)), Err(Damage::OtherStep { found: 10 }));
    assert_eq!(restore(&tiers).unwrap().passed_over.len(), 2);
}

#[test]
fn an_older_version_is_restored_when_no_copy_of_the_newest_is_good() {
    let (model, tiers) = prepared();
    for tier in &tiers {
        model.damage(&tier.path_of(name(20)).join("rest"), |bytes| bytes[0] ^= 1).unwrap();
    }
    let restored = restore(&tiers).unwrap();
    assert_eq!((restored.name, restored.tier, restored.passed_over.len()), (name(10), 0, 2));
    for tier in &tiers {
        model.damage(&tier.path_of(name(10)).join("rest"), |bytes| bytes.clear()).unwrap();
    }
    let error = restore(&tiers).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "no valid checkpoint in /fast, /slow\n  /fast/step-000000000020: rest: checksum mismatch at offset 0: "
        ),
        "{error}"
    );
    assert!(error.ends_with("\n  /slow/step-000000000010: rest is truncated: 0 of 10 bytes"), "{error}");
}

#[test]
fn a_damaged_copy_on_the_slow_tier_is_replaced_before_the_fast_one_goes() {
    let (model, mut tiers) = prepared();
    model.damage(&tiers[1].path_of(name(10)).join("model"), |bytes| bytes[4100] ^= 1).unwrap();
    tiers[0].keep = Keep::last(1);
    let store = Store::open(tiers.clone(), Options { drains_behind: false, ..options(Mode::Burst) }).unwrap();
    store.prune().unwrap();
    assert_eq!(steps(&model, "/fast"), [10, 20], "the damage was found, and the good copy stayed");
    assert_eq!(store.drain().unwrap(), 1);
    assert_eq!(steps(&model, "/fast"), [20]);
    verify(&tiers[1], name(10)).unwrap();
}

#[test]
fn a_damaged_checkpoint_on_the_fast_tier_is_reported_and_does_not_hold_up_the_others() {
    let model = model();
    let store =
        Store::open(two_tiers(Arc::new(model.clone())), Options { drains_behind: false, ..options(Mode::Burst) })
            .unwrap();
    let first = save(&store, 10).unwrap();
    save(&store, 20).unwrap();
    model.damage(Path::new("/fast/step-000000000010/model"), |bytes| bytes[0] ^= 1).unwrap();
    assert!(matches!(store.drain(), Err(Error::Background { step: 10, what: "drained", .. })));
    assert!(matches!(first.wait(Level::DurableSlow), Err(Error::Damaged { .. })));
    assert_eq!(steps(&model, "/slow"), [20]);
}

#[test]
fn what_is_not_ours_stays_and_what_was_never_finished_goes() {
    let (model, tiers) = prepared();
    let ours = ["/fast/.staging-step-000000000030-0", "/fast/.trash-step-000000000001-0"];
    let foreign = ["/fast/step-1", "/fast/notes", "/fast/.staging-mine", "/fast/step-000000000003"];
    for dir in ours.iter().chain(&foreign) {
        model.make_dir(Path::new(dir)).unwrap();
        model.create(&Path::new(dir).join("file")).unwrap();
    }
    // Ours by its name, and not by what it holds.
    model.make_dir(Path::new("/fast/.staging-step-000000000031-0")).unwrap();
    model.make_dir(Path::new("/fast/.staging-step-000000000031-0/folder")).unwrap();
    model.create(Path::new("/fast/.trash-file")).unwrap();
    model.create(Path::new("/fast/step-000000000005")).unwrap();
    let store = Store::open(tiers, options(Mode::Burst)).unwrap();
    save(&store, 30).unwrap().wait(Level::DurableSlow).unwrap();
    assert_eq!(save(&store, 5).unwrap().name(), Name { step: 5, take: 1 }, "the name is taken");
    store.prune().unwrap();
    assert!(store.close().errors.is_empty());
    let mut expected = foreign.map(|dir| dir.strip_prefix("/fast/").unwrap()).to_vec();
    expected.extend([
        ".staging-step-000000000031-0",
        ".trash-file",
        "step-000000000005",
        "step-000000000020",
        "step-000000000030",
    ]);
    expected.sort_unstable();
    assert_eq!(model.list(Path::new("/fast")).unwrap(), expected);
    assert_eq!(model.list(Path::new("/fast/step-000000000003")).unwrap(), ["file"]);
}

#[test]
fn a_checkpoint_that_holds_something_else_as_well_stays() {
    let (model, mut tiers) = prepared();
    model.create(Path::new("/slow/step-000000000010/thesis.txt")).unwrap();
    (tiers[0].keep, tiers[1].keep) = (Keep::last(1), Keep::last(1));
    let store = Store::open(tiers, Options { drains_behind: false, ..options(Mode::Burst) }).unwrap();
    store.prune().unwrap();
    assert_eq!((steps(&model, "/fast"), steps(&model, "/slow")), (vec![20], vec![10, 20]));
}
