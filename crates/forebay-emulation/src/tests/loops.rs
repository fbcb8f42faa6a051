//! The loop of accelerators with a manual clock, and with feeds that fail.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use forebay_pipeline::{Activity, Times};
use forebay_units::{Clock, ManualClock, SystemClock};
use forebay_workload::Part;

use super::super::accelerator_group::{Ran, RunContext};
use super::super::feed::{Fed, Feed, Supply};
use super::super::run::guarded;
use super::super::totals::{Run, dlio_of};
use super::*;
use forebay_ranks::Failed;

/// Waits for the first batch and for each later one for fixed times, on its clock; may fail at a step.
#[derive(Clone)]
struct Fake {
    clock: Arc<ManualClock>,
    first_ns: u64,
    later_ns: u64,
    fails: Option<(u64, u64, bool)>,
}

struct FakeFeed {
    fake: Fake,
    accelerator: u64,
    step: u64,
    stalled_ns: u64,
}

impl Feed for FakeFeed {
    fn poll(&mut self) -> Poll<Result<Option<u64>, Error>> {
        self.step += 1;
        let ns = if self.step == 1 { self.fake.first_ns } else { self.fake.later_ns };
        self.fake.clock.advance(Duration::from_nanos(ns));
        self.stalled_ns += ns;
        match self.fake.fails {
            Some((accelerator, step, panics)) if (accelerator, step) == (self.accelerator, self.step) => {
                assert!(!panics, "a bug");
                let source = std::io::Error::other("the disk is gone");
                Poll::Ready(Err(Error::Shared(forebay_measure::Error::Io {
                    what: "reading",
                    path: "img_7.npz".into(),
                    source,
                })))
            }
            _ => Poll::Ready(Ok(Some(8))),
        }
    }

    fn go_on(&mut self) {}

    fn stall_time(&self) -> Times {
        [(Activity::Reading, self.stalled_ns)].into_iter().collect()
    }

    fn finish(self: Box<Self>) -> Fed {
        Fed { worker_time: self.stall_time(), scheduled: None, bytes: 1000 }
    }
}

impl Supply for Fake {
    fn open(&self, _: Part, accelerator: u64, _: u64) -> Result<Box<dyn Feed>, Error> {
        Ok(Box::new(FakeFeed { fake: self.clone(), accelerator, step: 0, stalled_ns: 0 }))
    }
}

/// All accelerators of a run on fake feeds.
fn driven(
    workload: &Workload,
    n: u64,
    supply: &dyn Supply,
    clock: Arc<dyn Clock>,
    stop: &AtomicBool,
) -> Result<Vec<Ran>, Failed> {
    guarded(&RunContext {
        workload,
        accelerators: 0..n,
        n_steps: 4,
        n_steps_eval: 2,
        evaluations: &[2],
        n_readers: 1,
        n_cores: 1,
        supply,
        ranks: &Solo,
        saver: None,
        origin_ns: 0,
        clock,
        begin_epoch: &|| (),
        end_epoch: &|| (),
        begin_restore: &|| (),
        end_restore: &|| (),
        observer: Observer::deaf(stop),
    })
}

fn fake() -> Fake {
    Fake { clock: Arc::default(), first_ns: 7_000, later_ns: 100, fails: None }
}

#[test]
fn every_nanosecond_of_an_epoch_is_accounted_for() {
    let fake = fake();
    let mut workload = workload(32, 2);
    workload.train.computation_time = Time::Normal { mean: 0.000_001, stdev: 0.0 };
    workload.evaluation.eval_time = Time::Normal { mean: 0.000_002, stdev: 0.0 };
    let stop = AtomicBool::new(false);
    let ran = driven(&workload, 1, &fake, fake.clock.clone(), &stop).unwrap().remove(0);
    assert_eq!((ran.epochs.len(), ran.is_stopped), (2, false));
    for epoch in &ran.epochs {
        assert_eq!((epoch.wait_ns, epoch.compute_ns, epoch.first_wait_ns), (7_300, 4_000, 7_000));
        assert_eq!((epoch.barrier_ns, epoch.checkpoint_ns, epoch.other_ns, epoch.wall_ns()), (0, 0, 0, 11_300));
        assert_eq!((epoch.drawn_ns, epoch.samples, epoch.bytes), (4_000, 32, 1_000));
        assert_eq!((epoch.load.as_slice(), epoch.compute.as_slice()), (&[7_000, 100, 100, 100][..], &[1_000; 4][..]));
        assert_eq!(epoch.blocks.len(), 1);
        assert_eq!(epoch.blocks[0].end_ns - epoch.blocks[0].start_ns, 11_300);
        assert!((epoch.stalls.storage - 7.3e-6).abs() < 1e-12);
    }
    let done = ran.epochs[1].evaluated.as_ref().unwrap();
    assert_eq!((done.wall_ns, done.samples, done.compute.len()), (7_100 + 4_000, 16, 2));
    assert_eq!(ran.epochs[0].evaluated, None);
    assert_eq!(ran.epochs[1].start_ns, 11_300, "an evaluation is not part of the epoch before it");
}

