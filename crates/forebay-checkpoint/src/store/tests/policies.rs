//! When saves return, what happens when the drain cannot follow, and what closing leaves.

use super::*;
use crate::{Crash, Cut, FaultyFs};

/// A drain at a byte a second does not end before it is told to.
const HELD: Option<u64> = Some(1);

/// Bytes that room for `n` more checkpoints takes where `n_there` are.
fn limit(n_there: u64, n: u64) -> u64 {
    let lens = || Sample::of(0).plans().into_iter().map(|plan| plan.len);
    n_there * lens().sum::<u64>() + n * super::bytes_on_disk(lens(), 4096)
}

fn open(model: &ModelFs, options: Options, fast_limit: Option<u64>) -> Store {
    let mut tiers = two_tiers(Arc::new(model.clone()));
    tiers[0].limit_bytes = fast_limit;
    Store::open(tiers, options).unwrap()
}

#[test]
fn a_save_is_durable_where_its_mode_says_when_it_returns() {
    for (mode, on_fast, on_slow) in [(Mode::Direct, vec![], vec![1]), (Mode::Burst, vec![1], vec![])] {
        let model = model();
        let store = open(&model, Options { drains_behind: false, ..options(mode) }, None);
        save(&store, 1).unwrap();
        let left = model.fork();
        left.crash(Crash::Nothing);
        assert_eq!((steps(&left, "/fast"), steps(&left, "/slow")), (on_fast, on_slow), "{mode:?}");
        assert!(Sample::of(1).is_in(&crate::restore(&two_tiers(Arc::new(left))).unwrap()));
    }
}

#[test]
fn an_async_save_keeps_the_values_of_its_moment_and_reaches_each_level() {
    let model = model();
    let store = open(&model, options(Mode::Async), None);
    let mut sample = Sample::of(7);
    let handle = store.save(7, None, &sample.snapshot(), &sample.layout()).unwrap();
    sample.values.fill(0);
    for level in [Level::Staged, Level::DurableFast, Level::DurableSlow] {
        assert_eq!(handle.wait(level).unwrap(), Fate::Reached);
    }
    assert_eq!((steps(&model, "/fast"), steps(&model, "/slow")), (vec![7], vec![7]));
    assert!(Sample::of(7).is_in(&store.restore().unwrap()));
    assert!(store.close().errors.is_empty());
}

#[test]
fn waiting_for_room_saves_all_and_never_fills_the_fast_tier() {
    let model = model();
    let store = open(&model, options(Mode::Burst), Some(limit(0, 1)));
    for step in 1..=6 {
        save(&store, step).unwrap();
        assert!(steps(&model, "/fast").len() <= 1);
    }
    store.drain().unwrap();
    assert_eq!(steps(&model, "/slow"), [5, 6]);
    let closed = store.close();
    assert_eq!((closed.counts.saved, closed.counts.drained, closed.counts.skipped), (6, 6, 0));
    assert!(closed.counts.waited <= 5 && closed.errors.is_empty());
}

#[test]
fn skipping_leaves_out_what_finds_no_room_and_counts_it() {
    let model = model();
    let held = Options { when_behind: WhenBehind::Skip, drain_bytes_per_s: HELD, ..options(Mode::Burst) };
    let store = open(&model, held, Some(limit(0, 1)));
    assert_eq!(save(&store, 1).unwrap().wait(Level::DurableFast).unwrap(), Fate::Reached);
    let skipped = save(&store, 2).unwrap();
    assert_eq!(skipped.wait(Level::DurableSlow).unwrap(), Fate::Skipped);
    let closed = store.close();
    assert_eq!((closed.counts.saved, closed.counts.skipped, closed.n_undrained), (1, 1, 1));
    assert_eq!(steps(&model, "/fast"), [1]);
}

#[test]
fn coalescing_drops_the_older_one_that_is_not_being_drained() {
    let model = model();
    let held = Options { when_behind: WhenBehind::Coalesce, drain_bytes_per_s: HELD, ..options(Mode::Burst) };
    let store = open(&model, held, Some(limit(2, 1)));
    let _first = save(&store, 1).unwrap();
    while store.shared.lock().copying.is_none() {
        std::thread::yield_now();
    }
    let second = save(&store, 2).unwrap();
    save(&store, 3).unwrap();
    save(&store, 4).unwrap();
    assert_eq!(second.wait(Level::DurableSlow).unwrap(), Fate::Superseded);
    let closed = store.close();
    assert_eq!((closed.counts.saved, closed.counts.superseded), (4, 1));
    assert_eq!(steps(&model, "/fast"), [3, 4]);
}

