//! Looking at checkpoints: in parts, of a given step, into memory that is there, with somebody who is told.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::formats::Model;
use super::*;
use crate::format::{self, FORMATS, Format};
use crate::{Checkpoint, CountedFs, Damage, restore_with, verify, verify_until};

fn name(step: u64) -> Name {
    Name { step, take: 0 }
}

/// Steps 1 to 3 on the slow tier, 3 on the fast one, too.
fn prepared(format: &dyn Format) -> (ModelFs, Vec<Tier>) {
    let model = model();
    let mut tiers = two_tiers(Arc::new(model.clone()));
    tiers[1].keep = Keep::last(3);
    let store = Store::open(tiers.clone(), Options { drains_behind: false, ..options(Mode::Burst) }).unwrap();
    for step in 1..=3 {
        let state = Model::of(step);
        let layout = format.plan("model", &state.snapshot()).unwrap();
        store.save(step, Some(step as f64), &state.snapshot(), &layout).unwrap();
        store.drain().unwrap();
    }
    (model, tiers)
}

#[test]
fn one_tensor_is_read_without_the_rest_and_verified() {
    for format in FORMATS {
        let (model, tiers) = prepared(format);
        let (fs, counters) = CountedFs::new(Arc::new(model.clone()));
        let tier = Tier { fs: Arc::new(fs), ..tiers[1].clone() };
        let checkpoint = Checkpoint::open(&tier, name(2)).unwrap();
        let catalog = checkpoint.catalog().unwrap();
        assert_eq!(catalog.notes, Model::of(2).snapshot().notes);
        let before = counters.read_bytes();
        assert_eq!(catalog.read(&checkpoint, "w3").unwrap(), Model::of(2).values()[3]);
        assert!(counters.read_bytes() - before <= 2 * 4096, "two chunks of eight");
        for (k, values) in Model::of(2).values().iter().enumerate() {
            assert_eq!(catalog.read(&checkpoint, &format!("w{k}")).unwrap(), *values);
        }
        let error = catalog.read(&checkpoint, "w9").unwrap_err();
        assert!(matches!(error, format::Error::NoTensor { .. }));
    }
}

#[test]
fn damage_is_found_where_it_is_read_and_nowhere_else() {
    let (model, tiers) = prepared(FORMATS[0]);
    let file = tiers[1].path_of(name(2)).join("model.safetensors");
    let catalog = Checkpoint::open(&tiers[1], name(2)).unwrap().catalog().unwrap();
    let entry = |name: &str| catalog.tensors.iter().find(|entry| entry.header.name == name).unwrap().clone();
    model.damage(&file, |bytes| bytes[entry("w1").offset as usize + 9000] ^= 1).unwrap();
    let checkpoint = Checkpoint::open(&tiers[1], name(2)).unwrap();
    let error = catalog.read(&checkpoint, "w1").unwrap_err();
    let format::Error::Io { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::InvalidData);
    let said = "/slow/step-000000000002 is damaged: model.safetensors: checksum mismatch at offset ";
    assert!(source.to_string().contains(said), "{source}");
    assert_eq!(catalog.read(&checkpoint, "w0").unwrap(), Model::of(2).values()[0]);
    model.damage(&file, |bytes| bytes.truncate(100)).unwrap();
    assert!(matches!(Checkpoint::open(&tiers[1], name(2)), Err(Damage::Length { found: 100, .. })));
}

#[test]
fn a_checkpoint_is_found_on_the_nearest_tier_where_it_opens() {
    let (model, tiers) = prepared(FORMATS[0]);
    assert_eq!(Checkpoint::find(&tiers, None).unwrap().name(), name(3));
    assert_eq!(Checkpoint::find(&tiers, Some(2)).unwrap().manifest().metric, Some(2.0));
    for tier in &tiers {
        model.damage(&tier.path_of(name(3)).join("manifest.forebay"), Vec::clear).unwrap();
    }
    assert_eq!(Checkpoint::find(&tiers, None).unwrap().name(), name(2));
    let error = Checkpoint::find(&tiers, Some(3)).unwrap_err().to_string();
    assert!(error.starts_with("no valid checkpoint of step 3 in /fast, /slow\n  /fast/step-000000000003: "), "{error}");
}

