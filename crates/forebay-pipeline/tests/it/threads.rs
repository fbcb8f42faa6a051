//! Threads end with their iterator, memory is bounded, and times add up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use forebay_pipeline::{Activity, Dataset, Error, Threads};
use forebay_units::{Clock, ManualClock};

use crate::{content, copied, numbers};

#[test]
fn dropping_the_iterator_at_any_moment_ends_its_workers() {
    for (readers, batches_taken) in [(0, 0), (0, 3), (2, 0), (2, 1), (3, 100)] {
        let living = Arc::new(AtomicUsize::new(0));
        let counter = Living::new(&living);
        let pipeline = Dataset::new(numbers(400))
            .map_fn(4, move |sample, slot| {
                let _ = &counter;
                slot.copy_from_slice(sample.bytes);
                Ok(())
            })
            .threads(Threads::Fixed(3))
            .readers(readers)
            .batch(8)
            .prefetch(4);
        let mut batches = pipeline.iter().unwrap();
        batches.by_ref().take(batches_taken).for_each(|batch| drop(batch.unwrap()));
        drop(batches);
        // Every worker had a clone of the closure; the remaining one belongs to the description.
        assert_eq!(living.load(Ordering::SeqCst), 1, "{readers} readers, {batches_taken} batches");
    }
}

#[test]
fn a_stop_ends_the_wait_for_a_batch_and_loses_nothing_of_it() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let pipeline = Dataset::new(numbers(40)).map_fn(4, move |sample, slot| {
        slot.copy_from_slice(sample.bytes);
        // From the fourth sample on, samples wait for the gate.
        while slot[0] > 3 && !gate.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(())
    });
    let mut batches = pipeline.threads(Threads::Fixed(2)).batch(40).prefetch(1).iter().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| stop.store(true, Ordering::SeqCst));
        assert!(batches.next_unless(&stop).is_none());
    });
    open.store(true, Ordering::SeqCst);
    stop.store(false, Ordering::SeqCst);
    assert_eq!(content(&batches.next_unless(&stop).unwrap().unwrap()), (0..40).collect::<Vec<_>>());
    assert!(batches.next_unless(&stop).is_none(), "the end");
}

#[test]
fn a_consumer_with_limited_patience_gets_the_same_batch_later_and_all_of_it_is_a_wait() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let pipeline = Dataset::new(numbers(6)).repeat(2).map_fn(4, move |sample, slot| {
        while !gate.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let made = i32::from_le_bytes(sample.bytes.try_into().unwrap()) + 100 * sample.epoch as i32;
        slot.copy_from_slice(&made.to_le_bytes());
        Ok(())
    });
    let mut batches = pipeline.threads(Threads::Fixed(2)).batch(12).iter().unwrap();
    let patience = Duration::from_millis(20);
    assert!(batches.next_within(patience).is_pending());
    assert!(batches.stats().wait_ns >= 20_000_000);
    open.store(true, Ordering::SeqCst);
    let batch = loop {
        match batches.next_within(patience) {
            Poll::Pending => {}
            Poll::Ready(batch) => break batch.unwrap().unwrap(),
        }
    };
    let made: Vec<i32> = batch.data().chunks(4).map(|four| i32::from_le_bytes(four.try_into().unwrap())).collect();
    assert_eq!(made, (0..6).chain(100..106).collect::<Vec<_>>(), "samples know their epoch");
    drop(batch);
    assert!(matches!(batches.next_within(patience), Poll::Ready(None)));
}

#[test]
fn polling_asks_for_a_batch_waits_for_none_and_counts_no_wait() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let pipeline = Dataset::new(numbers(10)).map_fn(4, move |sample, slot| {
        while !gate.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        // A hole in every batch, so polling alone has to make room.
        if sample.index.is_multiple_of(5) {
            return Err("every fifth".into());
        }
        slot.copy_from_slice(sample.bytes);
        Ok(())
    });
    let pipeline = pipeline.threads(Threads::Fixed(2)).ignore_errors().batch(4).prefetch(0);
    let mut batches = pipeline.iter().unwrap();
    assert!(batches.poll_next().is_pending() && batches.poll_next().is_pending());
    open.store(true, Ordering::SeqCst);
    let mut seen = Vec::new();
    loop {
        match batches.poll_next() {
            Poll::Pending => std::thread::yield_now(),
            Poll::Ready(Some(batch)) => seen.push(content(&batch.unwrap())),
            Poll::Ready(None) => break,
        }
    }
    assert_eq!(seen, [vec![1, 2, 3, 4], vec![6, 7, 8, 9]]);
    let stats = batches.stats();
    assert_eq!((stats.wait_ns, stats.n_batches, stats.n_failed), (0, 2, 2));
    assert!(stats.first_batch_ns.is_some());
}

