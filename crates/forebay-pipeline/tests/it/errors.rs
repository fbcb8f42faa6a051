//! Failing samples: left out exactly, or reported in their place.

use forebay_pipeline::{Dataset, Error, Mapped, Threads};
use proptest::prelude::*;

use crate::{content, numbers, run};

/// Rejects or panics on the samples for which `bad` holds.
fn picky(dataset: Dataset, bad: impl Fn(u32) -> bool + Clone + Send + Sync + 'static) -> Mapped {
    dataset.map_fn(4, move |sample, slot| {
        slot.fill(0xAA);
        if bad(sample.index) {
            if sample.index % 2 == 0 {
                return Err(format!("{} is bad", sample.index));
            }
            panic!("{} is worse", sample.index);
        }
        slot.copy_from_slice(sample.bytes);
        Ok(())
    })
}

/// Panics of the closures under test are expected: their messages would only hide real ones.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    use std::sync::Once;
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let ours = std::thread::current().name().is_some_and(|name| name.starts_with("forebay:"));
            if !ours {
                usual(info);
            }
        }));
    });
    run()
}

#[test]
fn ignored_samples_are_counted_and_named() {
    quietly(|| {
        let pipeline = picky(Dataset::new(numbers(20)), |i| i == 4 || i == 7).ignore_errors().batch(6).prefetch(1);
        let mut batches = pipeline.iter().unwrap();
        let got: Vec<Vec<u32>> = batches.by_ref().map(|batch| content(&batch.unwrap())).collect();
        assert_eq!(got, [vec![0, 1, 2, 3, 5, 6], vec![8, 9, 10, 11, 12, 13], vec![14, 15, 16, 17, 18, 19]]);
        let stats = batches.stats();
        assert_eq!((stats.n_failed, stats.n_samples), (2, 18));
        let reasons: Vec<(u32, String)> = stats.failures.iter().map(|f| (f.index, f.reason())).collect();
        assert_eq!(reasons[0], (4, "4 is bad".to_owned()));
        assert_eq!(reasons[1], (7, "the map function panicked: 7 is worse".to_owned()));
    });
}

#[test]
fn an_error_surfaces_in_its_place_and_the_stream_goes_on() {
    quietly(|| {
        let pipeline = picky(Dataset::new(numbers(8)), |i| i == 2).threads(Threads::Fixed(3)).batch(2);
        let mut batches = pipeline.iter().unwrap();
        assert_eq!(content(&batches.next().unwrap().unwrap()), [0, 1]);
        match batches.next() {
            Some(Err(Error::Sample(failed))) => assert_eq!(failed.index, 2),
            other => panic!("expected the failure of sample 2, got {other:?}"),
        }
        assert_eq!(content(&batches.next().unwrap().unwrap()), [3, 4]);
        assert_eq!(batches.count(), 2);
    });
}

#[test]
fn a_state_taken_after_errors_loses_no_sample() {
    quietly(|| {
        let pipeline = picky(Dataset::new(numbers(12)), |i| i == 2 || i == 4).batch(4);
        let mut batches = pipeline.iter().unwrap();
        assert!(batches.next().unwrap().is_err());
        assert!(batches.next().unwrap().is_err());
        let state = batches.state().unwrap();
        assert_eq!(state.position, 0, "nothing was given yet");
        assert_eq!(content(&batches.next().unwrap().unwrap()), [0, 1, 3, 5]);
        assert_eq!(batches.state().unwrap().position, 6);
        let resumed = pipeline.iter_from(&state).unwrap();
        let good: Vec<u32> = resumed.filter_map(Result::ok).flat_map(|batch| content(&batch)).collect();
        assert_eq!(good, [0, 1, 3, 5, 6, 7, 8, 9, 10, 11]);
    });
}

#[test]
fn a_source_that_fails_altogether_ends() {
    quietly(|| {
        let pipeline = picky(Dataset::new(numbers(500)), |_| true).threads(Threads::Fixed(2)).ignore_errors().batch(8);
        let mut batches = pipeline.iter().unwrap();
        assert!(batches.next().is_none());
        assert_eq!(batches.stats().n_failed, 500);
        assert_eq!(batches.stats().failures.len(), 100, "kept up to the limit");
    });
}

#[test]
fn a_vanished_file_is_a_failure_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..4u32 {
        std::fs::write(folder.path().join(format!("{i}.jpg")), i.to_le_bytes()).unwrap();
    }
    let source =
        forebay_pipeline::Source::folder(std::sync::Arc::new(forebay_storage::Local::default()), folder.path())
            .unwrap();
    std::fs::remove_file(folder.path().join("2.jpg")).unwrap();
    let pipeline = crate::copied(Dataset::new(source)).ignore_errors().batch(4);
    let mut batches = pipeline.iter().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().samples(), [0, 1, 3]);
    let stats = batches.stats();
    assert!(stats.failures[0].name.ends_with("2.jpg"));
    assert!(stats.failures[0].reason().contains("no such file"), "{}", stats.failures[0].reason());
}

#[test]
fn first_come_leaves_out_the_same_samples() {
    quietly(|| {
        let pipeline = picky(Dataset::new(numbers(100)), |i| i % 9 == 0).threads(Threads::Fixed(4)).first_come();
        let mut got: Vec<u32> = run(&pipeline.ignore_errors().batch(8).prefetch(1)).concat();
        got.sort_unstable();
        assert_eq!(got, (0..100).filter(|i| i % 9 != 0).collect::<Vec<_>>());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn batches_are_those_of_the_stream_without_the_failed_samples(
        n in 1u32..150, batch in 1usize..12, threads in 1usize..5, readers in 0usize..3, prefetch in 0usize..3,
        bad in proptest::collection::hash_set(0u32..150, 0..60),
    ) {
        quietly(|| {
            let good: Vec<u32> = Dataset::new(numbers(n)).shuffle(4).order().filter(|i| !bad.contains(i)).collect();
            let expected: Vec<Vec<u32>> = good.chunks(batch).map(<[u32]>::to_vec).collect();
            let pipeline = picky(Dataset::new(numbers(n)).shuffle(4), move |i| bad.contains(&i))
                .threads(Threads::Fixed(threads)).readers(readers).ignore_errors().batch(batch).prefetch(prefetch);
            prop_assert_eq!(run(&pipeline), expected);
            Ok(())
        })?;
    }
}