#[test]
fn a_given_step_is_restored_and_one_that_is_not_there_is_not() {
    let (_, tiers) = prepared(FORMATS[1]);
    let mut memory = Memory::default();
    let step = |step| Wanted { step: Some(step), ..Wanted::default() };
    let restored = restore_with(&tiers, step(2), &mut memory).unwrap();
    assert!(Model::of(2).is_in(&restored, FORMATS[1]));
    let error = restore_with(&tiers, step(9), &mut memory).unwrap_err().to_string();
    assert_eq!(error, "no valid checkpoint of step 9 in /fast, /slow");
}

#[test]
fn memory_of_one_restore_serves_the_next() {
    let (model, tiers) = prepared(FORMATS[0]);
    let mut memory = Memory::default();
    let first = restore_with(&tiers, Wanted::default(), &mut memory).unwrap();
    let at = first.files[0].bytes().as_ptr();
    first.give_back(&mut memory);
    let n_bytes = memory.n_bytes();
    // A damaged copy is passed over on the way, and its memory is used again.
    model.damage(&tiers[0].path_of(name(3)).join("model.safetensors"), |bytes| bytes[5000] ^= 1).unwrap();
    let second = restore_with(&tiers, Wanted::default(), &mut memory).unwrap();
    assert_eq!((second.files[0].bytes().as_ptr(), second.passed_over.len(), memory.n_bytes()), (at, 1, 0));
    assert!(Model::of(3).is_in(&second, FORMATS[0]));
    second.give_back(&mut memory);
    assert_eq!(memory.n_bytes(), n_bytes);
}

#[test]
fn verifying_restoring_and_draining_tell_of_every_byte() {
    let (_, tiers) = prepared(FORMATS[0]);
    let told = AtomicU64::new(0);
    let tell = |bytes| {
        told.fetch_add(bytes, Ordering::Relaxed);
    };
    let bytes = verify_until(&tiers[1], name(2), &tell, &AtomicBool::new(false)).unwrap().n_bytes();
    assert_eq!(told.swap(0, Ordering::Relaxed), bytes);
    restore_with(&tiers, Wanted { progress: Some(&tell), ..Wanted::default() }, &mut Memory::default()).unwrap();
    assert_eq!(told.swap(0, Ordering::Relaxed), bytes);
    let store = Store::open(tiers, Options { drains_behind: false, ..options(Mode::Burst) }).unwrap();
    assert_eq!(store.undrained(), Undrained { n_copies: 1, n_bytes: bytes }, "nobody knows yet how the slow copy is");
    assert_eq!(store.drain_with(&tell).unwrap(), 0);
    assert_eq!(told.swap(0, Ordering::Relaxed), bytes);
    assert_eq!(store.undrained(), Undrained::default());
    save(&store, 4).unwrap();
    let undrained = store.undrained();
    assert_eq!(undrained, Undrained { n_copies: 1, n_bytes: TENSOR as u64 + 6 });
    assert_eq!(store.drain_with(&tell).unwrap(), 1);
    assert_eq!((told.load(Ordering::Relaxed), store.undrained().n_copies), (2 * undrained.n_bytes, 0));
}