#[test]
fn one_thread_waits_for_many_iterators_and_each_knows_its_wait() {
    let gates: Vec<Arc<AtomicBool>> = (0..3).map(|_| Arc::default()).collect();
    let mut all: Vec<_> = gates
        .iter()
        .map(|gate| {
            let gate = Arc::clone(gate);
            // The last batch has less than the others.
            let pipeline = Dataset::new(numbers(42)).map_fn(4, move |sample, slot| {
                while !gate.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                slot.copy_from_slice(sample.bytes);
                Ok(())
            });
            pipeline.threads(Threads::Fixed(2)).batch(8).prefetch(1).iter().unwrap()
        })
        .collect();
    let mut n_batches = [0; 3];
    assert!(all.iter_mut().all(|batches| batches.poll_waking().is_pending()));
    std::thread::scope(|scope| {
        scope.spawn(|| gates.iter().rev().for_each(|gate| gate.store(true, Ordering::SeqCst)));
        while n_batches != [7; 3] {
            let before = n_batches;
            for (n, batches) in n_batches.iter_mut().zip(&mut all).filter(|(n, _)| **n < 7) {
                match batches.poll_waking() {
                    Poll::Pending => (),
                    Poll::Ready(Some(batch)) => {
                        assert_eq!(content(&batch.unwrap()), (*n * 8..(*n * 8 + 8).min(42)).collect::<Vec<_>>());
                        *n += 1;
                    }
                    Poll::Ready(None) => {
                        assert_eq!(*n, 6);
                        *n = 7;
                    }
                }
            }
            if n_batches == before {
                let parked = std::time::Instant::now();
                std::thread::park_timeout(std::time::Duration::from_secs(60));
                assert!(parked.elapsed().as_secs() < 60, "nobody woke it: {n_batches:?}");
            }
        }
    });
    for stats in all.iter().map(|batches| batches.stats()) {
        assert!(stats.wait_ns > 0 && stats.wait_ns + stats.other_ns == stats.wall_ns, "{stats:?}");
    }
}

#[test]
fn who_polls_and_lets_go_on_has_as_many_batches_made_ahead_as_are_prefetched() {
    for prefetch in [0, 1, 3] {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&made);
        let pipeline = Dataset::new(numbers(80)).map_fn(4, move |sample, slot| {
            slot.copy_from_slice(sample.bytes);
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let mut batches = pipeline.threads(Threads::Fixed(2)).batch(8).prefetch(prefetch).hold(0).iter().unwrap();
        for taken in 1..=10 {
            let batch = loop {
                match batches.poll_waking() {
                    Poll::Pending => std::thread::park(),
                    Poll::Ready(batch) => break batch,
                }
            };
            drop(batch.unwrap().unwrap());
            batches.go_on();
            let ahead = (taken + prefetch).min(10) * 8;
            while made.load(Ordering::SeqCst) < ahead {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(made.load(Ordering::SeqCst), ahead, "{taken} taken, {prefetch} ahead");
        }
    }
}

#[test]
fn a_meter_counts_what_another_thread_moves() {
    let mut batches = copied(Dataset::new(numbers(8))).batch(4).prefetch(1).iter().unwrap();
    let meter = batches.meter();
    batches.by_ref().for_each(|batch| drop(batch.unwrap()));
    assert_eq!((meter.bytes_read(), batches.bytes_read()), (32, 32));
    drop(batches);
    assert_eq!(meter.bytes_read(), 32, "it outlives the iterator");
}

#[test]
fn the_memory_of_an_iterator_holds_its_batches_and_outlives_it() {
    let mut batches = copied(Dataset::new(numbers(8))).threads(Threads::Fixed(1)).batch(4).prefetch(1).iter().unwrap();
    let memory = batches.memory();
    let all = memory.as_ptr() as usize..memory.as_ptr() as usize + memory.n_bytes();
    let batch = batches.next().unwrap().unwrap();
    let data = batch.data().as_ptr_range();
    assert!(all.start <= data.start as usize && data.end as usize <= all.end, "{all:?} holds {data:?}");
    drop(batches);
    assert_eq!(content(&batch), [0, 1, 2, 3]);
    drop(batch);
    assert_eq!(memory.as_ptr() as usize, all.start);
    // SAFETY: the handle keeps the memory mapped, and the threads that wrote to it have ended.
    let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), memory.n_bytes()) };
    assert!(bytes.contains(&3), "it can still be read");
}

struct Living(Arc<AtomicUsize>);