#[test]
fn an_accelerator_without_readers_of_its_own_waits_for_want_of_a_prefetch() {
    let mut workload = workload(32, 2);
    workload.train.computation_time = Time::Normal { mean: 0.000_001, stdev: 0.0 };
    let missing_of = |workload: &Workload| {
        let fake = fake();
        let ran = driven(workload, 1, &fake, fake.clock.clone(), &AtomicBool::new(false)).unwrap();
        ran[0].epochs[0].stalls.prefetch
    };
    assert_eq!(missing_of(&workload), 0.0);
    workload.reader.read_threads = 0;
    assert!((missing_of(&workload) - 3.0 * 100e-9).abs() < 1e-12, "{}", missing_of(&workload));
}

#[test]
fn whoever_ends_a_step_first_stands_until_the_last_has() {
    let fake = Fake { first_ns: 0, later_ns: 0, ..fake() };
    let mut workload = workload(32, 2);
    workload.train.computation_time = Time::Exponential { scale: 0.001 };
    let ran = driven(&workload, 5, &fake, fake.clock.clone(), &AtomicBool::new(false)).unwrap();
    for epoch in 0..2 {
        for step in 0..4 {
            let times: Vec<(u64, u64)> =
                ran.iter().map(|ran| (ran.epochs[epoch].compute[step], ran.epochs[epoch].barrier[step])).collect();
            let longest = times.iter().map(|(compute, _)| *compute).max().unwrap();
            assert!(times.iter().all(|(compute, barrier)| compute + barrier == longest), "{times:?}");
            assert!(times.iter().any(|(_, barrier)| *barrier > 0), "{times:?}");
        }
        let of = &ran[0].epochs[epoch];
        assert_eq!(of.drawn_ns, of.compute.iter().sum::<u64>(), "each computes for the time drawn for it");
    }
}

/// Another thread makes every batch and unparks the requesting one.
struct Slow(AtomicU64);

struct SlowFeed {
    asks: mpsc::Sender<std::thread::Thread>,
    is_there: Arc<AtomicBool>,
    is_asked: bool,
}

impl Feed for SlowFeed {
    fn poll(&mut self) -> Poll<Result<Option<u64>, Error>> {
        if self.is_there.swap(false, Ordering::SeqCst) {
            self.is_asked = false;
            return Poll::Ready(Ok(Some(8)));
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            self.asks.send(std::thread::current()).unwrap();
        }
        Poll::Pending
    }

    fn go_on(&mut self) {
        assert!(!self.is_asked, "go_on only follows a batch that was taken");
    }

    fn stall_time(&self) -> Times {
        Times::default()
    }

    fn finish(self: Box<Self>) -> Fed {
        Fed::default()
    }
}

impl Supply for Slow {
    fn open(&self, _: Part, _: u64, _: u64) -> Result<Box<dyn Feed>, Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let (asks, asked) = mpsc::channel::<std::thread::Thread>();
        let is_there = Arc::new(AtomicBool::new(false));
        let made = Arc::clone(&is_there);
        std::thread::spawn(move || {
            for who in asked {
                made.store(true, Ordering::SeqCst);
                who.unpark();
            }
        });
        Ok(Box::new(SlowFeed { asks, is_there, is_asked: false }))
    }
}

/// Never delivers a batch.
struct Never;

impl Feed for Never {
    fn poll(&mut self) -> Poll<Result<Option<u64>, Error>> {
        Poll::Pending
    }

    fn go_on(&mut self) {}

    fn stall_time(&self) -> Times {
        Times::default()
    }

    fn finish(self: Box<Self>) -> Fed {
        Fed::default()
    }
}

