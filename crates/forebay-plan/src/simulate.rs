//! A run of a pipeline and its consumer, event by event.
//!
//! Workers claim samples in order as far ahead as the prefetch allows. A sample waits for the storage, which serves the
//! oldest requests first, none faster than a request alone, and then takes time on a core; cores are shared evenly by all
//! that run. A batch is ready when its last sample is. The consumer waits for the batches in order and computes. Nothing is
//! random: the same case gives the same times.

use crate::case::{Case, Flags};

/// Steps that are simulated one by one; the rate of the later half holds for those beyond.
const MOST_STEPS: usize = 96;
/// Fewer steps are simulated where batches are large.
const MOST_SAMPLES: usize = 6_144;
const FEWEST_STEPS: usize = 12;

/// What a run would take.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Outcome {
    pub wall_s: f64,
    /// Seconds that the consumer waits for batches, the first one included.
    pub wait_s: f64,
    pub first_wait_s: f64,
    /// Seconds per sample that a thread waits for a core which other threads of the run use.
    pub queued_s: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Worker {
    Idle,
    /// Requests' worth of service that is missing.
    Reads {
        sample: usize,
        left: f64,
    },
    /// Seconds that are missing until it has a core.
    Queues {
        sample: usize,
        left: f64,
    },
    /// Seconds on a core that are missing.
    Runs {
        sample: usize,
        left: f64,
    },
}

impl Worker {
    /// With the bytes of a sample.
    fn has(case: &Case, sample: usize) -> Self {
        let left = case.delay_s(sample);
        if left > 0.0 { Self::Queues { sample, left } } else { Self::runs(case, sample) }
    }

    fn runs(case: &Case, sample: usize) -> Self {
        Self::Runs { sample, left: case.cpu_s * case.weight(sample) }
    }
}

enum Consumer {
    Waits,
    /// Seconds that are missing, at full speed.
    Computes(f64),
    /// Bookkeeping and copies between two steps, in seconds that are missing.
    Between(f64),
}

struct Simulation<'a> {
    case: &'a Case,
    flags: Flags,
    n_samples: usize,
    workers: Vec<Worker>,
    next: usize,
    limit: usize,
    /// Finished samples of each batch.
    done: Vec<usize>,
    consumer: Consumer,
    step: usize,
    now: f64,
    outcome: Outcome,
    /// When each step ended.
    ends: Vec<f64>,
    waits: Vec<f64>,
    queued_s: f64,
}

/// Simulates a run with these settings.
pub(crate) fn simulate(case: &Case, flags: Flags) -> Outcome {
    let n_steps = case.steps as usize;
    let by_samples = (MOST_SAMPLES / case.batch.max(1)).max(FEWEST_STEPS);
    let n_simulated = n_steps.min(MOST_STEPS.min(by_samples));
    if n_simulated == 0 {
        return Outcome::default();
    }
    let mut simulation = Simulation::new(case, flags, n_simulated);
    simulation.run();
    let outcome = simulation.outcome;
    if n_simulated == n_steps {
        return outcome;
    }
    let half = n_simulated / 2;
    let n_later = (n_simulated - half) as f64;
    let per_step = (simulation.ends[n_simulated - 1] - simulation.ends[half - 1]) / n_later;
    let wait_per_step = simulation.waits[half..].iter().sum::<f64>() / n_later;
    let n_left = (n_steps - n_simulated) as f64;
    Outcome { wall_s: outcome.wall_s + n_left * per_step, wait_s: outcome.wait_s + n_left * wait_per_step, ..outcome }
}

impl<'a> Simulation<'a> {
    fn new(case: &'a Case, flags: Flags, n_steps: usize) -> Self {
        Self {
            case,
            flags,
            n_samples: n_steps * case.batch,
            workers: vec![Worker::Idle; flags.threads.max(1)],
            next: 0,
            limit: 0,
            done: vec![0; n_steps],
            consumer: Consumer::Waits,
            step: 0,
            now: 0.0,
            outcome: Outcome::default(),
            ends: Vec::with_capacity(n_steps),
            waits: vec![0.0; n_steps],
            queued_s: 0.0,
        }
    }

    fn run(&mut self) {
        self.now = self.case.start_s;
        self.waits[0] = self.case.start_s;
        self.ask();
        while self.step < self.done.len() {
            self.claim();
            self.advance();
        }
        self.outcome.wall_s = self.now;
        self.outcome.wait_s = self.waits.iter().sum();
        self.outcome.first_wait_s = self.waits[0];
        self.outcome.queued_s = self.queued_s / self.n_samples.max(1) as f64;
    }

    /// The consumer asks for its next batch, which lets the workers claim that one and the prefetch behind it.
    fn ask(&mut self) {
        let ahead = match self.flags.prefetch {
            0 => 0,
            n => n + self.case.sent_ahead,
        };
        let wanted = (self.step + 1 + ahead) * self.case.batch;
        self.limit = self.limit.max(wanted.min(self.n_samples));
        self.consumer = Consumer::Waits;
    }

