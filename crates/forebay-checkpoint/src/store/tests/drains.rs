//! What the drain does when not all is well: one bad checkpoint costs no other, and none that is good.

use super::*;
use crate::{Cut, Damage, FaultyFs, verify};

fn name(step: u64) -> Name {
    Name { step, take: 0 }
}

fn quiet() -> Options {
    Options { drains_behind: false, ..options(Mode::Burst) }
}

fn keeping(model: &ModelFs, fast: usize, slow: usize) -> Vec<Tier> {
    let mut tiers = two_tiers(Arc::new(model.clone()));
    (tiers[0].keep, tiers[1].keep) = (Keep::last(fast), Keep::last(slow));
    tiers
}

/// Saves these to the fast tier and leaves them there.
fn left_undrained(model: &ModelFs, saved: &[u64]) {
    let store = Store::open(keeping(model, 9, 9), quiet()).unwrap();
    saved.iter().for_each(|step| drop(save(&store, *step).unwrap()));
}

fn flip(model: &ModelFs, path: &str) {
    model.damage(Path::new(path), |bytes| bytes[4100] ^= 1).unwrap();
}

#[test]
fn damage_left_by_an_earlier_run_refuses_no_save_and_is_told() {
    let model = model();
    left_undrained(&model, &[36]);
    flip(&model, "/fast/step-000000000036/model");
    let store = Store::open(keeping(&model, 9, 9), options(Mode::Burst)).unwrap();
    for step in [40, 60] {
        assert_eq!(save(&store, step).unwrap().wait(Level::DurableSlow).unwrap(), Fate::Reached);
    }
    let told = store.take_errors();
    assert!(matches!(told[..], [Error::Background { step: 36, .. }]), "{told:?}");
    assert!(store.close().errors.is_empty(), "it is told once");
    assert_eq!((steps(&model, "/fast"), steps(&model, "/slow")), (vec![36, 40, 60], vec![40, 60]));
}

