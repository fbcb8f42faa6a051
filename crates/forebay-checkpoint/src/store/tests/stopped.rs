//! Saves that are stopped before their end.

use std::io;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::{Crash, Elsewhere, Fetch, Tensor, Values, left_over};

/// A state on a device that sets a flag when it is asked for values for the `at`-th time.
struct Interrupting<'a> {
    sample: &'a Sample,
    at: usize,
    n_asked: AtomicUsize,
    stop: &'a AtomicBool,
}

impl Elsewhere for Interrupting<'_> {
    fn fetch(&self, fetches: &mut [Fetch<'_>]) -> io::Result<()> {
        if self.n_asked.fetch_add(1, Ordering::Relaxed) + 1 == self.at {
            self.stop.store(true, Ordering::Relaxed);
        }
        for fetch in fetches {
            fetch.into.copy_from_slice(&self.sample.values[fetch.offset as usize..][..fetch.into.len()]);
        }
        Ok(())
    }
}

/// A save that is told to stop while the `at`-th of its four chunks is fetched.
pub(super) fn save_stopped(store: &Store, step: u64, seed: u64, at: usize) -> Result<Handle> {
    let (sample, stop) = (Sample::of(seed), AtomicBool::new(false));
    let device = Interrupting { sample: &sample, at, n_asked: AtomicUsize::new(0), stop: &stop };
    let bytes = Values::There { device: &device, index: 0, n_bytes: TENSOR as u64 };
    let snapshot = Snapshot { tensors: vec![Tensor { header: &sample.header, bytes }], ..Snapshot::default() };
    store.save_until(step, None, &snapshot, &sample.layout(), &stop)
}

fn open(model: &ModelFs, options: Options) -> Store {
    Store::open(two_tiers(Arc::new(model.clone())), options).unwrap()
}

#[test]
fn a_save_that_is_stopped_at_any_chunk_leaves_nothing_and_the_next_one_is_made() {
    for mode in [Mode::Direct, Mode::Burst] {
        for at in 1..=3 {
            let model = model();
            let store = open(&model, Options { drains_behind: false, ..options(mode) });
            save(&store, 1).unwrap();
            assert!(matches!(save_stopped(&store, 2, 2, at), Err(Error::Stopped)), "{mode:?}, {at}");
            assert!(two_tiers(Arc::new(model.clone())).iter().all(|tier| left_over(tier).unwrap().is_empty()));
            assert_eq!(store.counts().saved, 1);
            for crash in [Crash::All, Crash::Nothing] {
                let left = model.fork();
                left.crash(crash);
                assert!(Sample::of(1).is_in(&crate::restore(&two_tiers(Arc::new(left))).unwrap()));
            }
            save(&store, 2).unwrap();
            assert!(Sample::of(2).is_in(&store.restore().unwrap()), "{mode:?}, {at}");
        }
    }
}

#[test]
fn a_stop_that_comes_when_all_was_fetched_is_too_late() {
    let store = open(&model(), Options { drains_behind: false, ..options(Mode::Burst) });
    save_stopped(&store, 1, 1, 4).unwrap();
    assert!(Sample::of(1).is_in(&store.restore().unwrap()));
}

#[test]
fn an_async_save_is_stopped_while_it_is_copied_and_gives_its_memory_back() {
    let store = open(&model(), options(Mode::Async));
    assert!(matches!(save_stopped(&store, 1, 1, 1), Err(Error::Stopped)));
    assert_eq!(store.shared.lock().pool_bytes, 0);
    assert_eq!(save(&store, 2).unwrap().wait(Level::DurableFast).unwrap(), Fate::Reached);
    let closed = store.close();
    assert_eq!((closed.counts.saved, closed.errors.len()), (1, 0));
}

/// Stops a save of this store as soon as it waits for those before.
fn stop_waiting(store: &Store) -> Result<Handle> {
    let (sample, stop) = (Sample::of(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while store.counts().waited == 0 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        store.save_until(2, None, &sample.snapshot(), &sample.layout(), &stop)
    })
}

#[test]
fn a_save_that_waits_for_room_is_stopped() {
    let model = model();
    let mut tiers = two_tiers(Arc::new(model.clone()));
    tiers[0].limit_bytes = Some(super::bytes_on_disk(Sample::of(0).plans().into_iter().map(|plan| plan.len), 4096));
    // A drain at a byte a second makes no room.
    let store = Store::open(tiers, Options { drain_bytes_per_s: Some(1), ..options(Mode::Burst) }).unwrap();
    save(&store, 1).unwrap();
    assert!(matches!(stop_waiting(&store), Err(Error::Stopped)));
    drop(store);
    assert_eq!(steps(&model, "/fast"), [1]);
}

#[test]
fn a_save_that_waits_for_memory_is_stopped() {
    let store = open(&model(), options(Mode::Async));
    let bytes = crate::source::Staged::n_bytes(&Sample::of(0).plans());
    let taken = store.shared.take_memory(bytes, &Pace::free()).unwrap().unwrap();
    assert!(matches!(stop_waiting(&store), Err(Error::Stopped)));
    store.shared.lock().pool.push(taken);
    assert_eq!(save(&store, 3).unwrap().wait(Level::DurableFast).unwrap(), Fate::Reached);
}
