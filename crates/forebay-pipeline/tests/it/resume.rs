//! A saved state restores to the exact next sample, at every step.

use forebay_pipeline::{Dataset, State, Threads};
use proptest::prelude::*;

use crate::{content, copied, numbers, run};

/// Stops after every batch, restores with other threads, batch size and prefetch, and expects exactly the remaining
/// samples.
fn resumes_at_every_step(dataset: &Dataset) {
    let pipeline = copied(dataset.clone()).threads(Threads::Fixed(2)).ignore_errors().batch(7).prefetch(2);
    let whole: Vec<u32> = run(&pipeline).concat();
    let other = copied(dataset.clone()).threads(Threads::Fixed(3)).readers(2).ignore_errors().batch(5).prefetch(1);
    for steps in 0..=whole.len().div_ceil(7) {
        let mut batches = pipeline.iter().unwrap();
        let seen: Vec<u32> = batches.by_ref().take(steps).flat_map(|batch| content(&batch.unwrap())).collect();
        let state = batches.state().unwrap();
        let bytes = state.to_bytes();
        assert!(bytes.len() <= 1024);
        let rest = other.iter_from(&State::from_bytes(&bytes).unwrap()).unwrap();
        let mut got = seen;
        for batch in rest {
            got.extend(content(&batch.unwrap()));
        }
        assert_eq!(got, whole, "after {steps} batches");
    }
}

#[test]
fn in_plain_order() {
    resumes_at_every_step(&Dataset::new(numbers(40)));
}

#[test]
fn mid_shuffle_and_across_epochs() {
    resumes_at_every_step(&Dataset::new(numbers(23)).shuffle(5).repeat(3));
}

#[test]
fn mid_buffer_shuffle() {
    resumes_at_every_step(&Dataset::new(numbers(50)).shuffle_buffer(13, 5).repeat(2));
}

#[test]
fn mid_interleave_behind_shuffled_groups() {
    resumes_at_every_step(&Dataset::new(numbers(45)).shuffle_groups(3).interleave(4, 2).shuffle_buffer(6, 1));
}

#[test]
fn of_a_rank() {
    resumes_at_every_step(&Dataset::new(numbers(61)).shuffle(8).shard(1, 3).skip(2).take(15).repeat(2));
}

#[test]
fn of_the_blocks_and_groups_of_a_rank() {
    resumes_at_every_step(&Dataset::new(numbers(61)).shuffle(8).repeat(2).shard_blocks(1, 3, 4));
    resumes_at_every_step(
        &Dataset::new(numbers(61)).shard_groups(1, 3).shuffle_groups(5).shuffle_buffer(4, 5).repeat(2),
    );
}

#[test]
fn another_pipelines_state_is_refused() {
    let state = copied(Dataset::new(numbers(9)).shuffle(1)).batch(2).iter().unwrap().state().unwrap();
    let other = copied(Dataset::new(numbers(9)).shuffle(2)).batch(2);
    assert!(other.iter_from(&state).is_err());
    let smaller = copied(Dataset::new(numbers(8)).shuffle(1)).batch(2);
    assert!(smaller.iter_from(&state).is_err());
}

#[test]
fn first_come_order_has_no_state() {
    assert!(copied(Dataset::new(numbers(9))).first_come().batch(2).iter().unwrap().state().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn skipping_is_what_walking_is(n in 1u32..60, at in 0usize..200, seed in any::<u64>(), of in 1u64..4, block in 1u64..5) {
        let shard = Dataset::new(numbers(n)).shuffle(seed).shard(0, of).repeat(3).shard_blocks(of - 1, of, block);
        let dataset = shard.shuffle_buffer(5, seed).take(150).skip(1);
        let walked: Vec<u32> = dataset.order().skip(at).collect();
        let pipeline = copied(dataset).batch(4);
        let state = State { position: at as u64, ..pipeline.iter().unwrap().state().unwrap() };
        let resumed: Vec<u32> = pipeline.iter_from(&state).unwrap().flat_map(|batch| content(&batch.unwrap())).collect();
        prop_assert_eq!(walked, resumed);
    }
}