#[test]
fn all_damaged_ones_are_named_the_rest_is_drained_and_none_is_removed() {
    let model = model();
    left_undrained(&model, &[1, 2, 3, 4]);
    flip(&model, "/fast/step-000000000001/model");
    flip(&model, "/fast/step-000000000003/model");
    model.damage(Path::new("/fast/step-000000000002/manifest.forebay"), |bytes| bytes.truncate(50)).unwrap();
    let store = Store::open(keeping(&model, 1, 9), quiet()).unwrap();
    let first = store.drain().unwrap_err();
    let told: Vec<u64> = [first]
        .into_iter()
        .chain(store.close().errors)
        .map(|error| match error {
            Error::Background { step, what: "drained", .. } => step,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [1, 2, 3]);
    assert_eq!((steps(&model, "/fast"), steps(&model, "/slow")), (vec![1, 2, 3, 4], vec![4]));
}

#[test]
fn one_that_cannot_be_read_holds_up_no_other_and_is_tried_again() {
    let model = model();
    left_undrained(&model, &[1, 2]);
    let gone = Cut::Gone(0, "/fast/step-000000000001".into());
    let tiers = |cut| {
        let fs: Arc<dyn Fs> = Arc::new(FaultyFs::new(Arc::new(model.clone()), cut));
        keeping(&model, 9, 9).into_iter().map(|tier| Tier { fs: Arc::clone(&fs), ..tier }).collect::<Vec<_>>()
    };
    let store = Store::open(tiers(gone), options(Mode::Burst)).unwrap();
    assert_eq!(save(&store, 3).unwrap().wait(Level::DurableSlow).unwrap(), Fate::Reached);
    let closed = store.close();
    assert!(matches!(closed.errors[..], [Error::Background { step: 1, .. }]), "{:?}", closed.errors);
    assert_eq!((steps(&model, "/slow"), closed.n_undrained), (vec![2, 3], 1));
    let store = Store::open(tiers(Cut::Never), quiet()).unwrap();
    assert_eq!(store.drain().unwrap(), 1);
    assert_eq!(steps(&model, "/slow"), [1, 2, 3]);
}

#[test]
fn a_slow_tier_without_room_refuses_no_save_that_the_fast_one_has_room_for() {
    let model = model();
    let mut tiers = keeping(&model, 9, 9);
    tiers[1].limit_bytes = Some(100);
    let store = Store::open(tiers, options(Mode::Burst)).unwrap();
    for step in 1..=3 {
        let handle = save(&store, step).unwrap();
        let refused = handle.wait(Level::DurableSlow);
        assert!(matches!(&refused, Err(Error::Background { step: of, .. }) if *of == step), "{refused:?}");
    }
    assert_eq!(store.close().errors.len(), 3);
    assert_eq!(steps(&model, "/fast"), [1, 2, 3]);
}

#[test]
fn a_save_that_needs_room_which_the_drain_cannot_make_says_why() {
    let model = model();
    let mut tiers = keeping(&model, 9, 9);
    let one = super::bytes_on_disk(Sample::of(0).plans().into_iter().map(|plan| plan.len), 4096);
    (tiers[0].limit_bytes, tiers[1].limit_bytes) = (Some(one), Some(100));
    let store = Store::open(tiers, options(Mode::Burst)).unwrap();
    save(&store, 1).unwrap();
    assert!(matches!(save(&store, 2), Err(Error::Background { step: 1, .. })));
    assert_eq!(steps(&model, "/fast"), [1]);
}

#[test]
fn an_error_of_an_earlier_drain_is_not_that_of_the_next() {
    let model = model();
    let mut tiers = keeping(&model, 9, 9);
    tiers[1].limit_bytes = Some(100);
    let store = Store::open(tiers, Options { drain_bytes_per_s: None, ..options(Mode::Burst) }).unwrap();
    save(&store, 1).unwrap().wait(Level::DurableSlow).unwrap_err();
    let mut state = store.shared.lock();
    assert!(state.drain_error.is_some());
    // As in the moment after the drain thread went to work again.
    (state.is_draining, state.drain_wanted) = (true, false);
    drop(state);
    let handle = Handle::new(&store.shared, name(77));
    let (begun, waits) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            begun.send(None).unwrap();
            begun.send(Some(handle.wait(Level::DurableSlow))).unwrap();
        });
        assert!(waits.recv().unwrap().is_none());
        assert!(waits.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "it waits for the drain at work");
        let mut state = store.shared.lock();
        state.is_draining = false;
        state.set_stage(name(77), state::Stage::DurableSlow);
        drop(state);
        store.shared.changed();
        assert_eq!(waits.recv().unwrap().unwrap().unwrap(), Fate::Reached);
    });
}

#[test]
fn closing_leaves_as_many_as_the_rules_keep_whenever_it_comes() {
    for _ in 0..50 {
        let model = model();
        let tiers = vec![keeping(&model, 9, 2).remove(1)];
        let store = Store::open(tiers, options(Mode::Direct)).unwrap();
        (1..=6).for_each(|step| drop(save(&store, step).unwrap()));
        assert!(store.close().errors.is_empty());
        assert_eq!(steps(&model, "/slow"), [5, 6]);
    }
}