impl Living {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Clone for Living {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until `condition` holds, at most ten seconds.
fn eventually(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() && start.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    condition()
}

#[test]
fn workers_run_ahead_by_prefetch_and_no_further() {
    for prefetch in [0, 1, 3] {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let pipeline = Dataset::new(numbers(1_000))
            .map_fn(4, move |sample, slot| {
                count.fetch_add(1, Ordering::SeqCst);
                slot.copy_from_slice(sample.bytes);
                Ok(())
            })
            .threads(Threads::Fixed(2))
            .batch(10)
            .prefetch(prefetch);
        let mut batches = pipeline.iter().unwrap();
        let first = batches.next().unwrap().unwrap();
        let ahead = 10 + 10 * prefetch;
        assert!(eventually(|| made.load(Ordering::SeqCst) == ahead));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(made.load(Ordering::SeqCst), ahead, "prefetch {prefetch}");
        drop(first);
    }
}

#[test]
fn a_consumer_that_gives_batches_back_at_once_has_as_many_ahead_and_needs_no_memory_beside_them() {
    for prefetch in [0, 1, 2] {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&made);
        let pipeline = Dataset::new(numbers(1000)).map_fn(4096, move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let pipeline = pipeline.threads(Threads::Fixed(2)).batch(10).prefetch(prefetch).hold(0);
        let mut batches = pipeline.iter().unwrap();
        // One more is the headroom, whose pages are never touched.
        assert_eq!(batches.memory().n_bytes(), (prefetch.max(1) + 1) * 10 * 4096);
        for taken in 1..=5 {
            drop(batches.next().unwrap().unwrap());
            let ahead = 10 * taken + 10 * prefetch;
            assert!(eventually(|| made.load(Ordering::SeqCst) == ahead), "prefetch {prefetch}");
            std::thread::sleep(Duration::from_millis(2));
            assert_eq!(made.load(Ordering::SeqCst), ahead, "prefetch {prefetch}");
        }
    }
}

#[test]
fn holding_every_buffer_is_an_error_and_not_a_deadlock() {
    let pipeline = copied(Dataset::new(numbers(100))).batch(10);
    let mut batches = pipeline.iter().unwrap();
    let first = batches.next().unwrap().unwrap();
    assert!(matches!(batches.next(), Some(Err(Error::AllHeld { held: 1 }))));
    drop(first);
    assert_eq!(content(&batches.next().unwrap().unwrap())[0], 10);
    let mut batches = copied(Dataset::new(numbers(100))).batch(10).hold(3).iter().unwrap();
    let held: Vec<_> = batches.by_ref().take(3).map(Result::unwrap).collect();
    assert_eq!(held.iter().map(|batch| content(batch)[0]).collect::<Vec<_>>(), [0, 10, 20]);
    drop(held);
    assert_eq!(batches.count(), 7);
    let mut batches = copied(Dataset::new(numbers(100))).batch(10).prefetch(1).hold(0).iter().unwrap();
    let _held = batches.next().unwrap().unwrap();
    assert!(matches!(batches.next(), Some(Err(Error::AllHeld { held: 1 }))));
}

#[test]
fn wait_and_the_rest_are_the_wall_clock_exactly() {
    let clock = Arc::new(ManualClock::default());
    let pipeline = copied(Dataset::new(numbers(30))).batch(10).clock(clock.clone());
    let mut batches = pipeline.iter().unwrap();
    for batch in batches.by_ref() {
        batch.unwrap();
        clock.advance(Duration::from_millis(7));
    }
    let stats = batches.stats();
    assert_eq!((stats.wait_ns, stats.other_ns, stats.wall_ns), (0, 21_000_000, 21_000_000));
    assert_eq!(stats.worker_time.total_ns(), 21_000_000, "one worker, all its time on some account");
}

#[test]
fn a_stall_is_charged_to_what_the_workers_did() {
    let clock = Arc::new(ManualClock::default());
    let inside = Arc::clone(&clock);
    let pipeline = Dataset::new(numbers(30))
        .map_fn(4, move |sample, slot| {
            inside.advance(Duration::from_millis(2));
            slot.copy_from_slice(sample.bytes);
            Ok(())
        })
        .batch(10)
        .clock(clock.clone());
    let mut batches = pipeline.iter().unwrap();
    for batch in batches.by_ref() {
        batch.unwrap();
    }
    let stats = batches.stats();
    assert_eq!(stats.wall_ns, clock.now_ns());
    assert_eq!(stats.worker_time.ns(Activity::Decoding), 60_000_000);
    assert_eq!(stats.stall_time.ns(Activity::Decoding), 60_000_000);
    assert_eq!(stats.wait_ns, 60_000_000);
}

#[test]
fn auto_says_what_it_chose_and_yields_the_same_stream() {
    let dataset = Dataset::new(numbers(200)).shuffle(1).repeat(40);
    let slow = |dataset: Dataset| {
        dataset.map_fn(4, |sample, slot| {
            std::thread::sleep(Duration::from_micros(200));
            slot.copy_from_slice(sample.bytes);
            Ok(())
        })
    };
    let expected: Vec<u32> = dataset.order().collect();
    let chosen = || {
        let mut batches = slow(dataset.clone()).threads(Threads::Auto).batch(20).prefetch(1).iter().unwrap();
        let got: Vec<u32> = batches.by_ref().flat_map(|batch| content(&batch.unwrap())).collect();
        assert_eq!(got, expected);
        let tuning = batches.stats().tuning.unwrap();
        assert!(tuning.tried.len() >= 2, "{tuning:?}");
        tuning.threads
    };
    // On a busy machine, a try may find that samples are no slower with one thread.
    assert!((0..10).any(|_| chosen() > 1), "sleeping samples gain from threads");
}

#[test]
fn one_hot_rows_follow_the_labels() {
    let mut batches = copied(Dataset::new(numbers(3))).one_hot(3).batch(3).iter().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert_eq!(batch.one_hot(), [1., 0., 0., 0., 1., 0., 0., 0., 1.]);
}
