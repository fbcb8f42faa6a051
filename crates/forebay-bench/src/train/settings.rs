//! What a training run can be told, and what that comes to.

use forebay_checkpoint::{Mode, WhenBehind, format};
use forebay_measure::value::{
    bytes, bytes_per_s, flag, integer, io, number, one_of, parsed, seed, some, threads, word,
};
use forebay_measure::{Cache, Io, Refused, ThreadCount};
use forebay_train::{Emulation, Model, Optimizer, Precision};
use forebay_units::{Bytes, group_digits};

use super::device::TrainDevice;
use crate::checkpoint::MODES;

/// The most images of one run: years of them, and few enough to be counted in 64 bits as bytes.
const MAX_IMAGES: u64 = 1_000_000_000_000;
/// The most steps of a run.
const MAX_STEPS: i64 = 1_000_000_000;
/// Steps of a run on a batch in memory, which has no end of its own.
const SYNTHETIC_STEPS: u64 = 100;
/// Steps of the baseline, where nobody says.
const BASELINE: u64 = 10;
/// The network, where nobody says: that of the paper's mini-application.
const MODEL: &str = "alexnet";
/// Checkpoints that stay at each place, where nobody says.
pub const KEEP: usize = 5;

const BEHIND: [(&str, WhenBehind); 3] =
    [("wait", WhenBehind::Wait), ("skip", WhenBehind::Skip), ("coalesce", WhenBehind::Coalesce)];

forebay_measure::settings! {
    /// What a training run can be told.
    pub struct TrainSettings for Train {
        /// Train on one batch made once, in memory, instead of data: the upper bound
        synthetic: bool, flag;
        /// The network; alexnet by default
        model: Option<String>, some(word(Model::names())), "NAME" [one: Model::names()];
        /// What computes it: cpu, cuda, cuda:N for one of several, or auto for a GPU where there is one; cpu by default
        ///
        /// Where auto finds no GPU, the emulated accelerator takes the batches, and without one the CPU trains the network.
        device: Option<TrainDevice>, some(parsed), "auto|cpu|cuda[:N]";
        /// The arithmetic: f32, tf32 or bf16; bf16 by default on a GPU, and f32 is the only one of the CPU
        precision: Option<Precision>, some(parsed), "NAME";
        /// Take a network's time instead of training one, as emulated:224ms, or emulated:224ms,busy to keep a core busy meanwhile
        ///
        /// The time may be drawn: uniform(FROM,TO), normal(MEAN,DEVIATION), exponential(MEAN), gamma(SHAPE,SCALE), poisson(MEAN).
        accelerator: Option<Emulation>, some(parsed), "emulated:TIME";
        /// Samples per step
        batch: usize = "64", integer(1..=1_000_000), "N";
        /// Steps, over the data again where it ends; 100 by default for a batch in memory
        steps: Option<u64>, some(integer(1..=MAX_STEPS)), "N";
        /// Epochs, each of as many steps as a pass over the data has whole batches; one by default
        epochs: Option<u64>, some(integer(1..=1_000_000)), "N";
        /// Threads that make samples; `auto` finds the number beyond which more do not help
        threads: ThreadCount = "auto", threads, "N|auto";
        /// Batches made ahead of the accelerator; with 0 work is done only while it waits
        prefetch: usize = "1", integer(0..=10_000), "N";
        /// Batches sent to a GPU ahead of the one computed; 1 by default where batches are made ahead
        device_prefetch: Option<usize>, some(integer(0..=1_000)), "N";
        /// How gradients change the network; adam by default
        optimizer: Option<String>, some(word(Optimizer::names())), "NAME" [one: Optimizer::names()];
        /// How far a step goes; 0.0001 by default, and 0.01 with sgd
        lr: Option<f64>, some(number("a number above 0 that an f32 can hold, as 0.0001", is_rate)), "X";
        /// Classes to tell apart; by default as many as the data has, and 102 for a batch in memory
        classes: Option<usize>, some(integer(1..=1_000_000)), "N";
        /// Seed of shuffle, weights and emulated times
        seed: u64 = "0", seed, "S";
        /// Evict the files before the run, and prove it
        cold: bool, flag;
        /// How files are read: buffered, direct, uring, uring-direct, or auto to measure and choose
        io: Io = "buffered", io, "MODE";
        /// Largest sample to read (a file, a record or a tar sample); a larger one counts as failed
        max_sample_size: Bytes = "256MiB", bytes(1..=u64::MAX), "SIZE";
        /// Steps on a batch in memory that are measured first, to know what I/O costs; 10 by default, 0 measures none
        ///
        /// An emulated accelerator takes no longer for having waited: there the run's own steps serve, and only 0 can be given.
        baseline: Option<u64>, some(integer(0..=100_000)), "N";
        /// Save the state after every so many steps
        checkpoint_every: Option<u64>, some(integer(1..=MAX_STEPS)), "N";
        /// When training goes on: once the checkpoint is durable (direct), durable in the burst buffer (burst), copied in memory (async)
        ///
        /// burst by default where there is a burst buffer, direct otherwise.
        checkpoint_mode: Option<Mode>, some(one_of(MODES)), "MODE" [one: MODES.map(|(name, _)| name)];
        /// How checkpoints lie in files; safetensors by default
        checkpoint_format: Option<&'static str>, some(word(formats())), "NAME" [one: formats()];
        /// Checkpoints that stay in each folder; 5 by default
        keep: Option<usize>, some(integer(1..=1_000_000)), "N";
        /// What a checkpoint does that finds those before it unfinished and no room: wait, be skipped, or take an older one's place
        checkpoint_behind: Option<WhenBehind>, some(one_of(BEHIND)), "WHAT" [one: BEHIND.map(|(name, _)| name)];
        /// The most that draining a burst buffer copies, as 100MB/s; what it copied it reads back as fast at the most
        drain_rate: Option<Bytes>, some(bytes_per_s), "BYTES/s";
        /// Bytes of a checkpoint of an emulated accelerator, which has no state of its own
        checkpoint_size: Option<Bytes>, some(bytes(4..=10_000_000_000_000)), "SIZE";
    }
}