#[test]
fn one_that_turns_out_damaged_does_not_count_as_kept() {
    let model = model();
    let store = Store::open(vec![keeping(&model, 9, 9).remove(1)], options(Mode::Direct)).unwrap();
    (1..=6).for_each(|step| drop(save(&store, step).unwrap()));
    drop(store);
    flip(&model, "/slow/step-000000000006/model");
    let store =
        Store::open(vec![keeping(&model, 9, 5).remove(1)], Options { drains_behind: false, ..options(Mode::Direct) });
    store.unwrap().prune().unwrap();
    assert_eq!(steps(&model, "/slow"), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_fast_copy_stays_while_the_slow_one_is_not_known_to_be_good() {
    let model = model();
    let store = Store::open(keeping(&model, 9, 9), quiet()).unwrap();
    [10, 15].iter().for_each(|step| drop(save(&store, *step).unwrap()));
    store.drain().unwrap();
    drop(store);
    flip(&model, "/slow/step-000000000015/model");
    flip(&model, "/slow/step-000000000010/model");
    let store = Store::open(keeping(&model, 1, 2), quiet()).unwrap();
    store.prune().unwrap();
    assert_eq!(steps(&model, "/fast"), [10, 15]);
}

#[test]
fn a_copy_that_was_never_read_back_is_read_by_the_next_drain_and_made_anew_if_it_is_bad() {
    let model = model();
    let store = Store::open(keeping(&model, 9, 9), quiet()).unwrap();
    [1, 2].iter().for_each(|step| drop(save(&store, *step).unwrap()));
    store.drain().unwrap();
    drop(store);
    // As a kill between the commit and the reading back leaves it, on a device that did not keep what it was given.
    flip(&model, "/slow/step-000000000002/model");
    let tiers = keeping(&model, 1, 9);
    let store = Store::open(tiers.clone(), quiet()).unwrap();
    assert_eq!(store.undrained().n_copies, 2, "neither was read yet");
    assert_eq!(store.drain().unwrap(), 1, "one of the two is good");
    assert_eq!(store.undrained().n_copies, 0);
    assert!(matches!(verify(&tiers[1], name(2)), Ok(manifest) if manifest.step == 2));
    assert_eq!(steps(&model, "/fast"), [2]);
}

#[test]
fn a_bad_slow_copy_stays_when_the_fast_one_is_bad_too() {
    let model = model();
    let tiers = keeping(&model, 9, 9);
    let store = Store::open(tiers.clone(), quiet()).unwrap();
    save(&store, 1).unwrap();
    store.drain().unwrap();
    drop(store);
    flip(&model, "/slow/step-000000000001/model");
    model.damage(Path::new("/fast/step-000000000001/rest"), |bytes| bytes[0] ^= 1).unwrap();
    let store = Store::open(tiers.clone(), quiet()).unwrap();
    assert!(matches!(store.drain(), Err(Error::Background { step: 1, .. })));
    assert!(matches!(verify(&tiers[1], name(1)), Err(Damage::Changed { .. })));
}

#[test]
fn the_newest_arrives_where_there_is_no_room_for_all() {
    let model = model();
    left_undrained(&model, &[1, 2, 3]);
    let mut tiers = keeping(&model, 9, 9);
    tiers[1].limit_bytes =
        Some(super::bytes_on_disk(Sample::of(0).plans().into_iter().map(|plan| plan.len), 4096) + 100);
    let store = Store::open(tiers, quiet()).unwrap();
    store.drain().unwrap_err();
    assert_eq!(steps(&model, "/slow"), [3]);
    assert_eq!(store.close().n_undrained, 2);
}

#[test]
fn what_is_read_back_comes_from_the_device_manifest_and_all() {
    let model = model();
    let store = Store::open(keeping(&model, 9, 9), quiet()).unwrap();
    save(&store, 1).unwrap();
    model.take_opened();
    store.drain().unwrap();
    let read: Vec<_> =
        model.take_opened().into_iter().filter(|(path, _)| path.starts_with("/slow/step-000000000001")).collect();
    assert_eq!(read.len(), 3, "{read:?}");
    assert!(read.iter().all(|(_, reading)| *reading == crate::Reading::Direct), "{read:?}");
}

#[test]
fn whoever_is_in_a_hurry_does_not_wait_for_the_rate() {
    let model = model();
    let held = Options { drain_bytes_per_s: Some(1), ..options(Mode::Burst) };
    let store = Store::open(keeping(&model, 1, 9), held).unwrap();
    let handle = save(&store, 1).unwrap();
    store.hurry();
    assert_eq!(handle.wait(Level::DurableSlow).unwrap(), Fate::Reached);
}