#[test]
fn a_staged_save_gives_way_to_a_newer_one_and_closing_writes_what_is_staged() {
    let model = model();
    let plans = Sample::of(0).plans();
    let pool_bytes = Some(2 * crate::source::Staged::n_bytes(&plans));
    let when_behind = WhenBehind::Coalesce;
    let held = Options { when_behind, drain_bytes_per_s: HELD, pool_bytes, ..options(Mode::Async) };
    let store = open(&model, held, Some(limit(0, 1)));
    save(&store, 1).unwrap().wait(Level::DurableFast).unwrap();
    while store.shared.lock().copying.is_none() {
        std::thread::yield_now();
    }
    // The second waits for room on the tier or in the queue, the third in the queue, and the fourth takes its place.
    let handles: Vec<Handle> = (2..=4).map(|step| save(&store, step).unwrap()).collect();
    let closed = store.close();
    let fates: Vec<Fate> = handles.iter().map(|handle| handle.wait(Level::DurableFast).unwrap()).collect();
    assert_eq!(fates.iter().filter(|fate| **fate == Fate::Superseded).count(), 1, "{fates:?}");
    assert_eq!(fates[2], Fate::Reached);
    assert_eq!((closed.counts.saved, closed.counts.superseded, closed.errors.len()), (3, 1, 0));
    assert_eq!(crate::restore(&two_tiers(Arc::new(model))).unwrap().name.step, 4);
}

#[test]
fn a_pool_is_bounded_and_skips_or_refuses_what_does_not_fit() {
    let bytes = crate::source::Staged::n_bytes(&Sample::of(0).plans());
    let bounded = |pool_bytes| Options { when_behind: WhenBehind::Skip, pool_bytes, ..options(Mode::Async) };
    for pool_bytes in [None, Some(bytes), Some(2 * bytes - 1)] {
        let store = open(&model(), bounded(pool_bytes), None);
        store.prepare(&Sample::of(0).layout()).unwrap();
        let taken = store.shared.take_memory(bytes, &Pace::free()).unwrap().unwrap();
        assert_eq!(save(&store, 1).unwrap().wait(Level::Staged).unwrap(), Fate::Skipped, "{pool_bytes:?}");
        store.shared.lock().pool.push(taken);
        assert_eq!(save(&store, 2).unwrap().wait(Level::DurableFast).unwrap(), Fate::Reached);
        assert_eq!(store.close().counts.skipped, 1);
    }
    let small = open(&model(), bounded(Some(bytes - 1)), None);
    assert!(matches!(save(&small, 1), Err(Error::Pool { wanted, .. }) if wanted == bytes));
}

#[test]
fn what_closing_leaves_undrained_the_next_opening_drains() {
    let model = model();
    let store = open(&model, Options { drain_bytes_per_s: HELD, ..options(Mode::Burst) }, None);
    let handle = save(&store, 1).unwrap();
    save(&store, 2).unwrap();
    assert_eq!(store.close().n_undrained, 2);
    assert!(matches!(handle.wait(Level::DurableSlow), Err(Error::Stopped)));
    assert_eq!(handle.wait(Level::DurableFast).unwrap(), Fate::Reached);
    let store = open(&model, options(Mode::Burst), None);
    save(&store, 3).unwrap().wait(Level::DurableSlow).unwrap();
    store.drain().unwrap();
    assert_eq!((steps(&model, "/fast"), steps(&model, "/slow")), (vec![3], vec![2, 3]));
}

#[test]
fn what_goes_wrong_with_the_drain_is_told_by_the_wait_and_to_whoever_asks_and_refuses_no_save() {
    let model = model();
    let counting = FaultyFs::new(Arc::new(model.fork()), Cut::Never);
    drop(Store::open(two_tiers(Arc::new(counting.clone())), Options { drains_behind: false, ..options(Mode::Burst) }));
    let cut = Cut::Gone(counting.n_operations(), "/slow".into());
    let gone = Arc::new(FaultyFs::new(Arc::new(model.clone()), cut));
    let store = Store::open(two_tiers(gone), options(Mode::Burst)).unwrap();
    let handle = save(&store, 1).unwrap();
    assert!(matches!(handle.wait(Level::DurableSlow), Err(Error::Background { step: 1, what: "drained", .. })));
    let told = store.take_errors();
    assert!(matches!(told[..], [Error::Background { step: 1, .. }]), "{told:?}");
    let second = save(&store, 2).unwrap();
    assert!(matches!(second.wait(Level::DurableSlow), Err(Error::Background { step: 2, .. })));
    let closed = store.close();
    assert_eq!((closed.counts.saved, closed.n_undrained), (2, 2));
    assert!(matches!(closed.errors[..], [Error::Background { step: 1, .. }, Error::Background { step: 2, .. }]));
    assert_eq!(steps(&model, "/fast"), [1, 2]);
}