    fn claim(&mut self) {
        for worker in &mut self.workers {
            if *worker == Worker::Idle && self.next < self.limit {
                let sample = self.next;
                self.next += 1;
                let weight = self.case.weight(sample);
                *worker = match &self.case.storage {
                    Some(_) => Worker::Reads { sample, left: self.case.read_weight(weight) },
                    None => Worker::has(self.case, sample),
                };
            }
        }
        if matches!(self.consumer, Consumer::Waits) && self.done[self.step] == self.case.batch {
            self.consumer = Consumer::Computes(self.case.step_s(self.step));
        }
    }

    /// To the next moment at which something ends.
    fn advance(&mut self) {
        let count = |is: fn(&Worker) -> bool| self.workers.iter().filter(|worker| is(worker)).count();
        let (n_reads, n_runs) =
            (count(|w| matches!(w, Worker::Reads { .. })), count(|w| matches!(w, Worker::Runs { .. })));
        let n_computing = match self.consumer {
            Consumer::Computes(_) => self.case.consumer_threads,
            _ => 0,
        };
        let share = (self.case.cores / (n_runs + n_computing).max(1) as f64).min(1.0);
        let compute_rate = if n_computing > 0 { share } else { 1.0 };
        let pace = share / self.case.cost(n_runs as f64);
        let rates = self.read_rates(n_reads);
        let of_workers = self.workers.iter().zip(&rates).filter_map(|(worker, rate)| match worker {
            Worker::Idle => None,
            Worker::Reads { left, .. } => Some(left / rate),
            Worker::Queues { left, .. } => Some(*left),
            Worker::Runs { left, .. } => Some(left / pace),
        });
        let of_consumer = match self.consumer {
            Consumer::Waits => None,
            Consumer::Computes(left) => Some(left / compute_rate),
            Consumer::Between(left) => Some(left),
        };
        let step = of_workers.chain(of_consumer).fold(f64::INFINITY, f64::min);
        debug_assert!(step.is_finite(), "a consumer that waits has a worker that works for it");
        self.now += step;
        if let Consumer::Waits = self.consumer {
            self.waits[self.step] += step;
        }
        self.pass(step, &rates, share, pace);
        self.pass_consumer(step, compute_rate);
    }

    /// Requests per second that each worker's request is served with: as much as one alone has, the oldest first, as far as it goes.
    fn read_rates(&self, n_reads: usize) -> Vec<f64> {
        let mut rates = vec![0.0; self.workers.len()];
        let Some(curve) = self.case.storage.as_ref().filter(|_| n_reads > 0) else { return rates };
        let (mut left, alone) = (curve.rate(n_reads as f64), curve.rate(1.0));
        let sample = |i: &usize| match self.workers[*i] {
            Worker::Reads { sample, .. } => Some(sample),
            _ => None,
        };
        let mut reading: Vec<usize> = (0..self.workers.len()).filter(|i| sample(i).is_some()).collect();
        reading.sort_unstable_by_key(|i| sample(i));
        for i in reading {
            rates[i] = left.min(alone);
            left -= rates[i];
        }
        rates
    }

    fn pass(&mut self, step: f64, rates: &[f64], share: f64, pace: f64) {
        let case = self.case;
        for (worker, read_rate) in self.workers.iter_mut().zip(rates) {
            *worker = match *worker {
                Worker::Idle => Worker::Idle,
                Worker::Reads { sample, left } => match left - step * read_rate {
                    left if left > 1e-9 => Worker::Reads { sample, left },
                    _ => Worker::has(case, sample),
                },
                Worker::Queues { sample, left } => match left - step {
                    left if left > 1e-12 => Worker::Queues { sample, left },
                    _ => Worker::runs(case, sample),
                },
                Worker::Runs { sample, left } => {
                    self.queued_s += step * (1.0 - share);
                    match left - step * pace {
                        left if left > 1e-12 => Worker::Runs { sample, left },
                        _ => {
                            self.done[sample / case.batch] += 1;
                            Worker::Idle
                        }
                    }
                }
            };
        }
    }

    fn pass_consumer(&mut self, step: f64, compute_rate: f64) {
        match self.consumer {
            Consumer::Waits => {}
            Consumer::Computes(left) => {
                let left = left - step * compute_rate;
                self.consumer =
                    if left > 1e-12 { Consumer::Computes(left) } else { Consumer::Between(self.case.between_s) };
            }
            Consumer::Between(left) => self.consumer = Consumer::Between(left - step),
        }
        if let Consumer::Between(left) = self.consumer
            && left <= 1e-12
        {
            self.ends.push(self.now);
            self.step += 1;
            if self.step < self.done.len() {
                self.ask();
            }
        }
    }
}