#[test]
fn what_was_not_asked_for_is_verified_too_and_nothing_is_read_twice() {
    for format in FORMATS {
        let (model, tiers) = prepared(format);
        let (fs, counters) = CountedFs::new(Arc::new(model.clone()));
        let tier = Tier { fs: Arc::new(fs), ..tiers[1].clone() };
        let free = AtomicBool::new(false);
        let open = || Checkpoint::open(&tier, name(2)).unwrap();
        let checkpoint = open();
        let (before, n_bytes) = (counters.read_bytes(), checkpoint.manifest().n_bytes());
        let n_files = checkpoint.manifest().files.len() as u64;
        checkpoint.verify_rest(&free).unwrap();
        let read = counters.read_bytes() - before;
        assert!(n_bytes <= read && read <= n_bytes + n_files * 4096, "{read} of {n_bytes}");
        checkpoint.verify_rest(&free).unwrap();
        assert_eq!(counters.read_bytes() - before, read, "all was seen");
        let stopped = open().verify_rest(&AtomicBool::new(true));
        assert!(matches!(stopped, Err(Error::Stopped)));
        // Piece by piece through a file, each chunk is read once.
        let checkpoint = open();
        let file = checkpoint.manifest().files.iter().max_by_key(|file| file.len).unwrap().clone();
        let (before, mut piece) = (counters.read_bytes(), vec![0; 4096]);
        for at in (100..file.len - 4096).step_by(4096) {
            format::Source::read_at(&checkpoint, &file.name, at, &mut piece).unwrap();
        }
        assert!(counters.read_bytes() - before <= file.len.next_multiple_of(4096), "{}", file.name);
        let last = tier.path_of(name(2)).join(&file.name);
        model.damage(&last, |bytes| *bytes.last_mut().unwrap() ^= 1).unwrap();
        assert!(matches!(open().verify_rest(&free), Err(Error::Damaged { .. })));
    }
}

#[test]
fn a_stop_ends_verifying_and_pruning_at_the_next_chunk_and_is_no_damage() {
    let (model, tiers) = prepared(FORMATS[0]);
    let (stop, told) = (AtomicBool::new(false), AtomicU64::new(0));
    let tell = |bytes| {
        told.fetch_add(bytes, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    };
    let bytes = verify(&tiers[1], name(2)).unwrap().n_bytes();
    assert!(matches!(verify_until(&tiers[1], name(2), &tell, &stop), Err(Error::Stopped)));
    let told = told.into_inner();
    assert!(0 < told && told < bytes, "{told} of {bytes}");
    let free = AtomicBool::new(false);
    assert_eq!(verify_until(&tiers[1], name(2), &|_| {}, &free).unwrap().n_bytes(), bytes);
    model.damage(&tiers[1].path_of(name(2)).join("model.safetensors"), |bytes| bytes[5000] ^= 1).unwrap();
    assert!(matches!(verify_until(&tiers[1], name(2), &|_| {}, &free), Err(Error::Damaged { .. })));
    let tiers: Vec<_> = tiers.into_iter().map(|tier| Tier { keep: Keep::last(1), ..tier }).collect();
    let before: Vec<_> = tiers.iter().map(|tier| tier.names().unwrap()).collect();
    assert!(before.iter().any(|names| names.len() > 1), "{before:?}");
    let store = Store::open(tiers.clone(), Options { drains_behind: false, ..options(Mode::Burst) }).unwrap();
    store.stop_draining();
    assert!(matches!(store.prune(), Err(Error::Stopped)));
    drop(store);
    assert_eq!(tiers.iter().map(|tier| tier.names().unwrap()).collect::<Vec<_>>(), before);
}

#[test]
fn a_checkpoint_is_read_by_many_at_once() {
    let (_, tiers) = prepared(FORMATS[0]);
    let checkpoint = Checkpoint::open(&tiers[1], name(1)).unwrap();
    let catalog = checkpoint.catalog().unwrap();
    let wrong = Mutex::new(0);
    std::thread::scope(|scope| {
        for k in (0..5).cycle().take(20) {
            let (catalog, checkpoint, wrong) = (&catalog, &checkpoint, &wrong);
            scope.spawn(move || {
                if catalog.read(checkpoint, &format!("w{k}")).unwrap() != Model::of(1).values()[k] {
                    *wrong.lock().unwrap() += 1;
                }
            });
        }
    });
    assert_eq!(*wrong.lock().unwrap(), 0);
}