#[test]
fn after_a_failed_sync_the_checkpoint_is_written_anew() {
    let mut n_anew = 0;
    for k in 0.. {
        let model = model();
        let faulty = Arc::new(FaultyFs::new(Arc::new(model.clone()), Cut::Fail(k)));
        let quiet = Options { drains_behind: false, ..options(Mode::Direct) };
        let Ok(store) = Store::open(two_tiers(Arc::clone(&faulty) as Arc<dyn Fs>), quiet) else { continue };
        let is_open_before = k >= faulty.n_operations();
        if save(&store, 1).is_ok() && faulty.has_cut() && is_open_before {
            n_anew += 1;
            model.crash(Crash::Nothing);
            assert!(Sample::of(1).is_in(&crate::restore(&two_tiers(Arc::new(model))).unwrap()), "failed at {k}");
        }
        if !faulty.has_cut() {
            break;
        }
    }
    assert_eq!(n_anew, 5, "two files, the manifest, the folder, the tier's folder");
}

#[test]
fn a_second_store_is_refused_with_the_name_of_the_first() {
    let model = model();
    let _first = open(&model, options(Mode::Direct), None);
    let second = Store::open(two_tiers(Arc::new(model.clone())), options(Mode::Direct));
    let message = second.unwrap_err().to_string();
    assert!(message.contains(&format!("in use by process {} on ", std::process::id())), "{message}");
}

#[test]
fn a_full_last_tier_is_an_error_and_the_only_good_copy_stays() {
    let model = model();
    let mut tiers = vec![two_tiers(Arc::new(model.clone())).remove(1)];
    (tiers[0].limit_bytes, tiers[0].keep) = (Some(limit(0, 1)), Keep::last(1));
    let store = Store::open(tiers, options(Mode::Direct)).unwrap();
    save(&store, 1).unwrap();
    assert!(matches!(save(&store, 2), Err(Error::NoRoom { .. })));
    assert_eq!(steps(&model, "/slow"), [1]);
}

#[test]
fn a_plan_that_does_not_fit_its_state_is_refused() {
    let store = open(&model(), options(Mode::Direct), None);
    let sample = Sample::of(1);
    let tensor = |index, range| vec![Piece::Tensor { index, range }];
    let bad = [
        vec![],
        vec![FilePlan::new("../x", vec![])],
        vec![FilePlan::new("manifest.forebay", vec![])],
        vec![FilePlan::new("a", vec![]), FilePlan::new("a", vec![])],
        vec![FilePlan::new("a", tensor(1, 0..1))],
        vec![FilePlan::new("a", tensor(0, 0..TENSOR as u64 + 1))],
        vec![FilePlan { len: 3, ..FilePlan::new("a", vec![Piece::Bytes(vec![1])]) }],
    ];
    for plans in bad {
        let refused = store.save(1, None, &sample.snapshot(), &Layout::from_plans(plans.clone()));
        assert!(matches!(refused, Err(Error::Plan { .. })), "{plans:?}");
    }
}

#[test]
fn a_checkpoint_goes_from_tier_to_tier_down_to_the_last() {
    let model = Arc::new(ModelFs::with_dirs(&["a", "b", "c"]));
    let tier = |dir: &str, last| Tier { keep: Keep::last(last), ..Tier::new(Arc::clone(&model) as Arc<dyn Fs>, dir) };
    let store = Store::open(vec![tier("/a", 1), tier("/b", 2), tier("/c", 3)], options(Mode::Burst)).unwrap();
    for step in 1..=5 {
        assert_eq!(save(&store, step).unwrap().wait(Level::DurableSlow).unwrap(), Fate::Reached);
    }
    store.drain().unwrap();
    let closed = store.close();
    assert_eq!((closed.counts.drained, closed.n_undrained, closed.errors.len()), (10, 0, 0));
    let there = ["/a", "/b", "/c"].map(|dir| steps(model.as_ref(), dir));
    assert_eq!(there, [vec![5], vec![4, 5], vec![3, 4, 5]]);
}

#[test]
fn a_fast_tier_that_the_disk_bounds_is_never_filled_and_what_is_to_stay_free_does() {
    let (fast, slow) = (ModelFs::with_dirs(&["fast"]), ModelFs::with_dirs(&["slow"]));
    fast.set_capacity(limit(0, 1) + 1000);
    let tiers = |reserve_bytes| {
        let near = Tier { reserve_bytes, keep: Keep::last(3), ..Tier::new(Arc::new(fast.clone()), "/fast") };
        vec![near, Tier::new(Arc::new(slow.clone()), "/slow")]
    };
    let store = Store::open(tiers(1000), options(Mode::Burst)).unwrap();
    for step in 1..=4 {
        save(&store, step).unwrap();
        assert!(fast.free_bytes(Path::new("/fast")).unwrap() >= 1000);
    }
    store.drain().unwrap();
    assert!(store.close().errors.is_empty());
    assert_eq!(steps(&slow, "/slow"), [1, 2, 3, 4]);
    let store = Store::open(tiers(1001), options(Mode::Burst)).unwrap();
    assert!(matches!(save(&store, 5), Err(Error::NoRoom { .. })));
}