impl Supply for Never {
    fn open(&self, _: Part, _: u64, _: u64) -> Result<Box<dyn Feed>, Error> {
        Ok(Box::new(Never))
    }
}

#[test]
fn a_batch_that_does_not_come_does_not_keep_a_run_from_its_end() {
    let stop = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::SeqCst);
        });
        driven(&workload(32, 2), 2, &Never, Arc::new(SystemClock::default()), &stop).unwrap()
    });
    for ran in ran {
        assert!(ran.is_stopped && ran.epochs.len() == 1, "{ran:?}");
        let epoch = &ran.epochs[0];
        assert_eq!((epoch.load.len(), epoch.wait_ns, epoch.compute_ns, epoch.blocks.len()), (0, 0, 0, 0));
        assert!(epoch.other_ns > 0, "elapsed time is kept");
    }
}

#[test]
fn a_batch_that_comes_later_wakes_whoever_waits_for_it() {
    let mut workload = workload(32, 300);
    workload.train.computation_time = Time::Normal { mean: 0.0, stdev: 0.0 };
    let (slow, clock) = (Slow(AtomicU64::new(0)), Arc::new(SystemClock::default()));
    let ran = driven(&workload, 3, &slow, clock.clone(), &AtomicBool::new(false)).unwrap();
    assert_eq!(slow.0.load(Ordering::SeqCst), 3 * 301, "one epoch each, and one evaluation");
    assert!(ran.iter().all(|ran| ran.epochs.len() == 300 && ran.epochs.iter().all(|epoch| epoch.load.len() == 4)));
    // With periodic checks alone, each of the 1,202 steps' batches would be found 50 ms late.
    assert!(clock.now_ns() < 30_000_000_000, "{} ns", clock.now_ns());
}

#[test]
fn the_three_utilisations_leave_out_what_they_say() {
    let fake = fake();
    let mut workload = workload(32, 2);
    workload.train.computation_time = Time::Normal { mean: 0.000_001, stdev: 0.0 };
    let stop = AtomicBool::new(false);
    let ran = driven(&workload, 1, &fake, fake.clock.clone(), &stop).unwrap().remove(0);
    let reports = [super::super::rank_report::RankReport { epochs: ran.epochs, ..Default::default() }];
    let totals = Run { workload: &workload, n_steps: 4, reports: &reports }.totals();
    assert!((totals.au_epoch.unwrap() - 4_000.0 / 11_300.0).abs() < 1e-9);
    assert!((totals.au_steady.unwrap() - 4_000.0 / 4_300.0).abs() < 1e-9);
    assert!((totals.au_dlio.unwrap() - 3_000.0 / 3_300.0).abs() < 1e-8, "{:?}", totals.au_dlio);
    assert!((totals.samples_per_s - 64.0 / 22_600e-9).abs() < 1e-3);
    assert!((totals.first_batch_s - 7e-6).abs() < 1e-15);
    assert_eq!(
        dlio_of(&workload, 4, &reports[0].epochs[0]).map(|dlio| dlio.samples_per_s as u64),
        Some((2.0 * 8.0 / 3_300e-9) as u64)
    );
    assert!((totals.mb_per_s_moved - 2_000.0 / 22_600e-9 / 1e6).abs() < 1e-6);
}

#[test]
fn a_reader_that_fails_ends_all_accelerators_at_that_step_with_its_reason() {
    for panics in [false, true] {
        let fake = Fake { fails: Some((3, 2, panics)), first_ns: 0, later_ns: 0, ..fake() };
        let stop = AtomicBool::new(false);
        let ended = driven(&workload(32, 2), 6, &fake, Arc::new(SystemClock::default()), &stop);
        let wanted = if panics {
            "the accelerators panicked: a bug"
        } else {
            "accelerator 3: reading img_7.npz: the disk is gone"
        };
        assert_eq!(ended.unwrap_err().reason, wanted);
    }
}

#[test]
fn a_run_that_is_to_stop_ends_after_the_step_at_work() {
    let fake = Fake { first_ns: 0, later_ns: 0, ..fake() };
    let mut workload = workload(32, 2);
    workload.train.computation_time = Time::Normal { mean: 0.001, stdev: 0.0 };
    let stop = AtomicBool::new(true);
    for ran in driven(&workload, 3, &fake, Arc::new(SystemClock::default()), &stop).unwrap() {
        assert!(ran.is_stopped && ran.epochs.is_empty(), "the stop is checked before the first step");
    }
}
