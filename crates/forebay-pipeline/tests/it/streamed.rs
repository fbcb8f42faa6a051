//! Samples that their map reads by itself.

use forebay_pipeline::{Batched, Dataset, Error, Map, MapWorker, Sample, SampleError, Source, Stopwatch, Threads};

/// Slots of `per_slot` samples of four bytes, each the sample's number; moves 100 bytes per slot.
struct Numbers {
    per_slot: usize,
    bad: Option<u32>,
}

struct Worker {
    bad: Option<u32>,
    moved: u64,
}

impl Map for Numbers {
    fn sample_bytes(&self) -> usize {
        4 * self.per_slot
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(Worker { bad: self.bad, moved: 0 })
    }

    fn description(&self) -> Option<String> {
        None
    }
}

impl MapWorker for Worker {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], _: &mut Stopwatch) -> Result<(), SampleError> {
        assert!(sample.bytes.is_empty(), "nothing is fetched");
        self.moved += 100;
        match self.bad {
            Some(bad) if bad == sample.index && bad % 2 == 0 => return Err(SampleError::Refused("bad".to_owned())),
            Some(bad) if bad == sample.index => panic!("worse"),
            _ => {}
        }
        let first = sample.index * (slot.len() / 4) as u32;
        for (number, place) in (first..).zip(slot.chunks_mut(4)) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Ok(())
    }

    fn take_moved(&mut self) -> u64 {
        std::mem::take(&mut self.moved)
    }
}

fn pipeline(n_slots: u32, per_slot: usize, bad: Option<u32>, threads: usize) -> Batched {
    let source = Source::streamed(n_slots, per_slot, |slot| format!("slot {slot}"));
    Dataset::new(source).map(Numbers { per_slot, bad }).threads(Threads::Fixed(threads)).batch(12).prefetch(2)
}

fn numbers(batch: &forebay_pipeline::Batch) -> Vec<u32> {
    batch.data().chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn the_order_is_the_same_for_any_threads_and_any_samples_a_slot() {
    for (per_slot, threads) in [(1, 1), (1, 5), (3, 1), (4, 3), (12, 4)] {
        let mut batches = pipeline((60 / per_slot) as u32, per_slot, None, threads).iter().unwrap();
        let mut all = Vec::new();
        for batch in batches.by_ref() {
            let batch = batch.unwrap();
            assert_eq!((batch.len(), batch.sample_bytes()), (12, 4));
            all.extend(numbers(&batch));
        }
        assert_eq!(all, (0..60).collect::<Vec<_>>(), "{per_slot} per slot, {threads} threads");
        let stats = batches.stats();
        assert_eq!((stats.n_samples, stats.n_batches), (60, 5));
    }
}

#[test]
fn bytes_that_a_map_moves_itself_are_counted() {
    let mut batches = pipeline(20, 3, None, 2).iter().unwrap();
    assert_eq!(batches.by_ref().filter(Result::is_ok).count(), 5);
    assert_eq!(batches.bytes_read(), 2000);
}

#[test]
fn a_slot_that_fails_or_panics_is_named_in_its_place() {
    for (bad, reason) in [(4, "bad"), (5, "the map function panicked: worse")] {
        let mut batches = pipeline(20, 3, Some(bad), 3).iter().unwrap();
        assert_eq!(numbers(&batches.next().unwrap().unwrap()), (0..12).collect::<Vec<_>>());
        let Some(Err(Error::Sample(failed))) = batches.next() else { panic!("the failure comes second") };
        assert_eq!((failed.name.clone(), failed.reason()), (format!("slot {bad}"), reason.to_owned()));
    }
}

#[test]
fn a_batch_is_a_whole_number_of_slots() {
    let Err(error) = pipeline(20, 5, None, 1).iter() else { panic!("12 is no multiple of 5") };
    assert_eq!(error.to_string(), "batch: 12 samples are not a multiple of the 5 samples per slot");
}
