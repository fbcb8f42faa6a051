//! Maps that take several samples at a time give the batches of maps that take one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_pipeline::{Dataset, Job, Map, MapWorker, Mapped, Sample, SampleError, Stopwatch, Threads};

use crate::{content, copied, numbers, run};

/// Copies samples of four bytes in groups; refuses those of which `is_bad` holds, and panics at one.
#[derive(Clone)]
struct Groups {
    group: usize,
    is_bad: fn(u32) -> bool,
    panics_at: Option<u32>,
    largest: Arc<AtomicUsize>,
}

impl Groups {
    fn of(group: usize) -> Self {
        Self { group, is_bad: |_| false, panics_at: None, largest: Arc::default() }
    }
}

impl Map for Groups {
    fn sample_bytes(&self) -> usize {
        4
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(self.clone())
    }

    fn group(&self) -> usize {
        self.group
    }

    fn description(&self) -> Option<String> {
        Some("groups".to_owned())
    }
}

impl MapWorker for Groups {
    fn map(&mut self, _: Sample<'_>, _: &mut [u8], _: &mut Stopwatch) -> Result<(), SampleError> {
        panic!("samples come in groups");
    }

    fn map_group(&mut self, jobs: &mut [Job<'_>], _: &mut Stopwatch) {
        self.largest.fetch_max(jobs.len(), Ordering::Relaxed);
        for job in jobs {
            assert_ne!(Some(job.sample.index), self.panics_at, "as asked");
            job.slot.copy_from_slice(job.sample.bytes);
            if (self.is_bad)(job.sample.index) {
                job.outcome = Err(SampleError::Refused("bad".to_owned()));
            }
        }
    }
}

fn grouped(groups: &Groups, threads: usize) -> Mapped {
    Dataset::new(numbers(100)).shuffle(7).repeat(2).map(groups.clone()).threads(Threads::Fixed(threads))
}

#[test]
fn groups_have_the_order_and_labels_of_single_samples() {
    for (threads, readers) in [(1, 0), (3, 0), (2, 2)] {
        let groups = Groups::of(8);
        let found = run(&grouped(&groups, threads).readers(readers).batch(30).prefetch(2));
        let expected = run(&copied(Dataset::new(numbers(100)).shuffle(7).repeat(2)).batch(30));
        assert_eq!(found, expected, "{threads} threads, {readers} readers");
        let largest = groups.largest.load(Ordering::Relaxed);
        assert!((2..=8 * 16).contains(&largest), "{largest} samples at a time");
    }
}

#[test]
fn failed_samples_of_a_group_are_left_out_one_by_one() {
    let groups = Groups { is_bad: |sample| sample % 9 == 4, ..Groups::of(8) };
    let pipeline = grouped(&groups, 2).ignore_errors().batch(10).prefetch(2);
    let mut batches = pipeline.iter().unwrap();
    let found: Vec<u32> = batches.by_ref().flat_map(|batch| content(&batch.unwrap())).collect();
    let all = run(&copied(Dataset::new(numbers(100)).shuffle(7).repeat(2)).batch(1));
    let expected: Vec<u32> = all.into_iter().flatten().filter(|sample| sample % 9 != 4).collect();
    assert_eq!(found, expected);
    assert_eq!(batches.stats().n_failed, 22);
}

#[test]
fn a_panic_fails_its_group_only_and_the_worker_goes_on() {
    let groups = Groups { panics_at: Some(50), ..Groups::of(4) };
    let dataset = Dataset::new(numbers(100)).map(groups).threads(Threads::Fixed(1)).ignore_errors();
    let mut batches = dataset.batch(10).prefetch(1).iter().unwrap();
    let n_good: usize = batches.by_ref().map(|batch| content(&batch.unwrap()).len()).sum();
    let stats = batches.stats();
    assert_eq!(n_good + stats.n_failed as usize, 100);
    assert!((1..=4 * 16).contains(&stats.n_failed), "{}", stats.n_failed);
    assert!(stats.failures.iter().all(|failed| failed.reason().contains("panicked")), "{:?}", stats.failures);
}

#[test]
fn a_run_of_groups_resumes_at_the_next_sample() {
    let pipeline = grouped(&Groups::of(8), 2).batch(30).prefetch(2);
    let all = run(&pipeline);
    let mut batches = pipeline.iter().unwrap();
    for n in 1..=3 {
        assert_eq!(content(&batches.next().unwrap().unwrap()), all[n - 1]);
        let rest: Vec<_> =
            pipeline.iter_from(&batches.state().unwrap()).unwrap().map(|batch| content(&batch.unwrap())).collect();
        assert_eq!(rest, all[n..], "after {n} batches");
    }
}
