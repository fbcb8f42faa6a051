//! What a run showed of its pipeline and its consumer.

use crate::curve::Curve;
use crate::simulate::{Outcome, simulate};

/// Settings that a flag changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flags {
    pub threads: usize,
    pub prefetch: usize,
}

/// Spreads the delays of neighbouring samples evenly over their distribution.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// How much longer a sample takes on a core when more cores work: they share caches, memory and sometimes execution units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crowding {
    /// Threads on cores while the time of a sample was measured.
    pub few: f64,
    /// Threads on cores at which a sample takes `ratio` times as long.
    pub many: f64,
    pub ratio: f64,
}

impl Crowding {
    /// Time of a sample with so many threads on cores over that with `few`, interpolated on logarithms.
    fn cost(self, n: f64) -> f64 {
        let Self { few, many, ratio } = self;
        match n {
            n if n <= few || many <= few => 1.0,
            n if n >= many => ratio,
            n => ratio.powf((n / few).ln() / (many / few).ln()),
        }
    }
}

/// What threads with a sample wait for without a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Server {
    #[default]
    Storage,
    /// A GPU that decodes.
    Gpu,
}

/// A pipeline and its consumer in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Samples per step.
    pub batch: usize,
    pub steps: u64,
    /// Cores that the pipeline and the consumer share.
    pub cores: f64,
    /// Samples per second by requests in flight; `None` when samples come from memory.
    pub storage: Option<Curve>,
    /// What serves these requests.
    pub served_by: Server,
    /// Seconds on a core per sample. Threads beyond the cores wait for one, which the simulation sees to.
    pub cpu_s: f64,
    /// `None` where it takes no longer.
    pub crowding: Option<Crowding>,
    /// Mean seconds that a thread with a sample waits for a core which other programs use.
    pub delay_s: f64,
    /// Relative costs of the samples in order, with mean 1; all the same when empty.
    pub weights: Vec<f64>,
    /// Fraction of a read's time that grows with the size of its sample.
    pub read_by_size: f64,
    /// Batches that the consumer's device takes ahead of the one it computes, where batches are prepared ahead at all.
    pub sent_ahead: usize,
    /// Seconds of the consumer per step, repeated as needed.
    pub step_s: Vec<f64>,
    /// Seconds between two steps: copies, checkpoints, bookkeeping.
    pub between_s: f64,
    /// Threads that the consumer computes with on the same cores; 0 for a device of its own.
    pub consumer_threads: usize,
    /// Seconds before the first sample is claimed.
    pub start_s: f64,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            batch: 1,
            steps: 1,
            cores: 1.0,
            storage: None,
            served_by: Server::Storage,
            cpu_s: 0.0,
            crowding: None,
            delay_s: 0.0,
            weights: Vec::new(),
            read_by_size: 0.0,
            sent_ahead: 0,
            step_s: Vec::new(),
            between_s: 0.0,
            consumer_threads: 0,
            start_s: 0.0,
        }
    }
}

impl Case {
    /// The run with other settings.
    pub fn predict(&self, flags: Flags) -> Outcome {
        simulate(self, flags)
    }

    /// The same run of samples that take another time on a core. A thread that runs for less time waits for cores of others less.
    pub(crate) fn with_cpu_s(&self, cpu_s: f64) -> Self {
        let delay_s = if self.cpu_s > 0.0 { self.delay_s * cpu_s / self.cpu_s } else { self.delay_s };
        Self { cpu_s, delay_s, ..self.clone() }
    }

    /// With the delay that makes up for what threads waited for cores, in seconds per sample, and did not wait for each other.
    pub fn delayed(self, flags: Flags, waited_s: f64) -> Self {
        let own_s = self.predict(flags).queued_s;
        Self { delay_s: (waited_s - own_s).max(0.0), ..self }
    }

    /// The run with a consumer that never waits.
    pub fn ideal_s(&self) -> f64 {
        let steps: f64 = (0..self.steps.min(4_096) as usize).map(|i| self.step_s(i)).sum();
        let scale = self.steps as f64 / self.steps.clamp(1, 4_096) as f64;
        steps * scale + self.steps as f64 * self.between_s
    }

    /// Samples per second that all cores process.
    pub(crate) fn cores_per_s(&self) -> f64 {
        self.cores / (self.cpu_s * self.cost(self.cores))
    }

    /// Of a sample on a core when so many threads run, over that in the run.
    pub(crate) fn cost(&self, n_running: f64) -> f64 {
        self.crowding.map_or(1.0, |crowding| crowding.cost(n_running.min(self.cores)))
    }

    pub(crate) fn step_s(&self, step: usize) -> f64 {
        if self.step_s.is_empty() { 0.0 } else { self.step_s[step % self.step_s.len()] }
    }

    pub(crate) fn weight(&self, sample: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[sample % self.weights.len()] }
    }

    /// Of a sample, exponential around the mean: a batch waits for the latest of its samples, which a mean alone would hide.
    pub(crate) fn delay_s(&self, sample: usize) -> f64 {
        let place = ((sample as f64 + 0.5) * GOLDEN).fract();
        -self.delay_s * (1.0 - place).ln()
    }

    pub(crate) fn read_weight(&self, weight: f64) -> f64 {
        1.0 + self.read_by_size * (weight - 1.0)
    }
}