/// Whether it is neither nothing nor infinite in the arithmetic of networks.
fn is_rate(rate: f64) -> bool {
    rate as f32 > 0.0 && (rate as f32).is_finite()
}

fn formats() -> [&'static str; 2] {
    format::FORMATS.map(format::Format::name)
}

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many steps, over the data again where it ends.
    Steps(u64),
    /// So many times the whole batches of one pass over the data; what a pass leaves over begins the next.
    Epochs(u64),
}

/// The name of the first that is given.
fn first_given(settings: &[(&'static str, bool)]) -> Option<&'static str> {
    settings.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
}

impl TrainSettings {
    fn check(&self) -> Result<(), Refused> {
        if self.steps.is_some() && self.epochs.is_some() {
            return Err("give `steps` or `epochs`, not both".to_owned());
        }
        if self.synthetic && self.epochs.is_some() {
            return Err("a batch in memory has no epochs: give `steps`".to_owned());
        }
        if self.images_per_run(0) > MAX_IMAGES {
            return Err(format!("a run has more than {} images: give fewer `steps`", group_digits(MAX_IMAGES)));
        }
        self.check_accelerator()
    }

    /// What the accelerator and the rest say against each other.
    fn check_accelerator(&self) -> Result<(), Refused> {
        let of_network = [
            ("model", self.model.is_some()),
            ("precision", self.precision.is_some()),
            ("optimizer", self.optimizer.is_some()),
            ("lr", self.lr.is_some()),
            ("classes", self.classes.is_some()),
        ];
        if self.accelerator.is_some() && matches!(self.device, Some(TrainDevice::Cpu | TrainDevice::Cuda { .. })) {
            return Err("an emulated accelerator takes the place of the device: leave `device` out, or give auto to \
                        emulate only where there is no GPU"
                .to_owned());
        }
        if let (true, Some(name)) = (self.is_emulated(), first_given(&of_network)) {
            return Err(format!(
                "an emulated accelerator learns nothing, so `{name}` would be ignored: leave it out, or give auto as \
                 `device` to emulate only where there is no GPU"
            ));
        }
        if self.is_emulated() && self.baseline.is_some_and(|n| n > 0) {
            return Err(
                "an emulated accelerator is measured by the run's own steps: give 0 as `baseline`, or leave it \
                        out"
                .to_owned(),
            );
        }
        let may_be_gpu = matches!(self.device, Some(TrainDevice::Auto | TrainDevice::Cuda { .. }));
        if !may_be_gpu && self.precision.is_some_and(|precision| precision != Precision::F32) {
            return Err("the CPU computes in f32 alone: `precision` is for a GPU".to_owned());
        }
        if !may_be_gpu && self.device_prefetch.is_some_and(|n| n > 0) {
            return Err("`device_prefetch` is for a device with memory of its own: a GPU".to_owned());
        }
        Ok(())
    }

    /// What is said of checkpoints against the places they have: `has_burst` is whether there is a burst buffer, and `None` where
    /// there is no place at all. The places are called `checkpoint` and `burst`.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check_saves(&self, has_burst: Option<bool>) -> Result<(), Refused> {
        let of_saves = [
            ("checkpoint_every", self.checkpoint_every.is_some()),
            ("checkpoint_mode", self.checkpoint_mode.is_some()),
            ("checkpoint_format", self.checkpoint_format.is_some()),
            ("keep", self.keep.is_some()),
            ("checkpoint_behind", self.checkpoint_behind.is_some()),
            ("drain_rate", self.drain_rate.is_some()),
            ("checkpoint_size", self.checkpoint_size.is_some()),
        ];
        let Some(has_burst) = has_burst else {
            return first_given(&of_saves)
                .map_or(Ok(()), |name| Err(format!("`{name}` needs checkpoints: give `checkpoint`")));
        };
        let Some(every) = self.checkpoint_every else {
            return Err("steps between two checkpoints not given: give `checkpoint_every`".to_owned());
        };
        let mode = self.mode(has_burst);
        let refused = match (self.length(), &self.accelerator, self.checkpoint_size) {
            (Length::Steps(steps), ..) if steps < every => {
                return Err(format!("a run of {steps} steps makes no checkpoint when one is made every {every}"));
            }
            _ if mode == Mode::Burst && !has_burst => "burst saves need a place in front: give `burst`",
            _ if mode == Mode::Direct && has_burst => "direct saves go to the last place at once: leave `burst` out",
            _ if mode == Mode::Direct && self.checkpoint_behind.is_some() => {
                "a direct save is over when the next one comes: leave `checkpoint_behind` out"
            }
            _ if self.drain_rate.is_some() && !has_burst => {
                "`drain_rate` is for what a burst buffer drains: give `burst`"
            }
            (_, Some(_), None) => "an emulated accelerator has no state of its own to save: give `checkpoint_size`",
            (_, None, Some(_)) => {
                "`checkpoint_size` is for an emulated `accelerator`: a network's state has the size it has"
            }
            _ => return Ok(()),
        };
        Err(refused.to_owned())
    }

    /// Whether nothing is learnt on any machine.
    pub fn is_emulated(&self) -> bool {
        self.accelerator.is_some() && self.device.is_none()
    }

    /// The network's name.
    pub fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(MODEL)
    }

    /// How gradients change it.
    pub(super) fn optimizer(&self) -> Optimizer {
        let name = self.optimizer.as_deref().unwrap_or(Optimizer::DEFAULT);
        Optimizer::named(name, self.lr).expect("the name was looked up when it was set")
    }

    /// How long a run is.
    pub fn length(&self) -> Length {
        match (self.steps, self.epochs) {
            (Some(steps), _) => Length::Steps(steps),
            (None, None) if self.synthetic => Length::Steps(SYNTHETIC_STEPS),
            (None, epochs) => Length::Epochs(epochs.unwrap_or(1)),
        }
    }

    /// Images of one run over a dataset with so many, in whole batches.
    pub fn images_per_run(&self, n_samples: u64) -> u64 {
        let batch = self.batch as u64;
        match self.length() {
            Length::Steps(steps) => steps.saturating_mul(batch),
            Length::Epochs(epochs) => (n_samples / batch * batch).saturating_mul(epochs),
        }
    }

    /// Batches made ahead: none of a batch that is there.
    pub(super) fn made_ahead(&self) -> usize {
        if self.synthetic { 0 } else { self.prefetch }
    }

    /// Batches sent ahead to a device, which may have memory of its own or not.
    pub(super) fn sent_ahead(&self, has_memory: bool) -> usize {
        match self.device_prefetch {
            // What was asked of a GPU, which is not there.
            Some(_) if self.device == Some(TrainDevice::Auto) && !has_memory => 0,
            Some(n) => n,
            None => usize::from(has_memory && self.prefetch > 0),
        }
    }

    /// Steps of the baseline: a batch in memory needs no measure beside itself.
    pub fn baseline_steps(&self) -> u64 {
        if self.synthetic { 0 } else { self.baseline.unwrap_or(BASELINE) }
    }

    /// The state of the page cache that is asked for.
    pub(super) fn cache(&self) -> Cache {
        if self.cold && !self.synthetic { Cache::Cold } else { Cache::Warm }
    }

    /// Steps between two checkpoints. A run that has a place for them says how many: see [`check_saves`](Self::check_saves).
    pub(super) fn every(&self) -> u64 {
        self.checkpoint_every.unwrap_or(MAX_STEPS as u64)
    }

    /// When training goes on after a checkpoint, with a burst buffer or without.
    pub(super) fn mode(&self, has_burst: bool) -> Mode {
        self.checkpoint_mode.unwrap_or(if has_burst { Mode::Burst } else { Mode::Direct })
    }

    /// The name of the checkpoints' format.
    pub fn format(&self) -> &'static str {
        self.checkpoint_format.unwrap_or(formats()[0])
    }

    /// Checkpoints that stay at each place.
    pub fn keep(&self) -> usize {
        self.keep.unwrap_or(KEEP)
    }
}

#[cfg(test)]
mod tests;
