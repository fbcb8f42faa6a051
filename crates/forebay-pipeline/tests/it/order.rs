//! Orders: seeded, permutations, the same for any number of threads.

use forebay_pipeline::{Dataset, Threads};
use proptest::prelude::*;

use crate::{copied, numbers, run};

#[test]
fn without_stages_the_order_is_the_sources() {
    let batches = run(&copied(Dataset::new(numbers(10))).batch(4));
    assert_eq!(batches, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
}

#[test]
fn a_remainder_can_be_dropped() {
    let batches = run(&copied(Dataset::new(numbers(10))).batch(4).drop_remainder());
    assert_eq!(batches.len(), 2);
}

#[test]
fn epochs_differ_and_batches_span_their_border() {
    let order: Vec<u32> = Dataset::new(numbers(50)).shuffle(3).repeat(2).order().collect();
    assert_ne!(order[..50], order[50..]);
    let batches = run(&copied(Dataset::new(numbers(10)).repeat(2)).batch(8));
    assert_eq!(batches[1], [8, 9, 0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_is_held_out_is_the_same_in_every_epoch_and_in_none_of_the_rest() {
    let held: Vec<u32> = Dataset::new(numbers(50)).held_out(8, 5).order().collect();
    let rest = Dataset::new(numbers(50)).hold_out(8, 5).shuffle(3).repeat(2);
    assert_eq!((held.len(), rest.n_samples()), (8, Some(84)));
    let order: Vec<u32> = rest.order().collect();
    assert!(held.iter().all(|sample| !order.contains(sample)));
    let (mut first, mut second) = (order[..42].to_vec(), order[42..].to_vec());
    assert_ne!(first, second);
    first.sort_unstable();
    second.sort_unstable();
    assert_eq!(first, second);
    assert_ne!(held, Dataset::new(numbers(50)).held_out(8, 6).order().collect::<Vec<_>>());
    assert_eq!(Dataset::new(numbers(5)).held_out(8, 5).order().count(), 5, "no more than there are");
    let late = copied(Dataset::new(numbers(50)).shuffle(1).hold_out(8, 5)).batch(4).iter();
    assert!(late.is_err_and(|error| error.to_string().contains("before all other stages")));
}

#[test]
fn no_sample_is_made_for_a_batch_that_nobody_gets() {
    for (prefetch, n) in [(0, 3), (1, 3), (5, 3), (5, 0)] {
        let pipeline = copied(Dataset::new(numbers(40)).repeat_forever()).threads(Threads::Fixed(2));
        let mut batches = pipeline.batch(4).prefetch(prefetch).at_most(n).iter().unwrap();
        assert_eq!(batches.by_ref().map(|batch| batch.unwrap().len()).sum::<usize>(), 4 * n as usize);
        assert_eq!(batches.bytes_read(), 16 * n, "{n} batches of four samples of four bytes, prefetch {prefetch}");
    }
}

#[test]
fn an_endless_repetition_can_be_taken_from() {
    let dataset = Dataset::new(numbers(3)).repeat_forever();
    assert_eq!(dataset.n_samples(), None);
    assert_eq!(dataset.take(7).order().collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn a_buffer_shuffle_moves_samples_by_less_than_its_size_to_the_front() {
    let order: Vec<u32> = Dataset::new(numbers(1_000)).shuffle_buffer(16, 1).order().collect();
    assert!(order.iter().enumerate().all(|(at, sample)| *sample as usize <= at + 16));
    assert_ne!(order, (0..1_000).collect::<Vec<_>>());
}

#[test]
fn stages_that_need_the_whole_epoch_are_refused_after_an_endless_repeat() {
    let pipeline = copied(Dataset::new(numbers(3)).repeat_forever().shuffle(1)).batch(1);
    let error = pipeline.iter().err().unwrap().to_string();
    assert_eq!(error, "shuffle: needs the whole epoch, which is endless here; put it before repeat()");
    let pipeline = copied(Dataset::new(numbers(3)).repeat_forever().shard_groups(0, 2)).batch(1);
    let error = pipeline.iter().err().unwrap().to_string();
    assert_eq!(error, "shard_groups: needs the whole epoch, which is endless here; put it before repeat()");
    assert!(copied(Dataset::new(numbers(3)).shard_groups(0, 0)).batch(1).iter().is_err());
    assert!(copied(Dataset::new(numbers(3)).shard_blocks(0, 1, 0)).batch(1).iter().is_err());
    let error = copied(Dataset::new(numbers(3)).shard(3, 3)).batch(1).iter().err().unwrap().to_string();
    assert_eq!(error, "shard: rank 3 of 3 does not exist; ranks count from 0");
    assert!(copied(Dataset::new(numbers(3))).batch(0).iter().is_err());
    assert!(copied(Dataset::new(numbers(3))).one_hot(0).batch(1).iter().is_err());
    let huge = Dataset::new(numbers(3)).map_fn(1 << 62, |_, _| Ok(())).batch(4).iter().err().unwrap().to_string();
    assert!(huge.starts_with("batch: cannot allocate its buffers"), "{huge}");
    assert!(copied(Dataset::new(numbers(3))).threads(Threads::Fixed(0)).batch(1).iter().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_shuffle_is_a_permutation_and_a_function_of_its_seed(n in 1u32..300, seed in any::<u64>(), size in 1usize..40) {
        for dataset in [Dataset::new(numbers(n)).shuffle(seed), Dataset::new(numbers(n)).shuffle_buffer(size, seed),
                        Dataset::new(numbers(n)).shuffle_groups(seed), Dataset::new(numbers(n)).interleave(3, 2)] {
            let order: Vec<u32> = dataset.order().collect();
            prop_assert_eq!(&order, &dataset.order().collect::<Vec<_>>());
            let mut sorted = order;
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn shards_are_disjoint_and_cover(n in 0u32..200, of in 1u64..9) {
        let dataset = Dataset::new(numbers(n)).shuffle(1);
        let mut all: Vec<u32> = (0..of).flat_map(|rank| dataset.clone().shard(rank, of).order()).collect();
        let lengths: u64 = (0..of).map(|rank| dataset.clone().shard(rank, of).n_samples().unwrap()).sum();
        prop_assert_eq!(lengths, u64::from(n));
        all.sort_unstable();
        prop_assert_eq!(all, (0..n).collect::<Vec<_>>());
    }

    #[test]
    fn blocks_of_ranks_are_the_batches_of_one_in_pieces(n in 1u32..60, of in 1u64..5, block in 1u64..8, epochs in 1u64..4) {
        let dataset = Dataset::new(numbers(n)).shuffle(4).repeat(epochs);
        let whole: Vec<u32> = dataset.order().collect();
        for rank in 0..of {
            let part = dataset.clone().shard_blocks(rank, of, block);
            let wanted: Vec<u32> = whole
                .chunks((of * block) as usize)
                .flat_map(|batch| batch.iter().skip((rank * block) as usize).take(block as usize).copied())
                .collect();
            prop_assert_eq!(part.n_samples(), Some(wanted.len() as u64));
            prop_assert_eq!(part.order().collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn a_length_is_that_of_the_order(n in 0u32..60, skip in 0u64..70, take in 0u64..70, repeat in 0u64..4) {
        let dataset = Dataset::new(numbers(n)).skip(skip).take(take).repeat(repeat).shuffle(2);
        prop_assert_eq!(dataset.n_samples(), Some(dataset.order().count() as u64));
    }

    #[test]
    fn threads_readers_prefetch_and_holds_do_not_change_the_stream(
        n in 1u32..120, batch in 1usize..20, threads in 1usize..6, readers in 0usize..4, prefetch in 0usize..4,
        hold in 0usize..3,
    ) {
        let plain = run(&copied(Dataset::new(numbers(n)).shuffle(9)).batch(batch));
        let other = copied(Dataset::new(numbers(n)).shuffle(9)).threads(Threads::Fixed(threads)).readers(readers);
        prop_assert_eq!(plain, run(&other.batch(batch).prefetch(prefetch).hold(hold)));
    }
}
