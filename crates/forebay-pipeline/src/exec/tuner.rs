//! Finding the number of threads that is enough.
//!
//! The tuner doubles the number of threads as long as that pays off, then settles on the smallest number whose rate is
//! within 5 % of the best: the knee of the curve. If the consumer does not wait, no threads are added.

use serde::{Deserialize, Serialize};

/// Minimum gain from doubling the threads.
const WORTHWHILE: f64 = 1.08;
/// Minimum rate at the knee, relative to the best rate.
const KNEE: f64 = 0.95;
/// Each level is measured for at least this long and this many batches, after one batch to settle.
const WINDOW_NS: u64 = 200_000_000;
const WINDOW_BATCHES: u32 = 3;
/// If the consumer waits for less than this fraction of the time, it is the bottleneck; more threads gain nothing.
const FED: f64 = 0.02;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The number of threads settled on, or currently being tried.
    pub threads: usize,
    pub settled: bool,
    /// All thread counts tried, with their rates in samples per second.
    pub tried: Vec<(usize, f64)>,
}

impl Tuning {
    /// The number of threads to keep: the one settled on, or the smallest near the best tried so far.
    pub fn best(&self) -> usize {
        if self.settled { self.threads } else { self.knee().unwrap_or(self.threads) }
    }

    /// The smallest number tried whose rate is near the best.
    fn knee(&self) -> Option<usize> {
        let best = self.tried.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        self.tried.iter().find(|(_, rate)| *rate >= best * KNEE).map(|(threads, _)| *threads)
    }
}

pub(crate) struct Tuner {
    most: usize,
    tuning: Tuning,
    window: Option<Window>,
}

struct Window {
    start_ns: u64,
    start_wait_ns: u64,
    samples: u64,
    batches: u32,
}

impl Tuner {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, tuning: Tuning { threads: 1, settled: false, tried: Vec::new() }, window: None }
    }

    pub(crate) fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Called when a batch of `samples` is delivered at `now_ns`; `wait_ns` is the consumer's total wait so far.
    /// Returns the new number of threads if it changes.
    pub(crate) fn observe(&mut self, now_ns: u64, wait_ns: u64, samples: u64) -> Option<usize> {
        if self.tuning.settled {
            return None;
        }
        let Some(window) = &mut self.window else {
            self.window = Some(Window { start_ns: now_ns, start_wait_ns: wait_ns, samples: 0, batches: 0 });
            return None;
        };
        window.samples += samples;
        window.batches += 1;
        let gone = now_ns - window.start_ns;
        if gone < WINDOW_NS || window.batches < WINDOW_BATCHES {
            return None;
        }
        let rate = window.samples as f64 / (gone as f64 / 1e9);
        let fed = ((wait_ns - window.start_wait_ns) as f64) < FED * gone as f64;
        self.window = None;
        self.step(rate, fed)
    }

    fn step(&mut self, rate: f64, fed: bool) -> Option<usize> {
        let before = self.tuning.tried.last().map(|(_, rate)| *rate);
        let now = self.tuning.threads;
        self.tuning.tried.push((now, rate));
        let pays = before.is_none_or(|before| rate > before * WORTHWHILE);
        if pays && !fed && now < self.most {
            self.tuning.threads = (now * 2).min(self.most);
            return Some(self.tuning.threads);
        }
        self.tuning.settled = true;
        let knee = self.tuning.knee().unwrap_or(now);
        self.tuning.threads = knee;
        (knee != now).then_some(knee)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a tuner on a simulated machine with a rate of `rate(n)` at `n` threads and a consumer that always waits.
    fn tune(most: usize, rate: impl Fn(usize) -> f64) -> Tuning {
        let mut tuner = Tuner::new(most);
        let (mut now, mut threads) = (0u64, 1);
        for _ in 0..1_000 {
            now += (64.0 / rate(threads) * 1e9) as u64;
            if let Some(n) = tuner.observe(now, now, 64) {
                threads = n;
            }
        }
        assert_eq!(tuner.tuning.threads, threads, "the reported number is the one set");
        tuner.tuning
    }

    #[test]
    fn it_stops_at_the_knee() {
        let tuning = tune(64, |n| 850.0 * n.min(2) as f64);
        assert_eq!((tuning.threads, tuning.settled), (2, true));
        assert_eq!(tuning.tried.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn it_goes_on_while_threads_pay() {
        assert_eq!(tune(16, |n| 200.0 * n as f64).threads, 16);
    }

    #[test]
    fn one_thread_is_enough_for_a_device_that_does_not_scale() {
        assert_eq!(tune(16, |_| 500.0).threads, 1);
    }

    #[test]
    fn a_consumer_that_never_waits_needs_no_more() {
        let mut tuner = Tuner::new(16);
        for i in 0..100 {
            tuner.observe(i * 100_000_000, 0, 64);
        }
        assert_eq!((tuner.tuning.threads, tuner.tuning.settled), (1, true));
    }
}
